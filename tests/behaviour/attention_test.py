# Attention: masked rows, alignment of the causal range, empty key sets, groups, head sizes, windows, storage behind the end.
# SPDX-License-Identifier: Apache-2.0
import numpy as np

from tool import DEVICES, ToolTest, bf16, close, from_bf16, main

rng = np.random.default_rng(3)


def attend(q, k, v, scale, allowed):
    """q[s, d], k[c, d], v[c, e], allowed[s, c] -> (o, lse); rows with no key are zero, with lse -inf."""
    x = np.where(allowed, (q.astype(np.float64) @ k.astype(np.float64).T) * scale, -np.inf)
    m = x.max(-1, keepdims=True, initial=-np.inf)
    p = np.where(allowed, np.exp(x - np.where(np.isinf(m), 0, m)), 0)
    l = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.where(np.isinf(m), 0, m) + np.log(l))[:, 0]
    return np.where(l == 0, 0, p @ v.astype(np.float64) / np.where(l == 0, 1, l)), lse


def causal(s, c):
    return np.arange(c)[None] < np.arange(s)[:, None] + 1 + c - s


def heads(q, k, v, scale, allowed):
    r = q.shape[1] // k.shape[1]
    o = [[attend(q[b, h], k[b, h // r], v[b, h // r], scale, allowed)[0] for h in range(q.shape[1])] for b in range(q.shape[0])]
    return np.array(o)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


class Attention(ToolTest):
    def test_rows_with_no_key_are_zero(self):
        program = self.program("""program masked(in q: f32[s, d], in k: f32[c, d], in v: f32[c, e], in keep: bool[s, c], out o: f32[s, e], out lse: f32[s]) {
          parallel s {
            a, l = attend(where(keep, contract(q, k, d), -inf), v, c)
            o[s, e] = a
            lse[s] = l
          }
        }""")
        q, k, v = normal(6, 8), normal(10, 8), normal(10, 8)
        keep = rng.random((6, 10)) < 0.6
        keep[:, 0] = True
        keep[5] = False
        wanted, _ = attend(q, k, v, 1, keep)
        for _, (o, lse) in self.each(program, ["o", "lse"], q=q, k=k, v=v, keep=keep):
            close(o, wanted, atol=1e-5)
            np.testing.assert_array_equal(o[5], np.zeros(8))
            self.assertEqual(lse[5], -np.inf)

    def test_a_row_of_the_lowest_finite_mask_stays_finite(self):
        program = self.program("""program added(in q: f32[s, d], in k: f32[c, d], in v: f32[c, e], in mask: f32[s, c], out o: f32[s, e]) {
          parallel s {
            a, l = attend(contract(q, k, d) + mask, v, c)
            o[s, e] = a
          }
        }""")
        q, k, v = normal(6, 8), normal(10, 8), normal(10, 8)
        mask = np.zeros((6, 10), np.float32)
        mask[2] = np.finfo(np.float32).min
        for _, o in self.each(program, ["o"], q=q, k=k, v=v, mask=mask):
            self.assertTrue(np.isfinite(o).all())
            close(o[2], v.mean(0, dtype=np.float64), rtol=1e-4, atol=1e-5)
        # The same below scores of 0 and of one more and one less, which the mask swallows.
        unit = np.zeros((6, 8), np.float32)
        unit[:, 0] = 1
        signs = np.zeros((10, 8), np.float32)
        signs[:, 0] = np.where(np.arange(10) % 3 == 0, -1, 1)
        for queries in (np.zeros((6, 8), np.float32), unit):
            for _, o in self.each(program, ["o"], q=queries, k=signs, v=v, mask=np.full((6, 10), np.finfo(np.float32).min)):
                self.assertTrue(np.isfinite(o).all())
                close(o, np.tile(v.mean(0, dtype=np.float64), (6, 1)), rtol=1e-4, atol=1e-5)

    def test_causal_is_aligned_to_the_last_key(self):
        for s, c in ((2, 5), (1, 16), (17, 64)):
            v = np.eye(c, dtype=np.float32)[None, None]
            for _, o in self.each("attention", ["o"], q=np.zeros((1, 1, s, 4), np.float32), k=normal(1, 1, c, 4), v=v):
                allowed = causal(s, c)
                close(o[0, 0], allowed / allowed.sum(-1, keepdims=True))

    def test_an_empty_batch_is_no_error(self):
        for _, (o, lse) in self.each("attention", ["o", "lse"], q=normal(0, 2, 3, 4), k=normal(0, 2, 5, 4), v=normal(0, 2, 5, 3)):
            self.assertEqual((o.shape, lse.shape), ((0, 2, 3, 3), (0, 2, 3)))

    def test_an_empty_key_set_gives_zero_and_minus_infinity(self):
        for s in (1, 4):
            for _, (o, lse) in self.each("attention", ["o", "lse"], q=normal(1, 2, s, 4), k=normal(1, 2, 0, 4), v=normal(1, 2, 0, 3)):
                np.testing.assert_array_equal(o, np.zeros((1, 2, s, 3)))
                self.assertTrue((lse == -np.inf).all())

    def test_empty_sequences_in_a_ragged_batch(self):
        q, k, v = normal(4, 2, 8), normal(4, 2, 8), normal(4, 2, 8)
        off, seq = np.int32([0, 0, 2, 2, 4]), np.int32([1, 1, 3, 3])
        wanted = np.zeros((4, 2, 8))
        for lo in (0, 2):
            for h in range(2):
                wanted[lo:lo + 2, h] = attend(q[lo:lo + 2, h], k[lo:lo + 2, h], v[lo:lo + 2, h], 0.35, causal(2, 2))[0]
        for _, o in self.each("attention_ragged", ["o"], q=q, k=k, v=v, off=off, seq=seq, scale=0.35):
            close(o, wanted, rtol=1e-4, atol=1e-5)

    def test_every_ratio_of_groups(self):
        for hq, hkv in ((28, 4), (24, 4), (24, 8), (40, 8), (14, 2), (12, 1), (64, 4), (64, 2), (5, 5)):
            for s in (1, 33):
                q, k, v = normal(1, hq, s, 8), normal(1, hkv, 70, 8), normal(1, hkv, 70, 8)
                wanted = heads(q, k, v, 1 / np.sqrt(8), causal(s, 70))
                for _, o in self.each("attention", ["o"], q=q, k=k, v=v, check=False):
                    close(o, wanted, rtol=1e-4, atol=1e-5)

    def test_a_ratio_that_does_not_divide_is_refused(self):
        error = self.refused("attention", q=normal(1, 28, 2, 8), k=normal(1, 5, 4, 8), v=normal(1, 5, 4, 8))
        self.assertEqual(error["code"], "extent_mismatch")
        self.assertIn("28", error["what"])
        self.assertIn("5", error["what"])

    def test_decode_at_every_length(self):
        for c in (1, 31, 32, 33, 38, 39, 70, 1023, 1024, 1025, 2049):
            q, k, v = normal(1, 4, 16), normal(1, 2, c, 16), normal(1, 2, c, 16)
            wanted = heads(q[:, :, None], k, v, 0.25, np.ones((1, c), bool))[:, :, 0]
            for _, o in self.each("decode", ["o"], q=q, k=k, v=v, len=np.int32([c]), scale=0.25, check=c < 100):
                close(o, wanted, rtol=1e-4, atol=1e-5)

    def test_decode_of_many_heads_at_every_length(self):
        # 16 query heads share a key head. The simulator takes the short ones only.
        for c in (1, 31, 32, 33, 1022, 1023, 1024, 1025, 2047, 2048, 2049):
            q, k, v = normal(1, 32, 128), normal(1, 2, c, 128), normal(1, 2, c, 128)
            devices = [device for device in DEVICES if device == "cpu" or c <= 33]
            for kind, form, read in (("f32", lambda x: x, lambda x: x), ("bf16", bf16, from_bf16)):
                arrays = {"q": form(q), "k": form(k), "v": form(v)}
                wide = {name: read(x) for name, x in arrays.items()}
                wanted = heads(wide["q"][:, :, None], wide["k"], wide["v"], 0.09, np.ones((1, c), bool))[:, :, 0]
                for device in devices:
                    with self.subTest(length=c, kind=kind, device=device):
                        o = read(self.run_on(device, "decode", ["o"], len=np.int32([c]), scale=0.09, check=False, **arrays))
                        close(o, wanted, **({"rtol": 1e-4, "atol": 1e-5} if kind == "f32" else {"rtol": 2e-2, "atol": 2e-3}))

    def test_storage_behind_the_length_is_not_read(self):
        for length in (38, 39, 70):
            q, k, v = normal(1, 2, 8), normal(1, 2, 96, 8), normal(1, 2, 96, 8)
            results = {}
            for poison in (np.nan, 1e30):
                k[:, :, length:] = v[:, :, length:] = poison
                for device, o in self.each("decode", ["o"], q=q, k=k, v=v, len=np.int32([length]), scale=0.5):
                    self.assertTrue(np.isfinite(o).all())
                    bits = results.setdefault(device, o.view(np.uint32))
                    np.testing.assert_array_equal(bits, o.view(np.uint32))

    def test_every_head_size_has_its_own_scale(self):
        sizes = (1, 8, 40, 64, 72, 80, 88, 96, 112, 128, 160, 192, 256)
        for d, e in [(d, d) for d in sizes] + [(192, 128), (64, 80)]:
            q, k, v = normal(1, 2, 3, d), normal(1, 1, 9, d), normal(1, 1, 9, e)
            wanted = heads(q, k, v, 1 / np.sqrt(d), causal(3, 9))
            for _, o in self.each("attention", ["o"], q=q, k=k, v=v):
                close(o, wanted, rtol=1e-4, atol=1e-5)

    def test_windows_are_inclusive(self):
        def window(s, c, w):
            at = np.arange(s)[:, None] + c - s
            t = np.arange(c)[None]
            return (t <= at) & (t > at - w)
        for s, c, w in ((64, 64, 63), (64, 64, 1), (1, 100, 8), (64, 64, 9), (64, 64, 20), (40, 70, 33)):
            q, k, v = normal(1, 1, s, 8), normal(1, 1, c, 8), normal(1, 1, c, 8)
            wanted = heads(q, k, v, 0.5, window(s, c, w))
            for _, o in self.each("attention_window", ["o"], q=q, k=k, v=v, w=w, scale=0.5):
                close(o, wanted, rtol=1e-4, atol=1e-5)
                if w == 1:
                    np.testing.assert_array_equal(o, v)

    def test_a_window_over_everything_is_causal_bit_for_bit(self):
        q, k, v = normal(1, 2, 64, 8), normal(1, 1, 64, 8), normal(1, 1, 64, 8)
        plain = {device: o for device, o in self.each("attention", ["o"], q=q, k=k, v=v, scale=0.5)}
        for device, o in self.each("attention_window", ["o"], q=q, k=k, v=v, w=64, scale=0.5):
            np.testing.assert_array_equal(o.view(np.uint32), plain[device].view(np.uint32))
        # One key less is missed by the last query alone.
        for device, o in self.each("attention_window", ["o"], q=q, k=k, v=v, w=63, scale=0.5):
            np.testing.assert_array_equal(o[:, :, :63].view(np.uint32), plain[device][:, :, :63].view(np.uint32))
            self.assertTrue((o[:, :, 63] != plain[device][:, :, 63]).any())


if __name__ == "__main__":
    main()
