# Arrays of every layout, type and producer, and what is refused of them: nothing is read or written in the wrong place, and what was
# exported is given back exactly once.
# SPDX-License-Identifier: Apache-2.0
import array
import unittest

import numpy as np

import cosmati as co
from arrays import COPY, COPY_ANY_RANK, DEVICES, ArraysTest, FastProducer, Producer, softmax

rng = np.random.default_rng(11)
f32 = np.float32


def normal(*shape):
    return rng.standard_normal(shape).astype(f32)


class Layouts(ArraysTest):
    def test_strided_inputs_equal_their_contiguous_copies(self):
        base = normal(32, 32)
        wide = normal(2, 32)
        batch = normal(3, 4, 7)
        for device in DEVICES:
            one_plan = {"lane_axes": "col", "tile.col": "2", "tile.row": "1", "split.col": "1", "home.e": "worker"}
            f = co.load("softmax", device=device, knobs=one_plan)
            for x in (
                base.T,
                base[:, ::2],
                wide[:, :4],  # a row pitch of 32
                batch[:, 1],  # a padded outer stride
                base[::-1],
                base[:, ::-1],
                base[::-2, 3::-1],
                base[5:9, 7:20],
                np.broadcast_to(normal(1, 128), (5, 128)),
                np.broadcast_to(normal(3, 1), (3, 5)),
                np.broadcast_to(f32(2), (4, 4)),
            ):
                np.testing.assert_array_equal(f(x), f(np.ascontiguousarray(x)), f"{device} {x.strides}")
                np.testing.assert_allclose(f(x), softmax(x), rtol=1e-5)
                self.assertTrue(all(f.check(x)))

    def test_expanded_vectors_equal_their_copies(self):
        f, x = co.load("layer_norm"), normal(3, 8)
        gamma, beta = np.broadcast_to(f32(1.5), (8,)), np.broadcast_to(normal(1), (8,))
        np.testing.assert_array_equal(f(x, gamma, beta), f(x, gamma.copy(), beta.copy()))

    def test_a_strided_output_is_written_completely_and_nothing_else_is(self):
        x = normal(2, 3)
        for device in DEVICES:
            f = co.load("softmax", device=device)
            big = np.full((4, 6), 7, f32)
            out = big[::2, ::2]
            self.assertIs(f(x, out=out), out)
            np.testing.assert_allclose(out, softmax(x), rtol=1e-5)
            untouched = np.ones((4, 6), bool)
            untouched[::2, ::2] = False
            self.assertTrue((big[untouched] == 7).all())
            big = np.full((4, 6), 7, f32)
            out = big[::-2, ::-2]
            f(x, out=out)
            np.testing.assert_allclose(out, softmax(x), rtol=1e-5)
            self.assertEqual((big == 7).sum(), 18)

    def test_offsets(self):
        # Contiguous is not aligned: rows that begin anywhere.
        for dtype, count in ((f32, 4), (np.float16, 8)):
            base = normal(5 * 19 + 8).astype(dtype)
            for k in range(count):
                x = base[k : k + 5 * 19].reshape(5, 19)
                out = np.empty(5 * 19 + 8, dtype)[k : k + 5 * 19].reshape(5, 19)
                np.testing.assert_array_equal(co.load("softmax")(x, out=out), co.load("softmax")(x.copy()))

    def test_an_aligned_call_does_not_decide_for_an_unaligned_one(self):
        base, f = normal(16 * 1185 + 1), co.load("softmax")
        aligned, unaligned = base[:-1].reshape(16, 1185), base[1:].reshape(16, 1185)
        for x in (aligned, unaligned, aligned):
            np.testing.assert_allclose(f(x), softmax(x), rtol=2e-5, atol=1e-7)

    def test_empty_arrays(self):
        f = co.load("softmax")
        for shape in ((0, 64), (10, 0), (0, 0)):
            self.assertEqual(f(np.empty(shape, f32)).shape, shape)
        self.assertEqual(f(np.empty((4, 64), f32)[:0]).shape, (0, 64))
        f = co.program(COPY_ANY_RANK)
        self.assertEqual(f(np.empty((4, 0, 5, 2), f32)).shape, (4, 0, 5, 2))
        np.testing.assert_array_equal(co.load("column_sums")(np.empty((0, 5), f32)), np.zeros(5))
        a, w = np.empty((3, 0), f32), np.empty((2, 0), f32)
        f = co.program("program mm(in a: f32[m, k], in w: f32[n, k], out y: f32[m, n]) { parallel m, n { y[m, n] = contract(a, w, k) } }")
        np.testing.assert_array_equal(f(a, w), np.zeros((3, 2)))

    def test_arrays_without_dimensions(self):
        f = co.program("program p(in x: f32[], in y: f32[i], out z: f32[]) { parallel { z[] = x + sum(y, i) } }")
        z = f(np.array(2, f32), normal(0))
        self.assertEqual((z.shape, float(z)), ((), 2.0))
        out = np.array(0, f32)
        f(np.array(3, f32), np.ones(4, f32), out=out)
        self.assertEqual(float(out), 7.0)
        self.assertEqual(float(co.program(COPY_ANY_RANK)(np.array(5.0))), 5.0)

    def test_many_dimensions(self):
        x = rng.integers(-9, 9, (2, 3, 1, 2, 2, 3)).astype(np.int16)
        f = co.program(COPY_ANY_RANK)
        for view in (x, x.T, x[::-1, ..., ::-1], np.broadcast_to(x[0], (4, *x.shape[1:]))):
            np.testing.assert_array_equal(f(view), view)

    def test_rows_behind_a_large_stride(self):
        # 16384 rows of a pitch of 131072 floats: the last one begins beyond 2^31 elements. Only touched pages are memory.
        base = np.lib.stride_tricks.as_strided(np.zeros(131072 * 16385 + 8, f32), (16386 - 1, 8), (131072 * 4, 4))
        base[-1] = np.arange(8)
        np.testing.assert_allclose(co.load("softmax")(base)[-1], softmax(np.arange(8.0)), rtol=1e-6)


