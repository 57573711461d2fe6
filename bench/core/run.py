# Running a benchmark: every case with all its rows side by side, checked, timed in balanced rounds, summarised, saved.
# SPDX-License-Identifier: Apache-2.0
"""The runner."""
import json
import signal
import sys

from bench.core import check, data, machine, measure, order, ours, provenance, results, statistics
from bench.core.declare import Array, Cosmati
from bench.core.peers import Absent, Subject, Work, load_peers
from bench.core.progress import Progress


def one_line(problem):
    return f"{type(problem).__name__}: {problem}".replace("\n", " ")


class Row:
    """One variant of one case: its line in the results, and what it runs."""

    def __init__(self, variant, peers):
        self.variant = variant
        self.peer = None if isinstance(variant, Cosmati) else peers[variant]
        self.yardstick = self.peer is not None and self.peer.yardstick
        self.subject, self.sets, self.checker = None, None, None
        self.line = {
            "name": variant.name if isinstance(variant, Cosmati) else variant,
            "kind": "cosmati" if self.peer is None else "yardstick" if self.yardstick else "peer",
            "status": "ok", "reason": None, "device": None, "options": {}, "versions": {}, "notes": [],
            "plan": None, "sources": [], "checks": [], "rechecks": 0,
        }  # fmt: skip
        if self.peer is None:
            self.line["options"] = {name: str(value) for name, value in {"threads": variant.threads or "", **variant.knobs}.items() if value != ""}

    @property
    def name(self):
        return self.line["name"]

    @property
    def ok(self):
        return self.line["status"] == "ok"

    def end(self, status, reason):
        self.line["status"], self.line["reason"] = status, reason
        self.subject = None


