# Every mistake that a program in Python can make: an Error with its code, its text, and the file and line of the user's expression;
# the session goes on. The line of the mistake bears the comment `here`.
# SPDX-License-Identifier: Apache-2.0
import inspect
import pickle
import sys
import traceback
import unittest

import cosmati as co
import numpy as np
from cosmati import Axis, any_float, exp, f32, i32, output, parallel, stream, tiles, where


def line_of_the_mistake(body):
    lines, first = inspect.getsourcelines(body)
    return first + next(i for i, line in enumerate(lines) if "# here" in line)


class Rows:
    """The parts that most programs here share."""

    def __init__(self):
        self.row, self.col, self.c, self.n = Axis("row"), Axis("col"), Axis("c"), Axis("n")
        self.x = co.input("x", f32, [self.row, self.col])
        self.g = co.input("g", f32, [self.c])
        self.z = co.input("z", f32, [self.n])
        self.y = output("y", f32, [self.row, self.col])
        self.s = output("s", f32, [self.row])
        self.t = output("t", f32, [self.col])


class Mistakes(unittest.TestCase):
    def refused(self, code, text, body):
        with self.assertRaises(co.Error) as raised:
            co.program(body).verify()
        error = raised.exception
        self.assertEqual(error.code, code, error)
        self.assertIn(text, str(error))
        self.assertEqual(error.file, __file__, error)
        self.assertEqual(error.line, line_of_the_mistake(body), error)
        if sys.version_info >= (3, 11):
            self.assertGreater(error.column, 0, error)
        return error

    def test_extra_axis(self):
        def p():
            r = Rows()
            with parallel(r.row):
                product = r.x * r.g
                r.y[r.row, r.col] = product  # here

        error = self.refused("extra_axis", "value stored to y has axis c, which the index does not name", p)
        self.assertEqual(error.hint, "reduce over it or index with it")

    def test_the_traceback_ends_at_the_line_of_the_mistake(self):
        def p():
            r = Rows()
            with parallel(r.row):
                co.sum(r.x, r.n)  # here

        try:
            co.program(p).verify()
        except co.Error as error:
            self.assertEqual(traceback.extract_tb(error.__traceback__)[-1].lineno, line_of_the_mistake(p))

    def test_a_function_of_numpy(self):
        def p():
            r = Rows()
            with parallel(r.row):
                r.y[r.row, r.col] = np.exp(r.x)  # here

        error = self.refused("type_mismatch", "numpy.exp is a function of arrays", p)
        self.assertEqual(error.hint, "use cosmati.exp")

    def test_a_number_of_numpy_beside_a_value_is_a_number(self):
        def p(two, one):
            r = Rows()
            with parallel(r.row):
                r.y[r.row, r.col] = where(one < r.x, two / r.x, two - r.x)
                r.s[r.row] = co.sum(two * r.x, r.col)
            r.t[r.col] = co.sum(r.x, r.row)

        ours, plain = co.program(lambda: p(np.float64(2), np.float64(1)), name="p"), co.program(lambda: p(2.0, 1.0), name="p")
        self.assertEqual(ours.text({}, {}), plain.text({}, {}))

    def test_no_such_axis(self):
        def p():
            r = Rows()
            with parallel(r.row):
                co.sum(r.x, r.n)  # here

        self.refused("no_such_axis", "sum over n, but the value has no axis n (it has row, col)", p)

        def q():
            r = Rows()
            with parallel(r.row):
                r.s[r.row] = r.x.at(r.n, 0).otherwise(0)  # here

        self.refused("no_such_axis", "no axis n", q)

        def of_the_prelude():
            r = Rows()
            with parallel(r.row):
                co.attend(r.x, r.x, r.n)  # here

        self.refused("no_such_axis", "max over n", of_the_prelude)

    def test_a_helper_of_the_user_has_lines_of_its_own(self):
        def p():
            r = Rows()

            def helper(x):
                return co.max(x, r.n)  # here

            with parallel(r.row):
                helper(r.x)

        self.refused("no_such_axis", "max over n", p)

    def test_unfinished_reduction(self):
        def p():
            r = Rows()
            with parallel(r.row):
                total = co.sum(r.x, r.row)
                r.x - total  # here

        self.refused("unfinished_reduction", "sum(x, row) exists only when every instance of row has finished", p)

    def test_unfinished_reduction_above_parallel(self):
        def p():
            r = Rows()
            total = co.sum(r.x, r.row)
            with parallel(r.row):
                r.x - total  # here

        self.refused("unfinished_reduction", "sum(x, row) exists only when every instance of row has finished", p)

        def joined():
            r = Rows()
            r.x - co.sum(r.x, r.row)  # here
            with parallel(r.row):
                pass

        self.refused("unfinished_reduction", "sum(x, row) exists only when every instance of row has finished", joined)

    def test_store_conflict(self):
        def p():
            r = Rows()
            with parallel(r.row):
                r.t[r.col] = r.x  # here

        self.refused("store_conflict", "every instance of row would store t[col]", p)

    def test_partial_out(self):
        def p():
            row = Axis("row")
            y = output("y", f32, [row, 2])
            with parallel(row):
                y[row, 0] = 1  # here

        self.refused("partial_out", "out y", p)

    def test_out_of_bounds(self):
        def p():
            r = Rows()
            with parallel(r.row):
                r.s[r.row] = r.x[r.row, 0].otherwise(0)
                r.t[r.col] = co.sum(r.x, r.row)
                r.y[r.row, r.col] = r.x[r.row, r.col + 1]  # here

        self.refused("out_of_bounds", "leaves its extents", p)

    def test_an_access_is_at_fault_where_it_was_written(self):
        def p():
            row, col = Axis("row"), Axis("col")
            x, y = co.input("x", f32, [row, col]), output("y", f32, [row, col])
            with parallel(row):
                shifted = x[row, col + 1]  # here
                twice = shifted * 2
                y[row, col] = twice

        self.refused("out_of_bounds", "leaves its extents", p)

    def test_unproved_gather(self):
        def p():
            row, col = Axis("row"), Axis("col")
            x, label, y = co.input("x", f32, [row, col]), co.input("label", i32, [row]), output("y", f32, [row])
            with parallel(row):
                y[row] = x[row, label]  # here

        self.refused("unproved_gather", "nothing says label < extent(col)", p)

    def test_cut_dependent(self):
        def p():
            row, col = Axis("row"), Axis("col")
            x, y = co.input("x", f32, [row, col]), output("y", f32, [row])
            with parallel(row):
                pieces = stream(tiles(col), 0.0, lambda m: m + co.max(x, col) * 0 + 1)  # here
                y[row] = pieces

        self.refused("cut_dependent", "where the stream over col is cut", p)

    def test_reducer_law(self):
        def p():
            row, col = Axis("row"), Axis("col")
            x, y = co.input("x", f32, [row, col]), output("y", f32, [row])
            minus = co.Reducer("minus", lambda: 0.0, lambda x: x, lambda a, b: a[0] - b[0], lambda s: s[0])
            with parallel(row):
                y[row] = minus(x, col)  # here

        self.refused("reducer_law", "minus", p)

    def test_range_on_tile_axis(self):
        def p():
            r = Rows()
            with parallel(r.row):
                Axis("t", 0, r.col + 1)  # here

        self.refused("range_on_tile_axis", "the range of t depends on col, which is not a program axis", p)

    def test_repeated_axis(self):
        def p():
            row = Axis("row")
            co.input("w", f32, [row, row])  # here

        self.refused("repeated_axis", "axis row appears twice in the dimensions of w", p)

        def q():
            r = Rows()
            with parallel(r.row, r.row):  # here
                pass

        self.refused("repeated_axis", "row", q)

    def test_unknown_name_is_an_extent_that_nothing_binds(self):
        def p():
            row = Axis("row")
            loose = Axis("loose")  # here
            y = output("y", f32, [row])
            with parallel(row):
                y[row] = f32(loose.extent())

        self.refused("unknown_name", "nothing binds the extent of axis loose", p)

    def test_type_mismatch(self):
        def index_count():
            r = Rows()
            with parallel(r.row):
                r.s[r.row] = r.x[r.row]  # here

        self.refused("type_mismatch", "x[row, col] has 2 dimensions and is indexed with 1", index_count)

        def kinds():
            r = Rows()
            with parallel(r.row):
                r.y[r.row, r.col] = r.x + i32(r.row)  # here

        self.refused("type_mismatch", "", kinds)

        def integers():
            r = Rows()
            with parallel(r.row):
                r.row / 2  # here

        self.refused("type_mismatch", "", integers)

        def promise():
            row = Axis("row")
            co.input("x", f32, [row], within=(0, 5))  # here

        self.refused("type_mismatch", "contracts are promises about integers", promise)

        def text():
            r = Rows()
            with parallel(r.row):
                r.x + "1"  # here

        self.refused("type_mismatch", "an object of type str is no value of a program", text)

        def integer():
            r = Rows()
            with parallel(r.row):
                r.row + 2**63  # here

        self.refused("type_mismatch", "9223372036854775808 is no i64", integer)

    def test_redefined(self):
        def p():
            row = Axis("row")
            co.input("x", f32, [row])
            co.input("x", f32, [row])  # here

        self.refused("redefined", "x", p)

    def test_a_value_has_no_truth(self):
        def if_():
            r = Rows()
            with parallel(r.row):
                if r.x > 0:  # here
                    pass

        error = self.refused("not_supported", "a value has no truth while the program is captured", if_)
        self.assertIn("where(c, x, y)", error.hint)

        def chain():
            r = Rows()
            with parallel(r.row):
                where(0 < r.x < 1, 1, 0)  # here

        self.refused("not_supported", "no truth", chain)

        def and_():
            r = Rows()
            with parallel(r.row):
                where(r.x > 0 and r.x < 1, 1, 0)  # here

        self.refused("not_supported", "no truth", and_)

        def max_():
            r = Rows()
            with parallel(r.row):
                max(r.x, 0)  # here

        self.assertIn("maximum(x, y)", self.refused("not_supported", "no truth", max_).hint)

    def test_what_is_no_value_is_not_stored(self):
        def p():
            r = Rows()
            with parallel(r.row):
                r.s[r.row] = None  # here

        self.refused("type_mismatch", "an object of type NoneType is no value of a program", p)

    def test_options_and_texts_of_the_wrong_kind(self):
        text = "program p(in x: f32[n], out y: f32[n]) { parallel n { y[n] = x } }"
        for code, words, call in [
            ("bad_argument", "knobs= maps names to values, and an object of type list is given", lambda: co.program(text, knobs=["lanes"])),
            ("unknown_knob", "there is no knob `3`", lambda: co.program(text, knobs={3: 4})(b"1234")),
            ("syntax", "the text is no UTF-8: surrogates not allowed at character 0", lambda: co.program("\ud800")),
        ]:
            with self.assertRaises(co.Error) as raised:
                call()
            self.assertEqual(raised.exception.code, code)
            self.assertIn(words, str(raised.exception))

    def test_an_out_parameter_is_not_read_and_an_in_parameter_not_written(self):
        def read():
            r = Rows()
            with parallel(r.row):
                r.y[r.row, r.col] += 1  # here

        self.refused("not_supported", "the out parameter y cannot be read", read)

        def bare():
            r = Rows()
            with parallel(r.row):
                r.y + 1  # here

        self.refused("not_supported", "the out parameter y cannot be read", bare)

        def written():
            r = Rows()
            with parallel(r.row):
                r.x[r.row, r.col] = 1  # here

        self.refused("not_supported", "the in parameter x cannot be written", written)

    def test_what_is_no_axis(self):
        def p():
            r = Rows()
            with parallel(r.row):
                co.max(r.x, 3.0)  # here

        error = self.refused("syntax", "an axis is needed here", p)
        self.assertIn("maximum(x, y)", error.hint)

        def none():
            r = Rows()
            with parallel(r.row):
                co.sum(r.x)  # here

        self.refused("syntax", "at least one axis", none)

        def sliced():
            r = Rows()
            with parallel(r.row):
                r.x[r.row, :]  # here

        self.refused("type_mismatch", "slice is no value", sliced)

        def indexed():
            r = Rows()
            with parallel(r.row):
                exp(r.x)[r.row, 0]  # here

        self.refused("type_mismatch", "only parameters are indexed", indexed)

    def test_callbacks_that_return_the_wrong_number_of_values(self):
        def nothing():
            r = Rows()
            with parallel(r.row):
                stream(tiles(r.col), (0.0, 1.0), lambda a, b: None)  # here

        self.refused("syntax", "the body of a stream returns nothing", nothing)

        def one():
            r = Rows()
            with parallel(r.row):
                stream(tiles(r.col), (0.0, 1.0), lambda a, b: a)  # here

        self.refused("syntax", "returns 1 value, and the stream carries 2", one)

        def merge():
            r = Rows()
            with parallel(r.row):
                stream(tiles(r.col), 0.0, lambda a: a + co.sum(r.x, r.col), lambda a, b: (a[0], b[0]))  # here

        self.refused("syntax", "the merge of a stream returns 2 values, and the stream carries 1", merge)

        def state():
            r = Rows()
            with parallel(r.row):
                bad = co.Reducer("bad", lambda: (0.0, 0.0), lambda x: x, lambda a, b: a, lambda s: s[0])
                bad(r.x, r.col)  # here

        self.refused("syntax", "the lift of the reducer bad gives 1 value, and its state has 2", state)

    def test_what_belongs_to_another_program(self):
        kept = []

        def first():
            kept.append(Axis("row"))
            x, y = co.input("x", f32, [kept[-1]]), output("y", f32, [kept[-1]])
            kept.append(exp(x))
            with parallel(kept[-2]):
                y[kept[-2]] = kept[-1]

        co.program(first).verify()

        def axis():
            co.input("x", f32, [kept[-2]])  # here

        self.refused("not_supported", "this axis belongs to another capture", axis)

        def value():
            row = Axis("row")
            y = output("y", f32, [row])
            with parallel(row):
                y[row] = kept[-1]  # here

        self.refused("not_supported", "this value belongs to another capture", value)
        outside = Axis("outside")

        def global_():
            co.input("x", f32, [outside])  # here

        self.refused("not_supported", "was made outside of any program", global_)
        with self.assertRaisesRegex(co.Error, "belongs inside the body of a program"):
            output("y", f32, [outside])

    def test_the_function_of_a_program_has_no_parameters(self):
        with self.assertRaises(co.Error) as raised:
            @co.program
            def scaled(x, k=2):
                pass
        self.assertEqual(raised.exception.code, "bad_argument")
        self.assertIn("has no parameters, and this one has x", raised.exception.what)
        self.assertIn('x = cosmati.input("x", cosmati.f32, [row])', raised.exception.hint)
        co.program(lambda *ignored, k=2: None)  # nothing that a call would have to give

    def test_exceptions_of_the_body_come_through(self):
        def p():
            Axis("row")
            raise KeyError("of the user")

        with self.assertRaisesRegex(KeyError, "of the user"):
            co.program(p).verify()

        def in_a_stream():
            r = Rows()

            def body(m):
                raise KeyError("deep inside")

            with parallel(r.row):
                stream(tiles(r.col), 0.0, body)

        with self.assertRaisesRegex(KeyError, "deep inside"):
            co.program(in_a_stream).verify()

    def test_a_carried_value_takes_the_axes_of_its_next(self):
        # The body runs again until its types are stable: the mistake of the first run is taken back, as in text and C++.
        def p():
            b, t, d = Axis("b"), Axis("t"), Axis("d")
            x, y = co.input("x", any_float, [b, t, d]), output("y", f32, [b, t])

            def body(h):
                now = h * 0.5 + x
                y[b, t] = co.sum(h + x, d)
                return now

            with parallel(b):
                stream(t, 0, body)

        co.program(p).verify()

    def test_a_program_in_its_own_body(self):
        def recursive():
            Axis("row")
            function.text()  # here

        function = co.program(recursive)
        with self.assertRaises(co.Error) as raised:
            function.text()
        self.assertIn("used in its own body", str(raised.exception))

    def test_errors_have_their_parts_and_travel(self):
        with self.assertRaises(co.Error) as raised:
            co.program("program p(in x: f32[i], out y: f32[i]) {\n  parallel i { y[i] = x + z }\n}")("no array")
        error = raised.exception
        self.assertIsInstance(error, ValueError)
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.code, copy.line), (str(error), error.code, error.line))
        with self.assertRaises(co.Error) as raised:
            co.program("program p(in x: f32[i], out y: f32[i]) {\n  parallel i { y[i] = x + z }\n}").text()
        error = raised.exception
        self.assertEqual((error.code, error.file, error.line, error.column), ("unknown_name", "<text>", 2, 27))
        self.assertIn("z", error.what)
        with self.assertRaises(co.Error) as raised:
            co.load("softmux")
        self.assertIn("softmax", raised.exception.hint)
        with self.assertRaises(co.Error) as raised:
            co.program("program p(out y: f32[2]) { parallel { y[0] = 1; y[1] = 2 } }\nprogram q(out y: f32[1]) { parallel { y[0] = 1 } }")
        self.assertIn("p, q", raised.exception.hint)


if __name__ == "__main__":
    unittest.main()
