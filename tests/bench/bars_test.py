# Bars: ratios of known times, the fastest reference, figures, what could not be measured; choices of the command line.
# SPDX-License-Identifier: Apache-2.0
import dataclasses
import time
import unittest
from unittest import mock

import numpy as np

from bench import __main__ as command
from bench.core import Absent, Benchmark, Figure, Measured, Speed, bars, check, data, declare, results
from bench.core.peers import load_peers
from declared import DOUBLE, DOUBLE_CASE, QUICK, Array, BenchTest, Case, Cosmati, interrupting


def document(times, statuses=None):
    """A case whose variants take these seconds in each round."""
    rows = [{"name": name, "status": (statuses or {}).get(name, "ok"), "reason": None} for name in times]
    samples = [
        {"metric": "e2e_batch", "variant": name, "round": number, "calls": 2, "seconds": [2 * seconds]}
        for name, values in times.items() for number, seconds in enumerate(values)
    ]  # fmt: skip
    return {"settings": {"metrics": ["e2e_batch"]}, "cases": [{"name": "c", "status": "complete", "reason": None, "variants": rows, "samples": samples}]}


class Bars(unittest.TestCase):
    def hold(self, bar, times=None, statuses=None):
        (line,) = bars.hold([bar], document(times or {}, statuses))
        return line

    def test_the_ratio_is_that_of_the_rounds_and_not_of_the_medians(self):
        line = self.hold(Speed("s", "c", ["b"], 0.5, "a"), {"a": [1, 10, 4], "b": [2, 5, 4]})
        self.assertEqual((line["figure"], line["samples"], line["status"], line["fastest"]), (1.0, [2.0, 0.5, 1.0], "met", "b"))
        self.assertEqual((line["ours_us"], line["theirs_us"]), (4e6, 4e6))

    def test_the_fastest_reference_counts(self):
        times = {"a": [4, 4], "slow": [9, 9], "fast": [3, 3]}
        line = self.hold(Speed("s", "c", ["slow", "fast"], 0.76, "a"), times)
        self.assertEqual((line["fastest"], line["figure"], line["status"]), ("fast", 0.75, "missed"))
        line = self.hold(Speed("s", "c", ["slow", "fast"], 0.76, "a"), times, {"fast": "failed"})
        self.assertEqual((line["fastest"], line["status"]), ("slow", "met"))

    def test_the_limit_itself_is_met(self):
        self.assertEqual(self.hold(Speed("s", "c", ["b"], 2, "a"), {"a": [1], "b": [2]})["status"], "met")
        self.assertEqual(self.hold(Figure("f", lambda _: Measured([3, 1, 2]), 2))["status"], "met")
        self.assertEqual(self.hold(Figure("f", lambda _: Measured([3, 1, 2]), 2, rule="at least"))["status"], "met")

    def test_figures(self):
        line = self.hold(Figure("f", lambda _: Measured([1, 2, 9], notes=["n"]), 1.5, "us"))
        self.assertEqual((line["figure"], line["status"], line["notes"], line["unit"]), (2, "missed", ["n"], "us"))
        line = self.hold(Figure("f", lambda _: Measured([1, 2], 7), 7.5))
        self.assertEqual((line["figure"], line["status"]), (7, "met"))

    def test_what_was_not_measured_is_never_met(self):
        def fails(_):
            raise RuntimeError("two\nlines")

        def absent(_):
            raise Absent("no compiler")

        line = self.hold(Figure("f", fails, 1))
        self.assertEqual((line["status"], line["reason"], line["figure"]), ("error", "RuntimeError: two lines", None))
        line = self.hold(Figure("f", absent, 1))
        self.assertEqual((line["status"], line["reason"]), ("absent", "no compiler"))
        self.assertEqual(self.hold(Speed("s", "another", ["b"], 1, "a"))["status"], "absent")
        self.assertEqual(self.hold(Speed("s", "c", ["b"], 1, "a"), {"a": [1], "b": [1]}, {"a": "failed"})["status"], "error")
        self.assertEqual(self.hold(Speed("s", "c", ["b"], 1, "a"), {"a": [1], "b": [1]}, {"b": "absent"})["status"], "absent")

    def test_the_table_says_it(self):
        lines = bars.hold(
            [Speed("s", "c", ["b"], 2, "a"), Figure("f|g", lambda _: Measured([1, 2, 9]), 3, "us"), Speed("t", "d", ["b"], 2, "a")],
            document({"a": [1], "b": [1.5]}),
        )  # fmt: skip
        text = "\n".join(results.bar_table(lines))
        self.assertIn("| s | c | 1000000 | b | 1500000 | 1.500 | at least 2.000 | **MISSED** |", text)
        self.assertIn("| f\\|g |  |  |  |  | 2 us | at most 3 us | met |", text)
        self.assertIn("**not measured**: there was no time for it", text)
        self.assertEqual(results.bar_counts(lines), "3 bars: 1 met, 1 missed, 1 not measured")


