# How a program is called: positions, names, scalars, outputs, devices, extents; what it answers about itself; threads.
# SPDX-License-Identifier: Apache-2.0
import gc
import json
import os
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy as np

import cosmati as co
from arrays import DEVICES, ArraysTest, softmax

rng = np.random.default_rng(7)


# The oracle would need minutes for these products.
INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import cosmati as co
f = co.program("program p(in a: f32[i, k], in b: f32[k, j], out c: f32[i, j]) {{ parallel i, j {{ c[i, j] = contract(a, b, k) }} }}")
a = np.ones((2000, 2000), "f4")
threading.Timer(2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
f.{question}(a, a)
print("finished")
"""

# A function of a module that ends holds the module alive if something holds its classes.
OF_A_CLASS = """
import numpy as np
import cosmati as co
class T:
    def __init__(self, a): self.a = a
    def __dlpack__(self, **keywords): return self.a.__dlpack__(**keywords)
    def __dlpack_device__(self): return (1, 0)
softmax = co.load("softmax")
print(softmax(T(np.ones((2, 2), "f4"))).shape)
"""


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


class Calls(ArraysTest):
    def test_inputs_by_position_and_by_name(self):
        x, gamma, beta = normal(5, 33), normal(33), normal(33)
        f = co.load("layer_norm")
        expected = f(x, gamma, beta)
        mean, var = x.mean(1, keepdims=True), x.astype(np.float64).var(1, keepdims=True)
        np.testing.assert_allclose(expected, (x - mean) / np.sqrt(var + 1e-5) * gamma + beta, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(f(x, beta=beta, gamma=gamma), expected)
        np.testing.assert_array_equal(f(beta=beta, gamma=gamma, x=x), expected)

    def test_scalars_by_name_and_their_defaults(self):
        f = co.load("layer_norm")
        x, one, zero = normal(3, 8), np.ones(8, np.float32), np.zeros(8, np.float32)
        default = f(x, one, zero)
        np.testing.assert_array_equal(f(x, one, zero, eps=1e-5), default)
        self.assertGreater(abs(f(x, one, zero, eps=10) - default).max(), 0.1)
        for number in (np.float32(10), np.float64(10), np.int32(10), 10, 10.0, np.array(10)):
            np.testing.assert_array_equal(f(x, one, zero, eps=number), f(x, one, zero, eps=10.0))
        self.refused("eps is a scalar, and a value of type str is given", lambda: f(x, one, zero, eps="10"))
        self.refused("eps is f32, but true is given", lambda: f(x, one, zero, eps=True))
        g = co.program("program p(in x: i32[i], out y: i32[i], k: i32, b: bool) { parallel i { y[i] = where(b, x * k, x) } }")
        x = np.arange(4, dtype=np.int32)
        for yes in (True, np.True_, np.array(True)):
            np.testing.assert_array_equal(g(x, k=3, b=yes), x * 3)
        self.refused("k is i32, but 2.5 is given", lambda: g(x, k=2.5, b=True))
        self.refused("k is beyond 64 bits. Hint: pass a number that i32 holds", lambda: g(x, k=2**70, b=True))
        self.refused("p needs an argument `k`", lambda: g(x, b=True))

    def test_several_outputs_are_a_tuple_in_declared_order(self):
        q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 6)
        f = co.load("attention")
        result = f(q, k, v)
        self.assertIsInstance(result, tuple)
        o, lse = result
        self.assertEqual((o.shape, lse.shape), ((1, 2, 3, 6), (1, 2, 3)))
        self.assertTrue(all(f.check(q, k, v)))

    def test_out_is_written_and_returned(self):
        x = normal(4, 16)
        f = co.load("softmax")
        y = np.full_like(x, 7)
        self.assertIs(f(x, out=y), y)
        np.testing.assert_allclose(y, softmax(x), rtol=1e-5)
        self.assertIs(f(x, out={"y": y}), y)
        np.testing.assert_array_equal(f(x, out=None), y)
        np.testing.assert_array_equal(f(x, out={}), y)

    def test_out_of_some_of_several_outputs(self):
        q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 6)
        f = co.load("attention")
        lse = np.empty((1, 2, 3), np.float32)
        o, returned = f(q, k, v, out={"lse": lse})
        self.assertIs(returned, lse)
        np.testing.assert_array_equal(lse, f(q, k, v)[1])
        self.refused("attention has 2 outputs (o, lse), and out= is one array", lambda: f(q, k, v, out=lse))
        o_given = np.empty_like(o)
        o2, lse2 = f(q, k, v, out=(o_given, None))
        self.assertIs(o2, o_given)
        np.testing.assert_array_equal(o2, o)
        np.testing.assert_array_equal(lse2, lse)
        self.refused("attention has 2 outputs (o, lse), and out= holds 1", lambda: f(q, k, v, out=[lse]))
        self.refused("attention has no output `y`", lambda: f(q, k, v, out={"y": lse}))
        self.refused("attention has no output `q`", lambda: f(q, k, v, out={"q": q}))
        self.refused("o is an output of attention, and outputs are passed as out=", lambda: f(q, k, v, o=o))

    def test_inout_is_written_in_place_and_not_returned(self):
        f = co.program("program p(inout x: f32[i], in y: f32[i], k: f32 = 1) { parallel i { x[i] = x + k * y } }")
        x, y = normal(9), normal(9)
        expected = x + 2 * y
        self.assertIsNone(f(x, y, k=2))
        np.testing.assert_allclose(x, expected, rtol=1e-6)
        before = x.copy()
        self.assertTrue(all(f.check(x, y)))
        np.testing.assert_array_equal(x, before)

    def test_judge_holds_what_anything_computed_against_the_oracle(self):
        x = normal(4, 33)
        judge = co.load("softmax").judge(x)
        y = softmax(x).astype(np.float32)
        (judgement,) = judge(y)
        self.assertTrue(judgement.ok)
        self.assertTrue(all(judge({"y": np.asfortranarray(y)})))
        y[2, 5] *= 1.001
        (judgement,) = judge(y)
        self.assertEqual((judgement.ok, judgement.output, judgement.at), (False, "y", (2, 5)))
        self.refused("y is [33, 4], but softmax writes [4, 33]", lambda: judge(y.T), "extent_mismatch")
        self.refused("y is f64, but softmax writes f32", lambda: judge(y.astype(np.float64)))
        self.refused("softmax has no output `x`", lambda: judge({"x": x}), also=["it writes y"])
        self.refused("there is no array to judge for the output y", lambda: judge({}))
        q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 6)
        f = co.load("attention")
        o, lse = f(q, k, v)
        judge = f.judge(q, k, v)
        self.assertTrue(all(judge({"lse": lse, "o": o})))
        self.assertEqual(judge.outputs, (("o", "f32", (1, 2, 3, 6)), ("lse", "f32", (1, 2, 3))))
        self.refused("attention writes 2 arrays (o, lse), and one is given", lambda: f.judge(q, k, v)(o))

    def test_judge_takes_inouts_as_they_are_after_the_run(self):
        f = co.program("program p(inout x: f32[i], in y: f32[i]) { parallel i { x[i] = x + y } }")
        x, y = normal(9), normal(9)
        judge = f.judge(x, y)
        self.assertFalse(all(judge(x)))
        f(x, y)
        self.assertTrue(all(judge(x)))

    def test_parameters_named_like_the_options(self):
        f = co.program("program p(in out: f32[i], out y: f32[i], device: f32) { parallel i { y[i] = out * device } }")
        x = normal(3)
        np.testing.assert_allclose(f(x, device=2), x * 2)
        np.testing.assert_allclose(f(out=x, device=2), x * 2)
        g = co.program("program p(in x: f32[i], out out: f32[i]) { parallel i { out[i] = x } }")
        y = np.empty_like(x)
        self.assertIs(g(x, out=y), y)

    def test_what_does_not_match_the_signature(self):
        f, x = co.load("softmax"), normal(2, 3)
        self.refused("softmax takes 1 array by position (x), and 2 are given", lambda: f(x, x))
        self.refused("softmax has no parameter `z`", lambda: f(x, z=x), also=["its parameters are x, y"])
        self.refused("x is given twice, by position and by name", lambda: f(x, x=x))
        self.refused("softmax needs an argument `x`", lambda: f())

    def test_devices_agree(self):
        x = normal(4, 33)
        for device in DEVICES:
            y = co.load("softmax", device=device)(x)
            np.testing.assert_allclose(y, softmax(x), rtol=1e-5)
            np.testing.assert_array_equal(co.load("softmax")(x, device=device), y)
        self.refused("there is no device tpu", lambda: co.load("softmax")(x, device="tpu"))
        if "cpu" in DEVICES:
            for threads in (1, 2, 3):
                np.testing.assert_array_equal(co.load("softmax", device="cpu", threads=threads)(x), co.load("softmax", device="cpu")(x))
            self.refused("-1", lambda: co.load("softmax", device="cpu", threads=-1)(x))
        else:
            with self.assertRaises(co.BackendAbsent):
                co.load("softmax")(x, device="cpu")

    def test_every_shipped_program_loads(self):
        names = co.shipped_programs()
        self.assertIn("softmax", names)
        for name in names:
            self.assertEqual(co.load(name).name, name)

    def test_a_text_with_several_programs_needs_a_name(self):
        text = "program p(out y: i64[2]) { parallel { y[0] = 1; y[1] = 2 } }\nprogram q(in x: f32[i], out y: f32[i]) { parallel i { y[i] = x } }"
        x = normal(3)
        np.testing.assert_array_equal(co.program(text, name="q")(x), x)
        np.testing.assert_array_equal(co.program(text, name="p")(), [1, 2])
        self.refused("holds no program `r`", lambda: co.program(text, name="r"), "unknown_name")

    def test_decorated_functions_with_options(self):
        @co.program(name="twice", device="oracle")
        def something():
            i = co.Axis("i")
            x, y = co.input("x", co.f32, [i]), co.output("y", co.f32, [i])
            with co.parallel(i):
                y[i] = x * 2

        self.assertEqual(something.name, "twice")
        np.testing.assert_array_equal(something(np.arange(3, dtype=np.float32)), [0, 2, 4])
        self.assertEqual(something.compiles, 0)  # the oracle compiles nothing

    def test_kernels_are_compiled_once(self):
        f = co.load("softmax", cache="")
        for rows in (3, 4, 5):
            f(normal(rows, 8))
        self.assertEqual(f.compiles, 1)
        f(normal(3, 8).astype(np.float64))
        self.assertEqual(f.compiles, 2)
        f(normal(8, 3).T)  # another stride may be another kernel
        f(normal(9, 3).T)
        self.assertLessEqual(f.compiles, 3)

    def test_each_knob_has_values_that_plan_and_run(self):
        f, x = co.load("softmax"), normal(5, 37)
        knobs = f.knobs(x)
        self.assertEqual(f.compiles, 0)
        self.assertIn("lanes", [knob.knob for knob in knobs])
        for knob in knobs:
            self.assertGreater(len(knob.values), 1, knob)
            for value in () if knob.knob.startswith("chunk.") else (knob.values[0], knob.values[-1]):  # chunks need their axis on the lanes
                self.assertTrue(all(co.load("softmax", knobs={knob.knob: value}).check(x)), (knob, value))

    def test_plans_and_sources(self):
        f, x = co.load("softmax"), normal(4, 16)
        self.assertIn("plan of softmax", f.explain(x))
        plan = f.plan(x)
        self.assertEqual(json.loads(plan)["program"], "softmax")
        np.testing.assert_array_equal(co.load("softmax", plan=plan)(x), f(x))
        self.assertTrue(all(isinstance(fact, str) for fact in f.facts(x)))
        self.assertNotEqual(f.facts(x), f.facts(x.T))
        self.assertIn("program softmax(in x: f32[row, col]", f.source(x))
        self.assertIn("kernel", f.source(x, as_="kernel"))
        self.refused("not emitted as `ptx`", lambda: f.source(x, as_="ptx"))
        self.assertEqual(co.program(f.source(x)).text(), f.text({"T": co.f32}))
        with self.assertRaises(co.Error) as raised:
            co.load("softmax", knobs={"no_such_knob": 1})(x)
        self.assertEqual(raised.exception.code, "unknown_knob")

    def test_compiling_can_be_forbidden(self):
        with self.assertRaises(co.Error) as raised:
            co.load("softmax", jit=False, cache="")(normal(4, 16))
        self.assertEqual(raised.exception.code, "not_compiled")

    def test_check_judges_by_the_oracle(self):
        f, x = co.load("softmax"), normal(4, 16)
        (judgement,) = f.check(x)
        self.assertTrue(judgement.ok)
        self.assertEqual(judgement.output, "y")
        self.assertLessEqual(judgement.max_abs, judgement.bound)
        y = np.full_like(x, 3)
        f.check(x, out=y)
        self.assertTrue((y == 3).all())  # nothing of the caller's is written

    def test_a_judgement_knows_what_it_says_nothing_of(self):
        tiny = co.program("program p(in x: f32[n], out y: f16[n]) { parallel n { y[n] = x * 1e-9 } }")
        (judgement,) = tiny.check(np.ones(10, np.float32))
        self.assertEqual((judgement.ok, judgement.judged, judgement.unjudged, judgement.elements), (True, False, 10, 10))
        self.assertIn("unjudged", repr(judgement))

    def test_an_interrupt_ends_a_check(self):
        # A check begins with a run, which ends before anything else; by the simulator that takes minutes.
        for question in ("check", "judge") if "cpu" in DEVICES else ("judge",):
            text = INTERRUPTED.format(question=question)
            start = time.monotonic()
            ended = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
            self.assertIn("KeyboardInterrupt", ended.stderr)
            self.assertNotIn("finished", ended.stdout)
            self.assertLess(time.monotonic() - start, 60)

    def test_the_class_of_an_argument_is_not_kept(self):
        ended = subprocess.run([sys.executable, "-c", OF_A_CLASS], capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "(2, 2)\n", ""))

    def test_representations(self):
        self.assertEqual(repr(co.load("softmax")), "<cosmati.Function softmax(x: T[row, col]) -> y: T[row, col]>")
        self.assertIn("eps: f32 = ...", repr(co.load("layer_norm")))
        self.assertEqual(repr(co.load("softmax").parameters[0]), "<cosmati.Parameter x: T[row, col]>")
        for thing in (co.any_float, co.dim(1, 2), co.tiles(co.Axis("i")), co.devices()[0], co.f32, co.boolean, co.load("softmax").check(normal(1, 2))[0]):
            self.assertIn("cosmati.", repr(thing))

    def test_programs_are_collected_with_their_functions(self):
        def make():
            def body():
                i = co.Axis("i")
                y = co.output("y", co.f32, [i, 2])
                _ = function  # a cycle: body -> cell -> Function -> body
                with co.parallel(i):
                    y[i, 0] = 1
                    y[i, 1] = 2

            function = co.program(body)
            function(out=np.empty((3, 2), np.float32))
            return weakref.ref(body)

        gone = make()
        gc.collect()
        self.assertIsNone(gone())


class Threads(ArraysTest):
    def test_threads_run_programs_of_one_name(self):
        # Each thread its own program of the same name, and one program for all, compiled by whoever comes first.
        shared = co.program("program same<T: float>(in x: T[i], out y: T[i]) { parallel i { y[i] = x + 100 } }")
        wrong = []

        def work(t):
            try:
                for round_ in range(5):
                    if t % 2:
                        own = co.program(f"program same<T: float>(in x: T[i], out y: T[i]) {{ parallel i {{ y[i] = x * {t} }} }}")
                    else:

                        @co.program(name="same")
                        def own():
                            i = co.Axis("i")
                            x = co.input("x", co.any_float, [i])
                            y = co.output("y", co.like(x), [i])
                            with co.parallel(i):
                                y[i] = x * t

                    x = np.arange(17, dtype=np.float32 if t % 3 else np.float64)
                    if (own(x) != x * t).any() or (shared(x) != x + 100).any():
                        wrong.append(t)
            except Exception as error:  # noqa: BLE001
                wrong.append(error)

        team = [threading.Thread(target=work, args=(t,)) for t in range(16)]
        for member in team:
            member.start()
        for member in team:
            member.join()
        self.assertEqual(wrong, [])

    def steps_during(self, work):
        """How often a thread that does a little every half millisecond came to it while `work` ran, and how long that took in s."""
        counted, stop = [0], threading.Event()

        def count():
            while not stop.is_set():
                counted[0] += 1
                time.sleep(0.0005)

        thread = threading.Thread(target=count)
        thread.start()
        time.sleep(0.01)
        before, start = counted[0], time.perf_counter()
        work()
        during, took = counted[0] - before, time.perf_counter() - start
        stop.set()
        thread.join()
        return during, took

    def test_other_threads_run_while_a_program_runs(self):
        # The simulator takes a tenth of a second for these rows: a thread that counts goes on only if the GIL is free.
        f, x = co.load("softmax", device="sim"), normal(256, 4096)
        f(x)
        during, took = self.steps_during(lambda: f(x))
        self.assertGreaterEqual(during, 2, f"{during} steps in {took:.3f} s")  # one may fall before or after

    @unittest.skipUnless("cpu" in DEVICES, "nothing takes long to compile without the CPU backend")
    def test_other_threads_run_while_a_program_compiles(self):
        q, k, v = normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 6)
        f = co.load("attention", cache="")
        during, took = self.steps_during(lambda: f(q, k, v))
        self.assertGreaterEqual(during, 2, f"{during} steps in {took:.3f} s")  # one may fall before or after

    def test_a_forked_child_runs_and_compiles(self):
        f, x = co.load("softmax"), normal(64, 1024)
        expected = f(x)
        child = os.fork()
        if child == 0:
            try:
                good = (f(x) == expected).all() and (co.load("layer_norm")(x, x[0], x[0]).shape == x.shape)
                os._exit(0 if good else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)
        np.testing.assert_array_equal(f(x), expected)


if __name__ == "__main__":
    unittest.main()
