# The results folder: results.json, table.md, plans and sources. Files appear whole; a folder that exists is left alone.
# SPDX-License-Identifier: Apache-2.0
"""Writing and reading results folders."""
import datetime
import json
import os
import pathlib
import re

from bench.core import schema

VERSION = 1


class BadResults(Exception):
    """A file that is no results.json of this version, or a folder that cannot be written."""


def slug(text):
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def write_text(path, text):
    """Under another name first, then renamed. Raises BadResults."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text)
        os.replace(temporary, path)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise BadResults(f"{path} cannot be written: {problem.strerror}") from None


def make_folder(parent, name, today=None):
    """A new folder PARENT/YYYY-MM-DD-slug; -2, -3 and so on where that one exists. Raises BadResults."""
    day = (today or datetime.date.today()).isoformat()
    try:
        pathlib.Path(parent).mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            folder = pathlib.Path(parent) / (f"{day}-{slug(name)}" + (f"-{number}" if number > 1 else ""))
            try:
                folder.mkdir()
                (folder / "plans").mkdir()
                return folder
            except FileExistsError:
                continue
    except OSError as problem:
        raise BadResults(f"the results folder cannot be made in {parent}: {problem.strerror}") from None
    raise BadResults(f"{parent} holds a thousand results of {name} of today")


def save(folder, document):
    """results.json and table.md of what is known so far. The document is checked first: what is written is always of the schema."""
    findings = schema.findings(document)
    if findings:
        raise AssertionError("results that break their own schema: " + "; ".join(findings[:5]))
    write_text(folder / "results.json", json.dumps(document, indent=1, allow_nan=False) + "\n")
    write_text(folder / "table.md", table(document))


def load(path):
    """A results.json, checked. Raises BadResults, naming the file and what is wrong."""
    try:
        document = json.loads(pathlib.Path(path).read_text())
    except OSError as problem:
        raise BadResults(f"{path} cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise BadResults(f"{path} is not JSON: {problem}") from None
    if not isinstance(document, dict) or document.get("schema") != "cosmati-bench":
        raise BadResults(f"{path} holds no results of a benchmark")
    if document.get("version") != VERSION:
        raise BadResults(f"{path} is of version {document.get('version')} of the schema; version {VERSION} is read here")
    findings = schema.findings(document)
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise BadResults(f"{path} breaks the schema: {findings[0]}{more}")
    return document


# ---- the table -----------------------------------------------------------------------------------------------------
def _time(us):
    return f"{us:.3g}" if us < 100 else f"{us:.0f}"


def _ratio(value):
    return f"{value:.3f}"


def _line(cells):
    return "| " + " | ".join(cells) + " |"


def _checked(row):
    judged = [check for check in row["checks"] if check["method"] != "equal"]
    if not judged:
        return ""
    if judged[0]["method"] in ("copy", "read"):
        return {"copy": "copied", "read": "read"}[judged[0]["method"]] if all(check["ok"] for check in judged) else "FAILED"
    worst = max(judged, key=lambda check: check["max_abs"] if isinstance(check["max_abs"], float) else float("inf"))
    text = f"{worst['max_abs']:.2g} of {worst['bound']:.2g}" if isinstance(worst["max_abs"], float) and isinstance(worst["bound"], float) else str(worst["max_abs"])
    return text if all(check["ok"] for check in judged) else f"FAILED ({text})"


def _metric_table(case, metric, baseline):
    yield _line(["variant", "median us", "quartiles", f"ratio to {baseline}", "range", "better : worse", "largest error of bound", "remarks"])
    yield _line(["---", "---:", "---:", "---:", "---:", "---:", "---:", "---"])
    summaries = {s["variant"]: s for s in case["summaries"] if s["metric"] == metric}
    pairs = {p["variant"]: p for p in case["pairs"] if p["metric"] == metric}
    for row in case["variants"]:
        cells = [row["name"]]
        s, p = summaries.get(row["name"]), pairs.get(row["name"])
        cells += [_time(s["median"]), f"{_time(s['q1'])} .. {_time(s['q3'])}"] if s else ["", ""]
        cells += [_ratio(p["median"]), f"{_ratio(p['low'])} .. {_ratio(p['high'])}", f"{p['better']} : {p['worse']}"] if p else ["", "", ""]
        remarks = [row["reason"]] if row["reason"] else []
        if row["status"] != "ok":
            remarks.insert(0, f"**{row['status']}**")
        elif not s:
            remarks.append("not timed by this metric")
        if row["kind"] == "yardstick" and s:
            remarks.append("as many bytes")
        yield _line(cells + [_checked(row), ": ".join(remarks + row["notes"]).replace("|", "\\|").replace("\n", " ")])


VERDICTS = {"met": "met", "missed": "**MISSED**", "absent": "**not measured**", "error": "**failed**"}


def _number(value, unit=""):
    if value is None:
        return ""
    return (_ratio(value) if unit == "ratio" else f"{value:.4g}") + (f" {unit}" if unit and unit != "ratio" else "")


def bar_table(bars):
    """The bars of a document as Markdown lines."""
    yield _line(["bar", "case", "ours us", "reference", "its us", "figure", "wanted", ""])
    yield _line(["---", "---", "---:", "---", "---:", "---:", "---:", "---"])
    for bar in bars:
        times = [_time(bar[key]) if bar[key] is not None else "" for key in ("ours_us", "theirs_us")]
        remarks = [VERDICTS[bar["status"]], *([bar["reason"]] if bar["reason"] else []), *bar["notes"]]
        wanted = f"{bar['rule']} {_number(bar['limit'], bar['unit'])}"
        cells = [bar["what"], bar["case"] or "", times[0], bar["fastest"] or "", times[1], _number(bar["figure"], bar["unit"]), wanted, ": ".join(remarks)]
        yield _line(cell.replace("|", "\\|").replace("\n", " ") for cell in cells)


def bar_counts(bars):
    """How many bars are met, as one sentence."""
    counts = {status: sum(bar["status"] == status for bar in bars) for status in VERDICTS}
    return f"{len(bars)} bars: " + ", ".join(f"{n} {name}" for name, n in zip(("met", "missed", "not measured", "failed"), counts.values()) if n or name == "met")


def table(document):
    """The Markdown table of a document."""
    provenance, settings = document["provenance"], document["settings"]
    machine, before, after = provenance["machine"], provenance["before"], provenance["after"]
    git = provenance["git"]
    lines = [f"# {document['benchmark']['title']}", ""]
    lines.append(f"Status: **{document['status']}**" + (f" ({document['reason']})" if document["reason"] else "") + ".")
    lines.append(
        f"{machine['processor']}, {machine['cores_allowed']} of {machine['cores']} cores, {settings['threads']} threads; "
        f"load {before['load'][0]:.2f} before" + (f", {after['load'][0]:.2f} after" if after and after["load"] else "") + "."
        if before["load"]
        else f"{machine['processor']}."
    )
    for gpu in before["gpus"]:
        lines.append(f"GPU: {gpu.get('name')}, driver {gpu.get('driver_version')}.")
    lines.append(
        f"{provenance['started']}; revision {git['revision'] or 'unknown'}{', with changes' if git['dirty'] else ''}; `{' '.join(provenance['command'])}`."
    )
    lines.append(
        "Times are per call. A ratio is the time of a variant over that of the baseline in the same round, the median of the rounds with their range; below 1 the variant took less time."
    )
    if document["bars"]:
        lines += ["", "## Bars", "", "A speed ratio is the time of the fastest reference over ours in the same round, the median of the rounds.", ""]
        lines += [*bar_table(document["bars"]), "", bar_counts(document["bars"]) + "."]
    for case in document["cases"]:
        memory = "calls go through more memory than the last-level cache" if case["cold"] else "calls repeat on the same arrays"
        lines += ["", f"## {case['name']}", "", f"{'Cold' if case['cold'] else 'Warm'}: {memory} ({case['sets']} x {case['set_bytes']} bytes).", ""]
        if case["status"] != "complete":
            lines += [f"**{case['status']}**" + (f": {case['reason']}" if case["reason"] else ""), ""]
        for metric in settings["metrics"]:
            rounds = next((len(order["rounds"]) for order in case["orders"] if order["metric"] == metric), 0)
            lines += [f"{metric}, {rounds} rounds:", ""] + list(_metric_table(case, metric, settings["baseline"])) + [""]
        lines.pop()
    return "\n".join(lines) + "\n"