class Aliases(ArraysTest):
    def test_in_place_gives_the_same_bits(self):
        for columns in (8, 5000):
            x = normal(6, columns)
            f = co.load("softmax")
            expected = f(x)
            y = x.copy()
            self.assertIs(f(y, out=y), y)
            np.testing.assert_array_equal(y, expected)
            res, w = normal(6, columns), normal(columns)
            g = co.load("add_rms_norm")
            h, y = g(x, res, w)
            out = res.copy()
            try:
                written, again = g(x, out, w, out={"h": out})
            except co.Error as error:  # a plan that reads it again cannot, and says so
                self.assertIn("h is exactly res", error.what)
                np.testing.assert_array_equal(out, res)
            else:
                self.assertIs(written, out)
                np.testing.assert_array_equal(out, h)
                np.testing.assert_array_equal(again, y)

    def test_a_product_onto_its_own_factor_is_refused_or_right(self):
        a, w = normal(4, 4), normal(4, 4)
        f = co.program("program mm(in a: f32[m, k], in w: f32[n, k], out y: f32[m, n]) { parallel m, n { y[m, n] = contract(a, w, k) } }")
        self.refused("y is exactly a", lambda: f(a, w, out=a), "overlap")

    def test_partial_overlap_is_refused(self):
        base = normal(5, 8)
        before = base.copy()
        f = co.load("softmax")
        self.refused("y is written and shares memory with x", lambda: f(base[:4], out=base[1:]), "overlap")
        np.testing.assert_array_equal(base, before)

    def test_outputs_that_overlap_themselves_are_refused(self):
        f, x = co.load("softmax"), normal(3, 5)
        memory = np.zeros(64, f32)
        for strides in ((0, 4), (4, 4), (20, 0), (8, 4)):
            out = np.lib.stride_tricks.as_strided(memory, (3, 5), strides)
            self.refused("y is written, but its strides make different elements share memory", lambda: f(x, out=out), "overlap")
        self.assertTrue((memory == 0).all())

    def test_two_outputs_in_one_memory_are_refused(self):
        x, res, w = normal(2, 4), normal(2, 4), normal(4)
        out = np.empty((2, 4), f32)
        f = co.load("add_rms_norm")
        self.refused("h and y are both written and share memory", lambda: f(x, res, w, out={"h": out, "y": out}), "overlap")


