# What the behaviour tests share: the tool as a function on NumPy arrays, on every device that is present.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

TOOL = str(pathlib.Path(sys.argv.pop(1) if len(sys.argv) > 1 else "build/release/cosmati").resolve())
DONE, CHECK_FAILED, WRONG_INPUT, INTERNAL, ABSENT = range(5)


def present_devices():
    listed = json.loads(subprocess.run([TOOL, "devices", "--json"], capture_output=True, text=True, check=True).stdout)
    return [device["name"] for device in listed["devices"] if device["present"]]


DEVICES = present_devices()


def bf16(values):
    """float32 values rounded to bf16, as the u2 bits that files hold."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.int64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded).astype(np.uint16)


def from_bf16(bits):
    return np.left_shift(np.asarray(bits, np.uint32), 16, dtype=np.uint32).view(np.float32)


class ToolTest(unittest.TestCase):
    """run() gives a program's outputs; each test holds them against NumPy, or expects an Error by its code."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.count = 0

    def program(self, text):
        self.count += 1
        path = self.path / f"program{self.count}.tile"
        path.write_text(text)
        return str(path)

    def argument(self, name, value):
        if not isinstance(value, np.ndarray):
            return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
        self.count += 1
        path = self.path / f"{name}{self.count}.npy"
        np.save(path, value)
        return f"{name}={path}"

    def execute(self, program, device, outs, arguments, *options):
        command = [TOOL, "run", program, "--device", device, "--json", *options]
        command += [self.argument(name, value) for name, value in arguments.items()]
        files = {name: self.path / f"out_{name}.npy" for name in outs}
        for name, file in files.items():
            command += ["--out", f"{name}={file}"]
        result = subprocess.run(command, capture_output=True, text=True)
        return result, files

    def run_on(self, device, program, outs, *options, check=True, **arguments):
        """The named outputs on one device, with --check unless told otherwise."""
        result, files = self.execute(program, device, outs, arguments, *(["--check"] if check else []), *options)
        self.assertEqual(result.returncode, DONE, f"{device}: {result.stdout}{result.stderr}")
        arrays = [np.load(files[name]) for name in outs]
        return arrays[0] if len(arrays) == 1 else arrays

    def each(self, program, outs, *options, check=True, **arguments):
        """[(device, outputs)] for every device that is present."""
        return [(device, self.run_on(device, program, outs, *options, check=check, **arguments)) for device in DEVICES]

    def each_plan(self, program, outs, *options, lanes=(1, 2, 4, 8, 16, 32), **arguments):
        """[(device with lanes, outputs)] for every number of lanes that a group may have; --check is left to each()."""
        device = "cpu" if "cpu" in DEVICES else "sim"
        return [(f"{device}, {n} lanes", self.run_on(device, program, outs, "--set", f"lanes={n}", *options, check=False, **arguments))
                for n in lanes]

    def refused(self, program, *options, **arguments):
        """The first error of a run that must end with exit code 2."""
        result, _ = self.execute(program, DEVICES[0], [], arguments, *options)
        self.assertEqual(result.returncode, WRONG_INPUT, result.stdout + result.stderr)
        return json.loads(result.stdout)["errors"][0]


def softmax(x):
    x = np.asarray(x, np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)


def close(got, wanted, rtol=2e-5, atol=2e-6):
    np.testing.assert_allclose(np.asarray(got, np.float64), wanted, rtol=rtol, atol=atol)


def main():
    unittest.main(verbosity=1)
