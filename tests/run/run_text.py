#!/usr/bin/env python3
# Runs the program of a .tile file on the oracle, the simulator and the CPU, and compares what the tool prints.
#   run_text.py TOOL FILE...            compare
#   run_text.py TOOL --bless FILE...    rewrite the expectations from the oracle
# The comments at the head of a file are its cases:
#   # run: ARGS...       arguments of `cosmati run FILE ARGS --check`; several cases a file
#   # expect: LINE       a line of the output of the case above, in order; numbers are equal within the tolerance of a
#                        float32 result. `error CODE` expects exit code 2 and the code in the message.
# A device that is absent is reported and passed over.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import shlex
import subprocess
import sys

DEVICES = ("oracle", "sim", "cpu")
ABSENT, WRONG_INPUT = 4, 2


def read_cases(lines):
    """The head of a file as [(line of run, arguments, [expectations])] and the number of head lines."""
    cases, head = [], 0
    for number, line in enumerate(lines):
        if not line.startswith("#"):
            break
        head = number + 1
        if line.startswith("# run:"):
            cases.append((line, shlex.split(line[len("# run:"):]), []))
        elif line.startswith("# expect:"):
            cases[-1][2].append(line[len("# expect:"):].strip())
    return cases, head


def run(tool, path, device, arguments):
    return subprocess.run([tool, "run", str(path), *arguments, "--check", "--device", device], capture_output=True, text=True)


def output_lines(result):
    """What a case is compared by: the lines of outputs, or the code of the error."""
    if result.returncode == WRONG_INPUT:
        words = result.stderr.split(": ")
        codes = [word for word in words if word.isidentifier()]
        return ["error " + (codes[0] if codes else result.stderr.strip())]
    return [line for line in result.stdout.splitlines() if not line.startswith("check ")]


def words_equal(got, wanted):
    if got == wanted:
        return True
    try:
        g, w = float(got), float(wanted)
    except ValueError:
        return False
    return abs(g - w) <= 2e-6 + 2e-5 * abs(w)


def lines_equal(got, wanted):
    g, w = got.split(), wanted.split()
    return len(g) == len(w) and all(map(words_equal, g, w))


def compare(tool, path):
    failures, ran = [], set()
    cases, _ = read_cases(path.read_text().splitlines())
    if not cases:
        failures.append(f"{path}: no `# run:` line")
    for line, arguments, wanted in cases:
        if not wanted:
            failures.append(f"{path}: {line}: no expectation; bless it")
        for device in DEVICES:
            result = run(tool, path, device, arguments)
            where = f"{path}: {line} --device {device}"
            if result.returncode == ABSENT:
                print(f"{where}: absent")
                continue
            ran.add(device)
            got = output_lines(result)
            if result.returncode not in (0, WRONG_INPUT):
                failures.append(f"{where}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
            elif len(got) != len(wanted) or not all(map(lines_equal, got, wanted)):
                failures.append(f"{where}\n  wanted {wanted}\n  got    {got}\n{result.stderr}")
            if result.returncode == 0 and "\ncheck " not in "\n" + result.stdout:
                failures.append(f"{where}: nothing was checked")
    if not {"oracle", "sim"} <= ran:
        failures.append(f"{path}: oracle or simulator is absent")
    return failures


def bless(tool, path):
    lines = path.read_text().splitlines()
    cases, head = read_cases(lines)
    expected = {}
    for line, arguments, _ in cases:
        result = run(tool, path, "oracle", arguments)
        if result.returncode not in (0, WRONG_INPUT):
            sys.exit(f"{path}: {line}: exit code {result.returncode}\n{result.stderr}")
        expected[line] = output_lines(result)
    out = []
    for line in lines[:head]:
        if line.startswith("# expect:"):
            continue
        out.append(line)
        out += [f"# expect: {wanted}" for wanted in expected.get(line, ())]
    path.write_text("\n".join(out + lines[head:]) + "\n")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--bless"]
    if len(arguments) < 2:
        sys.exit("usage: run_text.py TOOL [--bless] FILE...")
    tool, paths = arguments[0], [pathlib.Path(p) for p in arguments[1:]]
    if "--bless" in sys.argv:
        for path in paths:
            bless(tool, path)
        return
    failures = [failure for path in paths for failure in compare(tool, path)]
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