class Refused(ArraysTest):
    def test_wrong_types_ranks_and_extents(self):
        f, x = co.load("softmax"), normal(3, 5)
        self.refused("x has 1 dimension [15]", lambda: f(x.ravel()), also=["softmax declares [row, col]"])
        self.refused("x is i32, but softmax takes float types for T", lambda: f(np.zeros((2, 2), np.int32)), "type_mismatch")
        self.refused("x is f32 but y is f64", lambda: f(x, out=np.empty((3, 5))))
        self.refused("axis col is 5", lambda: f(x, out=np.empty((3, 4), f32)), "extent_mismatch")
        for what, dtype in (("complex64", np.complex64), ("<U3", "U3"), ("datetime64", "M8[s]"), ("uint64", np.uint64), ("object", object),
                            ("float128", np.longdouble), ("('a'", [("a", "f4"), ("b", "f4")])):  # fmt: skip
            error = self.refused("x has elements of type", lambda: f(np.zeros((2, 2), dtype)), also=[what, "which no program takes"])
            self.assertIn("the types are bool, int8", error.hint)
        self.refused("x has the byte order of another machine", lambda: f(x.astype(x.dtype.newbyteorder())))
        self.refused("x is a masked array", lambda: f(np.ma.masked_less(x, 0)), also=["x.filled(VALUE)"])
        for wrong in ([[1.0, 2.0]], 3.5, None, "x", object()):
            self.refused("x is of type", lambda: f(wrong), also=["an array is needed"])
        np.testing.assert_allclose(f(x), softmax(x), rtol=1e-5)  # the session goes on

    def test_read_only_outputs(self):
        f, x = co.load("softmax"), normal(3, 5)
        out = np.zeros_like(x)
        out.setflags(write=False)
        self.refused("y is written, but its memory is read-only", lambda: f(x, out=out))
        self.assertTrue((out == 0).all())
        self.refused("y is written, but its memory is read-only", lambda: f(x, out=np.broadcast_to(f32(0), (3, 5))))
        g = co.program("program p(inout x: f32[i]) { parallel i { x[i] = x + 1 } }")
        self.refused("x is written, but its memory is read-only", lambda: g(np.frombuffer(bytes(16), f32)))

    def test_elements_between_elements(self):
        records = np.zeros((4, 5), np.dtype([("a", "f8"), ("b", "f4")]))
        f = co.program(COPY_ANY_RANK)
        self.refused("x steps by 60 bytes in dimension 0, which is no multiple of its elements of 8 bytes", lambda: f(records["a"]))
        np.testing.assert_array_equal(f(records["b"]), records["b"])  # 12 bytes are three elements
        bytes_ = np.zeros(33, np.uint8)
        odd = bytes_[1:].view(f32)
        try:
            np.testing.assert_array_equal(f(odd), odd)
        except co.Error as error:
            self.assertIn("x", error.what)

    def test_data_that_breaks_a_contract(self):
        table = normal(5, 3)
        f = co.program("""program pick(in table: f32[n, d], in id: i32[i] in 0 .. extent(n), out y: f32[i, d]) {
          parallel i { y[i, d] = table[id, d] }
        }""")
        ids = np.array([4, 0, 2], np.int32)
        np.testing.assert_array_equal(f(table, ids), table[ids])
        ids[1] = 5
        out = np.full((3, 3), 7, f32)
        self.refused("id[1] = 5 is outside 0 .. 5", lambda: f(table, ids, out=out), "contract_broken")
        self.assertTrue((out == 7).all())

    def test_extents_that_nothing_gives(self):
        f = co.program("program spread(in x: f32[i], out y: f32[i, j]) { parallel i, j { y[i, j] = x } }")
        x = normal(3)
        self.refused("nothing gives the extent of axis j, dimension 1 of y", lambda: f(x))
        np.testing.assert_array_equal(f(x, out=np.empty((3, 2), f32)), np.stack([x, x], 1))
        for device in DEVICES:
            np.testing.assert_array_equal(f(x, j=2, device=device), np.stack([x, x], 1))
        self.assertEqual(f(x, j=0).shape, (3, 0))
        self.assertEqual(f(x, j=np.int64(2), i=3).shape, (3, 2))
        self.assertIn("plan of spread", f.explain(x, j=2))
        self.refused("axis i is 4 in the call but 3 in dimension 0 of x", lambda: f(x, j=2, i=4), "extent_mismatch")
        self.refused("axis j is 3 in the call but 2 in dimension 1 of y", lambda: f(x, j=3, out=np.empty((3, 2), f32)), "extent_mismatch")
        self.refused("axis j cannot have the extent -1", lambda: f(x, j=-1))
        self.refused("the extent of axis j is an integer", lambda: f(x, j=2.0))
        self.refused("spread has no parameter `k`", lambda: f(x, k=2))