class Runs(BenchTest):
    def execute_with(self, bars, cases=(DOUBLE_CASE,), variants=(Cosmati(), "right"), **changes):
        from bench.core.run import Run
        import io

        benchmark = Benchmark(list(cases), list(variants), bars=bars, settings=dataclasses.replace(QUICK, **changes))
        self.assertEqual(list(declare.problems(benchmark)), [])
        folder = results.make_folder(self.path, "test")
        run = Run(benchmark, {"name": "test", "title": "Test", "file": "test.py", "sha256": "0" * 64}, folder, 2, stream=io.StringIO())
        status = run.execute()
        self.folder = folder
        return status, results.load(folder / "results.json")

    def test_bars_are_in_the_results_and_fail_them_only_by_errors(self):
        bar = Speed("double", "double", ["right"], 1e9)
        status, found = self.execute_with([bar, Figure("two", lambda document: Measured([len(document["cases"])]), 2)])
        self.assertEqual((status, [line["status"] for line in found["bars"]]), ("complete", ["missed", "met"]))
        (pair,) = found["cases"][0]["pairs"]
        self.assertEqual((found["bars"][0]["samples"], found["bars"][0]["figure"]), (pair["ratios"], pair["median"]))
        self.assertIn("**MISSED**", (self.folder / "table.md").read_text())
        status, found = self.execute_with([Figure("bad", lambda _: 1 / 0, 2)], cases=(), variants=())
        self.assertEqual((status, found["reason"]), ("failed", "bad: ZeroDivisionError: division by zero"))

    def test_an_interrupted_run_holds_what_is_complete(self):
        interrupting(4)
        cases = [DOUBLE_CASE, dataclasses.replace(DOUBLE_CASE, name="later", variants=[Cosmati(), "interrupted", "right"])]
        status, found = self.execute_with([Speed("a", "double", ["right"], 1e-9), Speed("b", "later", ["right"], 1e-9)], cases)
        self.assertEqual((status, [(bar["status"], bar["reason"]) for bar in found["bars"]]), ("incomplete", [("met", None), ("absent", "interrupted")]))

    def test_minutes_leave_later_cases_out(self):
        def slow(material):
            time.sleep(0.05)
            return [Cosmati()]

        cases = [dataclasses.replace(DOUBLE_CASE, name=f"double {n}", variants=slow) for n in range(50)]
        count = Figure("cases", lambda d: Measured([len(d["cases"])]), 1, rule="at least")
        status, found = self.execute_with([count], cases=cases, minutes=0.005)
        self.assertEqual(status, "complete")
        self.assertTrue(1 <= len(found["cases"]) < 50, len(found["cases"]))
        self.assertIn(f"{len(found['cases'])} of 50 cases were begun in 0.005 minutes", found["reason"])

    def test_minutes_cut_rounds_to_whole_designs(self):
        _, found = self.execute_with([], rounds=4000, minutes=0.01)
        (orders,) = [order["rounds"] for order in found["cases"][0]["orders"]]
        self.assertTrue(2 <= len(orders) < 4000 and len(orders) % 2 == 0, len(orders))
        self.assertEqual(len(found["cases"][0]["samples"]), 2 * len(orders))

    def test_variants_of_a_case_of_its_own(self):
        own = dataclasses.replace(DOUBLE_CASE, name="own", variants=[Cosmati("mine"), "right"])
        found_by_it = dataclasses.replace(DOUBLE_CASE, name="found", variants=lambda material: [Cosmati(f"of {material.count} set")])
        status, found = self.execute_with([], cases=[DOUBLE_CASE, own, found_by_it], variants=[Cosmati()])
        self.assertEqual(status, "complete")
        self.assertEqual([[row["name"] for row in case["variants"]] for case in found["cases"]], [["cosmati"], ["mine", "right"], ["of 1 set"]])

    def test_a_variant_that_computes_another_case(self):
        other = Case("larger", DOUBLE, {"x": Array("f32", 50, 70)})
        status, found = self.execute_with([], variants=[Cosmati(), Cosmati("larger", case=other)])
        self.assertEqual(status, "complete")
        row = self.row(found, "larger")
        self.assertEqual((row["notes"], row["checks"][0]["ok"]), (["computes larger"], True))

    def test_yardsticks_move_every_byte_and_are_found_out_where_they_do_not(self):
        names = [name for name, one in load_peers().items() if one.yardstick and name not in ("a lame copy", "driver copy")]
        self.assertEqual(sorted(names), ["copy", "copy, past the cache", "copy, vectors", "read"])
        for shape in ((5, 7), (1023, 1025)):
            status, found = self.execute_with([], [Case("d", DOUBLE, {"x": Array("f32", *shape)})], [Cosmati(), *names])
            self.assertEqual(status, "complete", found["reason"])
            self.assertEqual({self.row(found, name)["checks"][0]["method"] for name in names}, {"copy", "read"})
        with mock.patch.object(check.ReadChecker, "__init__", self.another_sum):
            status, found = self.execute_with([], variants=[Cosmati(), "read"])
        self.assertEqual((status, self.row(found, "read")["status"]), ("failed", "failed"))

    @staticmethod
    def another_sum(self, inputs):
        self.expected = 12345


