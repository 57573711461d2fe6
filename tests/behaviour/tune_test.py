# `cosmati tune`: what it tries, what it saves, how the saved plan replays here and elsewhere, and input that is wrong.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import subprocess
import time

from tool import ABSENT, DEVICES, DONE, TOOL, WRONG_INPUT, ToolTest, main

DEVICE = "cpu" if "cpu" in DEVICES else "sim"
SOFTMAX = ["softmax", "x=f32[16,64]:normal", "--device", DEVICE]


class Tune(ToolTest):
    def call(self, *arguments, cwd=None):
        result = subprocess.run([TOOL if cwd is None else os.path.abspath(TOOL), *arguments], capture_output=True, text=True, cwd=cwd)
        # How far the work is, which a slow machine says after a second, is no message.
        result.stderr = re.sub(r"^cosmati: .*: (\d+ min )?\d+ s(, .*)?\n", "", result.stderr, flags=re.MULTILINE)
        return result

    def tune(self, *options, program=SOFTMAX):
        """(the JSON object of a run that must end well, the plan that it saved)"""
        file = self.path / "plan.json"
        result = self.call("tune", *program, "--json", "--save", str(file), *options)
        self.assertEqual(result.returncode, DONE, result.stdout + result.stderr)
        found = json.loads(result.stdout)
        return found, json.loads(file.read_text())

    def test_the_saved_plan_replays(self):
        found, plan = self.tune("--minutes", "0.2", "--most", "12")
        self.assertEqual(found["wrong"], [])
        self.assertGreaterEqual(found["measured"], 1)
        self.assertEqual(found["measured"] + found["planned_alike"] + found["too_slow"] + sum(found["refused"].values()), len(found["tried"]))
        ratio = found["best_ratio"]
        self.assertTrue(ratio["low"] <= ratio["median"] <= ratio["high"])
        self.assertEqual(found["faster"], ratio["median"] < 1)
        self.assertEqual(ratio["better"], sum(r < 1 for r in ratio["rounds"]))
        self.assertEqual(plan["knobs"], found["knobs"])
        self.assertEqual(plan["environment"], found["environment"])
        self.assertEqual("tuned" in plan, found["faster"])
        replayed = self.call("run", *SOFTMAX, "--plan", str(self.path / "plan.json"), "--check")
        self.assertEqual((replayed.returncode, replayed.stderr), (DONE, ""))
        again = self.call("plan", *SOFTMAX, "--plan", str(self.path / "plan.json"), "--json")
        self.assertEqual(json.loads(again.stdout)["hash"], plan["hash"])

    def test_a_plan_of_another_environment_is_used_with_a_warning(self):
        _, plan = self.tune("--minutes", "0.1", "--most", "12")
        plan["environment"]["processor"] = "an abacus"
        file = self.path / "elsewhere.json"
        file.write_text(json.dumps(plan))
        result = self.call("run", *SOFTMAX, "--plan", str(file), "--check")
        self.assertEqual(result.returncode, DONE)
        self.assertIn("cosmati: warning: the plan was tuned in another environment: processor \"an abacus\", here ", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)

    def test_the_seed_decides_what_is_tried(self):
        first, _ = self.tune("--minutes", "1", "--most", "6", "--seed", "5")  # its number ends it, on a busy machine too
        second, _ = self.tune("--minutes", "1", "--most", "6", "--seed", "5")
        other, _ = self.tune("--minutes", "1", "--most", "6", "--seed", "6")
        self.assertEqual(first["tried"], second["tried"])
        self.assertNotEqual(first["tried"], other["tried"])

    def test_knobs_that_are_set_stay(self):
        found, plan = self.tune("--minutes", "0.2", "--most", "8", "--set", "lanes=4")
        self.assertEqual({knobs["lanes"] for knobs in found["tried"]}, {"4"})
        self.assertEqual(plan["knobs"]["lanes"], "4")

    def test_it_stops_at_its_time_limit(self):
        begin = time.monotonic()
        found, _ = self.tune("--minutes", "0.05")
        self.assertLess(time.monotonic() - begin, 30)  # 3 s, on a machine with others
        self.assertGreater(len(found["tried"]), 0)

    def test_an_inout_is_tuned_on_copies(self):
        program = self.program("program f(inout y: f32[i], in x: f32[i]) {\n parallel i { y[i] = y * 0.5 + x }\n}")
        found, plan = self.tune("--minutes", "0.1", "--most", "4", program=[program, "y=f32[64]:normal", "x=f32[64]:normal", "--device", DEVICE])
        self.assertEqual((found["wrong"], plan["program"]), ([], "f"))

    def test_lines_for_people(self):
        result = self.call("tune", *SOFTMAX, "--minutes", "0.1", "--most", "4", cwd=self.path)
        self.assertEqual(result.returncode, DONE, result.stderr)
        tried, best, saved = result.stdout.splitlines()
        self.assertRegex(tried, r"^tried \d+ settings: \d+ measured, \d+ planned alike, \d+ refused, \d+ too slow, 0 wrong$")
        self.assertRegex(best, r"^best: .*\d\.\d{3} \(\d+\.\d{3} \.\. \d+\.\d{3}, \d+ rounds better, \d+ worse\)")
        self.assertEqual(saved, "saved softmax.plan.json")
        self.assertEqual([p.name for p in self.path.iterdir()], ["softmax.plan.json"])

    def refused_with(self, part, *arguments, code=WRONG_INPUT):
        before = sorted(os.listdir(self.path))
        begin = time.monotonic()
        result = self.call("tune", *arguments)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(part, result.stderr)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(sorted(os.listdir(self.path)), before)

    def test_wrong_input_is_one_message_and_nothing_is_written(self):
        save = ["--save", str(self.path / "plan.json")]
        for minutes in ("0", "-1", "nan"):
            self.refused_with(f"--minutes is {minutes}, and tuning needs time", *SOFTMAX, *save, "--minutes", minutes)
        self.refused_with("--minutes", *SOFTMAX, *save, "--minutes", "soon")
        self.refused_with("--most is -1", *SOFTMAX, *save, "--most", "-1")
        self.refused_with("the time limit of 0 s ended before one setting was measured", *SOFTMAX, *save, "--minutes", "1e-9")
        self.refused_with("softmaxx", "softmaxx", "x=f32[4,4]:normal", *save)
        self.refused_with("x", "softmax", *save)
        self.refused_with("the oracle has no plans to tune", "softmax", "x=f32[4,4]:normal", *save, "--device", "oracle")
        self.refused_with("no_knob", *SOFTMAX, *save, "--set", "no_knob=1")
        self.refused_with("lanes", *SOFTMAX, *save, "--set", "lanes=3")
        self.refused_with("--plan", *SOFTMAX, *save, "--plan", "p.json")
        self.refused_with("the file cannot be written", *SOFTMAX, "--save", str(self.path / "none" / "plan.json"), "--minutes", "5")
        (self.path / "folder").mkdir()
        self.refused_with("not a regular file", *SOFTMAX, "--save", str(self.path / "folder"), "--minutes", "5")
        (self.path / "file").write_text("")
        self.refused_with("the file cannot be written", *SOFTMAX, "--save", str(self.path / "file" / "plan.json"), "--minutes", "5")
        if "cpu" not in DEVICES:
            self.refused_with("cpu", "softmax", "x=f32[4,4]:normal", *save, "--device", "cpu", code=ABSENT)

    def test_a_program_without_choices(self):
        program = self.program("program f(out y: f32[2]) {\n parallel { y[0] = 1; y[1] = 2 }\n}")
        self.refused_with("no setting of the knobs that differs from the default plan", program, "--device", DEVICE, "--save", str(self.path / "p.json"))


if __name__ == "__main__":
    main()
