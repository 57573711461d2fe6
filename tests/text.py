#!/usr/bin/env python3
# Text tests of the tool: each .tile file says in its head what a command prints.
#   text.py TOOL FILE...            compare
#   text.py TOOL --bless FILE...    rewrite the expectations
# The head of a file is one of
#   # error: CODE LINE:COLUMN: TEXT     `cosmati check FILE` refuses the program with exactly this
#   # $ COMMAND {} ARGS...              `cosmati COMMAND FILE ARGS...` prints the `# > LINE`s that follow
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shlex
import subprocess
import sys


def call(tool, arguments):
    # The simulator is on every machine; plans and kernels do not depend on which processor this is.
    result = subprocess.run([tool, *arguments], capture_output=True, text=True, env={**os.environ, "COSMATI_DEVICE": "sim"})
    return result.returncode, (result.stdout + result.stderr).rstrip("\n").split("\n")


def error_head(tool, path):
    """The `# error:` line that the file earns now."""
    code, lines = call(tool, ["check", str(path)])
    text = lines[0]
    if code != 2 or not text.startswith(f"{path}:"):
        return f"# error: none: exit code {code}: {text}"
    line, column, rest = text[len(str(path)) + 1:].split(":", 2)
    name, message = rest.strip().split(": ", 1)
    return f"# error: {name} {line}:{column}: {message}"


def output_head(tool, path, command):
    words = [str(path) if word == "{}" else word for word in shlex.split(command)]
    code, lines = call(tool, words)
    head = [f"# $ {command}"] + [f"# > {line}".rstrip() for line in lines]
    return head if code == 0 else head + [f"# > exit code {code}"]


def heads(tool, path, text):
    """(the head as written, the head as it should be, the program)"""
    lines = text.split("\n")
    if lines[0].startswith("# error:"):
        return lines[:1], [error_head(tool, path)], lines[1:]
    count = next(i for i, line in enumerate(lines) if not line.startswith(("# $ ", "# >")))
    written, earned = lines[:count], []
    for line in written:
        if line.startswith("# $ "):
            earned += output_head(tool, path, line[4:])
    return written, earned, lines[count:]


def main(tool, *rest):
    bless, failed = "--bless" in rest, 0
    for name in rest:
        if name == "--bless":
            continue
        path = pathlib.Path(name)
        written, earned, program = heads(tool, path, path.read_bytes().decode("utf-8", "surrogateescape"))
        if written == earned:
            continue
        if bless:
            path.write_bytes("\n".join(earned + program).encode("utf-8", "surrogateescape"))
            continue
        failed += 1
        print(f"{path}: not what the file says")
        for line in written:
            print(f"  - {line}" if line not in earned else f"    {line}")
        for line in earned:
            if line not in written:
                print(f"  + {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
