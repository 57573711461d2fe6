# The runner: what is checked before and after time is taken, what a row says that fails or is absent, interruptions, memory.
# SPDX-License-Identifier: Apache-2.0
import signal
import subprocess
import time
import unittest
from unittest import mock

from bench.core import data, machine
from bench.core.run import Run
from declared import DOUBLE, DOUBLE_CASE, Array, BenchTest, Case, Cosmati, interrupting, json, os, sys


class Checks(BenchTest):
    def assert_failed(self, name, *parts):
        status, document = self.execute([Cosmati(), name, "right"])
        self.assertEqual(status, "failed")
        row = self.row(document, name)
        self.assertEqual(row["status"], "failed")
        for part in parts:
            self.assertIn(part, row["reason"])
        self.assertIn(name, document["reason"])
        for what in ("summaries", "pairs"):
            self.assertNotIn(name, self.names(document, what))
            self.assertIn("right", self.names(document, what))
        return document

    def test_an_output_that_is_wrong_in_one_element(self):
        document = self.assert_failed("wrong in one element", "y of set 0 (before) is wrong at (3, 4)", "bound there")
        self.assertNotIn("wrong in one element", self.names(document, "samples"))
        (check,) = self.row(document, "wrong in one element")["checks"]
        self.assertEqual((check["ok"], check["at"], check["method"]), (False, [3, 4], "oracle"))

    def test_an_element_that_is_not_written(self):
        self.assert_failed("forgets an element", "y of set 0 (before) is wrong at (0, 0): got nan")

    def test_an_output_that_goes_wrong_while_it_is_timed(self):
        document = self.assert_failed("wrong in the end", "of e2e_batch) is wrong at (0, 0)")
        self.assertIn("wrong in the end", self.names(document, "samples"))  # raw samples are kept

    def test_bytes_outside_of_an_array(self):
        self.assert_failed("writes too far", "bytes outside of an array were written")

    def test_an_input_that_is_written(self):
        self.assert_failed("writes its input", "the input x of set 0 was written")

    def test_an_output_of_another_form(self):
        status, document = self.execute([Cosmati(), "another form"])
        self.assertEqual((status, self.row(document, "another form")["status"]), ("failed", "error"))
        self.assertIn("y is [7, 5], but double writes [5, 7]", self.row(document, "another form")["reason"])

    def test_a_yardstick_that_does_not_copy_everything(self):
        status, document = self.execute([Cosmati(), "copy", "a lame copy"])
        self.assertEqual(status, "failed")
        self.assertEqual(self.row(document, "copy")["status"], "ok")
        row = self.row(document, "a lame copy")
        self.assertEqual((row["status"], row["kind"], row["checks"][0]["at"]), ("failed", "yardstick", [5 * 7 * 4 - 1]))

    def test_what_passes_is_checked_before_and_after_every_visit(self):
        status, document = self.execute([Cosmati(), "right", "fetched"], metrics=("e2e_batch", "e2e_single", "gpu_single"))
        self.assertEqual(status, "complete")
        rounds = {order["metric"]: len(order["rounds"]) for order in document["cases"][0]["orders"]}
        for name, timed in (("cosmati", rounds["e2e_batch"] + rounds["e2e_single"]), ("fetched", sum(rounds.values()))):
            row = self.row(document, name)
            self.assertEqual((row["status"], len(row["checks"]), row["rechecks"]), ("ok", 1, timed))
            self.assertTrue(row["checks"][0]["ok"])
        self.assertEqual(self.row(document, "fetched")["notes"], ["a remark"])
        self.assertEqual(self.row(document, "fetched")["versions"], {"fetched": "1.0"})
        samples = [s for s in document["cases"][0]["samples"] if s["metric"] == "gpu_single"]
        self.assertEqual({s["variant"] for s in samples}, {"fetched"})
        self.assertEqual(samples[0]["seconds"], [1e-6, 1e-6])