class Types(ArraysTest):
    def test_every_element_type_of_numpy(self):
        f = co.program(COPY)
        for dtype in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.float16, f32, np.float64,
                      np.longlong, np.intc):  # fmt: skip
            x = (rng.random((3, 7)) * 3).astype(dtype)
            y = f(x)
            self.assertEqual(y.dtype, x.dtype)
            np.testing.assert_array_equal(y, x)

    def test_read_only_inputs(self):
        x = normal(3, 5)
        x.setflags(write=False)
        np.testing.assert_array_equal(co.program(COPY)(x), x)
        mask = np.array([[True, False]])
        mask.setflags(write=False)
        np.testing.assert_array_equal(co.program(COPY)(mask), mask)

    def test_other_buffers(self):
        numbers = array.array("f", [1, 2, 3])
        f = co.program("program twice<T: any>(in x: T[i], out y: T[i]) { parallel i { y[i] = x } }")
        np.testing.assert_array_equal(f(numbers), [1, 2, 3])
        np.testing.assert_array_equal(f(memoryview(numbers)[::-1]), [3, 2, 1])
        np.testing.assert_array_equal(f(b"\x01\x02"), np.array([1, 2], np.uint8))
        out = array.array("f", [0, 0, 0])
        self.assertIs(f(numbers, out=out), out)
        self.assertEqual(list(out), [1, 2, 3])
        numbers.append(4)  # nothing is held after the call
        self.refused("y is written, but its memory is read-only", lambda: f(b"\x01\x02", out=b"\x00\x00"))

    def test_types_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        f = co.program(COPY)
        for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
            x = normal(3, 6).astype(dtype)
            for view in (x, x.T, x[:, ::-2]):
                y = f(view)
                self.assertEqual(y.dtype, dtype)
                np.testing.assert_array_equal(y.astype(f32), view.astype(f32))
            out = np.zeros((3, 6), dtype)
            f(x, out=out)
            np.testing.assert_array_equal(out.astype(f32), x.astype(f32))
        y = co.load("softmax")(np.zeros((2, 512), ml_dtypes.bfloat16))
        self.assertTrue((y.astype(f32) == 1 / 512).all())
        self.refused("x has elements of type", lambda: f(np.zeros((2, 2), ml_dtypes.float8_e3m4)))

    def test_a_subclass_of_ndarray_is_an_array(self):
        x = np.ma.masked_array(normal(2, 3), mask=False)
        np.testing.assert_array_equal(co.program(COPY)(x.view(np.matrix)), x.data)