class Periods(BenchTest):
    CASE = Case("periodic", DOUBLE, {"x": Array("f32", 12, 7, period=4)})

    def execute_periodic(self, *variants, case=None):
        return self.execute(list(variants), [case or self.CASE])

    def test_every_period_is_judged(self):
        status, found = self.execute_periodic(Cosmati(), "right")
        self.assertEqual(status, "complete", found["reason"])
        case = found["cases"][0]
        self.assertEqual((case["inputs"][0]["shape"], case["outputs"][0]["shape"], case["set_bytes"]), ([12, 7], [12, 7], 2 * 12 * 7 * 4))
        self.assertEqual(case["inputs"][0]["values"], "normal, again after 4")
        values = data.generate(self.CASE.inputs["x"], 0, f"{DOUBLE}/x")
        self.assertEqual(values.shape, (4, 7))
        self.assertEqual(case["inputs"][0]["sha256"], data.sha256(np.tile(values, (3, 1))))
        self.assertEqual(self.row(found, "right")["checks"][0]["sha256"], data.sha256(np.tile(values, (3, 1)) * np.float32(2)))

    def test_an_element_that_is_wrong_in_one_period(self):
        values = np.ones((4, 2), np.float32)
        import cosmati

        judge = cosmati.program(DOUBLE).judge(x=values)
        checker = check.OracleChecker(judge, ["y"], 3)
        y = np.full((12, 2), 2, np.float32)
        self.assertTrue(checker.check("before", 0, {"y": y})[0]["ok"])
        y[9, 1] = 3
        (row,) = checker.check("before", 0, {"y": y})
        self.assertEqual((row["ok"], row["at"], row["got"], row["sha256"]), (False, [9, 1], 3.0, data.sha256(y)))
        y[9, 1] = np.nextafter(np.float32(2), np.float32(3))  # other bits, within no bound of a product that is exact
        self.assertFalse(checker.check("before", 0, {"y": y})[0]["ok"])
        with self.assertRaisesRegex(ValueError, "does not consist of 3 periods"):
            checker.check("before", 0, {"y": y[:10]})

    def test_an_output_that_does_not_come_again_is_refused(self):
        case = Case("sums", "column_sums", {"x": Array("f32", 12, 7, period=4)})
        status, found = self.execute_periodic(Cosmati(), case=case)
        self.assertEqual(status, "failed")
        self.assertIn("does not come again", found["reason"])

    def test_a_period_that_does_not_divide_is_no_declaration(self):
        wrong = Benchmark([Case("c", DOUBLE, {"x": Array("f32", 12, 7, period=5)})], [Cosmati()])
        self.assertEqual(len(list(declare.problems(wrong))), 1)

    def test_fill_and_holds(self):
        for shape, values in (((), np.array(3.0)), ((5,), np.arange(5.0)), ((7,), np.arange(3.0)), ((6, 2), np.arange(6.0).reshape(3, 2))):
            array = np.full(shape, -1.0)
            data.fill(array, values)
            self.assertTrue(data.holds(array, values))
            if shape:
                self.assertEqual(array.reshape(-1).tolist(), np.resize(values, shape).reshape(-1).tolist())
                array[-1] += 1
                self.assertFalse(data.holds(array, values))

    def test_arrays_that_begin_between_vectors(self):
        sets = data.Sets({"x": ((3, 5), data.generate(Array("f32", 3, 5), 0, "x"))}, {"y": ("f16", (3,))}, 2, off=1)
        self.assertEqual([a["x"].ctypes.data % 64 for a in sets.inputs], [4, 4])
        self.assertEqual([a["y"].ctypes.data % 64 for a in sets.outputs], [2, 2])
        self.assertIsNone(sets.damage())


