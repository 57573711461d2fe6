# Holding bars against what was measured: a line each, met, missed, or not measured and why.
# SPDX-License-Identifier: Apache-2.0
"""Bars of a benchmark."""
from bench.core import statistics
from bench.core.declare import Speed
from bench.core.peers import Absent

def hold(bars, document, done=lambda lines, what: None):
    """The lines of all bars, given a document whose cases are complete. `done` is told the lines so far before each figure is measured."""
    lines = []
    for bar in bars:
        if not isinstance(bar, Speed):
            done(lines, bar.what)
        lines.append(_speed(bar, document) if isinstance(bar, Speed) else _figure(bar, document))
    return lines


def _line(bar, **more):
    line = {
        "what": bar.what, "case": None, "variant": None, "against": [], "fastest": None, "ours_us": None, "theirs_us": None, "rule": "at least",
        "limit": float(bar.limit), "unit": "", "figure": None, "status": "absent", "reason": None, "samples": [], "notes": [],
    }  # fmt: skip
    return {**line, **more}


def _verdict(line, figure):
    met = figure >= line["limit"] if line["rule"] == "at least" else figure <= line["limit"]
    line.update(figure=float(figure), status="met" if met else "missed")
    return line


def _speed(bar, document):
    line = _line(bar, case=bar.case, variant=bar.variant, against=list(bar.against), unit="ratio")
    case = next((case for case in document["cases"] if case["name"] == bar.case), None)
    if case is None:
        return {**line, "reason": "there was no time for it"}
    if case["status"] == "incomplete":
        return {**line, "reason": case["reason"]}
    metric = document["settings"]["metrics"][0]

    def rounds(name):
        found = [s for s in case["samples"] if s["variant"] == name and s["metric"] == metric]
        return [statistics.median(s["seconds"]) / s["calls"] for s in sorted(found, key=lambda s: s["round"])]

    rows = {row["name"]: row for row in case["variants"]}
    ours = rows.get(bar.variant)
    if ours is None or ours["status"] != "ok":
        return {**line, "status": "error", "reason": (ours and ours["reason"]) or case["reason"] or "it was not timed"}
    timed = {name: rounds(name) for name in bar.against if name in rows and rows[name]["status"] == "ok"}
    mine = rounds(bar.variant)
    if not timed or not mine:
        return {**line, "reason": "; ".join(f"{name}: {rows[name]['reason']}" for name in bar.against if name in rows)}
    ratios = {name: statistics.paired(theirs, mine) for name, theirs in timed.items()}
    fastest = min(ratios, key=lambda name: ratios[name]["median"])
    line.update(
        fastest=fastest, samples=ratios[fastest]["ratios"],
        ours_us=statistics.median(mine) * 1e6, theirs_us=statistics.median(timed[fastest]) * 1e6,
    )  # fmt: skip
    return _verdict(line, ratios[fastest]["median"])


def _figure(bar, document):
    line = _line(bar, rule=bar.rule, unit=bar.unit)
    try:
        measured = bar.measure(document)
    except Absent as absent:
        return {**line, "reason": str(absent)}
    except Exception as problem:  # a figure may run anything
        return {**line, "status": "error", "reason": f"{type(problem).__name__}: {problem}".replace("\n", " ")}
    line.update(samples=[float(sample) for sample in measured.samples], notes=list(measured.notes))
    return _verdict(line, statistics.median(line["samples"]) if measured.value is None else measured.value)