class Producers(ArraysTest):
    def given_back(self, *producers):
        for producer in producers:
            self.assertGreater(producer.exported, 0)
            self.assertEqual(producer.released, producer.exported)

    def test_what_is_exported_is_given_back_once(self):
        x = normal(4, 9)
        f = co.load("softmax")
        for options in ({}, {"versioned": False}, {"legacy": True}, {"offset": 64}, {"strides": False}, {"device": (3, 0)}):
            producer = Producer(x, **options)
            for calls in range(1, 4):
                np.testing.assert_allclose(f(producer), softmax(x), rtol=1e-5)
                self.assertEqual(producer.exported, calls)
                self.given_back(producer)
        with self.subTest("host memory has no stream"):
            self.assertEqual({stream for stream, _ in producer.asked}, {None})

    def test_a_table_of_functions_is_used_where_it_is_offered(self):
        x = normal(3, 4)
        producer, out = FastProducer(x), FastProducer(np.zeros((3, 4), f32))
        for calls in range(1, 4):
            co.load("softmax")(producer, out=out)
            np.testing.assert_allclose(out.array, softmax(x), rtol=1e-5)
            self.assertEqual((producer.fast, out.fast), (calls, calls))
            self.given_back(producer, out)
        fixed = FastProducer(x, read_only=True)
        self.refused("y is written, but its memory is read-only", lambda: co.load("softmax")(producer, out=fixed))
        self.refused("x is on cuda:7", lambda: co.load("softmax")(FastProducer(x, device=(2, 7))), "backend_absent")
        self.given_back(producer, fixed)

    def test_views_through_dlpack(self):
        base = normal(8, 12)
        f = co.program(COPY)
        for view in (base.T, base[::-1, ::2], base[2:5, 3:], np.broadcast_to(base[0], (3, 12)), base[:0], base[:, :0]):
            producer = Producer(view)
            np.testing.assert_array_equal(f(producer), view)
            self.given_back(producer)
        dot = Producer(np.array(3, f32))
        self.assertEqual(float(co.program(COPY_ANY_RANK)(dot)), 3)
        self.given_back(dot)

    def test_outputs_through_dlpack(self):
        x = normal(2, 3)
        big = np.full((4, 6), 7, f32)
        out = Producer(big[::2, ::2])
        self.assertIs(co.load("softmax")(x, out=out), out)
        np.testing.assert_allclose(big[::2, ::2], softmax(x), rtol=1e-5)
        self.assertEqual((big == 7).sum(), 18)
        self.given_back(out)

    def test_the_read_only_flag(self):
        x = normal(2, 3)
        producer = Producer(x, read_only=True)
        np.testing.assert_allclose(co.load("softmax")(producer), softmax(x), rtol=1e-5)
        out = Producer(np.zeros((2, 3), f32), read_only=True)
        self.refused("y is written, but its memory is read-only", lambda: co.load("softmax")(producer, out=out))
        self.assertTrue((out.array == 0).all())
        self.given_back(producer, out)

    def test_refusals_give_back_what_was_exported(self):
        x = normal(2, 3)
        f = co.load("softmax")
        for text, options in (
            ("x has elements of DLPack's type (2, 32 bits, 4 lanes)", {"lanes": 4}),
            ("x has elements of DLPack's type (5, 32 bits, 1 lanes)", {"code": 5}),
            ("x is exported as version 9 of DLPack", {"major": 9}),
        ):
            producer = Producer(x, **options)
            self.refused(text, lambda: f(producer))
            self.given_back(producer)
        good, bad = Producer(x), Producer(normal(2, 4))
        self.refused("col", lambda: f(good, out=bad), "extent_mismatch")
        self.given_back(good, bad)
        good, bad = Producer(x), Producer(x, code=5)
        self.refused("y has elements", lambda: f(good, out=bad))
        self.given_back(good, bad)

    def test_memory_of_another_device(self):
        x = normal(2, 3)
        f = co.load("softmax")
        elsewhere, metal = Producer(x, device=(2, 7)), Producer(x, device=(8, 0))
        error = self.refused("x is on cuda:7, and the device cuda:7 is not available", lambda: f(elsewhere), "backend_absent")
        self.assertIn("copy it to the host", error.hint)
        self.refused("y is on cuda:7, and x on the host", lambda: f(x, out=elsewhere))
        self.refused("x is on cuda:7, and the program is to run on sim", lambda: f(elsewhere, device="sim"))
        self.given_back(elsewhere)
        self.refused("x is on metal:0", lambda: f(metal))
        self.assertEqual(metal.exported, 0)  # nothing waits for a device whose memory is refused

    def test_producers_that_fail(self):
        class Failing(Producer):
            def __dlpack__(self, **_):
                raise BufferError("not today")

        class Lying(Producer):
            def __dlpack__(self, **_):
                return "no capsule"

        f, x = co.load("softmax"), normal(2, 3)
        self.refused("x cannot be read through DLPack: not today", lambda: f(Failing(x)))
        self.refused("the __dlpack__ of x returns no capsule", lambda: f(Lying(x)))

        class Twice(Producer):
            def __dlpack__(self, **options):
                if not hasattr(self, "capsule"):
                    self.capsule = super().__dlpack__(**options)
                return self.capsule

        twice = Twice(x)
        f(twice)
        self.refused("the __dlpack__ of x returns no capsule that can still be used", lambda: f(twice))
        self.given_back(twice)

    def test_mixed_producers_and_what_makes_the_outputs(self):
        x, gamma, beta = normal(3, 4), normal(4), normal(4)
        f = co.load("layer_norm")
        y = f(Producer(x), gamma, memoryview(beta))
        self.assertIsInstance(y, np.ndarray)
        np.testing.assert_array_equal(y, f(x, gamma, beta))


if __name__ == "__main__":
    unittest.main()
