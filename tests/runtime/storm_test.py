# Many processes on one disk cache, and processes whose cache cannot be used.
#   storm_test.py CACHE_PROCESS [--rounds N]
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time
import unittest

PROCESS = sys.argv.pop(1)
ROUNDS = int(sys.argv.pop(2)) if len(sys.argv) > 2 and sys.argv[1] == "--rounds" and sys.argv.pop(1) else 20
PROCESSES, KERNELS = 16, 8


def start(environment, *options, **more):
    return subprocess.Popen([PROCESS, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, **more)


def finish(process):
    """Its number of compilations and its warnings."""
    out, _ = process.communicate("\n", timeout=300)
    found = re.search(r"^(\d+) compiled, 0 wrong$", out, re.M)
    assert process.returncode == 0 and found, f"exit {process.returncode}: {out}"
    return int(found.group(1)), re.findall(r"^warning: (.*)$", out, re.M)


class Storm(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name) / "cache"
        self.environment = {**os.environ, "COSMATI_CACHE_DIR": str(self.cache)}

    def once(self, *options, environment=None, **more):
        return finish(start(environment or self.environment, *options, **more))

    def test_one_compilation_a_kernel_among_many_processes_some_of_them_killed(self):
        chance = random.Random(1)
        first, later, killed = 0, 0, 0
        for number in range(ROUNDS):
            processes = [start(self.environment) for _ in range(PROCESSES)]
            for process in processes:  # all wait at their first line; now they go
                process.stdin.write("\n")
                process.stdin.flush()
            victims = processes[:4] if number % 2 == 0 else []
            for victim in victims:
                time.sleep(chance.uniform(0, 0.02))
                victim.kill()
                victim.wait()
                victim.communicate()
                killed += 1
            for process in processes[len(victims):]:
                compiled, warnings = finish(process)
                self.assertEqual(warnings, [])
                if number == 0:
                    first += compiled
                else:
                    later += compiled
        print(f"{ROUNDS} rounds of {PROCESSES} processes, {killed} killed: {first} compilations in the first round, {later} later")
        self.assertLessEqual(first, KERNELS, "the lock lets one process compile a kernel")
        self.assertEqual(later, 0)
        self.assertEqual(len(list(self.cache.glob("*.kernel"))), KERNELS)

    def test_a_second_process_compiles_nothing(self):
        self.assertEqual(self.once(), (KERNELS, []))
        self.assertEqual(self.once(), (0, []))

    def test_a_full_disk_costs_one_warning(self):
        compiled, warnings = self.once("--no-write-to-files")
        self.assertEqual((compiled, len(warnings)), (KERNELS, 1), warnings)
        self.assertIn(str(self.cache), warnings[0])
        self.assertEqual([path.name for path in self.cache.iterdir() if path.name != "lock"], [], "nothing half-written stays")
        self.assertEqual(self.once(), (KERNELS, []))

    def test_no_home_costs_one_warning(self):
        environment = {k: v for k, v in os.environ.items() if k not in ("COSMATI_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
        compiled, warnings = self.once(environment=environment)
        self.assertEqual((compiled, len(warnings)), (KERNELS, 1), warnings)

    def test_a_read_only_directory_serves_what_it_has_and_costs_one_warning(self):
        if os.geteuid() != 0:
            user = {}
        else:  # root may write everywhere
            user = {"user": 65534}
            if subprocess.run([PROCESS], input="\n", env={**os.environ, "COSMATI_CACHE_DIR": ""}, capture_output=True, text=True, **user).returncode:
                self.skipTest("another user cannot run the program")
            os.chmod(self.cache.parent, 0o755)
        self.cache.mkdir()
        self.cache.chmod(0o555)
        compiled, warnings = self.once(**user)
        self.assertEqual((compiled, len(warnings)), (KERNELS, 1), warnings)
        self.cache.chmod(0o777)
        self.assertEqual(self.once(**user), (KERNELS, []))
        self.cache.chmod(0o555)
        self.assertEqual(self.once(**user), (0, []))


if __name__ == "__main__":
    unittest.main()
