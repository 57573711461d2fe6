# Whether what a row computed is right: every element of every output of every set, before and after its time is taken.
# SPDX-License-Identifier: Apache-2.0
"""Checks of outputs against the oracle, and of a yardstick's copy against its source."""
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
    """Holds outputs against the oracle. Bits that it accepted once are accepted again without asking it."""

    def __init__(self, judge, names):
        self.judge, self.names = judge, list(names)
        self.accepted = {}  # an output's name, type, shape and bytes -> the judgement

    def check(self, when, number, outputs):
        """Rows for the outputs of set `number`. Raises cosmati.Error where one is missing or is no array of its form."""
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


class CopyChecker:
    """Holds a yardstick's copies against their sources."""

    def __init__(self, inputs):
        self.inputs = inputs

    def check(self, when, number, outputs):
        target, source = data.raw(outputs["bytes"]), data.raw(self.inputs[number]["bytes"])
        wrong = np.flatnonzero(target != source) if len(target) == len(source) else np.array([min(len(target), len(source))])
        row = _row(when, number, "bytes", "copy", len(wrong) == 0, data.sha256(target))
        if len(wrong):
            at = int(wrong[0])
            row.update(at=[at], got=float(target[at]) if at < len(target) else None, expected=float(source[at]) if at < len(source) else None)
        return [row]


def sentence(row):
    """A failed check in words."""
    text = f"{row['output']} of set {row['set']} ({row['when']}) is wrong at {tuple(row['at'] or ())}: got {row['got']}, expected {row['expected']}"
    return text if row["method"] == "copy" else text + f"; largest difference {row['max_abs']}, bound there {row['bound']}"
