# The disk cache and the log, seen from Python: a second process compiles nothing, whatever is wrong with the cache costs one warning, and
# processes that share an empty cache agree.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import cosmati as co
from arrays import DEVICES, ArraysTest, softmax

PROCESS = """
import sys, numpy as np, cosmati as co
x = np.random.default_rng(5).standard_normal((6, 37)).astype(np.float32)
compiles = 0
for name in ("softmax", "log_softmax", "logsumexp"):
    f = co.load(name, device="cpu")
    y = f(x)
    assert all(f.check(x)), name
    compiles += f.compiles
print(compiles)
"""


@unittest.skipUnless("cpu" in DEVICES, "nothing is compiled without the CPU backend")
class Cache(ArraysTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "cache"

    def process(self):
        return subprocess.Popen([sys.executable, "-c", PROCESS], env=os.environ | {"COSMATI_CACHE_DIR": str(self.folder)},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip

    def compiles(self, process):
        out, err = process.communicate()
        self.assertEqual((process.returncode, err), (0, ""))
        return int(out)

    def test_a_second_process_compiles_nothing(self):
        self.assertEqual(self.compiles(self.process()), 3)
        self.assertEqual(self.compiles(self.process()), 0)

    def test_processes_share_an_empty_cache(self):
        team = [self.process() for _ in range(4)]
        counts = [self.compiles(process) for process in team]
        self.assertGreaterEqual(sum(counts), 3)
        self.assertEqual(self.compiles(self.process()), 0)

    def test_a_damaged_entry_is_compiled_again(self):
        self.assertEqual(self.compiles(self.process()), 3)
        entries = [path for path in self.folder.rglob("*") if path.is_file() and path.stat().st_size > 100]
        self.assertGreaterEqual(len(entries), 3)
        for entry in entries:
            data = bytearray(entry.read_bytes())
            data[len(data) // 2] ^= 1
            entry.write_bytes(data)
        process = self.process()
        out, err = process.communicate()
        self.assertEqual((process.returncode, int(out)), (0, 3), err)
        self.assertEqual(self.compiles(self.process()), 0)

    def test_a_cache_that_cannot_be_costs_one_warning(self):
        self.folder.write_text("a file in its place")
        x = np.ones((2, 3), np.float32)
        f = co.load("softmax", device="cpu", cache=self.folder)
        with self.assertLogs("cosmati", "WARNING") as logs:
            np.testing.assert_allclose(f(x), softmax(x), rtol=1e-6)
            f(x.astype(np.float64))
        self.assertEqual(len(logs.output), 1, logs.output)
        self.assertIn(str(self.folder), logs.output[0])

    def test_forbidden_compiling_finds_what_the_cache_holds(self):
        x = np.ones((2, 3), np.float32)
        with self.assertRaises(co.Error) as raised:
            co.load("softmax", device="cpu", cache=self.folder, jit=False)(x)
        self.assertEqual(raised.exception.code, "not_compiled")
        co.load("softmax", device="cpu", cache=self.folder)(x)
        f = co.load("softmax", device="cpu", cache=self.folder, jit=False)
        np.testing.assert_allclose(f(x), softmax(x), rtol=1e-6)
        self.assertEqual(f.compiles, 0)


if __name__ == "__main__":
    if "cpu" not in DEVICES:
        print("nothing is compiled without the CPU backend: nothing is tested")
        sys.exit(77)
    unittest.main()
