# The command line itself: what its help shows, how it answers words that it does not know, and the progress it tells.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import signal
import subprocess
import time

import numpy as np

from tool import ABSENT, DEVICES, DONE, TOOL, WRONG_INPUT, ToolTest, main

COMMANDS = ("run", "check", "plan", "emit", "package", "tune", "calibrate", "devices", "docs")


def call(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True)


class CommandLine(ToolTest):
    def test_the_examples_of_a_command_are_its_own(self):
        for command in COMMANDS:
            shown = call(command, "--help")
            self.assertEqual(shown.returncode, DONE)
            examples = re.findall(r"^  cosmati (\w+)", shown.stdout, re.MULTILINE)
            self.assertGreaterEqual(len(examples), 1, shown.stdout)
            self.assertEqual(set(examples), {command}, shown.stdout)
            self.assertIn("Exit codes:", shown.stdout)
        self.assertEqual(set(re.findall(r"^  (\w+) {2,}", call("--help").stdout, re.MULTILINE)), set(COMMANDS))

    def test_examples_without_files_run(self):
        for command in COMMANDS:
            for line in re.findall(r"^  cosmati (.*)", call(command, "--help").stdout, re.MULTILINE):
                if ".npy" in line or ".json" in line or ".tile" in line or "--write" in line:
                    continue
                absent = re.search("--as (llvm|asm)|^package ", line) and "cpu" not in DEVICES
                environment = {name: value for name, value in os.environ.items() if not absent or name != "COSMATI_DEVICE"}
                result = subprocess.run(f"{TOOL} {line}", shell=True, capture_output=True, env=environment, cwd=self.path)
                self.assertEqual(result.returncode, ABSENT if absent else DONE, line)

    def refused(self, *arguments):
        result = call(*arguments)
        self.assertEqual(result.returncode, WRONG_INPUT, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stderr

    def test_words_that_are_not_known_are_named(self):
        every = "the commands are " + ", ".join(COMMANDS)
        for arguments, what, hint in [
            (["rum", "softmax"], "there is no command 'rum'", "did you mean run"),
            (["chekc", "a.tile"], "there is no command 'chekc'", "did you mean check"),
            (["softmax", "x=f32[3,4]:ones"], "there is no command 'softmax'", every),
            (["x" * 5000], "there is no command 'xxx", every),
            ([""], "there is no command ''", every),
            ([], "no command is given", every),
            (["run", "softmax", "x=f32[3,4]:ones", "--devcie", "sim"], "run has no option '--devcie'", "did you mean --device"),
            (["plan", "softmax", "--sav=p.json"], "plan has no option '--sav'", "did you mean --save"),
            (["devices", "--sead", "3"], "devices has no option '--sead'", "cosmati devices --help"),
            (["run", "softmax", "--seed", "x"], "--seed", "cosmati run --help"),
            (["run"], "program is required", "cosmati run --help"),
            (["docs", "opps"], "there is no page 'opps'", "did you mean ops"),
            (["docs", "grammar"], "there is no page 'grammar'", "the pages are dtypes, errors, knobs, ops, programs, reducers, refusals"),
            (["docs", "ops", "knobs"], "knobs", "cosmati docs --help"),
            (["help"], "there is no command 'help'", "cosmati --help"),
            (["version"], "there is no command 'version'", "cosmati --version"),
            (["check", self.program("# nothing\n")], "holds no program", "write `program NAME(...) { ... }`"),
            (["run", "softmax", "x", "=", "x.npy"], "'x' is not of the form name=value", "write name=value, without blanks"),
        ]:
            with self.subTest(arguments=arguments):
                message = self.refused(*arguments)
                self.assertIn(what, message)
                self.assertIn("Hint: " + hint, message)

    def test_a_page_of_the_reference(self):
        listed = ", ".join(sorted(json.loads(call("docs", "--json").stdout)["pages"]))
        self.assertIn(f"one page: {listed} (default: all)", " ".join(call("docs", "--help").stdout.split()))
        page = call("docs", "ops")
        self.assertEqual(page.returncode, DONE)
        self.assertTrue(page.stdout.startswith("# Operations\n"), page.stdout)
        self.assertIn(page.stdout.strip(), call("docs").stdout)

    def test_what_is_guessed_of_a_file_is_said(self):
        halves = self.path / "halves.npy"
        np.save(halves, np.full((2, 4), 0x3F80, np.uint16))
        note = f"cosmati: note: {halves} holds u16, and its bits are read as bf16, as x=bf16:{halves} would say\n"
        shown = call("run", "softmax", f"x={halves}")
        self.assertEqual((shown.returncode, shown.stderr), (DONE, note))
        self.assertTrue(shown.stdout.startswith("y bf16[2,4] 0.25 "), shown.stdout)
        bf16 = self.program("program p(in x: bf16[n, m], out y: bf16[n, m]) {\n  parallel n, m { y[n, m] = x }\n}\n")
        for arguments in (["softmax", f"x=bf16:{halves}"], ["softmax", f"x={halves}", "--json"], [bf16, f"x={halves}"]):
            with self.subTest(arguments=arguments):
                shown = call("run", *arguments)
                self.assertEqual((shown.returncode, shown.stderr), (DONE, ""))

    def test_a_run_that_fails_says_nothing_of_its_probes(self):
        text = "program p(in x: f32[n], out y: f32[n]) {\n  parallel n {\n    e = x * 2\n    y[n] = e\n  }\n}\n"
        plan = self.path / "plan.json"
        plan.write_text("{}")
        shown = call("run", self.program(text), "x=f32[4]:ones", "--probe", f"e={self.path}/e.npy", "--plan", str(plan))
        self.assertEqual((shown.returncode, shown.stdout), (WRONG_INPUT, ""), shown.stderr)
        self.assertFalse((self.path / "e.npy").exists())

    def test_a_package_says_what_it_does_not_keep(self):
        if "cpu" not in DEVICES:
            return
        arguments = ["layer_norm", "x=f32[3,4]:ones", "gamma=f32[4]:ones", "beta=f32[4]:ones"]
        shown = call("package", *arguments, "eps=2", str(self.path / "made"), "--device", "cpu")
        self.assertEqual(shown.returncode, DONE, shown.stderr)
        self.assertIn("cosmati: note: the package does not keep eps=2: every call gives it, or has the default of the program\n", shown.stderr)
        self.assertIn("no output shares memory with another argument\n", shown.stdout)
        self.assertEqual(call("package", *arguments, str(self.path / "other"), "--device", "cpu").stderr, "")

    def test_a_check_that_says_little_does_not_say_ok(self):
        tiny = self.program("program p(in x: f32[n], out y: f8e4m3[n]) {\n  parallel n { y[n] = x * 1e-4 }\n}\n")
        shown = call("run", tiny, "x=f32[100]:ones", "--check")
        self.assertEqual(shown.returncode, DONE, shown.stderr)
        self.assertRegex(shown.stdout, r"check y \S+ \S+ \S+ unjudged \(100 of 100 elements unjudged: their bound exceeds their value\)\n")
        (check,) = json.loads(call("run", tiny, "x=f32[100]:ones", "--check", "--json").stdout)["checks"]
        self.assertEqual((check["ok"], check["judged"], check["unjudged"], check["elements"]), (True, False, 100, 100))
        np.save(self.path / "x.npy", np.where(np.arange(100) < 40, 1, 1e4).astype(np.float32))
        shown = call("run", tiny, f"x={self.path}/x.npy", "--check")
        self.assertRegex(shown.stdout, r"check y \S+ \S+ \S+ ok \(40 of 100 elements unjudged: their bound exceeds their value\)\n")

    def test_a_check_of_more_than_a_second_tells_how_much_is_left(self):
        wanted = r"cosmati: checking against the oracle: \d+ s, \d+% done, about \d+ s left"
        start = time.monotonic()
        for k in (512, 1024, 2048, 4096, 8192, 16384):  # how long a check takes depends on the machine, and a simulated run takes longer
            result = call("run", "matmul", f"a=f32[512,{k}]:ones", f"b=f32[{k},256]:ones", "--check")
            self.assertEqual(result.returncode, DONE, result.stderr)
            if re.search(wanted, result.stderr) or time.monotonic() - start > 60:
                break
        self.assertRegex(result.stderr, wanted)

    def interrupted(self, *words):
        """Runs it, and interrupts it when the first file appears; the folder it wrote to."""
        folder = self.path / "out"
        folder.mkdir()
        process = subprocess.Popen([TOOL, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not any(folder.iterdir()) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
        self.assertIn(process.returncode, (-signal.SIGINT, DONE), said)
        return process.returncode, [file.name for file in folder.iterdir()]

    def test_an_interrupted_run_leaves_no_file(self):
        found = self.interrupted("run", "softmax", "x=f32[1024,8192]:normal", "--out", f"y={self.path}/out/y.npy", "--check")
        self.assertEqual(found, (-signal.SIGINT, []))

    def test_an_interrupted_package_is_there_or_is_not(self):
        if "cpu" not in DEVICES:
            return
        _, files = self.interrupted("package", "softmax", "x=f32[64,64]:normal", f"{self.path}/out/softmax", "--device", "cpu")
        self.assertIn(files, ([], ["softmax"]))

    def test_where_nothing_can_be_written_nothing_is_computed(self):
        label = np.full(3, 9, np.int32)  # a run with it would end with a broken contract
        np.save(self.path / "label.npy", label)
        for option in (["--out", f"loss={self.path}/no/loss.npy"], ["--probe", f"lse={self.path}/no/lse.npy"]):
            shown = call("run", "cross_entropy", "x=f32[3,5]:ones", f"label={self.path}/label.npy", *option)
            self.assertEqual(shown.returncode, WRONG_INPUT)
            self.assertRegex(shown.stderr, r"no/l\w+\.npy: bad_file: the file cannot be written: No such file or directory")


if __name__ == "__main__":
    main()
