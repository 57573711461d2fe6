# The library as a part of another project, by add_subdirectory (which is what FetchContent ends in): it brings its library and
# nothing else, whatever that project calls its own things. Without LLVM, so that it builds quickly.
# SPDX-License-Identifier: Apache-2.0
import os
import unittest

from projects import BUILD, CMAKE, SOURCE, configure, run

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(outer VERSION 7.8.9 LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(cosmati SOURCE_DIR "{source}")
FetchContent_MakeAvailable(cosmati)
add_executable(outer "{source}/examples/project/main.cpp")
target_link_libraries(outer PRIVATE cosmati::cosmati)
"""


class InAnotherProjectTest(unittest.TestCase):
    def test_it_brings_its_library_and_nothing_else(self):
        # The folder is kept: what has not changed is not compiled again.
        source = BUILD / "tests/install/outer"
        build, prefix = source / "build", source / "prefix"
        source.mkdir(exist_ok=True)
        (source / "CMakeLists.txt").write_text(PROJECT.format(source=SOURCE))
        configure(source, build, "-DCOSMATI_LLVM=OFF", "-DCMAKE_BUILD_TYPE=None")
        targets = run(CMAKE, "--build", build, "--target", "help")
        for name in ("cosmati_tool", "example_softmax", "test_ir"):
            self.assertNotIn(f"{name}:", targets)
        run(CMAKE, "--build", build)
        out = run(build / "outer", cwd="/", env=os.environ | {"COSMATI_DEVICE": "sim"})
        self.assertNotIn("7.8.9", out)
        self.assertIn("y[0, 0] = 0.00065", out)
        run(CMAKE, "--install", build, "--prefix", prefix)
        self.assertEqual(list(prefix.rglob("*")), [], "a part of another project is not installed")


if __name__ == "__main__":
    unittest.main()