class CaseRun:
    """One case. Its line in the results is complete after prepare(), measure() and finish()."""

    def __init__(self, case, run):
        self.case, self.run, self.settings = case, run, run.benchmark.settings
        self.rows = [Row(variant, run.peers) for variant in run.benchmark.variants]
        self.sets, self.copies = None, None
        self.line = {
            "name": case.name, "status": "incomplete", "reason": None, "operation": case.operation or "", "scalars": dict(case.scalars),
            "program": {"name": "", "spec": "<text>" if "{" in case.program else case.program, "text": "", "sha256": provenance.sha256_of_text("")},
            "inputs": [], "outputs": [], "sets": 0, "set_bytes": 0, "variants": [row.line for row in self.rows],
            "orders": [], "samples": [], "summaries": [], "pairs": [],
        }  # fmt: skip

    # ---- before timing ---------------------------------------------------------------------------------------------
    def prepare(self):
        """Generates arrays, asks the oracle, makes every row's subject and checks what it computes. Raises cosmati.Error and
        ValueError for a case that cannot be measured at all."""
        case, line = self.case, self.line
        values = {name: data.generate(array, self.settings.seed, f"{case.name}/{name}") for name, array in case.inputs.items()}
        function = ours.program_of(case)
        for parameter in function.parameters:
            if parameter.kind == "inout":
                raise ValueError(f"{function.name} writes its argument {parameter.name} in place, so that no two calls would do the same work")
        line["operation"] = case.operation or function.name
        text = function.source(**values, **case.scalars, as_="tile")
        line["program"].update(name=function.name, text=text, sha256=provenance.sha256_of_text(text))
        line["inputs"] = [
            {"name": name, "dtype": array.dtype, "shape": list(array.shape), "values": array.generator(), "sha256": data.sha256(values[name])}
            for name, array in case.inputs.items()
        ]
        judge = function.judge(**values, **case.scalars)
        outputs = {name: (str(dtype), tuple(shape)) for name, dtype, shape in judge.outputs}
        line["outputs"] = [{"name": name, "dtype": dtype, "shape": list(shape)} for name, (dtype, shape) in outputs.items()]
        line["set_bytes"] = data.bytes_of(values, outputs)
        cache = machine.last_level_bytes(self.run.facts["caches"])
        line["sets"] = data.sets_needed(line["set_bytes"], self.settings.cold, cache, machine.memory_bytes("MemAvailable"))
        self.sets = data.Sets(values, outputs, line["sets"])
        if any(row.yardstick for row in self.rows):
            half = max(1, line["set_bytes"] // 2)
            source = data.generate(Array("u8", half, values=(0, 256)), self.settings.seed, f"{case.name}/bytes")
            self.copies = data.Sets({"bytes": source}, {"bytes": ("u8", source.shape)}, line["sets"])
        oracle = check.OracleChecker(judge, outputs)
        for row in self.rows:
            row.sets = self.copies if row.yardstick else self.sets
            row.checker = check.CopyChecker(row.sets.inputs) if row.yardstick else oracle
            self.run.say(f"{case.name}: checking {row.name}")
            self._guarded(row, lambda row=row: self._make_ready(row))

    def _guarded(self, row, body):
        """Runs a part of a row; what it raises ends the row, not the run."""
        import cosmati

        try:
            return body()
        except Absent as absent:
            row.end("absent", str(absent))
        except cosmati.BackendAbsent as absent:
            row.end("absent", absent.what)
        except Exception as problem:  # a peer may raise anything
            row.end("error", one_line(problem))
        return None

    def _make_ready(self, row):
        sets, operation = row.sets, "copy" if row.yardstick else self.line["operation"]
        scalars = {} if row.yardstick else self.case.scalars
        work = Work(operation, sets.inputs, sets.outputs, scalars, self.run.threads)
        if row.peer is None:
            row.subject, plan, sources = ours.subject(self.case, row.variant, work)
            self._keep_plan(row, plan, sources)
        else:
            row.subject = row.peer.subject(work)
        subject: Subject = row.subject
        row.line.update(device=subject.device, versions=dict(subject.versions), notes=list(subject.notes))
        for path in subject.binaries:
            self.run.binaries.add(path)
        sets.poison()
        for i in range(len(sets)):
            subject.run(i)
        subject.wait()
        self._check(row, "before", range(len(sets)))
        damage = sets.damage()
        if damage:
            row.end("failed", damage)
            sets.mend()

    def _keep_plan(self, row, plan, sources):
        stem = f"plans/{results.slug(self.case.name)}--{results.slug(row.name)}"
        files = [(None, f"{stem}.plan.json", plan)] + [(form, f"{stem}.{form}.txt", text) for form, text in sources]
        for form, name, text in files:
            results.write_text(self.run.folder / name, text)
            kept = {"file": name, "sha256": provenance.sha256_of_text(text)}
            if form is None:
                row.line["plan"] = {"hash": json.loads(plan)["hash"], **kept}
            else:
                row.line["sources"].append({"as": form, **kept})

    def _check(self, row, when, numbers):
        for i in numbers:
            outputs = row.subject.fetch(i) if row.subject.fetch else row.sets.outputs[i]
            found = row.checker.check(when, i, outputs)
            if when == "before":
                row.line["checks"] += found
            else:
                row.line["rechecks"] += len(found)
                row.line["checks"] += [one for one in found if one["method"] == "oracle" or not one["ok"]]
            wrong = next((one for one in found if not one["ok"]), None)
            if wrong:
                row.end("failed", check.sentence(wrong))
                return

    # ---- timing ----------------------------------------------------------------------------------------------------
    def measure(self):
        for metric in self.settings.metrics:
            timed = [row for row in self.rows if row.ok and metric.split("_")[0] in row.subject.metrics()]
            watches = {row.name: measure.Stopwatch(row.subject, len(row.sets), metric) for row in timed}
            orders = order.rounds([row.name for row in timed], self.settings.rounds, self.settings.seed)
            self.line["orders"].append({"metric": metric, "rounds": orders})
            for row in timed:
                self._guarded(row, lambda row=row: (watches[row.name].warm_up(self.settings.warmup_s), watches[row.name].calibrate(self.settings.target_s)))
            by_name = {row.name: row for row in timed}
            for number, names in enumerate(orders):
                for position, name in enumerate(names):
                    row = by_name[name]
                    if row.ok:
                        self._guarded(row, lambda: self._visit(row, watches[name], metric, number, position))
                    self.run.advance(metric, len(orders) * len(names), f"{self.case.name}: round {number + 1} of {len(orders)}")
        for sets in (self.sets, self.copies):
            damage = sets.damage() if sets else None
            for row in self.rows if damage else ():
                if row.ok and row.sets is sets:
                    row.end("failed", f"{damage} during the rounds, by this row or another")

    def _visit(self, row, watch, metric, number, position):
        if not row.subject.fetch:
            row.sets.poison()
        watch.touched.clear()
        seconds = watch.visit(self.settings)
        self.line["samples"].append(
            {"metric": metric, "variant": row.name, "round": number, "position": position, "calls": watch.calls, "seconds": seconds}
        )
        self._check(row, f"round {number} of {metric}", sorted(watch.touched))

    # ---- after timing ----------------------------------------------------------------------------------------------
    def finish(self):
        baseline = self.run.baseline
        for metric in self.settings.metrics:
            by_round = {}
            for row in self.rows:
                if not row.ok:
                    continue
                samples = [s for s in self.line["samples"] if s["variant"] == row.name and s["metric"] == metric]
                if not samples:
                    continue
                times = [[second * 1e6 / s["calls"] for second in s["seconds"]] for s in sorted(samples, key=lambda s: s["round"])]
                by_round[row.name] = [statistics.median(one) for one in times]
                every = [time for one in times for time in one]
                self.line["summaries"].append({"metric": metric, "variant": row.name, "unit": "us", **statistics.summary(every)})
            for name, values in by_round.items():
                if name != baseline and baseline in by_round:
                    pair = statistics.paired(values, by_round[baseline])
                    self.line["pairs"].append({"metric": metric, "variant": name, "baseline": baseline, **pair})
        bad = [row.name for row in self.rows if row.line["status"] in ("failed", "error")]
        self.line["status"] = "failed" if bad else "complete"
        self.line["reason"] = "; ".join(f"{row.name}: {row.line['reason']}" for row in self.rows if row.name in bad) or None
        for row in self.rows:
            row.subject = None

    def interrupted(self):
        for row in self.rows:
            if row.ok:
                row.end("incomplete", "interrupted")
        self.line.update(status="incomplete", reason="interrupted")


class Run:
    """One run of one benchmark. `document` is what results.json holds."""

    def __init__(self, benchmark, about, folder, threads, stream=sys.stderr):
        self.benchmark, self.folder, self.threads = benchmark, folder, threads
        self.peers = load_peers()
        self.baseline = benchmark.baseline or benchmark.names()[0]
        self.binaries = provenance.Binaries()
        for path in provenance.our_binaries():
            self.binaries.add(path)
        self.facts = machine.facts()
        settings = benchmark.settings
        rounds = len(order.rounds(benchmark.names(), settings.rounds, 0))
        self.visits = {metric: rounds * len(benchmark.variants) for metric in settings.metrics}
        self.progress = Progress(self.expected_s(len(benchmark.cases)), stream)
        self.document = {
            "schema": "cosmati-bench", "version": results.VERSION, "status": "incomplete", "reason": "not finished", "benchmark": about,
            "settings": {
                "metrics": list(settings.metrics), "rounds": settings.rounds, "samples": settings.samples,
                "single_samples": settings.single_samples, "target_s": settings.target_s, "warmup_s": settings.warmup_s,
                "pause_s": settings.pause_s, "cold": settings.cold, "seed": settings.seed, "threads": threads,
                "baseline": self.baseline, "variants": benchmark.names(),
            },
            "provenance": {
                "started": provenance.now(), "finished": None, "command": provenance.command(), "git": provenance.git(),
                "environment": provenance.environment(), "versions": provenance.versions(), "binaries": [],
                "machine": self.facts, "before": machine.state(), "after": None,
            },
            "cases": [],
        }  # fmt: skip

    # ---- progress --------------------------------------------------------------------------------------------------------
    def case_s(self, metric):
        """How long the rounds of a case are expected to take by a metric, where every variant takes part."""
        return self.visits[metric] * self.benchmark.settings.visit_s(metric)

    def expected_s(self, cases):
        return cases * sum(self.case_s(metric) for metric in self.benchmark.settings.metrics)

    def advance(self, metric, visits, what):
        """One of so many visits of a case is behind us."""
        self.progress.advance(self.case_s(metric) / visits, what)

    def say(self, what):
        self.progress.say(what)

    # ---- the run -------------------------------------------------------------------------------------------------------
    def save(self):
        self.document["provenance"]["binaries"] = list(self.binaries.rows.values())
        results.save(self.folder, self.document)

    def execute(self):
        """Runs all cases and saves after each. Returns the status. An interruption ends it with what was measured."""
        failed = []
        try:
            with _interruptible():
                for case in self.benchmark.cases:
                    self._case(case, failed)
            changed = self.binaries.again()
            failed += [f"{name} changed while the benchmark ran" for name in changed]
            self.document.update(status="failed" if failed else "complete", reason="; ".join(failed) or None)
        except KeyboardInterrupt:
            self.document.update(status="incomplete", reason="interrupted")
        self.progress.clear()
        self.document["provenance"].update(finished=provenance.now(), after=machine.state())
        self.save()
        return self.document["status"]

    def _case(self, case, failed):
        import cosmati

        run = CaseRun(case, self)
        self.document["cases"].append(run.line)
        try:
            run.prepare()
            run.measure()
            run.finish()
        except KeyboardInterrupt:
            run.interrupted()
            raise
        except (cosmati.Error, ValueError, MemoryError) as problem:
            reason = one_line(problem)
            for row in run.rows:
                row.end("error", "the case cannot be measured")
            run.line.update(status="failed", reason=reason)
        if run.line["status"] == "failed":
            failed.append(f"{case.name}: {run.line['reason']}")
        self.progress.done_s = self.expected_s(len(self.document["cases"]))
        self.save()


class _interruptible:
    """SIGTERM ends a run as Ctrl-C does."""

    def __enter__(self):
        def stop(*_):
            raise KeyboardInterrupt

        try:
            self.before = signal.signal(signal.SIGTERM, stop)
        except ValueError:  # not the main thread
            self.before = None

    def __exit__(self, *_):
        if self.before is not None:
            signal.signal(signal.SIGTERM, self.before)
