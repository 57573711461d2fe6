# Running a benchmark: every case with all its rows side by side, checked, timed in balanced rounds, summarised, saved.
# SPDX-License-Identifier: Apache-2.0
"""The runner."""
import json
import signal
import sys
import time

from bench.core import bars, check, data, machine, measure, order, ours, provenance, results, statistics
from bench.core.declare import Array, Cosmati, Speed
from bench.core.peers import Absent, Subject, Work, load_peers
from bench.core.progress import Progress


OURS = "cosmati"


def one_line(problem):
    return f"{type(problem).__name__}: {problem}".replace("\n", " ")


class Row:
    """One variant of one case: its line in the results, and what it runs."""

    def __init__(self, variant, peers):
        self.variant = variant
        self.peer = None if isinstance(variant, Cosmati) else peers[variant]
        self.yardstick = self.peer.yardstick if self.peer else None
        self.subject, self.material, self.sets, self.checker = None, None, None, None
        self.line = {
            "name": variant.name if isinstance(variant, Cosmati) else variant,
            "kind": OURS if self.peer is None else "yardstick" if self.yardstick else "peer",
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


class Material:
    """What the variants of a case work on: its program, its inputs, the oracle's results, sets of arrays."""

    def __init__(self, case, run):
        self.case, self.run = case, run
        settings = run.benchmark.settings
        self.cold = settings.cold if case.cold is None else case.cold
        self.function = ours.program_of(case)
        for parameter in self.function.parameters:
            if parameter.kind == "inout":
                raise ValueError(f"{self.function.name} writes its argument {parameter.name} in place, so that no two calls would do the same work")
        self.operation = case.operation or self.function.name
        self.repeats = max((array.repeats() for array in case.inputs.values()), default=1)
        self.values, self.judge = run.values_and_judge(case, self.function)
        self.outputs = {name: (str(dtype), self._whole(tuple(shape))) for name, dtype, shape in self.judge.outputs}
        self.set_bytes = data.bytes_of({name: (array.dtype, array.shape) for name, array in case.inputs.items()}, self.outputs)
        self.count = run.sets_needed(self.set_bytes, self.cold)
        self.sets = data.Sets({name: (array.shape, self.values[name]) for name, array in case.inputs.items()}, self.outputs, self.count, case.off)
        self.checker = check.OracleChecker(self.judge, self.outputs, self.repeats)

    def _whole(self, shape):
        """The shape of an output from that of one period."""
        if self.repeats == 1:
            return shape
        period = next(array.period for array in self.case.inputs.values() if array.period)
        if not shape or shape[0] != period:
            raise ValueError(f"{self.function.name} has an output of the shape {shape}, which does not come again with the rows of its inputs")
        return (period * self.repeats, *shape[1:])

    def text(self):
        return self.function.source(**self.values, **self.case.scalars, as_="tile")

    def input_lines(self):
        return [
            {
                "name": name, "dtype": array.dtype, "shape": list(array.shape), "values": array.generator(),
                "sha256": data.sha256(self.values[name], array.repeats()),
            }
            for name, array in self.case.inputs.items()
        ]  # fmt: skip

    def yardstick(self, kind):
        """(sets, checker) of a yardstick of this kind for as many bytes."""
        size = max(1, self.set_bytes // 2 if kind == "copy" else self.set_bytes)
        # Not a power of two: the exclusive or of an even number of periods would be 0.
        source = data.generate(Array("u8", min(size, (1 << 20) - 64), values=(0, 256)), self.run.benchmark.settings.seed, "bytes")
        sets = data.Sets({"bytes": ((size,), source)}, {"bytes": ("u8", (size if kind == "copy" else 8,))}, self.count)
        return sets, {"copy": check.CopyChecker, "read": check.ReadChecker}[kind](sets.inputs)


class CaseRun:
    """One case. Its line in the results is complete after prepare(), measure() and finish()."""

    def __init__(self, case, run):
        self.case, self.run, self.settings = case, run, run.benchmark.settings
        self.rows, self.all_sets = [], []
        self.line = {
            "name": case.name, "status": "incomplete", "reason": None, "operation": case.operation or "", "scalars": dict(case.scalars),
            "program": {"name": "", "spec": "<text>" if "{" in case.program else case.program, "text": "", "sha256": provenance.sha256_of_text("")},
            "inputs": [], "outputs": [], "cold": self.settings.cold if case.cold is None else case.cold, "sets": 0, "set_bytes": 0, "variants": [],
            "orders": [], "samples": [], "summaries": [], "pairs": [],
        }  # fmt: skip
        if not callable(case.variants):
            self._make_rows(run.benchmark.variants_of(case))

    def _make_rows(self, variants):
        self.rows = [Row(variant, self.run.peers) for variant in variants]
        self.line["variants"] = [row.line for row in self.rows]

    # ---- before timing ---------------------------------------------------------------------------------------------
    def prepare(self):
        """Generates arrays, asks the oracle, makes every row's subject and checks what it computes. Raises cosmati.Error and
        ValueError for a case that cannot be measured at all."""
        case, line = self.case, self.line
        self.run.say(f"{case.name}: asking the oracle")
        main = Material(case, self.run)
        text = main.text()
        line["operation"] = main.operation
        line["program"].update(name=main.function.name, text=text, sha256=provenance.sha256_of_text(text))
        line["inputs"] = main.input_lines()
        line["outputs"] = [{"name": name, "dtype": dtype, "shape": list(shape)} for name, (dtype, shape) in main.outputs.items()]
        line["set_bytes"], line["sets"] = main.set_bytes, main.count
        self.all_sets = [main.sets]
        if callable(case.variants):
            self._make_rows(case.variants(main))
        yardsticks, others = {}, {}
        for row in self.rows:
            row.material, row.sets, row.checker = main, main.sets, main.checker
            if row.yardstick:
                if row.yardstick not in yardsticks:
                    yardsticks[row.yardstick] = main.yardstick(row.yardstick)
                    self.all_sets.append(yardsticks[row.yardstick][0])
                row.sets, row.checker = yardsticks[row.yardstick]
            elif row.peer is None and row.variant.case is not None:
                other = row.variant.case
                if other.name not in others:
                    others[other.name] = Material(other, self.run)
                    self.all_sets.append(others[other.name].sets)
                row.material = others[other.name]
                row.sets, row.checker = row.material.sets, row.material.checker
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
        sets, case = row.sets, row.material.case
        work = Work(row.yardstick or row.material.operation, sets.inputs, sets.outputs, {} if row.yardstick else case.scalars, self.run.threads)
        if row.peer is None:
            row.subject, plan, sources = ours.subject(case, row.variant, work)
            if case is not self.case:
                row.subject.notes.append(f"computes {case.name}")
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
            done = []
            self.line["orders"].append({"metric": metric, "rounds": done})
            for row in timed:
                self._guarded(row, lambda row=row: (watches[row.name].warm_up(self.settings.warmup_s), watches[row.name].calibrate(self.settings.target_s)))
            by_name = {row.name: row for row in timed}
            for number, names in enumerate(orders):
                if number > 0 and number % order.design(len(timed)) == 0 and self.run.late():
                    break
                done.append(names)
                for position, name in enumerate(names):
                    row = by_name[name]
                    if row.ok:
                        self._guarded(row, lambda: self._visit(row, watches[name], metric, number, position))
                    self.run.advance(metric, len(orders) * len(names), f"{self.case.name}: round {number + 1} of {len(orders)}")
        for sets in self.all_sets:
            damage = sets.damage()
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
        self._let_go()

    def _let_go(self):
        """Arrays are as large as memory allows: those of a case end with it."""
        self.all_sets = []
        for row in self.rows:
            row.subject, row.material, row.sets, row.checker = None, None, None, None

    def interrupted(self):
        for row in self.rows:
            if row.ok:
                row.end("incomplete", "interrupted")
        self.line.update(status="incomplete", reason="interrupted")


class Run:
    """One run of one benchmark. `document` is what results.json holds."""

    def __init__(self, benchmark, about, folder, threads, stream=sys.stderr, clock=time.monotonic):
        self.benchmark, self.folder, self.threads, self.clock = benchmark, folder, threads, clock
        self.peers = load_peers()
        self.baseline = benchmark.baseline or next(iter(benchmark.all_names()), OURS)
        self.binaries = provenance.Binaries()
        for path in provenance.our_binaries():
            self.binaries.add(path)
        self.facts = machine.facts()
        self.known = (None, None)  # the last case's program and inputs, and what they give
        self.begun, self.case_ends = clock(), None
        settings = benchmark.settings
        self.progress = Progress(self.expected_s(benchmark.cases), stream)
        self.document = {
            "schema": "cosmati-bench", "version": results.VERSION, "status": "incomplete", "reason": "not finished", "benchmark": about,
            "settings": {
                "metrics": list(settings.metrics), "rounds": settings.rounds, "samples": settings.samples,
                "single_samples": settings.single_samples, "target_s": settings.target_s, "warmup_s": settings.warmup_s,
                "pause_s": settings.pause_s, "cold": settings.cold, "seed": settings.seed, "minutes": settings.minutes, "threads": threads,
                "baseline": self.baseline, "variants": benchmark.all_names(),
            },
            "provenance": {
                "started": provenance.now(), "finished": None, "command": provenance.command(), "git": provenance.git(),
                "environment": provenance.environment(), "versions": provenance.versions(), "binaries": [],
                "machine": self.facts, "before": machine.state(), "after": None,
            },
            "cases": [],
            "bars": [],
        }  # fmt: skip

    # ---- what cases ask for ------------------------------------------------------------------------------------------
    def values_and_judge(self, case, function):
        """The inputs of a case, one period of them, and the oracle on them; those of the case before where they are the same."""
        key = (case.program, repr(sorted(case.inputs.items())), repr(sorted(case.scalars.items())))
        if self.known[0] != key:
            values = {name: data.generate(array, self.benchmark.settings.seed, f"{case.program}/{name}") for name, array in case.inputs.items()}
            self.known = (None, None)  # makes room
            self.known = (key, (values, function.judge(**values, **case.scalars)))
        return self.known[1]

    def sets_needed(self, set_bytes, cold):
        return data.sets_needed(set_bytes, cold, machine.last_level_bytes(self.facts["caches"]), machine.memory_bytes("MemAvailable"))

    def late(self):
        """Whether the current case has had its share of --minutes."""
        return self.case_ends is not None and self.clock() > self.case_ends

    # ---- progress --------------------------------------------------------------------------------------------------------
    def case_s(self, case):
        """How long the rounds of a case are expected to take, where every variant takes part."""
        settings, variants = self.benchmark.settings, len(self.benchmark.variants_of(case))
        return sum(len(order.rounds(range(variants), settings.rounds, 0)) * variants * settings.visit_s(metric) for metric in settings.metrics)

    def expected_s(self, cases):
        return self.benchmark.settings.minutes * 60 if self.benchmark.sampled else sum(map(self.case_s, cases))

    def advance(self, metric, visits, what):
        """One of so many visits of the current case by a metric is behind us."""
        case = self.benchmark.cases[len(self.document["cases"]) - 1]
        self.progress.advance(self.case_s(case) / len(self.benchmark.settings.metrics) / visits, what)

    def say(self, what):
        self.progress.say(what)

    # ---- the run -------------------------------------------------------------------------------------------------------
    def save(self):
        self.document["provenance"]["binaries"] = list(self.binaries.rows.values())
        results.save(self.folder, self.document)

    def execute(self):
        """Runs all cases and then the figures of the bars, and saves after each. Returns the status. An interruption ends it with what was
        measured, and so does the end of --minutes, which is no failure."""
        failed, minutes, cases = [], self.benchmark.settings.minutes, self.benchmark.cases
        try:
            with _interruptible():
                for number, case in enumerate(cases):
                    if minutes is not None:
                        left = self.begun + minutes * 60 - self.clock()
                        if left <= 0:
                            break
                        self.case_ends = None if self.benchmark.sampled else self.clock() + left / (len(cases) - number)
                    self._case(case, failed)
                self.document["bars"] = bars.hold(self.benchmark.bars, self.document, self._bar_done)
                failed += [f"{bar['what']}: {bar['reason']}" for bar in self.document["bars"] if bar["status"] == "error"]
            changed = self.binaries.again()
            failed += [f"{name} changed while the benchmark ran" for name in changed]
            done = len(self.document["cases"])
            short = f"{done} of {len(cases)} cases were begun in {minutes:g} minutes" if done < len(cases) else None
            self.document.update(status="failed" if failed else "complete", reason="; ".join(failed) or short)
        except KeyboardInterrupt:
            speeds = [bar for bar in self.benchmark.bars if isinstance(bar, Speed)]
            self.document.update(status="incomplete", reason="interrupted", bars=bars.hold(speeds, self.document))
        self.progress.clear()
        self.document["provenance"].update(finished=provenance.now(), after=machine.state())
        self.save()
        return self.document["status"]

    def _bar_done(self, line, what):
        self.progress.say(what, now=True)
        self.document["bars"] = line
        self.save()

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
        done = self.benchmark.cases[: len(self.document["cases"])]
        self.progress.done_s = self.clock() - self.begun if self.benchmark.sampled else self.expected_s(done)
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
