# The language page and the README promise programs: each that they show is accepted, and computes what its text says.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess

import numpy as np

from tool import DONE, TOOL, ToolTest, close, main

ROOT = pathlib.Path(__file__).resolve().parents[2]


def programs(page):
    """The blocks of a page that are texts of the language."""
    blocks = re.findall(r"^```\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if re.match(r"program |def |reducer ", block)]


class LanguagePage(ToolTest):
    def setUp(self):
        super().setUp()
        self.all = self.program("\n".join(programs("docs/language.md")))

    def test_every_program_is_accepted(self):
        for page, least in (("README.md", 1), ("docs/language.md", 6)):
            texts = programs(page)
            self.assertGreaterEqual(len(texts), least, page)
            for text in texts:
                result = subprocess.run([TOOL, "check", self.program(text)], capture_output=True, text=True)
                self.assertEqual(result.returncode, DONE, text + result.stderr)
                self.assertEqual(result.stdout.count(": ok\n"), len(re.findall(r"^program ", text, re.MULTILINE)), text)

    def test_ranges_are_windows_and_segments(self):
        x = np.random.default_rng(1).standard_normal(101).astype(np.float32)
        windows = [x[max(0, i - 3):i + 4].mean(dtype=np.float64) for i in range(101)]
        off = np.array([0, 5, 5, 40, 101], np.int32)
        for device, y in self.each(self.all + ":windowed_mean", ["y"], x=x, w=3):
            with self.subTest(device):
                close(y, windows)
        for device, s in self.each(self.all + ":segment_sums", ["s"], x=x, off=off):
            with self.subTest(device):
                close(s, [x[a:b].sum(dtype=np.float64) for a, b in zip(off, off[1:])], atol=2e-5)

    def test_what_lies_outside_of_an_array_is_what_else_says(self):
        x = np.random.default_rng(2).standard_normal((5, 9)).astype(np.float32)
        ids = np.array([2, -1, 4], np.int32)
        for device, y in self.each(self.all + ":difference", ["y"], x=x):
            with self.subTest(device):
                close(y, np.diff(x, prepend=0))
        for device, y in self.each(self.all + ":embed", ["y"], table=x, id=ids):
            with self.subTest(device):
                np.testing.assert_array_equal(y, np.where(ids[:, None] < 0, 0, x[ids]))

    def test_a_whole_array_is_reduced_to_one_number(self):
        x = np.random.default_rng(4).standard_normal((7, 33)).astype(np.float32)
        for device, y in self.each(self.all + ":total", ["y"], x=x):
            with self.subTest(device):
                self.assertEqual(y.shape, ())
                close(y, x.sum(dtype=np.float64), atol=2e-5)

    def test_reducers_streams_and_definitions(self):
        x = np.random.default_rng(3).standard_normal((4, 33)).astype(np.float32)
        wide = x.astype(np.float64)
        for device, y in self.each(self.all + ":rms", ["y"], x=x):
            with self.subTest(device):
                close(y, wide / np.sqrt(np.mean(wide**2, 1, keepdims=True)))
        h, average = np.zeros(4), []
        for column in wide.T:
            h = h + (column - h) * np.float64(np.float32(0.3))
            average.append(h)
        for device, (y, peak) in self.each(self.all + ":moving_average", ["y", "peak"], x=x, alpha=0.3):
            with self.subTest(device):
                close(y, np.transpose(average))
                np.testing.assert_array_equal(peak, np.maximum.accumulate(x, 1))
        for device, y in self.each(self.all + ":normalise_twice", ["y"], x=x):
            with self.subTest(device):
                close(y.mean(1), np.zeros(4), atol=1e-5)
                close(y.std(1), np.ones(4), rtol=1e-3)


if __name__ == "__main__":
    main()
