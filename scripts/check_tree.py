#!/usr/bin/env python3
# The rules of the tree that no compiler checks:
#   layers    a folder of src/ includes only the folders listed for it; tools, python and examples see what they may
#   vendors   LLVM's headers only in src/backends/cpu, isl's only in src/prove
#   ceiling   code files have at most 800 lines (tests and tables are exempt)
#   headers   every source file begins with a comment and the SPDX line; a header has #pragma once
#   words     no notes to self, no absolute paths of a machine, no tabs, no trailing blanks
#   tests     docs/tests.md names files that exist, and tests that stand in them
#   sorted    the lists that a file marks with `sorted` between `[` and `]` comments are sorted
# Prints one line a finding and exits with 1 if there is any.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CEILING = 800

# What each folder of src/ may include of the others (itself and support always).
LAYERS = {
    "support": set(),
    "ops": set(),
    "ir": {"ops"},
    "language": {"ops", "ir"},
    "oracle": {"ops", "ir"},
    "place": {"ops", "ir"},
    "prove": {"ops", "ir", "place"},
    "plan": {"ops", "ir", "place", "prove", "kernel"},
    "kernel": {"ops"},
    "lower": {"ops", "ir", "place", "prove", "plan", "kernel"},
    "backends": {"ops", "kernel"},
    "runtime": {"ops", "ir", "language", "oracle", "kernel", "backends"},
    "library": {"ops", "ir", "language", "oracle", "place", "prove", "plan", "kernel", "lower", "backends", "runtime"},
}
# What launches need beyond their layers, and of the backends: a package runs without LLVM and isl.
RUNTIME = {"plan/facts.h"}
NATIVE = ("backends/native/", "backends/gpu/")
# Beside the public headers, tools read the signature of a program and the elements of arrays, and draw random ones.
TOOLS = {"language/source.h", "ops/ops.h", "support/distinct.h", "support/memory.h", "support/read_file.h", "support/suggest.h"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
FORBIDDEN = re.compile("|".join([r"\bTO" + r"DO\b", r"\bFIX" + r"ME\b", r"\bXX" + r"X\b", r"\bHA" + r"CK\b"]))
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|Users|work|mnt|opt)/[\w.]")
SPDX = "SPDX-License-Identifier: Apache-2.0"
CODE = {".cpp", ".h", ".py", ".sh", ".def"}


def tracked():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [pathlib.Path(line) for line in out.stdout.splitlines() if (ROOT / line).is_file()]


def layer_findings(path, text):
    parts = path.parts
    for kind, included in INCLUDE.findall(text):
        if included.startswith(("llvm-c/", "llvm/")) and parts[:3] != ("src", "backends", "cpu"):
            yield f"includes {included}: LLVM belongs to src/backends/cpu"
        if included.startswith("isl/") and parts[:2] not in (("src", "prove"), ("tests", "prove")):
            yield f"includes {included}: isl belongs to src/prove"
        if kind != '"':
            continue
        if "/" not in included and not included.endswith(".inc"):
            yield f'includes "{included}": includes are relative to the root of src'
        folder = included.split("/")[0]
        if parts[0] == "src" and folder in LAYERS and folder not in LAYERS[parts[1]] | {parts[1], "support"} and (parts[1] != "runtime" or included not in RUNTIME):
            yield f'includes "{included}": {parts[1]} may not see {folder}'
        if parts[:2] == ("src", "runtime") or parts[:3] == ("src", "backends", "native"):
            if folder == "backends" and not included.startswith(NATIVE):
                yield f'includes "{included}": what launches need is no compiler, and of the backends sees {NATIVE}'
        if parts[0] == "examples" and folder in LAYERS:
            yield f'includes "{included}": examples see the public headers only'
        if parts[0] == "tools" and folder in LAYERS and included not in TOOLS:
            yield f'includes "{included}": tools see the public headers, and {", ".join(sorted(TOOLS))}'
        if parts[0] == "python" and folder != "bind":
            yield f'includes "{included}": the Python package sees the public headers and its own bind/'
        if parts[0] == "include":
            yield f'includes "{included}": public headers include <cosmati/...> only'


def header_findings(path, lines):
    comment = "#" if path.suffix in (".py", ".sh") or path.name in ("dev", "run") else "//"
    start = 1 if lines and lines[0].startswith("#!") else 0
    head = []
    for line in lines[start:]:
        if not line.startswith(comment):
            break
        head.append(line)
    if path.suffix == ".def":
        if not head:
            yield "has no header comment"
        return
    if not any(SPDX in line for line in head):
        yield f"its header comment lacks '{SPDX}'"
    if not [line for line in head if SPDX not in line]:
        yield "its header comment does not say what the file decides"
    if path.suffix == ".h" and "#pragma once" not in lines:
        yield "has no #pragma once"


def sorted_findings(lines):
    opened = None
    for number, line in enumerate(lines, 1):
        if re.search(r"(//|#) sorted \[$", line.strip()):
            opened = []
        elif opened is not None and re.search(r"(//|#) \]$", line.strip()):
            for (a, _), (b, at) in zip(opened, opened[1:]):
                if a > b:
                    yield f"line {at}: {b.strip()} belongs before {a.strip()}"
            opened = None
        elif opened is not None:
            opened.append((line, number))


# In a row of docs/tests.md a file stands in backquotes, and what follows it until the next one are tests in it.
def test_findings(lines):
    for number, line in enumerate(lines, 1):
        held = None
        for name in re.findall(r"`([^`]+)`", line.split("|")[2]) if line.count("|") == 3 else []:
            if name.startswith("tests/"):
                held = (ROOT / name).read_text() if (ROOT / name).is_file() else None
                if held is None:
                    yield f"line {number}: there is no {name}"
            elif held is not None and not re.search(rf"\b{name}\b", held):
                yield f"line {number}: there is no test {name}"


def findings(path):
    try:
        text = (ROOT / path).read_text()
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    is_code = path.suffix in CODE or path.name == "dev"
    exempt = path.parts[0] in ("tests", "bench") or path.suffix == ".def"
    if path.suffix in (".cpp", ".h"):
        yield from layer_findings(path, text)
    if is_code:
        yield from header_findings(path, lines)
        yield from sorted_findings(lines)
        if len(lines) > CEILING and not exempt:
            yield f"has {len(lines)} lines; the ceiling is {CEILING}"
    if path.name == "LICENSE" or path.suffix in (".csv", ".npy", ".json"):
        return
    if path.as_posix() == "docs/tests.md":
        yield from test_findings(lines)
    for number, line in enumerate(lines, 1):
        if FORBIDDEN.search(line):
            yield f"line {number}: a note to self; write the condition or an issue"
        if MACHINE_PATH.search(line):
            yield f"line {number}: an absolute path of a machine"
        if is_code and ("\t" in line or line != line.rstrip()):
            yield f"line {number}: a tab or trailing blank"


def main():
    if len(sys.argv) > 1:
        sys.exit(__doc__ or "usage: check_tree.py")
    all_findings = [f"{path}: {finding}" for path in tracked() for finding in findings(path)]
    for finding in all_findings:
        print(finding)
    if all_findings:
        sys.exit(f"check_tree: {len(all_findings)} findings")


if __name__ == "__main__":
    main()