class Rows(BenchTest):
    def test_an_absent_peer_is_a_row_that_says_why(self):
        status, document = self.execute([Cosmati(), "not here"])
        self.assertEqual(status, "complete")
        row = self.row(document, "not here")
        self.assertEqual((row["status"], row["reason"]), ("absent", "its library is not installed"))
        self.assertEqual(self.names(document, "pairs"), [])
        self.assertIn("**absent**: its library is not installed", (self.folder / "table.md").read_text())

    def test_every_shipped_peer_takes_part_or_is_absent(self):
        names = ["numpy", "onednn", "onnxruntime", "torch", "torch.compile", "triton", "copy", "driver copy"]
        status, document = self.execute(names, [Case("softmax", "softmax", {"x": Array("f32", 4, 33)})])
        self.assertEqual(status, "complete", document["reason"])
        self.assertEqual(self.row(document, "numpy")["status"], "ok")
        self.assertEqual(self.row(document, "copy")["status"], "ok")
        for name in names:
            row = self.row(document, name)
            self.assertIn(row["status"], ("ok", "absent"))
            self.assertEqual(row["reason"] is None, row["status"] == "ok")

    def test_an_operation_that_a_peer_does_not_have(self):
        names = ["numpy", "onednn", "onnxruntime", "torch", "triton"]
        _, document = self.execute(names)
        self.assertEqual({self.row(document, name)["status"] for name in names}, {"absent"})
        self.assertIn("no double is written for NumPy", self.row(document, "numpy")["reason"])

    def test_a_device_that_is_absent(self):
        status, document = self.execute([Cosmati(), Cosmati("elsewhere", device="cpu")])
        row = self.row(document, "elsewhere")
        present = any(d.present for d in __import__("cosmati").devices() if d.name == "cpu")
        self.assertEqual((status, row["status"]), ("complete", "ok" if present else "absent"))

    def test_a_peer_that_raises_is_an_error_and_the_others_go_on(self):
        status, document = self.execute([Cosmati(), "raises", "raises later", "right"])
        self.assertEqual(status, "failed")
        self.assertEqual(self.row(document, "raises")["reason"], "RuntimeError: two lines")
        self.assertEqual(self.row(document, "raises later")["reason"], "RuntimeError: the fourth call")
        self.assertEqual(self.names(document, "pairs"), ["right"])

    def test_a_variant_that_cannot_be_planned(self):
        status, document = self.execute([Cosmati(), Cosmati("odd", knobs={"lanes": 3})])
        self.assertEqual((status, self.row(document, "odd")["status"]), ("failed", "error"))
        self.assertIn("lanes", self.row(document, "odd")["reason"])

    def test_pairs_need_their_baseline(self):
        _, document = self.execute(["not here", "right", Cosmati()], baseline="not here")
        self.assertEqual(self.names(document, "pairs"), [])
        self.assertEqual(sorted(self.names(document, "summaries")), ["cosmati", "right"])

    def test_plans_and_sources_are_kept(self):
        _, document = self.execute([Cosmati(), Cosmati("one lane", knobs={"lanes": 1})])
        plans = [self.row(document, name)["plan"] for name in ("cosmati", "one lane")]
        self.assertNotEqual(plans[0]["hash"], plans[1]["hash"])
        for plan in plans:
            self.assertEqual(json.loads((self.folder / plan["file"]).read_text())["hash"], plan["hash"])
        for source in self.row(document, "cosmati")["sources"]:
            self.assertTrue((self.folder / source["file"]).read_text())
        self.assertEqual(self.row(document, "one lane")["options"], {"lanes": "1"})

    def test_a_case_that_cannot_be_measured_fails_and_the_next_runs(self):
        in_place = Case("in place", "program p(inout x: f32[i]) { parallel i { x[i] = x + 1 } }", {"x": Array("f32", 3)})
        unknown = Case("unknown", "no_such_program", {"x": Array("f32", 3)})
        wrong = Case("wrong", DOUBLE, {"x": Array("f32", 3)})
        odd = Case("odd", DOUBLE, {"x": Array("f99", 3, 3)})
        status, document = self.execute([Cosmati()], [in_place, unknown, wrong, odd, DOUBLE_CASE])
        self.assertEqual(status, "failed")
        self.assertEqual([case["status"] for case in document["cases"]], ["failed"] * 4 + ["complete"])
        for case, part in zip(document["cases"], ("in place", "no_such_program", "dimension", "there is no dtype f99")):
            self.assertIn(part, case["reason"])


