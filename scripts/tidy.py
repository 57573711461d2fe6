#!/usr/bin/env python3
# Compiles every file of a build folder and runs clang-tidy on it, as many at a time as there are processors, and remembers which
# were clean: a file is checked again when it, a header of the project that it includes, its command or the settings have changed.
#   scripts/tidy.py BUILD [PATH...]     PATH: a file or folder of the project; default: all of it,
#                                       but for the sources of packages in .venv
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = "clang-tidy-19"


def dependencies(build):
    """The files that each object was compiled from, as the build knows them."""
    of, current = {}, []
    for line in subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("    "):
            current.append(pathlib.Path(os.path.normpath(build / line.strip())))
        elif line:
            current = of.setdefault(line.split(":")[0], [])
    return of


@functools.cache
def digest(path):
    return hashlib.sha256(path.read_bytes()).digest()


@functools.cache
def settings(folder):
    """Of the .clang-tidy files that hold for a folder."""
    own = folder / ".clang-tidy"
    return (digest(own) if own.is_file() else b"") + (b"" if folder == ROOT else settings(folder.parent))


def key(entry, files, version):
    sum_ = hashlib.sha256(version + entry["command"].encode() + settings(pathlib.Path(entry["file"]).parent))
    for path in sorted(p for p in files if p.is_relative_to(ROOT)):
        sum_.update(str(path.relative_to(ROOT)).encode() + digest(path))
    return sum_.hexdigest()


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: tidy.py BUILD [PATH...]")
    build = pathlib.Path(sys.argv[1]).resolve()
    wanted = [pathlib.Path(path).resolve() for path in sys.argv[2:]] or [ROOT]
    clean = build / "tidy"
    clean.mkdir(exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        if not any(file.is_relative_to(path) for path in wanted) or file.is_relative_to(ROOT / ".venv"):
            continue
        words = entry["command"].split()
        entries[words[words.index("-o") + 1]] = entry
    # What a file includes is known once it is compiled; some belong to targets that nothing else builds.
    subprocess.run(["ninja", "-C", build, *entries], check=True)
    known = dependencies(build)
    work = {pathlib.Path(entry["file"]): clean / key(entry, known[made], version) for made, entry in entries.items()}
    due = sorted(file for file, stamp in work.items() if not stamp.exists())
    started, done, bad = time.monotonic(), 0, []

    def check(file):
        # GCC's warning options that clang does not know are no findings.
        command = ["nice", TIDY, "-p", build, "--quiet", "--extra-arg=-Wno-unknown-warning-option", file]
        return file, subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in concurrent.futures.as_completed([pool.submit(check, file) for file in due]):
            file, result = future.result()
            done += 1
            if result.returncode == 0:
                work[file].touch()
            else:
                bad.append(file)
                print(f"\n{result.stdout}", end="")
            left = (time.monotonic() - started) / done * (len(due) - done)
            print(f"\rtidy: {done} of {len(due)} files, {left:.0f} s left ", end="", file=sys.stderr, flush=True)
    if due:
        print(file=sys.stderr)
    print(f"tidy: {len(work)} files, {len(work) - len(due)} of them known to be clean")
    if bad:
        sys.exit("tidy: findings in " + ", ".join(str(file.relative_to(ROOT)) for file in bad))


if __name__ == "__main__":
    main()
