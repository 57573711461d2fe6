# Torch tensors in and out, where torch is installed.
# SPDX-License-Identifier: Apache-2.0
import sys
import unittest

import numpy as np

import cosmati as co
from arrays import COPY, ArraysTest

try:
    import torch
except ImportError:
    torch = None


@unittest.skipUnless(torch, "torch is not installed")
class Torch(ArraysTest):
    def setUp(self):
        torch.manual_seed(3)

    def test_tensors_in_give_tensors_out(self):
        x = torch.randn(5, 33)
        y = co.load("softmax")(x)
        self.assertIsInstance(y, torch.Tensor)
        torch.testing.assert_close(y, torch.softmax(x, 1))
        o, lse = co.load("attention")(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 6))
        self.assertIsInstance(o, torch.Tensor)
        self.assertIsInstance(lse, torch.Tensor)

    def test_every_type(self):
        f = co.program(COPY)
        for dtype in (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32,
                      torch.float64):  # fmt: skip
            x = (torch.rand(3, 7) * 3).to(dtype)
            y = f(x)
            self.assertEqual(y.dtype, dtype)
            self.assertTrue(torch.equal(y, x))
        for name in ("uint16", "uint32"):
            if hasattr(torch, name):
                x = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
                self.assertTrue(torch.equal(f(x).to(torch.int64), x.to(torch.int64)))
        for name in ("float8_e4m3fn", "float8_e5m2"):
            if hasattr(torch, name):
                x = torch.randn(2, 3).to(getattr(torch, name))
                try:
                    y = f(x)
                except co.Error as error:  # a torch that exports none
                    self.assertIn("x cannot be read through DLPack", str(error))
                else:
                    self.assertEqual(y.dtype, x.dtype)
                    self.assertTrue(torch.equal(y.view(torch.uint8), x.view(torch.uint8)))

    def test_views(self):
        base = torch.randn(32, 32)
        f = co.load("softmax")
        for x in (base.t(), base[:, ::2], base[3:7, 5:20], torch.randn(2, 1).expand(2, 128), torch.tensor(2.0).expand(4, 4), base[:0]):
            torch.testing.assert_close(f(x), torch.softmax(x, 1))
        f, x, gamma = co.load("layer_norm"), torch.randn(3, 8), torch.randn(1).expand(8)
        self.assertTrue(torch.equal(f(x, gamma, gamma), f(x, gamma.contiguous(), gamma.contiguous())))

    def test_outputs(self):
        x = torch.randn(2, 3)
        big = torch.full((4, 6), 7.0)
        out = big[::2, ::2]
        self.assertIs(co.load("softmax")(x, out=out), out)
        torch.testing.assert_close(out, torch.softmax(x, 1))
        self.assertEqual(int((big == 7).sum()), 18)
        y = x.clone()
        co.load("softmax")(y, out=y)
        torch.testing.assert_close(y, torch.softmax(x, 1))
        self.refused("y is written, but its strides make different elements share memory",
                     lambda: co.load("softmax")(x, out=torch.zeros(1, 3).expand(2, 3)), "overlap")  # fmt: skip
        self.refused("y is written and shares memory with x",
                     lambda: co.load("softmax")(big[:3], out=big[1:]), "overlap")  # fmt: skip

    def test_tensors_that_need_a_gradient(self):
        x = torch.randn(2, 3, requires_grad=True)
        error = self.refused("x requires a gradient, and none flows through a program", lambda: co.load("softmax")(x))
        self.assertIn("x.detach()", error.hint)
        torch.testing.assert_close(co.load("softmax")(x.detach()), torch.softmax(x.detach(), 1))
        self.refused("y requires a gradient", lambda: co.load("softmax")(x.detach(), out=torch.zeros(2, 3, requires_grad=True)))
        self.refused("x requires a gradient", lambda: co.load("softmax")(torch.nn.Parameter(torch.zeros(2, 2))))

    def test_tensors_without_memory_of_this_kind(self):
        self.refused("x", lambda: co.load("softmax")(torch.zeros(2, 3, device="meta")))
        self.refused("x", lambda: co.load("softmax")(torch.eye(3).to_sparse()))
        self.refused("x", lambda: co.load("softmax")(torch.zeros(2, 3, dtype=torch.complex64)))

    def test_mixed_with_numpy(self):
        x, gamma = torch.randn(3, 8), np.ones(8, np.float32)
        self.assertIsInstance(co.load("layer_norm")(x, gamma, gamma), torch.Tensor)
        self.assertIsInstance(co.load("layer_norm")(x.numpy(), torch.ones(8), gamma), np.ndarray)
        out = np.empty((3, 8), np.float32)
        self.assertIs(co.load("softmax")(x, out=out), out)

    def test_scalars_of_torch(self):
        x = torch.randn(3)
        f = co.program("program p(in x: f32[i], out y: f32[i], k: f32, b: bool) { parallel i { y[i] = where(b, x * k, x) } }")
        torch.testing.assert_close(f(x, k=torch.tensor(2.0), b=torch.tensor(True)), x * 2)

    def test_tensors_are_freed(self):
        self.freed(co.load("softmax"), lambda: torch.randn(2, 3))


if __name__ == "__main__":
    if torch is None:
        print("torch is not installed: nothing is tested")
        sys.exit(77)
    unittest.main()