class Order(BenchTest):
    def test_the_order_of_every_round_is_recorded_and_kept(self):
        variants = [Cosmati(), Cosmati("one lane", knobs={"lanes": 1}), "right"]
        _, document = self.execute(variants)
        case = document["cases"][0]
        (orders,) = [order["rounds"] for order in case["orders"]]
        self.assertEqual(len(orders), 6)
        ran = [(s["round"], s["position"], s["variant"]) for s in case["samples"]]
        self.assertEqual(ran, [(r, p, name) for r, names in enumerate(orders) for p, name in enumerate(names)])

    def test_rows_that_cannot_run_leave_the_order_balanced(self):
        _, document = self.execute([Cosmati(), "not here", "right"])
        (orders,) = [order["rounds"] for order in document["cases"][0]["orders"]]
        self.assertEqual(sorted(map(tuple, orders)), [("cosmati", "right"), ("right", "cosmati")])

    def test_batches_last_as_long_as_wanted(self):
        _, document = self.execute([Cosmati(), "right"], target_s=0.002, samples=2)
        for sample in document["cases"][0]["samples"]:
            self.assertEqual(len(sample["seconds"]), 2)
            self.assertGreater(sample["calls"], 10)


class Memory(BenchTest):
    def test_cold_calls_go_through_more_than_the_cache_holds(self):
        with mock.patch.object(machine, "last_level_bytes", return_value=1000):
            _, document = self.execute([Cosmati(), "right", "copy"], cold=True)
        case = document["cases"][0]
        self.assertEqual(case["set_bytes"], 2 * 5 * 7 * 4)
        self.assertGreater(case["sets"] * case["set_bytes"], 2 * 1000)
        self.assertEqual([check["set"] for check in self.row(document, "right")["checks"]], list(range(case["sets"])))
        self.assertEqual({check["method"] for check in self.row(document, "right")["checks"]}, {"equal"})

    def test_how_many_sets(self):
        self.assertEqual(data.sets_needed(100, False, 1 << 20, 1 << 30), 1)
        self.assertEqual(data.sets_needed(100 << 20, True, 32 << 20, 1 << 40), 2)
        self.assertEqual(data.sets_needed(1 << 20, True, 32 << 20, 1 << 40), 65)
        for cache, memory, part in ((None, 1 << 40, "unknown"), (32 << 20, 64 << 20, "more than half")):
            with self.assertRaisesRegex(ValueError, part):
                data.sets_needed(1 << 20, True, cache, memory)

    def test_sets_lie_apart_and_are_aligned(self):
        sets = data.Sets({"x": ((3, 5), data.generate(Array("f32", 3, 5), 0, "x"))}, {"y": ("f32", (3, 5)), "n": ("i64", ())}, 3)
        addresses = [a.ctypes.data for arrays in sets.inputs + sets.outputs for a in arrays.values()]
        self.assertEqual(len(set(addresses)), 9)
        self.assertEqual({address % 64 for address in addresses}, {0})
        self.assertIsNone(sets.damage())

    def test_inputs_follow_from_the_seed(self):
        array = Array("i32", 100, values=(3, 6))
        values = data.generate(array, 1, "a")
        self.assertEqual(sorted(set(values.tolist())), [3, 4, 5])
        self.assertTrue((data.generate(array, 1, "a") == values).all())
        for seed, salt in ((2, "a"), (1, "b")):
            self.assertFalse((data.generate(array, seed, salt) == values).all())
        for odd in (Array("f32", 3, values=(0, 1)), Array("i32", 3), Array("i32", 3, values=(2, 2)), Array("f32", 3, values="odd")):
            with self.assertRaises(ValueError):
                data.generate(odd, 0, "a")


