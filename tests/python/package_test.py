# The package as a whole: what it exports, its types for editors, its documentation, and the Python program of the README.
# SPDX-License-Identifier: Apache-2.0
import ast
import pathlib
import re
import subprocess
import sys
import unittest

import cosmati as co

FOLDER = pathlib.Path(co.__file__).parent
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Package(unittest.TestCase):
    def test_every_name_is_in_the_stub_and_documented(self):
        stub = FOLDER / "_core.pyi"
        if not stub.exists():
            self.skipTest("a build with a sanitizer makes no stub")
        self.assertTrue((FOLDER / "py.typed").exists())
        tree = ast.parse(stub.read_text())
        declared = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        declared |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
        public = {name for name in vars(co._core) if not name.startswith("_")}
        self.assertEqual(public - declared, set())
        for name in public:
            thing = getattr(co, name)
            if callable(thing) and not isinstance(thing, co.DType):
                self.assertTrue((thing.__doc__ or "").strip(), name)
        for method in ("__call__", "check", "explain", "plan", "source", "text", "verify"):
            self.assertTrue(getattr(co.Function, method).__doc__.strip(), method)

    def test_a_star_import_leaves_pythons_names_alone(self):
        names = {}
        exec("from cosmati import *", names)
        self.assertIn("exp", names)
        self.assertIn("load", names)
        for builtin in ("max", "sum", "abs", "any", "input", "round"):
            self.assertNotIn(builtin, names)
            self.assertTrue(hasattr(co, builtin))

    def test_the_version_is_that_of_the_build(self):
        (version,) = re.findall(r"project\(cosmati VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
        self.assertEqual((co.version, co.__version__), (version, version))

    def test_the_program_of_the_readme_runs(self):
        (text,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
        ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_importing_needs_no_numpy(self):
        code = "import sys; sys.modules['numpy'] = None; import cosmati; print(cosmati.load('softmax'))"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("softmax", ran.stdout, ran.stderr)

    def test_nothing_is_printed_and_nothing_leaks_at_exit(self):
        code = """
import numpy as np, cosmati as co
@co.program
def twice():
    i = co.Axis("i")
    x, y = co.input("x", co.any_float, [i]), co.output("y", co.any_float, [i])
    with co.parallel(i):
        y[i] = x * 2
def use():
    try: twice(np.ones(3))
    except co.Error as error: return error
kept = use()
f = co.load("softmax")
f(np.ones((2, 2), np.float32))
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
