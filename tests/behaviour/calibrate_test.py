# `cosmati calibrate`: what it measures and keeps, what `cosmati devices` prints of it, and where it cannot be kept.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import time

from tool import ABSENT, DEVICES, DONE, TOOL, WRONG_INPUT, ToolTest, main


class Calibrate(ToolTest):
    def call(self, *arguments, **variables):
        environment = {**os.environ, "COSMATI_CACHE_DIR": str(self.path / "cache"), **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        return subprocess.run([TOOL, *arguments], capture_output=True, text=True, env=environment)

    def priced_by(self, rates, warnings=0):
        result = self.call("plan", "softmax", "x=f32[1000,1000]:zeros", "--device", "cpu", "--json")
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertEqual(json.loads(result.stdout)["prices"], rates)
        self.assertEqual(result.stderr.count("\n"), warnings, result.stderr)
        if warnings:
            self.assertIn("plans are priced for common cores", result.stderr)
        run = self.call("run", "softmax", "x=f32[100,100]:normal", "--device", "cpu", "--check")
        self.assertEqual((run.returncode, run.stderr.count("\n")), (DONE, warnings), run.stderr)

    def assert_measured(self, m):
        self.assertEqual(set(m), {"median", "low", "high"})
        self.assertTrue(0 < m["low"] <= m["median"] <= m["high"], m)

    def test_a_profile_is_measured_kept_and_printed(self):
        if "cpu" not in DEVICES:
            self.assertEqual(self.call("calibrate").returncode, ABSENT)
            return
        self.assertIn("not calibrated (cosmati calibrate)", self.call("devices").stdout)
        result = self.call("calibrate", "--json")
        self.assertEqual(result.returncode, DONE, result.stderr)
        answer = json.loads(result.stdout)
        profile = answer["profile"]
        self.assertEqual(json.loads(pathlib.Path(answer["file"]).read_text()), profile)
        self.assertEqual([p.name for p in (self.path / "cache").iterdir()], [os.path.basename(answer["file"])])
        self.assertEqual((profile["kind"], profile["schema"], profile["device"]), ("cosmati-profile", 2, "cpu"))
        self.assertEqual(set(profile["environment"]), {"processor", "cores", "library"})
        cores = profile["environment"]["cores"]

        counts = sorted({row["threads"] for row in profile["bandwidth"]})
        self.assertEqual(counts, sorted({1, cores} | {2**k for k in range(12) if 2**k < cores}))
        for threads in counts:
            rows = [row for row in profile["bandwidth"] if row["threads"] == threads]
            self.assertEqual(rows[-1]["level"], "memory")
            self.assertEqual([row["thread_bytes"] for row in rows], sorted(row["thread_bytes"] for row in rows))
            for row in rows:
                for stream in ("read", "write", "copy", "bypass"):
                    self.assert_measured(row[f"{stream}_gb_s"])
        for row in profile["launch"]:
            self.assert_measured(row["us"])
        self.assertEqual({row["operation"] for row in profile["throughput"]}, {"add", "exp", "div", "fma"})
        self.assert_measured(profile["clock"][0]["ghz"])
        for row in profile["throughput"]:
            self.assert_measured(row["per_ns"])

        printed = self.call("devices")
        self.assertEqual(printed.stderr, "")
        self.assertRegex(printed.stdout, rf"calibrated {profile['measured']}: memory \d+\.\d GB/s copied by {cores} thread")
        listed = json.loads(self.call("devices", "--json").stdout)["devices"]
        self.assertEqual(listed[0]["profile"], profile)

        self.priced_by(f"the profile of {profile['measured']}")
        kept = pathlib.Path(answer["file"]).read_text()
        for broken in ("{}", kept[: len(kept) // 2], kept.replace('"cores": ', '"cores": 1'), kept.replace('"schema": 2', '"schema": 1'), kept.replace("ghz", "mhz"), "\0" * 100):
            with self.subTest(broken=broken[:40]):
                pathlib.Path(answer["file"]).write_text(broken)
                self.priced_by("common cores", warnings=1)
        pathlib.Path(answer["file"]).unlink()
        self.priced_by("common cores")

        pathlib.Path(answer["file"]).write_text("{}")
        broken = self.call("devices")
        self.assertEqual(broken.returncode, DONE)
        self.assertIn("not calibrated: its profile is broken", broken.stdout)
        self.assertEqual(broken.stderr.count("\n"), 1, broken.stderr)
        self.assertIn("run cosmati calibrate again", broken.stderr)

    def refused(self, part, *arguments, **variables):
        begin = time.monotonic()
        result = self.call("calibrate", *arguments, **variables)
        self.assertEqual((result.returncode, result.stdout), (WRONG_INPUT, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn(part, result.stderr)
        self.assertLess(time.monotonic() - begin, 3)  # before anything is measured

    def test_a_place_that_cannot_be_written_is_refused_at_once(self):
        if "cpu" not in DEVICES:
            return
        (self.path / "file").write_text("")
        self.refused("the folder cannot be made", COSMATI_CACHE_DIR=str(self.path / "file" / "cache"))
        self.refused("there is no cache directory", COSMATI_CACHE_DIR="")
        self.refused("there is no cache directory", COSMATI_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME=None)
        self.refused("the file cannot be written", "--save", str(self.path / "none" / "profile.json"))
        self.refused("not a regular file", "--save", str(self.path))
        self.refused("extra", "extra")
        self.assertEqual([p.name for p in self.path.iterdir()], ["file"])


if __name__ == "__main__":
    main()