class Interruptions(BenchTest):
    def test_what_was_measured_is_kept_and_marked(self):
        interrupting(6)
        status, document = self.execute([Cosmati(), "interrupted"], [DOUBLE_CASE, Case("second", DOUBLE, DOUBLE_CASE.inputs)], rounds=8)
        self.assertEqual((status, document["reason"]), ("incomplete", "interrupted"))
        (case,) = document["cases"]
        self.assertEqual(case["status"], "incomplete")
        self.assertTrue(case["samples"])
        self.assertEqual((case["summaries"], case["pairs"]), ([], []))
        self.assertEqual({row["status"] for row in case["variants"]}, {"incomplete"})
        self.assertIn("**incomplete**", (self.folder / "table.md").read_text())

    def test_finished_cases_are_on_the_disk_before_the_next_begins(self):
        seen = []
        say = Run.say

        def look(run, what):
            seen.append(json.loads((run.folder / "results.json").read_text()) if (run.folder / "results.json").exists() else None)
            say(run, what)

        with mock.patch.object(Run, "say", look):
            self.execute([Cosmati()], [DOUBLE_CASE, Case("second", DOUBLE, DOUBLE_CASE.inputs)])
        self.assertIsNone(seen[0])
        self.assertEqual([case["status"] for case in seen[-1]["cases"]], ["complete"])
        self.assertEqual(seen[-1]["status"], "incomplete")

    def test_signals_end_a_process_with_its_results(self):
        # Ignored, as in the background of a shell, SIGINT would be ignored by the process that is started, too.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            out = self.path / signal_number.name
            command = [sys.executable, "-m", "bench", "smoke", "--out", str(out), "--rounds", "10000", "--target-ms", "5"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            found = []
            for _ in range(600):
                found = list(out.glob("*/plans/*layer*")) if out.exists() else []
                found = found or (list(out.glob("*/plans/*")) if out.exists() else [])
                if found or process.poll() is not None:
                    break
                time.sleep(0.1)
            time.sleep(1)
            process.send_signal(signal_number)
            _, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 130, err)
            self.assertIn("interrupted", err)
            (written,) = out.glob("*/results.json")
            self.assertEqual(json.loads(written.read_text())["status"], "incomplete")


class Provenance(BenchTest):
    def test_what_decides_results_is_recorded(self):
        os.environ["OMP_NUM_THREADS"] = "2"
        self.addCleanup(os.environ.pop, "OMP_NUM_THREADS")
        _, document = self.execute([Cosmati()])
        provenance = document["provenance"]
        self.assertEqual(provenance["environment"]["OMP_NUM_THREADS"], "2")
        self.assertTrue(provenance["machine"]["processor"])
        self.assertIn("cosmati", provenance["versions"])
        (library, *_) = provenance["binaries"]
        self.assertIn("_core", library["file"])
        self.assertEqual(library["sha256"], library["sha256_after"])
        self.assertIn("parallel", document["cases"][0]["program"]["text"])

    def test_a_binary_that_changes_meanwhile_fails_the_run(self):
        changing = self.path / "library.so"
        changing.write_text("before")
        from bench.core.peers import Subject, peer

        @peer("changing")
        def changing_peer(work):
            def run(i):
                work.outputs[i]["y"][...] = work.inputs[i]["x"] * 2
                if changing.read_text() == "before" and ran:
                    changing.write_text("after")
                ran.append(i)

            ran = []
            return Subject(run=run, binaries=[str(changing)])

        status, document = self.execute(["changing"])
        self.assertEqual(status, "failed")
        self.assertIn("library.so changed while the benchmark ran", document["reason"])


if __name__ == "__main__":
    unittest.main()