class Cpu(unittest.TestCase):
    """The benchmark of the CPU's bars."""

    @classmethod
    def setUpClass(cls):
        cls.benchmark = command.declared("cpu", command.available()["cpu"])

    def test_periods_are_declared_where_the_oracle_would_be_slow(self):
        for case in self.benchmark.cases:
            for array in case.inputs.values():
                self.assertLessEqual(np.prod(array.shape) // array.repeats(), 1 << 27, case.name)

    def test_the_regret_of_a_seed_is_drawn_the_same_again(self):
        path = command.available()["regret"]
        names = [[case.name for case in command.declared("regret", path, seed).cases] for seed in (1, 1, 2)]
        self.assertEqual(names[0], names[1])
        self.assertNotEqual(names[0], names[2])
        for case in command.declared("regret", path, 3).cases:
            size = sum(np.prod(array.shape) * {"f32": 4, "bf16": 2, "i32": 4}[array.dtype] for array in case.inputs.values())
            self.assertLess(size, 64 << 20, case.name)


class Regret(BenchTest):
    """Pairs with few settings each."""

    DECLARED = """'''Two pairs.'''
import dataclasses
from bench import regret
regret.ENUMERATED = regret.RANDOM = 4
regret.FINALISTS = 2

def benchmark(seed):
    whole = regret.benchmark(seed)
    small = [case for case in whole.cases if sum(array.elements() for array in case.inputs.values()) < 20000]
    return dataclasses.replace(whole, cases=small[:2], settings=dataclasses.replace(whole.settings, target_s=0.0005, pause_s=0.0))
"""

    def test_the_choice_is_timed_beside_the_fastest_of_those_that_were_tried(self):
        (self.path / "mine.py").write_text(self.DECLARED)
        code, out, err = self.main(str(self.path / "mine.py"), "--out", str(self.path / "out"), "--seed", "5")
        self.assertEqual(code, 0, err)
        document = results.load(next((self.path / "out").glob("*/results.json")))
        names = [[row["name"] for row in case["variants"]] for case in document["cases"]]
        self.assertEqual([len(one) for one in names], [3, 3])
        self.assertTrue(all(one[0] == "chosen" for one in names), names)
        figures = {bar["what"]: bar["figure"] for bar in document["bars"]}
        each = [max(1.0, *(1 / pair["median"] for pair in case["pairs"])) for case in document["cases"]]
        self.assertAlmostEqual(figures["regret, worst of the pairs"], max(each))
        self.assertAlmostEqual(figures["regret, median of the pairs"], sum(each) / 2)
        self.assertEqual(figures["pairs that were measured"], 2)
        self.assertIn("pairs that were measured", out)


class CommandLine(BenchTest):
    TEXT = """'''Doubles.'''
import time
from bench.core import Array, Benchmark, Case, Cosmati, Figure, Measured, Settings, Speed
text = "program double(in x: f32[i], out y: f32[i]) { parallel i { y[i] = x * 2 } }"
benchmark = Benchmark(
    [Case(f"double {n}", text, {"x": Array("f32", n)}) for n in (1, 10, 100)], [Cosmati(), Cosmati("again")],
    bars=[Speed("small", "double 10", ["again"], 1e-9), Speed("large", "double 100", ["again"], 1e-9), Figure("figure", lambda _: Measured([1]), 2)],
    settings=Settings(rounds=2, target_s=0.0, warmup_s=0.0, pause_s=0.0), targets=["some_target"],
)
"""

    def setUp(self):
        super().setUp()
        (self.path / "mine.py").write_text(self.TEXT)

    def bench(self, *arguments):
        code, out, err = self.main(str(self.path / "mine.py"), "--out", str(self.path / "out"), *arguments)
        written = sorted((self.path / "out").glob("*/results.json"))
        return code, out, err, results.load(written[-1]) if code == 0 and written else None

    def test_only(self):
        for pattern, cases, found in (
            ("small", ["double 10"], ["small"]), ("figure", [], ["figure"]), ("double 1$", ["double 1"], []), ("double", 3, ["small", "large"]),
        ):  # fmt: skip
            code, out, err, document = self.bench("--only", pattern)
            self.assertEqual(code, 0, err)
            names = [case["name"] for case in document["cases"]]
            self.assertEqual(len(names) if isinstance(cases, int) else names, cases)
            self.assertEqual([bar["what"] for bar in document["bars"]], found)
            self.assertIn(f"{len(found)} bars: {len(found)} met." if found else "## double 1", out)
        for pattern, part in (("nothing", "finds no bar and no case"), ("(", "is no regular expression")):
            code, _, err, _ = self.bench("--only", pattern)
            self.assertEqual(code, 2)
            self.assertIn(part, err)

    def test_bars_go_with_their_variants(self):
        _, _, _, document = self.bench("--variant", "cosmati")
        self.assertEqual([bar["what"] for bar in document["bars"]], ["figure"])

    def test_targets_are_printed(self):
        self.assertEqual(self.bench("--targets")[:2], (0, "some_target\n"))

    def test_minutes_are_checked(self):
        code, _, err, _ = self.bench("--minutes", "0")
        self.assertEqual((code, "minutes is 0.0" in err), (2, True), err)

    def test_a_required_peer_that_is_not_installed(self):
        text = self.TEXT.replace('Cosmati("again")]', 'Cosmati("again"), "raises"]').replace('targets=', 'required=["raises"], targets=')
        (self.path / "mine.py").write_text(text)
        code, _, err, _ = self.bench()
        self.assertEqual(code, 2)
        self.assertIn("no-such-package is not installed, and raises needs it", err)


class Memory(unittest.TestCase):
    def test_a_set_that_is_many_times_the_cache_is_cold_alone(self):
        self.assertEqual(data.sets_needed(1 << 30, True, 32 << 20, 1 << 40), 1)
        self.assertEqual(data.sets_needed(15 * (32 << 20), True, 32 << 20, 1 << 40), 2)
        with self.assertRaisesRegex(ValueError, "this measurement needs 1 sets"):
            data.sets_needed(1 << 30, False, 32 << 20, 1 << 30)


if __name__ == "__main__":
    unittest.main()
