# What the tests of the installed tree share: running commands, and what this build was configured with.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys

CMAKE, BUILD, SOURCE = [sys.argv.pop(1) for _ in range(3)]
BUILD, SOURCE = pathlib.Path(BUILD), pathlib.Path(SOURCE)
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
SANITIZE = CACHE.get("COSMATI_SANITIZE", "")


def run(*command, fails=False, **options):
    """The output of a command that must succeed, or must fail."""
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if (done.returncode != 0) != fails:
        raise AssertionError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def configure(source, build, *options, fails=False):
    """Configures a project with the compiler of this build."""
    flags = f"-fsanitize={SANITIZE}" if SANITIZE else ""
    same = [f"-D{name}={CACHE[name]}" for name in ("CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER_LAUNCHER",
                                                   "CMAKE_C_COMPILER_LAUNCHER") if CACHE.get(name)]
    return run(CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_FLAGS={flags}", *same, *options, fails=fails)
