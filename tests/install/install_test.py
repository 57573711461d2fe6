# `cmake --install`, seen from outside: a project finds, builds and runs it wherever the tree was moved to, the library shows its
# public API only, and it is small. In the build folder of the test lies nothing that the installed tree needs.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from projects import BUILD, CACHE, CMAKE, SANITIZE, SOURCE, configure, run

LIMIT_MB = 12


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        first, cls.prefix = cls.folder / "first", cls.folder / "moved"
        run(CMAKE, "--install", BUILD, "--prefix", first, "--strip")
        shutil.move(first, cls.prefix)
        cls.libdir = next(cls.prefix.rglob("libcosmati.so")).parent
        cls.library = (cls.libdir / "libcosmati.so").resolve()

    def project(self, name, text, *options, fails=False):
        """Configures a project of one CMakeLists.txt and, where there is one, the example's main.cpp."""
        source = self.folder / name
        source.mkdir()
        (source / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\n" + text)
        return configure(source, source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", *options, fails=fails)

    def test_the_example_project_builds_and_runs(self):
        files = [SOURCE / "examples/project" / name for name in ("CMakeLists.txt", "main.cpp")]
        lines = [line for file in files for line in file.read_text().splitlines() if line.strip() and not re.match(r"\s*(#\s|//)", line)]
        self.assertLess(len(lines), 40)
        build = self.folder / "example"
        configure(SOURCE / "examples/project", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run(CMAKE, "--build", build)
        self.assertIn(f"cosmati {self.version()}: y[0, 0] = 0.00065", run(build / "uses_cosmati", cwd="/"))

    def version(self):
        header = (self.prefix / "include/cosmati/version.h").read_text()
        return re.search(r'#define COSMATI_VERSION "(.*)"', header).group(1)

    def test_one_version_stands_everywhere(self):
        self.assertIn(f"project(cosmati VERSION {self.version()} ", (SOURCE / "CMakeLists.txt").read_text())
        self.assertEqual(run(self.prefix / "bin/cosmati", "--version").strip(), self.version())
        self.assertTrue(self.library.name.endswith(self.version()), self.library)
        self.assertIn(self.version(), self.project("right", "find_package(cosmati 0.1 REQUIRED)\nmessage(${cosmati_VERSION})\n"))

    def test_a_wrong_version_or_component_is_refused(self):
        refused = self.project("newer", "find_package(cosmati 0.99 REQUIRED)\n", fails=True)
        self.assertIn(f"version: {self.version()}", refused)
        refused = self.project("component", "find_package(cosmati REQUIRED COMPONENTS cosmati nonsense)\n", fails=True)
        self.assertIn("cosmati has no component nonsense", refused)

    def test_the_tool_finds_the_shipped_programs(self):
        environment = {key: os.environ[key] for key in ("COSMATI_DEVICE",) if key in os.environ}
        out = run(self.prefix / "bin/cosmati", "run", "softmax", "x=f32[3,5]:normal", "--check", cwd="/", env=environment)
        self.assertRegex(out, r"check y .* ok")

    def test_nothing_names_a_path_of_the_build(self):
        for file in self.prefix.rglob("*"):
            if not file.is_file():
                continue
            data = file.read_bytes()
            for place in (SOURCE, BUILD, self.folder / "first"):
                self.assertNotIn(str(place).encode() + b"/", data, f"{file} names {place}")

    def test_the_library_shows_its_public_api_only(self):
        words = set()
        for header in (self.prefix / "include/cosmati").iterdir():
            words |= set(re.findall(r"\w+", header.read_text()))
        layers = {folder.name for folder in (SOURCE / "src").iterdir()}
        symbols = run("nm", "-DC", "--defined-only", self.library).splitlines()
        self.assertGreater(len(symbols), 50)
        for line in symbols:
            symbol = line.split(" ", 2)[2]
            name = re.sub(r"^(typeinfo|typeinfo name|vtable) for ", "", symbol)
            name = re.split(r"[(\[<]", name)[0].split("::")
            self.assertEqual(name[0], "cosmati", symbol)
            self.assertTrue({part.lstrip("~") for part in name} <= words, f"{symbol} stands in no public header")
            self.assertFalse(set(name[1:-1]) & (layers | {"Impl"}), f"{symbol} is not public")

    @unittest.skipIf(SANITIZE, "sanitizers make it large")
    def test_the_library_is_small(self):
        size = self.library.stat().st_size
        print(f"\n{self.library.name}, stripped: {size / 1e6:.2f} MB (limit {LIMIT_MB})")
        self.assertLess(size, LIMIT_MB * 1e6)

    def test_every_header_stands_alone(self):
        for header in sorted((self.prefix / "include/cosmati").glob("*.h")):
            run(CACHE["CMAKE_CXX_COMPILER"], "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{self.prefix}/include", "-xc++",
                "-", input=f"#include <cosmati/{header.name}>\n#include <cosmati/{header.name}>\n")

    @unittest.skipIf(SANITIZE or not shutil.which("pkg-config"), "needs pkg-config and a build without sanitizers")
    def test_pkg_config_compiles_and_links(self):
        environment = os.environ | {"PKG_CONFIG_PATH": str(self.libdir / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", f"cosmati = {self.version()}", env=environment).split()
        program = self.folder / "by_pkg_config"
        run(CACHE["CMAKE_CXX_COMPILER"], "-std=c++20", SOURCE / "examples/project/main.cpp", "-o", program, *flags)
        run(program, env=os.environ | {"LD_LIBRARY_PATH": str(self.libdir)})
        told = run("pkg-config", "--variable=libdir", "cosmati", env=environment).strip()
        run(CACHE["CMAKE_CXX_COMPILER"], "-std=c++20", SOURCE / "examples/project/main.cpp", "-o", program, *flags, f"-Wl,-rpath,{told}")
        run(program)


if __name__ == "__main__":
    unittest.main()
