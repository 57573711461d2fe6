# Whether what a row computed is right: every element of every output of every set, before and after its time is taken.
# SPDX-License-Identifier: Apache-2.0
"""Checks of outputs against the oracle, and of a yardstick's copy against its source."""
import sys

import numpy as np

from bench.core import data


def _number(value):
    if np.isfinite(value):
        return float(value)
    return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"


def _row(when, number, output, method, ok, digest):
    return {
        "when": when, "set": number, "output": output, "method": method, "ok": ok, "max_abs": 0.0, "max_rel": 0.0, "bound": 0.0,
        "unjudged": 0, "at": None, "got": None, "expected": None, "sha256": digest,
    }  # fmt: skip


class OracleChecker:
    """Holds outputs against the oracle. Bits that it accepted once are accepted again without asking it. Where the inputs are `repeats`
    times the same along the first dimension, the oracle knows one period, and every period is held against it."""

    def __init__(self, judge, names, repeats=1):
        self.judge, self.names, self.repeats = judge, list(names), repeats
        self.accepted = {}  # an output's name, type, shape and hash of a period -> the judgement
        self.whole = {}  # hash of a period -> of the array that consists of it

    def check(self, when, number, outputs):
        """Rows for the outputs of set `number`. Raises cosmati.Error where one is missing or is no array of its form."""
        if self.repeats == 1:
            return self._judge(when, number, outputs)
        parts = {name: self._periods(array) for name, array in outputs.items()}
        odd = [k for k in range(1, self.repeats) if any(not np.array_equal(data.raw(p[k]), data.raw(p[0])) for p in parts.values())]
        digests = {name: self._digest(outputs[name], parts[name][0], bool(odd)) for name in self.names if name in outputs}
        rows = self._judge(when, number, {name: p[0] for name, p in parts.items()})
        for k in odd:
            for i, row in enumerate(self._judge(when, number, {name: p[k] for name, p in parts.items()})):
                if row["at"] is not None:
                    row["at"][0] += k * len(parts[row["output"]][k])
                if (rows[i]["ok"], -_worth(rows[i])) > (row["ok"], -_worth(row)):
                    rows[i] = row
        return [{**row, "sha256": digests[row["output"]]} for row in rows]

    def _periods(self, array):
        if array.ndim == 0 or array.shape[0] % self.repeats:
            raise ValueError(f"an output of the shape {array.shape} does not consist of {self.repeats} periods")
        return data.periods(array, self.repeats)

    def _digest(self, array, period, odd):
        if odd:
            return data.sha256(array)
        one = data.sha256(period)
        if one not in self.whole:
            self.whole[one] = data.sha256(array)
        return self.whole[one]

    def _judge(self, when, number, outputs):
        keys = {name: (name, str(array.dtype), array.shape, data.sha256(array)) for name, array in outputs.items()}
        if all(keys.get(name) in self.accepted for name in self.names):
            return [{**self.accepted[keys[name]], "when": when, "set": number, "method": "equal"} for name in self.names]
        rows = []
        for j in self.judge(dict(outputs)):
            row = _row(when, number, j.output, "oracle", j.ok, keys[j.output][-1])
            row.update(max_abs=_number(j.max_abs), max_rel=_number(j.max_rel), bound=_number(j.bound), unjudged=j.unjudged)
            if j.ok:
                self.accepted[keys[j.output]] = row
            else:
                row.update(at=list(j.at), got=_number(j.got), expected=_number(j.expected))
            rows.append(row)
        return rows


def _worth(row):
    return row["max_abs"] if isinstance(row["max_abs"], float) else float("inf")


class CopyChecker:
    """Holds a yardstick's copies against their sources."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.digest = data.sha256(inputs[0]["bytes"])  # all sets hold the same

    def check(self, when, number, outputs):
        target, source = data.raw(outputs["bytes"]), data.raw(self.inputs[number]["bytes"])
        if np.array_equal(target, source):
            return [_row(when, number, "bytes", "copy", True, self.digest)]
        row = _row(when, number, "bytes", "copy", False, data.sha256(target))
        at = int(np.argmax(target != source)) if len(target) == len(source) else min(len(target), len(source))
        row.update(at=[at], got=float(target[at]) if at < len(target) else None, expected=float(source[at]) if at < len(source) else None)
        return [row]


class ReadChecker:
    """Holds what a yardstick made of all bytes that it read, the exclusive or of their words, against NumPy's."""

    def __init__(self, inputs):
        source = data.raw(inputs[0]["bytes"])
        whole = len(source) // 8 * 8
        rest = int.from_bytes(source[whole:].tobytes(), sys.byteorder)
        self.expected = int(np.bitwise_xor.reduce(source[:whole].view(np.uint64))) ^ rest

    def check(self, when, number, outputs):
        got = int(outputs["bytes"].view(np.uint64)[0])
        row = _row(when, number, "bytes", "read", got == self.expected, data.sha256(outputs["bytes"]))
        if got != self.expected:
            row.update(at=[0], got=float(got), expected=float(self.expected))
        return [row]


def sentence(row):
    """A failed check in words."""
    text = f"{row['output']} of set {row['set']} ({row['when']}) is wrong at {tuple(row['at'] or ())}: got {row['got']}, expected {row['expected']}"
    return text if row["method"] in ("copy", "read") else text + f"; largest difference {row['max_abs']}, bound there {row['bound']}"
