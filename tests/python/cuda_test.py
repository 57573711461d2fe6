# Tensors of a GPU in and out, on the stream of their library, where torch and a GPU are.
# SPDX-License-Identifier: Apache-2.0
import sys
import unittest

import numpy as np

import cosmati as co
from arrays import COPY, COPY_ANY_RANK, ArraysTest

try:
    import torch
except ImportError:
    torch = None

GPU = torch is not None and torch.cuda.is_available() and any(d.name == "cuda" and d.present for d in co.devices())
LONG = 50_000_000  # cycles that a stream is kept busy

PICK = """program pick(in x: f32[item], in at: i32[place] in 0 .. extent(item), out y: f32[place]) {
  parallel place { y[place] = x[at[place]] }
}"""


class Foreign:
    """A tensor's memory by the protocols only; its library works on `stream`. `asked` are the streams that exports were asked for."""

    def __init__(self, tensor, stream=None, interface=True):
        self.tensor, self.stream, self.asked = tensor, stream, []
        if interface:
            self.__cuda_array_interface__ = dict(tensor.__cuda_array_interface__, stream=stream and stream.cuda_stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        return self.tensor.__dlpack__(stream=-1, max_version=max_version)


class Library:
    """What a Foreign array of the array API says of its library."""

    float32 = "float32"

    @staticmethod
    def empty(shape, dtype, device):
        return Foreign(torch.empty(shape, dtype=getattr(torch, dtype), device=device))


class ForeignOfTheApi(Foreign):
    device = "cuda"

    def __array_namespace__(self):
        return Library


@unittest.skipUnless(GPU, "there is no GPU, or no torch for it")
class Cuda(ArraysTest):
    def setUp(self):
        torch.manual_seed(3)

    def close(self, y, x):
        self.assertEqual(y.device, x.device)
        torch.testing.assert_close(y, torch.softmax(x, 1))

    def test_tensors_of_a_gpu_give_tensors_of_it(self):
        f, x = co.load("softmax"), torch.randn(5, 333, device="cuda")
        y = f(x)
        self.assertIsInstance(y, torch.Tensor)
        self.close(y, x)
        self.close(f(x), x)
        self.assertEqual(f.compiles, 1)
        self.close(co.load("softmax", device="cuda")(x), x)
        self.close(f(x, device="cuda:0"), x)
        o, lse = co.load("attention")(*(torch.randn(1, 2, n, 4, device="cuda") for n in (3, 5, 5)))
        self.assertEqual((o.device.type, lse.device.type), ("cuda", "cuda"))

    def test_every_type(self):
        f = co.program(COPY)
        for dtype in (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32,
                      torch.float64):  # fmt: skip
            x = (torch.rand(3, 7, device="cuda") * 3).to(dtype)
            y = f(x)
            self.assertEqual(y.dtype, dtype)
            self.assertTrue(torch.equal(y, x))

    def test_views(self):
        f, base = co.load("softmax"), torch.randn(32, 32, device="cuda")
        one, two = torch.randn(2, 1, device="cuda"), torch.tensor(2.0, device="cuda")
        for x in (base.t(), base[:, ::2], base[3:7, 5:20], one.expand(2, 128), two.expand(4, 4), base[:0]):
            self.close(f(x), x)
        g = co.program(COPY_ANY_RANK)
        for x in (two, base[None, :, None, ::3], base[:, :0]):
            self.assertTrue(torch.equal(g(x), x))

    def test_outputs(self):
        f, x = co.load("softmax"), torch.randn(2, 3, device="cuda")
        big = torch.full((4, 6), 7.0, device="cuda")
        out = big[::2, ::2]
        self.assertIs(f(x, out=out), out)
        self.close(out, x)
        self.assertEqual(int((big == 7).sum()), 18)
        y = x.clone()
        f(y, out=y)
        self.close(y, x)
        self.refused("y is written, but its strides", lambda: f(x, out=torch.zeros(1, 3, device="cuda").expand(2, 3)), "overlap")
        self.refused("y is written and shares memory with x", lambda: f(big[:3], out=big[1:]), "overlap")

    def test_arrays_of_different_devices_are_refused(self):
        x, gamma = torch.randn(3, 8), torch.ones(8)
        f, layer_norm = co.load("softmax"), co.load("layer_norm")
        error = self.refused("gamma is on the host, and x on cuda:0", lambda: layer_norm(x.cuda(), gamma, gamma))
        self.assertIn("pass arrays of one device", error.hint)
        self.refused("gamma is on cuda:0, and x on the host", lambda: layer_norm(x, gamma.cuda(), gamma))
        self.refused("on the host", lambda: f(x.cuda(), out=np.empty((3, 8), np.float32)))
        self.refused("x is on cuda:0, and the program is to run on sim", lambda: f(x.cuda(), device="sim"))
        self.refused("x is on cuda:0, and the program is to run on oracle", lambda: co.load("softmax", device="oracle")(x.cuda()))
        self.refused("cuda:99 is not available", lambda: f(x, device="cuda:99"), "backend_absent")
        self.refused("there is no device cuda:x", lambda: f(x, device="cuda:x"))
        self.refused("x requires a gradient", lambda: f(x.cuda().requires_grad_()))
        self.close(f(x.cuda()), x.cuda())

    def test_arrays_of_the_host_are_moved(self):
        x = np.random.default_rng(3).standard_normal((5, 33), dtype=np.float32)
        y = co.load("softmax")(x, device="cuda")
        self.assertIsInstance(y, np.ndarray)
        np.testing.assert_allclose(y, torch.softmax(torch.from_numpy(x), 1).numpy(), rtol=1e-5)

    def test_work_is_put_on_the_current_stream_and_not_waited_for(self):
        f = co.load("softmax")
        x, y, want = (torch.zeros(64, 1000, device="cuda") for _ in range(3))
        new = torch.randn(64, 1000, device="cuda")
        f(x, out=y)
        torch.softmax(new, 1, out=want)
        torch.cuda.synchronize()
        for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
            x.zero_()
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(LONG)
                x.copy_(new)
                f(x, out=y)
                busy = not stream.query()
                made = f(x)
            self.assertTrue(busy, "the call waited")
            torch.cuda.synchronize()
            torch.testing.assert_close(y, want)
            torch.testing.assert_close(made, want)

    def test_contracts_are_checked_behind_the_work_of_the_stream(self):
        f, x = co.program(PICK), torch.arange(10.0, device="cuda")
        f(x, torch.zeros(4, dtype=torch.int32, device="cuda"))
        at = torch.full((4,), 77, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(LONG)
            at.copy_(torch.tensor([1, 9, 0, 3], device="cuda"))
            self.assertEqual(f(x, at).tolist(), [1, 9, 0, 3])
            torch.cuda._sleep(LONG)
            at.fill_(10)
            self.refused("at", lambda: f(x, at), "contract_broken")

    def test_launches_on_two_streams_do_not_share_scratch(self):
        f = co.load("column_sums")
        x = [torch.randn(3000, 70, device="cuda") for _ in range(2)]
        want = [f(t) for t in x]
        torch.cuda.synchronize()
        streams = [torch.cuda.Stream() for _ in range(2)]
        got = []
        for _ in range(50):
            for t, stream in zip(x, streams):
                with torch.cuda.stream(stream):
                    got.append(f(t))
        torch.cuda.synchronize()
        for i, y in enumerate(got):
            self.assertTrue(torch.equal(y, want[i % 2]))

    def test_producers_by_the_protocol_only(self):
        f, x = co.load("softmax"), torch.randn(64, 1000, device="cuda")
        f(x)
        stream = torch.cuda.Stream()
        out = torch.zeros_like(x)
        torch.cuda.synchronize()
        new = torch.randn_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(LONG)
            x.copy_(new)
        foreign = Foreign(x, stream)
        f(foreign, out=Foreign(out, stream))
        self.assertFalse(stream.query(), "the call waited")
        self.assertEqual(foreign.asked, [stream.cuda_stream])
        torch.cuda.synchronize()
        self.close(out, new)
        plain = Foreign(x, interface=False)
        self.refused("no __array_namespace__", lambda: f(plain))
        f(plain, out=Foreign(out, interface=False))
        self.assertEqual(plain.asked, [1, 1])
        y = f(ForeignOfTheApi(x))
        self.assertIsInstance(y, Foreign)
        torch.cuda.synchronize()
        self.close(y.tensor, new)

    def test_libraries_on_different_streams_wait_for_each_other(self):
        f, x, new = co.load("softmax"), torch.zeros(64, 1000, device="cuda"), torch.randn(64, 1000, device="cuda")
        f(x)
        mine, theirs = torch.cuda.Stream(), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(theirs):
            torch.cuda._sleep(LONG)
            x.copy_(new)
        out = torch.zeros_like(x)
        torch.cuda.synchronize(0) if out.sum().item() else None
        with torch.cuda.stream(mine):
            f(Foreign(x, theirs), out=out)
        self.assertTrue(mine.query() and theirs.query())
        self.close(out, new)

    def test_a_call_can_be_captured_in_a_graph(self):
        f, x = co.load("softmax"), torch.randn(64, 1000, device="cuda")
        y = f(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            f(x, out=y)
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.cuda.synchronize()
        self.close(y, x)

    def test_questions_and_judgements(self):
        f, x = co.load("softmax"), torch.randn(5, 64, device="cuda")
        self.assertIn("cuda", f.explain(x))
        self.assertIn('"target"', f.plan(x))
        self.assertIn("__global__", f.source(x, as_="cuda"))
        self.assertEqual(f.compiles, 0)
        self.assertTrue(all(f.check(x.t())))
        judge = f.judge(x)
        y = f(x)
        self.assertTrue(all(judge(y)))
        y[3, 4] += 1
        self.assertFalse(judge(y.t().contiguous().t())[0].ok)

    def test_tensors_are_freed(self):
        self.freed(co.load("softmax"), lambda: torch.randn(2, 3, device="cuda"))


if __name__ == "__main__":
    if not GPU:
        print("there is no GPU, or no torch for it: nothing is tested")
        sys.exit(77)
    unittest.main()
