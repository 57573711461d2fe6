# The language page, construct by construct: small programs on every device, and the oracle's results held against NumPy.
# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np

from tool import DEVICES, ToolTest, bf16, from_bf16, main

rng = np.random.default_rng(11)


def normal(*shape, dtype=np.float64):
    return rng.standard_normal(shape).astype(dtype)


def near(got, wanted, eps):
    """The same NaN and infinities, and elsewhere differences of at most eps * max(1, |wanted|)."""
    wanted = np.asarray(wanted, np.float64)
    got = np.asarray(got, np.float64)
    assert got.shape == wanted.shape, f"extents {got.shape}, wanted {wanted.shape}"
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.where(finite, 0, got), np.where(finite, 0, wanted))
    got, wanted = got[finite], wanted[finite]
    excess = np.abs(got - wanted) - eps * np.maximum(1, np.abs(wanted))
    assert excess.size == 0 or excess.max() <= 0, f"{got[excess.argmax()]!r}, wanted {wanted[excess.argmax()]!r}"


class LanguageConformance(ToolTest):
    def holds(self, text, wanted, device_eps=1e-5, **arguments):
        """Runs the program with --check on every device. Integers and bools equal `wanted`; floats are near it: the oracle's to the
        rounding of the stored type, a device's to `device_eps`."""
        program = self.program(text)
        for device in DEVICES:
            with self.subTest(device=device):
                results = self.run_on(device, program, list(wanted), **arguments)
                for (name, want), got in zip(wanted.items(), results if len(wanted) > 1 else [results]):
                    want = np.asarray(want)
                    with self.subTest(output=name):
                        if got.dtype.kind == "f":
                            exact = {8: 1e-9, 4: 1.2e-7, 2: 1e-3}[got.dtype.itemsize]
                            near(got, want, exact if device == "oracle" else max(exact, device_eps))
                        else:
                            np.testing.assert_array_equal(got, want)

    # ---- dims -----------------------------------------------------------------------------------------------------------------------

    def test_a_composite_dim_is_two_axes_the_last_one_fastest(self):
        x = normal(6, 4)
        self.holds("""program split(in x: f64[(a, b), c], out y: f64[c, b, a]) {
          axis a = 3
          parallel c { y[c, b, a] = x }
        }""", {"y": x.reshape(3, 2, 4).transpose(2, 1, 0)}, x=x)

    def test_a_composite_dim_of_three_axes_is_indexed_by_expressions(self):
        x = normal(24)
        v = x.reshape(2, 3, 4)
        self.holds("""program three(in x: f64[(a, b, c)], out y: f64[(c, a)], out z: f64[(b, c)]) {
          axis a = 2
          axis b = 3
          parallel c {
            y[(c, a)] = sum(x, b)
            z[(b, c)] = x[(1, 2 - b, c)] - x[(0, b, c)]
          }
        }""", {"y": v.sum(1).T.ravel(), "z": (v[1, ::-1] - v[0]).ravel()}, x=x)

    def test_an_offset_dim_has_a_border(self):
        x = normal(4, 9)
        self.holds("""program difference(in x: f64[r, i + 1], out y: f64[r, i]) {
          parallel r, i { y[r, i] = x[r, i + 1] - x[r, i] }
        }""", {"y": np.diff(x)}, x=x)

    def test_an_offset_dim_may_be_shorter(self):
        x = normal(9)
        self.holds("""program shorter(in x: f64[i], out y: f64[i - 2]) {
          axis k = extent(i) - 2
          parallel k { y[k] = x[k] + x[k + 1] * x[k + 2] }
        }""", {"y": x[:-2] + x[1:-1] * x[2:]}, x=x)

    def test_a_pack_stands_for_any_leading_dims(self):
        text = """program centre(in x: f64[rows..., col], in w: f64[col], out y: f64[rows..., col], out m: f64[rows...]) {
          parallel rows... {
            m_ = mean(x, col)
            y[rows..., col] = (x - m_) * w
            m[rows...] = m_
          }
        }"""
        for shape in ((5,), (3, 5), (2, 3, 2, 5)):
            x, w = normal(*shape), normal(5)
            m = x.mean(-1)
            self.holds(text, {"y": (x - m[..., None]) * w, "m": m}, x=x, w=w)

    def test_a_pack_is_indexed_by_name(self):
        x = normal(2, 3, 5)
        self.holds("""program last(in x: f64[rows..., col], out y: f64[rows...]) {
          parallel rows... { y[rows...] = x[rows..., extent(col) - 1] else 0 - x[rows..., 0] else 0 }
        }""", {"y": x[..., -1] - x[..., 0]}, x=x)

    def test_a_dim_may_be_a_number(self):
        x = normal(5, 2)
        self.holds("""program cross(in x: f64[i, 2], out y: f64[2, i]) {
          parallel i {
            y[0, i] = x[i, 1]
            y[1, i] = -x[i, 0]
          }
        }""", {"y": np.stack([x[:, 1], -x[:, 0]])}, x=x)

    def test_a_tensor_without_dims(self):
        x = normal(6)
        self.holds("""program total(in x: f64[i], in k: f64[], out y: f64[]) {
          parallel { y[] = sum(x, i) * k }
        }""", {"y": x.sum() * 3}, x=x, k=np.array(3.0))

    # ---- axes and scalars -----------------------------------------------------------------------------------------------------------

    def test_an_axis_given_by_a_scalar(self):
        x = normal(4)
        self.holds("""program powers(in x: f64[i], out y: f64[i, h], heads: i32) {
          axis h = heads
          parallel i, h { y[i, h] = pow(x, f64(h)) }
        }""", {"y": x[:, None] ** np.arange(3)}, x=x, heads=3)

    def test_scalars_with_defaults_from_extents_and_other_scalars(self):
        x = normal(4, 9)
        text = """program scaled(in x: f64[i, d], out y: f64[i], scale: f64 = 1 / sqrt(f64(extent(d))), twice: f64 = scale * 2, on: bool = true,
                n: i32 = 2) {
          parallel i { y[i] = where(on, sum(x, d) * scale + twice, 0) * f64(n) }
        }"""
        total = x.sum(1)
        self.holds(text, {"y": (total / 3 + 2 / 3) * 2}, x=x)
        self.holds(text, {"y": (total * 0.5 + 1) * -3}, x=x, scale=0.5, n=-3)
        self.holds(text, {"y": 0 * total}, x=x, on=False)

    def test_declared_axes_with_a_range(self):
        x = normal(8)
        self.holds("""program middle(in x: f64[i], out y: f64[], out z: f64[]) {
          axis t in 2 .. extent(i) - 1
          axis u = 3
          require extent(i) >= 3
          parallel {
            y[] = sum(x[t], t)
            z[] = product(x[u], u)
          }
        }""", {"y": x[2:-1].sum(), "z": x[:3].prod()}, x=x)

    def test_coordinates_are_values(self):
        x = normal(3, 4)
        i, j = np.indices((3, 4))
        self.holds("""program grid(in x: f64[i, j], out y: i64[i, j], out z: f64[i, j]) {
          parallel i, j {
            y[i, j] = i * extent(j) + j
            z[i, j] = where(i == j, x, f64(i - j))
          }
        }""", {"y": i * 4 + j, "z": np.where(i == j, x, i - j)}, x=x)

    def test_dtype_variables(self):
        text = """program mixed<T: float, U: int, V: any>(in x: T[i], in k: U[i], in v: V[i, j], out y: T[i], out z: U[i], out w: V[j, i]) {
          parallel i {
            y[i] = x * f32(k)
            z[i] = U(k + 1)
            w[j, i] = v
          }
        }"""
        for t, u, v in ((np.float16, np.int8, np.bool_), (np.float32, np.uint16, np.float64), (np.float64, np.int32, np.int64),
                        (np.float32, np.int16, np.uint32)):
            x, k, w = normal(5, dtype=t), rng.integers(0, 50, 5).astype(u), (rng.random((5, 3)) * 3).astype(v)
            self.holds(text, {"y": x.astype(np.float64) * k, "z": k + 1, "w": w.T}, device_eps=1e-3 if t == np.float16 else 1e-6, x=x, k=k, v=w)

    # ---- ranges ---------------------------------------------------------------------------------------------------------------------

    def test_a_range_depends_on_a_program_axis(self):
        x = normal(7)
        self.holds("""program prefix(in x: f64[i], out y: f64[i], out last: f64[i]) {
          parallel i {
            axis t in 0..i + 1
            axis u in maximum(0, i - 2) .. i
            y[i] = sum(x[t], t)
            last[i] = max(x[u], u)
          }
        }""", {"y": x.cumsum(), "last": [max(x[max(0, i - 2):i], default=-np.inf) for i in range(7)]}, x=x)

    def test_a_range_depends_on_loads(self):
        x, off = normal(9), np.int32([0, 4, 4, 9])
        rows = [x[:4], x[4:4], x[4:]]
        self.holds("""program segments(in x: f64[n], in off: i32[s + 1] in 0 .. extent(n) + 1 sorted, out total: f64[s], out m: f64[s],
                out a: i64[s], out len: i64[s]) {
          parallel s {
            axis t in off[s] .. off[s + 1]
            total[s] = sum(x[t], t)
            m[s] = mean(x[t], t)
            a[s] = argmax(x[t], t)
            len[s] = i64(off[s + 1] - off[s])
          }
        }""", {"total": [r.sum() for r in rows], "m": [r.mean() if len(r) else np.nan for r in rows],
               "a": [x[:4].argmax(), -1, 4 + x[4:].argmax()], "len": [4, 0, 5]}, x=x, off=off)

    def test_two_ranges_of_one_instance(self):
        x, lo, hi = normal(6, 6), np.int32([0, 2, 5, 6]), np.int32([6, 3, 5, 2])
        wanted = [x[:l, min(l, h):h].sum() for l, h in zip(lo, hi)]
        self.holds("""program blocks(in x: f64[p, q], in lo: i32[n] in 0 .. extent(p) + 1, in hi: i32[n] in 0 .. extent(q) + 1, out y: f64[n]) {
          parallel n {
            axis a in 0 .. lo
            axis b in minimum(lo, hi) .. hi
            y[n] = sum(x[a, b], a, b)
          }
        }""", {"y": wanted}, x=x, lo=lo, hi=hi)

    # ---- access ---------------------------------------------------------------------------------------------------------------------

    def test_a_gather_with_a_contract(self):
        table, at = normal(5, 3), np.int32([[4, 0], [2, 2], [1, 3]])
        self.holds("""program embed(in table: f64[v, d], in at: i32[i, j] in 0 .. extent(v), out y: f64[i, d]) {
          parallel i { y[i, d] = sum(table[at, d], j) }
        }""", {"y": table[at].sum(1)}, table=table, at=at)

    def test_a_gather_with_else(self):
        x, at = normal(5), np.int32([3, -1, 5, 0, 2**31 - 1, -2**31])
        self.holds("""program picked(in x: f64[n], in at: i32[i], out y: f64[i], out z: f64[i]) {
          parallel i {
            y[i] = 1 - x[at] else 7
            z[i] = -x[at + 1] else f64(at)
          }
        }""", {"y": [1 - x[3], -6, -6, 1 - x[0], -6, -6], "z": [-x[4], -x[0], -5, -x[1], 2.0**31 * -1 + 1, 2.0**31]}, x=x, at=at)

    def test_a_gather_of_a_gather(self):
        x, p, q = normal(4, 3), np.int32([2, 0, 1]), np.int64([1, 2, 0, 0])
        self.holds("""program chained(in x: f64[r, c], in p: i32[k] in 0 .. extent(c), in q: i64[i] in 0 .. extent(k), out y: f64[r, i]) {
          parallel r, i { y[r, i] = x[r, p[q]] }
        }""", {"y": x[:, p[q]]}, x=x, p=p, q=q)

    def test_index_arithmetic(self):
        x = normal(8)
        i = np.arange(8)
        self.holds("""program indices(in x: f64[i], out a: f64[i], out b: f64[i], out c: f64[i], out d: f64[i], out e: f64[i], out f: f64[i]) {
          parallel i {
            a[i] = x[extent(i) - 1 - i]
            b[i] = x[i // 2]
            c[i] = x[(i + 3) % extent(i)]
            d[i] = x[clamp(i - 2, 0, extent(i) - 1)]
            e[i] = x[i >> 1] + x[i & 3] else 0
            f[i] = x[2 * i + 1] else x[0]
          }
        }""", {"a": x[::-1], "b": x[i // 2], "c": x[(i + 3) % 8], "d": x[np.clip(i - 2, 0, 7)], "e": x[i >> 1] + x[i & 3],
               "f": np.where(2 * i + 1 < 8, x[np.minimum(2 * i + 1, 7)], x[0])}, x=x)

    def test_a_strided_window(self):
        x, w = normal(11), normal(3)
        self.holds("""program strided(in x: f64[n], in w: f64[k], out y: f64[i]) {
          axis i = (extent(n) - extent(k)) // 2 + 1
          parallel i { y[i] = sum(w * (x[2 * i + k] else 0), k) }
        }""", {"y": np.convolve(x, w[::-1], "valid")[::2]}, x=x, w=w)

    # ---- replace --------------------------------------------------------------------------------------------------------------------

    def test_replace_shifts_renames_slices_and_gathers(self):
        x, pick = normal(5, 4), np.int32([3, 0, 1, 1, 2])
        v = np.exp(x)
        up = np.vstack([np.zeros((1, 4)), v[:-1]])
        self.holds("""program replaced(in x: f64[i, j], in pick: i32[i] in 0 .. extent(j), out a: f64[i, j], out b: f64[i, k], out c: f64[i],
                out d: f64[i], out e: f64[i, j]) {
          axis k = extent(j)
          parallel i {
            v = exp(x)
            a[i, j] = v - v[i := i - 1] else 0
            b[i, k] = v[j := k]
            c[i] = v[j := 2] else -1
            d[i] = v[j := pick]
            e[i, j] = v[i := i + 1, j := j - 1] else 9
          }
        }""", {"a": v - up, "b": v, "c": v[:, 2], "d": v[np.arange(5), pick],
               "e": [[v[i + 1, j - 1] if i < 4 and j > 0 else 9 for j in range(4)] for i in range(5)]}, x=x, pick=pick)

    def test_replace_is_simultaneous(self):
        x = normal(4, 4)
        self.holds("""program swapped(in x: f64[i, j], out y: f64[i, j]) {
          require extent(i) == extent(j)
          parallel i, j {
            v = x * 2
            y[i, j] = v + v[i := j, j := i]
          }
        }""", {"y": 2 * x + 2 * x.T}, x=x)

    def test_replace_on_a_reduced_value(self):
        x = normal(5, 4)
        s = x.sum(1)
        self.holds("""program neighbours(in x: f64[i, j], out y: f64[i], out g: f64[i, k]) {
          axis k = extent(i)
          parallel i {
            s = sum(x, j)
            y[i] = s[i := i - 1] else 0 + s[i := i + 1] else 0
            g[i, k] = s * s[i := k]
          }
        }""", {"y": np.r_[0, s[:-1]] + np.r_[s[1:], 0], "g": s[:, None] * s}, x=x)

    # ---- reductions -----------------------------------------------------------------------------------------------------------------

    def test_several_axes_at_once(self):
        x = normal(3, 4, 5)
        self.holds("""program several(in x: f64[a, b, c], out s: f64[a], out m: f64[b], out mu: f64[c], out var: f64[c], out l: f64[a],
                out all_: bool[a], out k: f64[b, c]) {
          parallel a { s[a] = sum(x, b, c); l[a] = logsumexp(x, c, b); all_[a] = all(x < 2, b, c)
            m[b] = max(x, a, c)
            mu_, var_ = mean_var(x, a, b)
            mu[c] = mu_; var[c] = var_
            k[b, c] = contract(x, x, a)
          }
        }""", {"s": x.sum((1, 2)), "m": x.max((0, 2)), "mu": x.mean((0, 1)), "var": x.var((0, 1)), "l": np.log(np.exp(x).sum((1, 2))),
               "all_": (x < 2).all((1, 2)), "k": (x * x).sum(0)}, x=x)

    REDUCERS = """program reducers(in x: f64[i, j], in b: bool[i, j], out s: f64[i], out p: f64[i], out lo: f64[i], out hi: f64[i],
            out lo_num: f64[i], out hi_num: f64[i],
        out some: bool[i], out every: bool[i], out first: i32[i], out best: i64[i], out m: f64[i], out mu: f64[i], out var: f64[i], out l: f64[i]) {
      parallel i {
        s[i] = sum(x, j)
        p[i] = product(x, j)
        lo[i] = min(x, j)
        hi[i] = max(x, j)
        lo_num[i] = min_num(x, j)
        hi_num[i] = max_num(x, j)
        some[i] = any(b, j)
        every[i] = all(b, j)
        first[i] = argmin(x, j)
        best[i] = argmax(x, j)
        m[i] = mean(x, j)
        u, v = mean_var(x, j)
        mu[i] = u
        var[i] = v
        l[i] = logsumexp(x, j)
      }
    }"""

    def test_every_reducer(self):
        x = np.array([[1.5, -2, 0.25, 3], [2, 2, -1, -1], [np.nan, 1, 2, 3], [4, np.nan, np.nan, 5], [7, 1, -3, 2]])
        b = np.array([[1, 1, 1, 1], [0, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 1], [0, 0, 0, 1]], bool)
        self.holds(self.REDUCERS, {"s": x.sum(1), "p": x.prod(1), "lo": x.min(1), "hi": x.max(1), "lo_num": np.nanmin(x, 1), "hi_num": np.nanmax(x, 1),
                                   "some": b.any(1),
                                   "every": b.all(1), "first": [1, 2, 0, 1, 2], "best": [3, 0, 0, 1, 0], "m": x.mean(1), "mu": x.mean(1), "var": x.var(1),
                                   "l": np.log(np.exp(x).sum(1))}, x=x, b=b)

    def test_every_reducer_of_nothing(self):
        one = np.ones(2)
        nan = one * np.nan
        self.holds(self.REDUCERS, {"s": 0 * one, "p": one, "lo": one * np.inf, "hi": -np.inf * one, "lo_num": one * np.inf, "hi_num": -np.inf * one,
                "some": [False] * 2,
                                   "every": [True] * 2, "first": [-1, -1], "best": [-1, -1], "m": nan, "mu": nan, "var": nan, "l": -np.inf * one},
                   x=np.zeros((2, 0)), b=np.zeros((2, 0), bool))

    def test_reductions_of_integers(self):
        text = """program integers<T: int>(in x: T[i, j], out s: i64[i], out p: i64[i], out lo: i64[i], out hi: i64[i], out at: i32[i], out m: f32[i]) {
          parallel i {
            s[i] = i64(sum(x, j))
            p[i] = i64(product(x, j))
            lo[i] = i64(min(x, j))
            hi[i] = i64(max(x, j))
            at[i] = argmax(x, j)
            m[i] = mean(x, j)
          }
        }"""
        for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16):
            x = rng.integers(0 if np.dtype(dtype).kind == "u" else -90, 120, (3, 5)).astype(dtype)
            w = x.astype(np.int64)
            p = w.prod(1)
            self.holds(text, {"s": w.sum(1), "p": p if dtype == np.int64 else p.astype(np.int32), "lo": w.min(1), "hi": w.max(1), "at": w.argmax(1),
                    "m": w.mean(1)}, x=x)

    def test_a_program_axis_is_reduced_after_every_instance(self):
        x, w = normal(6, 4), normal(6)
        self.holds("""program finished(in x: f64[row, col], in w: f64[row], out y: f64[row, col], out s: f64[col], out ratio: f64[col],
                out at: i64[col], out total: f64[]) {
          parallel row {
            n = x * w
            y[row, col] = n
            s[col] = sum(n, row)
            ratio[col] = max(n, row) / sum(abs(n), row)
            at[col] = argmin(n, row)
            total[] = sum(sum(n, col), row) / f64(extent(row))
          }
        }""", {"y": x * w[:, None], "s": x.T @ w, "ratio": (x.T * w).max(1) / abs(x.T * w).sum(1), "at": (x.T * w).argmin(1),
                "total": (x.T @ w).sum() / 6}, x=x, w=w)

    def test_order_and_relax(self):
        p, v = normal(3, 5, dtype=np.float32), normal(5, 4, dtype=np.float16)
        a, b = p.astype(np.float64), v.astype(np.float64)
        self.holds("""program relaxed(in p: f32[i, k], in v: f16[k, e], out one: f64[i], out two: f64[i], out narrow: f64[i, e], out tf: f64[i, e],
                out split: f64[i, e], out fast: f64[i, k]) {
          parallel i {
            one[i] = sum(p, k, order: left)
            two[i] = sum(p, k, order: tree)
            narrow[i, e] = contract(p, v, k, relax: narrow)
            tf[i, e] = contract(p, v, k, relax: tf32)
            split[i, e] = contract(p, f32(v), k, order: left, relax: split_tf32)
            fast[i, k] = exp(p, relax: approx)
          }
        }""", {"one": a.sum(1), "two": a.sum(1), "narrow": a @ b, "tf": a @ b, "split": a @ b, "fast": np.exp(a)}, device_eps=1e-2, p=p, v=v)

    def test_user_reducers(self):
        x = normal(3, 6)
        a, b = normal(3, 6), normal(3, 6)
        h = np.zeros(3)
        for t in range(6):
            h = a[:, t] * h + b[:, t]
        self.holds("""reducer spread(x) {
          identity lo = inf, hi = -inf, n = 0
          lift     lo = x, hi = x, n = 1
          merge    lo = minimum(a.lo, b.lo), hi = maximum(a.hi, b.hi), n = a.n + b.n
          finish   ((hi - lo) / f64(n), n)
        }
        reducer dot(x, y) {
          identity s = 0
          lift s = x * y
          merge s = a.s + b.s
          finish s
        }
        reducer affine(p, q) {        # the composition of h -> p h + q: associative, not commutative
          identity p = 1, q = 0
          lift     p = p, q = q
          merge    p = a.p * b.p, q = b.p * a.q + b.q
          finish   q
        }
        program reduced(in x: f64[i, j], in a: f64[i, j], in b: f64[i, j], out s: f64[i], out n: i64[i], out d: f64[j], out h: f64[i]) {
          parallel i {
            w, c = spread(x, j)
            s[i] = w
            n[i] = c
            h[i] = affine(a, b, j, order: left)
            d[j] = dot(a, b, i)
          }
        }""", {"s": np.ptp(x, 1) / 6, "n": np.full(3, 6), "d": (a * b).sum(0), "h": h}, x=x, a=a, b=b)

    # ---- functions and numbers ------------------------------------------------------------------------------------------------------

    def test_every_function_of_one_value(self):
        x = np.array([0.0, -0.0, 0.5, -0.5, 1.5, -2.5, 2.5, 0.3, -0.3, 3.25, 7, -11.75, np.inf, -np.inf, np.nan, 1e-3])
        functions = {"abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.round, "sqrt": np.sqrt,
                     "rsqrt": lambda v: 1 / np.sqrt(v), "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
                     "log1p": np.log1p, "sin": np.sin,
                     "cos": np.cos, "tanh": np.tanh,
                     "erf": np.vectorize(math.erf), "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "is_nan": np.isnan, "is_inf": np.isinf}
        outs = ", ".join(f"out {name}_: {'bool' if name.startswith('is_') else 'f64'}[i]" for name in functions)
        stores = "\n".join(f"{name}_[i] = {name}(x)" for name in functions)
        with np.errstate(all="ignore"):
            for v in (x, x.astype(np.float32)):
                self.holds(f"program functions<T: float>(in x: T[i], {outs}) {{ parallel i {{\n{stores}\n}} }}",
                           {f"{name}_": f(v.astype(np.float64)) for name, f in functions.items()}, x=v)

    def test_every_function_of_several_values(self):
        x = np.array([0.5, 2, 3, np.nan, 1, -np.inf, 4.5, 2])
        y = np.array([2.0, 0.5, -1, 1, np.nan, 2, 4.5, 0])
        z = normal(8)
        with np.errstate(invalid="ignore"):
            self.holds("""program functions(in x: f64[i], in y: f64[i], in z: f64[i], out a: f64[i], out b: f64[i], out c: f64[i], out d: f64[i],
                    out e: f64[i], out f: f64[i], out g: f64[i],
                                            out h: f64[i], out k: f64[i]) {
              parallel i {
                a[i] = maximum(x, y)
                b[i] = minimum(x, y)
                c[i] = maximum_num(x, y)
                d[i] = minimum_num(x, y)
                e[i] = clamp(z, -0.5, 0.25)
                f[i] = where(x < y, z, -z)
                g[i] = exp_diff(x, y)
                h[i] = fma(z, y, x)
                k[i] = pow(abs(z), y)
              }
            }""", {"a": np.maximum(x, y), "b": np.minimum(x, y), "c": np.fmax(x, y), "d": np.fmin(x, y), "e": np.clip(z, -0.5, 0.25),
                    "f": np.where(x < y, z, -z),
                   "g": np.exp(x - y), "h": z * y + x, "k": np.abs(z) ** y}, x=x, y=y, z=z)

    def test_exp_diff_is_zero_at_minus_infinity(self):
        x, m = np.array([-np.inf, -np.inf, 1, -np.inf, 2]), np.array([-np.inf, 0, 1, np.inf, 0])
        self.holds("program neutral(in x: f64[i], in m: f64[i], out y: f64[i]) { parallel i { y[i] = exp_diff(x, m) } }",
                   {"y": [0, 0, 1, 0, np.exp(2)]}, x=x, m=m)

    def test_bits_and_casts(self):
        x = np.float32([0, -1, 1.5, 300.75, -300.75, 1e20, -1e20, np.nan, np.inf, -np.inf, 127.9, 65535.5])
        wide = x.astype(np.float64)
        wanted = {"bits": x.view(np.uint32), "back": x}
        for kind in ("i8", "i16", "i32", "i64", "u8", "u16", "u32"):
            limits = np.iinfo({"i": "int", "u": "uint"}[kind[0]] + kind[1:])
            wanted[f"to_{kind}"] = [0 if np.isnan(v) else limits.max if v >= limits.max else limits.min if v <= limits.min else int(v) for v in wide]
        outs = ", ".join(f"out to_{kind}: {kind}[i]" for kind in ("i8", "i16", "i32", "i64", "u8", "u16", "u32"))
        stores = "\n".join(f"to_{kind}[i] = {kind}(x)" for kind in ("i8", "i16", "i32", "i64", "u8", "u16", "u32"))
        self.holds(f"""program casts(in x: f32[i], out bits: u32[i], out back: f32[i], {outs}) {{
          parallel i {{
            bits[i] = bits_u32(x)
            back[i] = bits_f32(bits_u32(x))
            {stores}
          }}
        }}""", wanted, x=x)

    def test_integers_wrap_and_divide_downwards(self):
        a = np.int32([7, -7, 2**31 - 1, -2**31, 5, -5])
        b = np.int32([3, 3, 2, 2, -2, -3])
        small = np.int8([127, -128, 5, -5, 100, 1])
        self.holds("""program wrap(in a: i32[i], in b: i32[i], in c: i8[i], out add: i32[i], out mul: i32[i], out neg: i32[i], out div: i32[i],
                out mod: i32[i], out wide: i64[i], out narrow: i32[i],
                                   out top: i32[i], out size: i32[i]) {
          parallel i {
            add[i] = a + b
            mul[i] = a * a * b
            neg[i] = -a
            div[i] = a // b
            mod[i] = a % b
            wide[i] = a + i64(b) * 4294967296
            narrow[i] = c * c + c
            top[i] = maximum(a, minimum(b, 4))
            size[i] = abs(clamp(a, -100, 100)) * sign(b)
          }
        }""", {"add": a + b, "mul": a * a * b, "neg": 0 - a, "div": a // b, "mod": a % b, "wide": a + b.astype(np.int64) * 2**32,
               "narrow": small.astype(np.int32)**2 + small, "top": np.maximum(a, np.minimum(b, 4)), "size": abs(np.clip(a, -100, 100)) * np.sign(b)},
                       a=a, b=b, c=small)

    def test_bit_operations(self):
        a, b = rng.integers(0, 2**32, 6).astype(np.uint32), rng.integers(0, 2**32, 6).astype(np.uint32)
        s = np.int32([-9, 77, -1, 2**30, 5, 0])
        self.holds("""program bits(in a: u32[i], in b: u32[i], in s: i32[i], out x: u32[i], out y: u32[i], out z: u32[i], out l: u32[i],
                out r: u32[i], out sr: i32[i], out p: bool[i], out d: u32[i]) {
          parallel i {
            x[i] = a & b | 255
            y[i] = a ^ b & 65535
            z[i] = a * b - b
            l[i] = a << 1 + 2
            r[i] = a >> 7
            sr[i] = s >> 2
            p[i] = a & 1 == 1 and not (b & 2 != 0) or s < -5
            d[i] = a // 1000 + b % 7
          }
        }""", {"x": a & b | 255, "y": (a ^ b) & 65535, "z": a * b - b, "l": a << np.uint32(3), "r": a >> np.uint32(7), "sr": s >> 2,
                "p": (a & 1 == 1) & (b & 2 == 0) | (s < -5),
               "d": a // 1000 + b % 7}, a=a, b=b, s=s)

    def test_four_bit_values(self):
        w, x = rng.integers(0, 256, (3, 4)).astype(np.uint8), normal(8, dtype=np.float32)
        q = np.stack([w & 15, w >> 4], -1).reshape(3, 8).astype(np.int64) - 8
        self.holds("""program nibbles(in w: u8[n, half], in x: f32[k], out q: i8[n, k], out y: f64[n]) {
          require extent(k) == 2 * extent(half)
          parallel n {
            v = i32((w[n, k // 2] >> 4 * (k % 2)) & 15) - 8
            q[n, k] = i8(v)
            y[n] = contract(f32(v), x, k)
          }
        }""", {"q": q, "y": q @ x.astype(np.float64)}, w=w, x=x)

    def test_precedence(self):
        x, y, n = normal(6), normal(6), np.int32([5, 2, 9, 12, 0, -3])
        self.holds("""program tight(in x: f64[i], in y: f64[i], in n: i32[i], out a: f64[i], out b: f64[i], out c: i32[i], out d: bool[i],
                out e: i32[i], out f: f64[i]) {
          parallel i {
            a[i] = x - y - 2 * -x + -y / x * y
            b[i] = -x[i + 1] else 3 * 2
            c[i] = n // 2 * 3 % 4 - 1 - n
            d[i] = x < y or x > 0 and not (y > 0)
            e[i] = 1 | n & 6 ^ 3 << 1
            f[i] = (x
                    + y) * (
                    2)
          }
        }""", {"a": x - y + 2 * x + -y / x * y, "b": 2 * np.r_[-x[1:], -3], "c": n // 2 * 3 % 4 - 1 - n, "d": (x < y) | (x > 0) & ~(y > 0),
               "e": (1 | n) & 6 ^ 6, "f": (x + y) * 2}, x=x, y=y, n=n)

    def test_storage_types(self):
        x = normal(1, 6, dtype=np.float32)
        f8 = np.uint8([[0x38, 0x40, 0xB8, 0x01, 0x7E, 0x00]])                       # e4m3: 1, 2, -1, 2^-9, 448, 0
        h = x.astype(np.float16)
        b = from_bf16(bf16(x)).astype(np.float64)
        program = self.program("""program stored(in h: f16[i, j], in b: bf16[i, j], in e: f8e4m3[i, j], out hh: f16[i, j], out bb: bf16[i, j],
                out ee: f8e4m3[i, j], out s: f64[i, j], out w: f64[i, j], out e5: f8e5m2[i, j]) {
          parallel i {
            hh[i, j] = h
            bb[i, j] = b * 2
            s[i, j] = h + b
            ee[i, j] = e
            w[i, j] = e * 2
            e5[i, j] = f32(e) * 0.5
          }
        }""")
        for device in DEVICES:
            hh, bb, ee, s, w, e5 = self.run_on(device, program, ["hh", "bb", "ee", "s", "w", "e5"], h=h, b=bf16(x), e=f8)
            np.testing.assert_array_equal(hh, h)
            np.testing.assert_array_equal(bb, bf16(b * 2))
            np.testing.assert_array_equal(ee, f8)
            near(s, h + b, 1e-9 if device == "oracle" else 1e-6)
            np.testing.assert_array_equal(w, [[2, 4, -2, 2.0**-8, 896, 0]])
            np.testing.assert_array_equal(e5, np.uint8([[0x38, 0x3C, 0xB8, 0x14, 0x5B, 0x00]]))

    # ---- streams --------------------------------------------------------------------------------------------------------------------

    def test_a_stream_by_index_stores_at_each_index(self):
        a, x = normal(3, 6, 2) * 0.5, normal(3, 6, 2)
        h, m, wanted, peaks = np.zeros((3, 2)), np.full((3, 2), -np.inf), np.zeros((3, 6, 2)), np.zeros((3, 6, 2))
        for t in range(6):
            h = h * a[:, t] + x[:, t]
            m = np.maximum(m, h)
            wanted[:, t], peaks[:, t] = h, m
        self.holds("""program recurrence(in a: f64[b, t, d], in x: f64[b, t, d], out y: f64[b, t, d], out peak: f64[b, t, d], out last: f64[b, d]) {
          parallel b, d {
            stream t carry h = 0, m = -inf {
              new = h * a + x
              y[b, t, d] = new
              peak[b, t, d] = maximum(m, new)
              next h = new, m = maximum(m, new)
            }
            last[b, d] = h
          }
        }""", {"y": wanted, "peak": peaks, "last": h}, a=a, x=x)

    def test_next_reads_the_old_values(self):
        self.holds("""program fibonacci(out y: i32[t], n: i32) {
          axis t = n
          parallel {
            stream t carry a = 0, b = 1 {
              y[t] = i32(a)
              next a = b, b = a + b
            }
          }
        }""", {"y": [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]}, n=10)

    def test_a_stream_by_index_carries_axes_and_starts_from_a_value(self):
        m, x0 = normal(4, 4) * 0.4, normal(3, 4)
        text = """program iterate(in m: f64[i, j], in x0: f64[b, i], out y: f64[b, i], steps: i32) {
          require extent(i) == extent(j)
          axis t = steps
          parallel b {
            stream t carry v = x0 {
              next v = tanh(sum(m * v[i := j], j)) + f64(t)
            }
            y[b, i] = v
          }
        }"""
        for steps in (0, 1, 3):
            v = x0
            for t in range(steps):
                v = np.tanh(v @ m.T) + t
            self.holds(text, {"y": v}, m=m, x0=x0, steps=steps)

    def test_a_stream_over_a_dependent_range(self):
        x = normal(5, 6)
        len_ = np.int32([0, 6, 3, 1, 4])
        wanted = []
        for r, n in zip(x, len_):
            h = 1.0
            for v in r[:n]:
                h = h * 0.5 + v
            wanted.append(h)
        self.holds("""program until(in x: f64[b, n], in len: i32[b] in 0 .. extent(n) + 1, out y: f64[b]) {
          parallel b {
            axis t in 0 .. len
            stream t carry h = 1 { next h = h * 0.5 + x[b, t] }
            y[b] = h
          }
        }""", {"y": wanted}, x=x, len=len_)

    def test_a_tile_stream_with_a_merge_and_carries_over_axes(self):
        q, k, v = normal(3, 4), normal(7, 4), normal(7, 5)
        s = q @ k.T
        p = np.exp(s - s.max(1, keepdims=True))
        self.holds("""program flash(in q: f64[s, d], in k: f64[c, d], in v: f64[c, e], out o: f64[s, e], out z: f64[s]) {
          parallel s {
            stream tile c carry m = -inf, l = 0, acc = 0 {
              x = contract(q, k, d)
              new = maximum(m, max(x, c))
              w = exp_diff(x, new)
              old = exp_diff(m, new)
              next m = new, l = l * old + sum(w, c), acc = acc * old + contract(w, v, c)
              merge m = maximum(a.m, b.m), l = a.l * exp_diff(a.m, m) + b.l * exp_diff(b.m, m), acc = a.acc * exp_diff(a.m, m) + b.acc * exp_diff(b.m, m)
            }
            o[s, e] = acc / l
            z[s] = m + log(l)
          }
        }""", {"o": p @ v / p.sum(1, keepdims=True), "z": s.max(1) + np.log(p.sum(1))}, q=q, k=k, v=v)

    def test_a_tile_stream_without_a_merge(self):
        x = normal(4, 7)
        self.holds("""program running(in x: f64[i, n], out s: f64[i], out hi: f64[i]) {
          parallel i {
            stream tile n carry s_ = 0, h = -inf {
              next s_ = s_ + sum(x * x, n), h = maximum(h, max(x, n))
            }
            s[i] = s_
            hi[i] = h
          }
        }""", {"s": (x * x).sum(1), "hi": x.max(1)}, x=x)

    # ---- stores ---------------------------------------------------------------------------------------------------------------------

    def test_an_inout_may_be_stored_in_part(self):
        y, x = normal(8, 3), normal(4, 3)
        wanted = y.copy()
        wanted[::2] = y[::2] * 10 + x
        self.holds("""program patch(in x: f64[k, j], inout y: f64[(k, two), j]) {
          axis two = 2
          parallel k { y[(k, 0), j] = y[(k, 0), j] * 10 + x }
        }""", {"y": wanted}, x=x, y=y)

    def test_an_inout_is_read_as_it_was(self):
        y = normal(3, 6)
        self.holds("""program in_place(inout y: f64[r, t], out total: f64[r]) {
          parallel r {
            total[r] = sum(y, t)
            y[r, t] = y / sum(abs(y), t)
          }
        }""", {"y": y / abs(y).sum(1, keepdims=True), "total": y.sum(1)}, y=y)

    def test_a_distinct_index_scatters(self):
        x, y, p = normal(4, 3), normal(6, 3), np.int32([5, 0, 3, 2])
        wanted = y.copy()
        wanted[p] = x
        self.holds("""program scatter(in x: f64[i, j], in p: i32[i] in 0 .. extent(n) distinct, inout y: f64[n, j]) {
          parallel i { y[p, j] = x }
        }""", {"y": wanted}, x=x, p=p, y=y)

    def test_a_distinct_index_of_every_row_covers_an_out(self):
        x, p = normal(6), np.int32([5, 0, 3, 2, 1, 4])
        wanted = np.zeros(6)
        wanted[p] = x
        self.holds("""program permute(in x: f64[i], in p: i32[i] in 0 .. extent(i) distinct, out y: f64[i]) {
          parallel i { y[p] = x }
        }""", {"y": wanted}, x=x, p=p)

    def test_several_stores_cover_an_out(self):
        x = normal(5)
        self.holds("""program joined(in x: f64[i], out y: f64[(two, i)], out z: f64[i, (two, two_)]) {
          axis two = 2
          axis two_ = 2
          parallel i {
            y[(0, i)] = x
            y[(1, i)] = -x
            z[i, (two, two_)] = x * f64(two * 2 + two_)
          }
        }""", {"y": np.r_[x, -x], "z": x[:, None] * np.arange(4)}, x=x)

    # ---- names and text -------------------------------------------------------------------------------------------------------------

    def test_defs_are_inlined(self):
        x, w = normal(4, 5), normal(5)
        n = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3)
        self.holds("""def square(x) = x * x
        def moments(x, k) {
          m = mean(x, k)
          return (m, mean(square(x - m), k))
        }
        def normalised(v, k, eps) {
          m, s = moments(v, k)
          return (v - m) * rsqrt(s + eps)
        }
        def silu(x) = x * 2                                      # a file may define its own
        program with_defs(in x: f64[i, j], in w: f64[j], out y: f64[i, j], out z: f64[i, j]) {
          parallel i {
            m = w + 1
            y[i, j] = normalised(x, j, 0.001) * m
            z[i, j] = silu(x)
          }
        }""", {"y": n * (w + 1), "z": 2 * x}, x=x, w=w)

    def test_the_prelude(self):
        x, v = normal(3, 5), normal(5, 2)
        e = np.exp(x - x.max(1, keepdims=True))
        self.holds("""program prelude(in x: f64[s, t], in v: f64[t, e], out a: f64[s, e], out l: f64[s], out g: f64[s, t], out u: f64[s, t]) {
          parallel s {
            a_, l_ = attend(x, v, t)
            a[s, e] = a_
            l[s] = l_
            g[s, t] = gelu(x)
            u[s, t] = silu(x)
          }
        }""", {"a": e @ v / e.sum(1, keepdims=True), "l": x.max(1) + np.log(e.sum(1)),
                "g": 0.5 * x * (1 + np.vectorize(math.erf)(x * 0.7071067811865476)), "u": x / (1 + np.exp(-x))}, x=x, v=v)

    def test_words_that_stay_free_as_names(self):
        x = normal(4)
        self.holds("""program sorted(in in: f64[tile], out out: f64[tile], out inout: f64[], relax: f64 = 3) {
          parallel {
            order = in * relax
            out[tile] = order
            stream tile tile carry distinct = 0 { next distinct = distinct + sum(in, tile) }
            inout[] = distinct
          }
        }""", {"out": 3 * x, "inout": x.sum()}, **{"in": x})

    def test_the_lexer(self):
        x = normal(4)
        self.holds("# caf\u00e9 \u2211\r\nprogram lexed(in x: f64[i],\r\n  out y: f64[i]) { # {\r\n  axis t in 0..2; require extent(i) > 1; parallel i {\n"
                   "a = sum(x[t], t); b = 1.5e-1\n  y[i] = x[\n i\n ] * (a +\n b); } }\n", {"y": x * (x[:2].sum() + 0.15)}, x=x)

    # ---- contracts ------------------------------------------------------------------------------------------------------------------

    def test_contracts_and_require_are_checked(self):
        text = """program kept(in at: i32[i] in 0 .. extent(v) sorted distinct, in x: f64[v], out y: f64[i], k: i32) {
          require extent(v) % 2 == 0
          require k > 0
          parallel i { y[i] = x[at] * f64(k) }
        }"""
        x = normal(6)
        self.holds(text, {"y": x[[0, 2, 5]] * 2}, at=np.int32([0, 2, 5]), x=x, k=2)
        program = self.program(text)
        for at, n, k in (([0, 2, 6], 6, 2), ([-1, 2, 5], 6, 2), ([2, 0, 5], 6, 2), ([0, 2, 2], 6, 2), ([0, 2, 3], 5, 2), ([0, 2, 3], 6, 0)):
            error = self.refused(program, at=np.int32(at), x=normal(n), k=k)
            self.assertEqual(error["code"], "contract_broken")

    # ---- constructs that meet ----------------------------------------------------------------------------------------------------------

    def test_reductions_of_infinities(self):
        x = np.array([[np.inf, 1, -3, 2], [-np.inf, 1, 2, 3], [-np.inf] * 4, [np.inf, -np.inf, 0, 0]])
        with np.errstate(all="ignore"):
            self.holds("""program limits(in x: f64[i, j], out s: f64[i], out m: f64[i], out l: f64[i], out lo: i64[i], out hi: i64[i], out p: f64[i]) {
              parallel i {
                s[i] = sum(x, j)
                m[i] = mean(x, j)
                l[i] = logsumexp(x, j)
                lo[i] = argmin(x, j)
                hi[i] = argmax(x, j)
                p[i] = product(x, j)
              }
            }""", {"s": x.sum(1), "m": x.mean(1), "l": [np.inf, np.log(np.exp(x[1]).sum()), -np.inf, np.inf], "lo": x.argmin(1), "hi": x.argmax(1),
                    "p": x.prod(1)}, x=x)

    def test_reducers_over_a_program_axis(self):
        x, b = normal(5, 3), rng.random((5, 3)) < 0.5
        self.holds("""reducer largest(x, i) {
          identity v = -inf, i = -1
          lift     v = x, i = i
          merge    v = maximum(a.v, b.v), i = where(a.v > b.v or (a.v == b.v and a.i < b.i and a.i >= 0) or b.i < 0, a.i, b.i)
          finish   (v, i)
        }
        program columns(in x: f64[r, c], in b: bool[r, c], out mu: f64[c], out sd: f64[c], out l: f64[c], out p: f64[c], out some: bool[c],
                out every: bool[c], out at: i32[c], out v: f64[c],
                        out vi: i64[c], out ordered: f64[c], out norm: f64[], out n: i64[c]) {
          parallel r {
            m, var = mean_var(x, r)
            mu[c] = m; sd[c] = sqrt(var)
            l[c] = logsumexp(x, r); p[c] = product(x, r)
            some[c] = any(b, r); every[c] = all(b, r)
            at[c] = argmax(x, r)
            w, k = largest(x, r, r)
            v[c] = w; vi[c] = k
            s = sum(x, r, order: left)
            ordered[c] = s
            norm[] = sqrt(sum(s * s, c)) + s[c := 1] else 0
            n[c] = i64(sum(i32(b), r))
          }
        }""", {"mu": x.mean(0), "sd": x.std(0), "l": np.log(np.exp(x).sum(0)), "p": x.prod(0), "some": b.any(0), "every": b.all(0),
                "at": x.argmax(0), "v": x.max(0), "vi": x.argmax(0),
                    "ordered": x.sum(0), "norm": np.sqrt((x.sum(0)**2).sum()) + x.sum(0)[1], "n": b.sum(0)}, x=x, b=b)

    def test_some_of_several_program_axes_are_reduced(self):
        x = normal(3, 4, 5)
        self.holds("""program partly(in x: f64[a, b, c], out s: f64[a], out t: f64[b, c], out u: f64[c], out v: f64[a, b]) {
          parallel a, b {
            s[a] = sum(x, b, c)
            t[b, c] = max(x, a)
            u[c] = sum(x * x, a, b)
            v[a, b] = mean(x, c)
          }
        }""", {"s": x.sum((1, 2)), "t": x.max(0), "u": (x * x).sum((0, 1)), "v": x.mean(2)}, x=x)

    def test_replace_within_reductions_and_defs(self):
        x, w = normal(4, 6), normal(3)
        padded = np.pad(x, ((0, 0), (1, 1)))
        self.holds("""def smooth(v, k, w, d) = sum((v[k := k + d - 1] else 0) * w, d)
        def outer(v, i, j) = v * v[i := j]
        program filtered(in x: f64[i, j], in w: f64[d], out y: f64[i, j], out z: f64[i, k]) {
          require extent(d) == 3
          axis k = extent(i)
          parallel i {
            y[i, j] = smooth(exp(x), j, w, d)
            z[i, k] = sum(outer(x, i, k), j)
          }
        }""", {"y": sum(w[d] * np.pad(np.exp(x), ((0, 0), (1, 1)))[:, d:d + 6] for d in range(3)), "z": x @ x.T}, x=x, w=w)

    def test_replace_in_a_dependent_range(self):
        x, n = normal(4, 6), np.int32([0, 6, 3, 1])
        self.holds("""program steps(in x: f64[b, i], in len: i32[b] in 0 .. extent(i) + 1, out rise: f64[b], out head: f64[b], out count: i64[b]) {
          parallel b {
            axis t in 0 .. len
            v = x[b, t] * 2
            rise[b] = max(v - v[t := t - 1] else 0, t)
            head[b] = v[t := 0] else -1
            count[b] = i64(sum(i32(v > 0), t))
          }
        }""", {"rise": [max(2 * np.diff(r[:k], prepend=0), default=-np.inf) for r, k in zip(x, n)], "head": [2 * r[0] if k else -1 for r, k in zip(x, n)],
               "count": [(r[:k] > 0).sum() for r, k in zip(x, n)]}, x=x, len=n)

    def test_replace_in_a_range_that_does_not_begin_at_zero(self):
        x, lo = normal(4, 6), np.int32([0, 5, 3, 6])
        self.holds("""program tails(in x: f64[b, i], in lo: i32[b] in 0 .. extent(i) + 1, out y: f64[b], out z: f64[b]) {
          parallel b {
            axis t in lo .. extent(i)
            v = x[b, t]
            y[b] = sum(v * (v[t := t - 1] else 10), t)
            z[b] = sum(f64(t), t)
          }
        }""", {"y": [(r[l:] * np.r_[10, r[l:-1]][:6 - l]).sum() for r, l in zip(x, lo)], "z": [np.arange(l, 6).sum() for l in lo]}, x=x, lo=lo)

    def test_else_and_replace_chain(self):
        x = normal(4, 5)
        up = np.vstack([np.ones((1, 5)), x[:-1]])
        self.holds("""program chained(in x: f64[i, j], out y: f64[i], out z: f64[i, j]) {
          parallel i {
            y[i] = (x[i - 1, j] else 1)[j := 2] else 5
            z[i, j] = x[i - 1, j] else (x + 1) * 2 + x[i, j + 1] else -x[i, 0] else 0
          }
        }""", {"y": up[:, 2], "z": np.vstack([(x[:1] + 1) * 1, x[:-1]]) * 2 + np.hstack([x[:, 1:], -x[:, :1]])}, x=x)

    def test_a_gather_inside_a_composite_dim(self):
        x, pick = normal(3, 8), np.int32([1, 3, 0])
        self.holds("""program heads(in x: f64[row, (h, p)], in pick: i32[row] in 0 .. extent(h), out y: f64[row, p], out z: f64[row, p]) {
          axis p = 2
          parallel row {
            y[row, p] = x[row, (pick, 1 - p)]
            z[row, p] = max(x, h)
          }
        }""", {"y": x.reshape(3, 4, 2)[np.arange(3), pick, ::-1], "z": x.reshape(3, 4, 2).max(1)}, x=x, pick=pick)

    def test_composite_stores(self):
        a, b = normal(2, 3), normal(4, 5)
        self.holds("""program kron(in a: f64[i, j], in b: f64[k, l], out y: f64[(i, k), (j, l)]) {
          parallel i, k { y[(i, k), (j, l)] = a * b }
        }""", {"y": np.kron(a, b)}, a=a, b=b)

    def test_stores_into_an_offset_dim_cover_it(self):
        x = normal(5)
        self.holds("""program padded(in x: f64[i], out y: f64[i + 2], out z: f64[i]) {
          parallel {
            y[0] = -1
            y[i + 1] = x
            y[extent(i) + 1] = sum(x, i)
            z[extent(i) - 1 - i] = x
          }
        }""", {"y": np.r_[-1, x, x.sum()], "z": x[::-1]}, x=x)

    def test_an_inout_stored_inside_a_range(self):
        y = normal(7)
        wanted = y.copy()
        wanted[2:6] = 0.5 * y[2:6] + np.arange(2, 6)
        self.holds("""program inner(inout y: f64[i]) {
          axis k in 2 .. extent(i) - 1
          parallel k { y[k] = y[k] * 0.5 + f64(k) }
        }""", {"y": wanted}, y=y)

    def test_a_scan_in_place(self):
        y = normal(3, 6)
        self.holds("""program scan(inout y: f64[r, t]) {
          parallel r {
            stream t carry h = 0 {
              new = h + y[r, t]
              y[r, t] = new
              next h = new
            }
          }
        }""", {"y": y.cumsum(1)}, y=y)

    def test_streams_carry_integers_and_conditions(self):
        x = rng.random((4, 12)) < 0.6
        best, last = [], []
        for row in x:
            run = top = 0
            for v in row:
                run = run + 1 if v else 0
                top = max(top, run)
            best.append(top)
            last.append(bool(np.logical_xor.reduce(row)))
        self.holds("""program runs(in x: bool[b, t], out best: i32[b], out odd: bool[b]) {
          parallel b {
            stream t carry run = i32(0), top = i32(0), parity = false {
              new = where(x, run + 1, 0)
              next run = new, top = maximum(top, new), parity = parity != x
            }
            best[b] = top
            odd[b] = parity
          }
        }""", {"best": best, "odd": last}, x=x)

    def test_streams_follow_each_other(self):
        x = normal(3, 6)
        n = (x - x.mean(1, keepdims=True))
        h, out = np.zeros(3), []
        for t in range(6):
            h = 0.5 * h + n[:, t]
            out.append(h)
        total = np.array(out).sum(0)
        g, wanted = total, []
        for t in range(6):
            g = g - out[t]
            wanted.append(g)
        self.holds("""program twice(in x: f64[b, t], out y: f64[b, t], out z: f64[b, t]) {
          parallel b {
            n = x - mean(x, t)
            stream t carry h = 0, s = 0 {
              new = 0.5 * h + n
              y[b, t] = new
              next h = new, s = s + new
            }
            stream t carry g = s, k = 0 {
              new_ = 0.5 * k + n
              z[b, t] = g - new_
              next g = g - new_, k = new_
            }
          }
        }""", {"y": np.array(out).T, "z": np.array(wanted).T}, x=x)

    def test_a_tile_stream_over_a_dependent_range(self):
        x, lo, hi = normal(5, 9), np.int32([0, 2, 9, 4, 7]), np.int32([9, 5, 9, 1, 8])
        wanted = [np.log(np.exp(r[l:h]).sum()) if h > l else -np.inf for r, l, h in zip(x, lo, hi)]
        self.holds("""program part(in x: f64[b, n], in lo: i32[b] in 0 .. extent(n) + 1, in hi: i32[b] in 0 .. extent(n) + 1, out y: f64[b]) {
          parallel b {
            axis t in lo .. hi
            stream tile t carry m = -inf, l = 0 {
              v = x[b, t]
              new = maximum(m, max(v, t))
              next m = new, l = l * exp_diff(m, new) + sum(exp_diff(v, new), t)
              merge m = maximum(a.m, b.m), l = a.l * exp_diff(a.m, m) + b.l * exp_diff(b.m, m)
            }
            y[b] = m + log(l)
          }
        }""", {"y": wanted}, x=x, lo=lo, hi=hi)

    def test_an_axis_declared_inside_a_stream(self):
        x, w = normal(3, 6), normal(6, 6)
        h, wanted = np.zeros(3), []
        for t in range(6):
            h = 0.5 * h + x[:, :t + 1] @ w[t, :t + 1]
            wanted.append(h)
        self.holds("""program causal(in x: f64[b, s], in w: f64[t, s], out y: f64[b, t]) {
          require extent(t) == extent(s)
          parallel b {
            stream t carry h = 0 {
              new = 0.5 * h + sum(where(s <= t, x * w, 0), s)
              y[b, t] = new
              next h = new
            }
          }
        }""", {"y": np.array(wanted).T}, x=x, w=w)

    def test_ranges_given_by_scalars(self):
        x = normal(4, 8)
        text = """program slices(in x: f64[b, n], out y: f64[b], lo: i32, hi: i64 = 100) {
          parallel b {
            axis t in clamp(lo, 0, extent(n)) .. clamp(hi, 0, extent(n))
            y[b] = sum(x[b, t], t)
          }
        }"""
        self.holds(text, {"y": x[:, 3:].sum(1)}, x=x, lo=3)
        self.holds(text, {"y": x[:, :2].sum(1)}, x=x, lo=-7, hi=2)
        self.holds(text, {"y": 0 * x[:, 0]}, x=x, lo=6, hi=5)

    def test_scalars_of_every_kind(self):
        x = normal(3)
        self.holds("""program kinds<T: float>(in x: T[i], out y: T[i], out n: i64[i], a: T = 0.5, b: bool = false, c: i64 = 3, d: u8 = 200,
                e: f16 = 0.25, f: i32 = -(2 + 3) // 2) {
          parallel i {
            y[i] = where(b, x, x * a + e)
            n[i] = c * i + i64(d) + f
          }
        }""", {"y": x * 0.5 + 0.25, "n": np.arange(3) * 3 + 200 - 3}, x=x)

    def test_joins_of_floats(self):
        h, f, d = normal(5, dtype=np.float16), normal(5, dtype=np.float32), normal(5)
        b = bf16(normal(5, dtype=np.float32))
        hb = h.astype(np.float32) * from_bf16(b)
        self.holds("""program joined(in h: f16[i], in b: bf16[i], in f: f32[i], in d: f64[i], out a: f32[i], out c: f64[i], out e: f16[i], out g: f32[i]) {
          parallel i {
            a[i] = h * b
            c[i] = h * d + 0.1
            e[i] = f
            g[i] = f64(f) * d
          }
        }""", {"a": hb, "c": h * d + 0.1, "e": f.astype(np.float16), "g": (f * d).astype(np.float32)}, h=h, b=b, f=f, d=d)

    def test_booleans(self):
        a, b, n = rng.random(8) < 0.5, rng.random(8) < 0.5, np.arange(8, dtype=np.int32)
        self.holds("""program logic(in a: bool[i], in b: bool[i], in n: i32[i], out x: bool[i], out y: bool[i], out z: i32[i], out u: f64[i],
                out w: bool[]) {
          parallel i {
            x[i] = a and not b or n >= 6
            y[i] = where(n % 2 == 0, a == b, a != b)
            z[i] = i32(a) + where(b, n, -1)
            u[i] = f64(a) - f64(n != 3)
            w[] = any(a and b, i) == true
          }
        }""", {"x": a & ~b | (n >= 6), "y": np.where(n % 2 == 0, a == b, a != b), "z": a + np.where(b, n, -1), "u": a - 1.0 * (n != 3),
                "w": (a & b).any()}, a=a, b=b, n=n)

    def test_a_histogram_and_a_one_hot(self):
        at = rng.integers(0, 4, 20).astype(np.int32)
        self.holds("""program counted(in at: i32[i] in 0 .. 4, out n: i32[b], out hot: i8[i, b]) {
          axis b = 4
          parallel b, i {
            n[b] = sum(i32(at == b), i)
            hot[i, b] = i8(at == b)
          }
        }""", {"n": np.bincount(at, minlength=4), "hot": np.eye(4)[at]}, at=at)

    def test_distances_and_masks(self):
        x = normal(5, 3)
        d = np.sqrt(((x[:, None] - x)**2).sum(-1))
        self.holds("""program pairs(in x: f64[i, k], out d: f64[i, j], out nearest: i32[i], out low: f64[i, j]) {
          axis j = extent(i)
          parallel i {
            s = sum(x * x - 2 * x * x[j, k] + x[j, k] * x[j, k], k)
            r = sqrt(maximum(s, 0))
            d[i, j] = r
            nearest[i] = argmin(where(i == j, inf, r), j)
            low[i, j] = where(j <= i, r, nan)
          }
        }""", {"d": d, "nearest": (d + np.diag([np.inf] * 5)).argmin(1), "low": np.where(np.tri(5, dtype=bool), d, np.nan)}, device_eps=1e-6, x=x)

    def test_pooling_and_padding(self):
        x, w = normal(2, 5, 6), normal(3, 2, 3, 3)
        big = np.pad(x, ((0, 0), (1, 1), (1, 1)))
        conv = sum(np.einsum("fc,cij->fij", w[:, :, a, b], big[:, a:a + 5, b:b + 6]) for a in range(3) for b in range(3))
        pool = np.pad(x, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
        pool = np.max([pool[:, a:a + 5, b:b + 6] for a in range(3) for b in range(3)], 0)
        self.holds("""program images(in x: f64[c, i, j], in w: f64[f, c, di, dj], out y: f64[f, i, j], out z: f64[c, i, j]) {
          axis di = 3
          axis dj = 3
          parallel i, j {
            y[f, i, j] = contract(x[c, i + di - 1, j + dj - 1] else 0, w, c, di, dj)
            z[c, i, j] = max(x[c, i + di - 1, j + dj - 1] else -inf, di, dj)
          }
        }""", {"y": conv, "z": pool}, x=x, w=w)

    def test_a_pack_beside_program_axes_and_streams(self):
        x, w = normal(2, 3, 4, 5), normal(5, 2)
        self.holds("""program packed(in x: f64[lead..., t, d], in w: f64[d, e], out y: f64[lead..., e], out z: f64[lead..., t]) {
          parallel lead... {
            stream t carry h = 0 { next h = h * 0.5 + contract(x, w, d) }
            y[lead..., e] = h
            z[lead..., t] = sum(x, d)
          }
        }""", {"y": np.einsum("abtd,de,t->abe", x, w, 0.5 ** np.arange(3, -1, -1)), "z": x.sum(-1)}, x=x, w=w)

    def test_paged_storage(self):
        k, table, n = normal(5, 2, 3), np.int32([[4, 0, 2], [1, 3, 3]]), np.int32([5, 2])
        self.holds("""program paged(in k: f64[page, slot, d], in table: i32[b, m] in 0 .. extent(page),
                in len: i32[b] in 0 .. extent(m) * extent(slot) + 1, out y: f64[b, d]) {
          parallel b {
            axis t in 0 .. len
            y[b, d] = sum(k[table[b, t // extent(slot)], t % extent(slot), d], t)
          }
        }""", {"y": [k[table[b]].reshape(6, 3)[:n[b]].sum(0) for b in range(2)]}, k=k, table=table, len=n)

    def test_the_streaming_rule_changes_nothing(self):
        h, w, v = normal(4, 3), normal(7, 3), normal(7, 2)
        x = h @ w.T
        x[2] = np.nan
        h[2] = np.nan
        e = np.exp(x - x.max(1, keepdims=True))
        self.holds("""program logits(in h: f64[r, d], in w: f64[n, d], in v: f64[n, e], out o: f64[r, e], out z: f64[r], out m: f64[r]) {
          parallel r {
            x = contract(h, w, d)
            m_ = max(x, n)
            p = exp(x - m_)
            s = sum(p, n)
            o[r, e] = contract(p, v, n) / s
            z[r] = m_ + log(s) - x[n := 1] else 0
            m[r] = m_
          }
        }""", {"o": e @ v / e.sum(1, keepdims=True), "z": x.max(1) + np.log(e.sum(1)) - x[:, 1], "m": x.max(1)}, h=h, w=w, v=v)

    def test_an_out_given_by_its_array(self):
        x = normal(3)
        self.holds("""program tiled(in x: f64[i], out y: f64[i, h]) {
          parallel i, h { y[i, h] = x * f64(h + 1) }
        }""", {"y": x[:, None] * [1, 2]}, x=x, y=np.zeros((3, 2)))

    def test_integer_contractions(self):
        for u, v, t in ((np.int8, np.int8, np.int32), (np.uint8, np.int8, np.int32), (np.int32, np.int64, np.int64), (np.int16, np.uint16, np.int32)):
            a, b = rng.integers(0, 100, (3, 40)).astype(u), rng.integers(0, 100, (40, 5)).astype(v)
            name = np.dtype(t).name.replace("int", "i")
            self.holds(f"""program products<A: int, B: int>(in a: A[i, k], in b: B[k, j], out y: {name}[i, j], out z: {name}[i, j]) {{
              parallel i, j {{
                y[i, j] = contract(a, b, k)
                z[i, j] = sum(a * b, k)
              }}
            }}""", {"y": a.astype(t) @ b.astype(t), "z": a.astype(t) @ b.astype(t)}, a=a, b=b)

    def test_contracts_given_by_scalars(self):
        at = np.int32([[3, -2, 0], [1, -1, 4]])
        self.holds("""program bounded(in at: i32[i, j] in -2 .. n, in w: f64[v], out y: f64[i], n: i32) {
          require n <= extent(v)
          require extent(v) > 0
          parallel i { y[i] = sum(w[maximum(at, 0)], j) + sum(where(at < 0, f64(at), 0), j) }
        }""", {"y": [3 + 0 + 0 - 2, 1 + 0 + 4 - 1]}, at=at, w=np.arange(6.0), n=5)

    def test_a_range_depends_on_a_reduction(self):
        x = normal(5, 8)
        at = x.argmax(1)
        self.holds("""program until_largest(in x: f64[i, j], out y: f64[i], out z: f64[i], out n: i64[i]) {
          parallel i {
            k = argmax(x, j)
            axis t in 0 .. k
            y[i] = sum(x[i, t] else 0, t)
            z[i] = x[j := k] else nan
            n[i] = i64(sum(i32((x[i, t] else 0) < 0), t))
          }
        }""", {"y": [r[:k].sum() for r, k in zip(x, at)], "z": x.max(1), "n": [(r[:k] < 0).sum() for r, k in zip(x, at)]}, x=x)

    def test_a_range_reduced_with_the_axis_it_depends_on(self):
        x = normal(6)
        self.holds("""program triangle(in x: f64[i], out y: f64[], out z: f64[]) {
          parallel i {
            axis t in 0 .. i
            y[] = sum(sum(x * x[t], t), i)
            z[] = sum(x * x[t], t, i)
          }
        }""", {"y": sum(x[i] * x[:i].sum() for i in range(6)), "z": sum(x[i] * x[:i].sum() for i in range(6))}, x=x)

    def test_names_of_defs_are_their_own(self):
        x, w = normal(3, 4), normal(4)
        self.holds("""def x(i) = i * 2
        def reduced(v, j, i) = sum(v, j)
        def local(w) {
          row = w + 1
          x = row * row
          return (x, row)
        }
        program x(in x: f64[i, j], in w: f64[j], out y: f64[i], out z: f64[j], out u: f64[i, j]) {
          parallel i {
            row = x(x)
            y[i] = reduced(row, j, i)
            z[j] = reduced(x, i, j)
            a, b = local(x)
            u[i, j] = a - b * w
          }
        }""", {"y": 2 * x.sum(1), "z": x.sum(0), "u": (x + 1)**2 - (x + 1) * w}, x=x, w=w)

    def test_merge_sees_its_own_a_and_b(self):
        a, b = normal(4, 9), normal(9)
        self.holds("""program hidden(in a: f64[i, n], in b: f64[n], out y: f64[i], out z: f64[i]) {
          parallel i {
            stream tile n carry s = 0, q = 0 {
              next s = s + sum(a, n), q = q + contract(a, b, n)
              merge s = a.s + b.s, q = a.q + b.q
            }
            y[i] = s
            z[i] = q + sum(a * b, n)
          }
        }""", {"y": a.sum(1), "z": 2 * a @ b}, a=a, b=b)

    def test_numbers_and_signs(self):
        x, b = normal(4), np.array([True, False, True, False])
        self.holds("""program signs(in x: f64[i], in b: bool[i], out y: f64[i], out z: bool[i], out w: f64[i], out n: i64[i]) {
          parallel i {
            y[i] = - -x * 1e2 + 2.5E-1 - 1E+1
            z[i] = not not b
            p, q = (x + 1, x - 1)
            w[i] = p * q
            n[i] = 9223372036854775807 - i
          }
        }""", {"y": x * 100 + 0.25 - 10, "z": b, "w": x * x - 1, "n": 2**63 - 1 - np.arange(4)}, x=x, b=b)

    def test_shorter_inputs_and_single_factors(self):
        x, z = normal(5), normal(6)
        self.holds("""program shifted(in x: f64[i - 1], in z: f64[(i)], out y: f64[i]) {
          parallel i { y[i] = (x[i - 1] else 0) + z }
        }""", {"y": np.r_[0, x] + z}, x=x, z=z)

    def test_fortran_order(self):
        x, y = np.asfortranarray(normal(3, 4, 5)), np.asfortranarray(normal(4, 5))
        self.holds("""program ordered(in x: f64[a, b, c], in y: f64[b, c], out z: f64[c, a]) {
          parallel a, c { z[c, a] = contract(x, y, b) }
        }""", {"z": np.einsum("abc,bc->ca", x, y)}, x=x, y=y)

    def test_every_extent_around_a_vector(self):
        text = """program rows(in x: f32[i, j], out s: f32[i], out y: f32[i, j], out z: f32[j], out at: i32[i]) {
          parallel i {
            e = exp(x - max(x, j))
            s[i] = sum(e, j)
            y[i, j] = e / sum(e, j)
            z[j] = sum(x, i)
            at[i] = argmin(x, j)
          }
        }"""
        for i, j in ((1, 1), (2, 15), (3, 16), (5, 17), (17, 33), (1, 300), (0, 3), (4, 0)):
            x = normal(i, j, dtype=np.float32)
            v = x.astype(np.float64)
            e = np.exp(v - v.max(1, initial=-np.inf, keepdims=True))
            self.holds(text, {"s": e.sum(1), "y": e / e.sum(1, keepdims=True), "z": v.sum(0), "at": v.argmin(1) if j else np.full(i, -1)}, x=x)

    def test_moments_far_from_zero(self):
        x = (normal(3, 200) + 1e4).astype(np.float32)
        v = x.astype(np.float64)
        self.holds("""program far(in x: f32[i, j], out mu: f64[i], out var: f64[i], out l: f64[i]) {
          parallel i {
            m, s = mean_var(x, j)
            mu[i] = m
            var[i] = s
            l[i] = logsumexp(x, j)
          }
        }""", {"mu": v.mean(1), "var": v.var(1), "l": v.max(1) + np.log(np.exp(v - v.max(1, keepdims=True)).sum(1))}, device_eps=1e-3, x=x)

    def test_casts_between_integers_and_floats(self):
        n, d = np.int64([2**62 + 1, -2**53 - 1, 7, 0]), np.array([2.0**63, -2.0**63, 4294967295.5, -0.5])
        self.holds("""program numbers(in n: i64[i], in d: f64[i], out f: f64[i], out g: f32[i], out k: i64[i], out u: u32[i], out h: f32[i]) {
          parallel i {
            f[i] = f64(n)
            g[i] = f32(n)
            k[i] = i64(d)
            u[i] = u32(d)
            h[i] = f32(u32(d))
          }
        }""", {"f": n.astype(np.float64), "g": n.astype(np.float32), "k": [2**63 - 1, -2**63, 4294967295, 0], "u": [2**32 - 1, 0, 2**32 - 1, 0],
               "h": np.float32([2**32, 0, 2**32, 0])}, n=n, d=d)

    def test_subnormals_are_kept(self):
        x = np.float32([1e-40, -3e-42, 1.4e-45, 1e-38])
        program = self.program("""program small(in x: f32[i], out y: f32[i], out z: f32[i]) {
          parallel i {
            y[i] = x * 0.5 + x
            z[i] = x / 1024 * 1024
          }
        }""")
        for device in [device for device in DEVICES if device != "oracle"]:
            y, z = self.run_on(device, program, ["y", "z"], x=x)
            np.testing.assert_array_equal(y, x * np.float32(0.5) + x)
            np.testing.assert_array_equal(z, x / np.float32(1024) * np.float32(1024))

    def test_unsigned_integers(self):
        a, b = np.uint32([[2**32 - 1, 7, 0], [5, 2**31, 9]]), np.uint8([[255, 1, 2], [200, 100, 50]])
        self.holds("""program unsigned(in a: u32[i, j], in b: u8[i, j], out hi: u32[i], out lo: u32[i], out at: i32[i], out s: i32[i], out m: f32[i],
                out less: bool[i, j], out d: u32[i, j], out neg: i32[i, j]) {
          parallel i {
            hi[i] = max(a, j)
            lo[i] = min(a, j)
            at[i] = argmax(a, j)
            s[i] = sum(b, j)
            m[i] = mean(b, j)
            less[i, j] = a < 10
            d[i, j] = (a - 8) // 3 % 1000
            neg[i, j] = -b + 1
          }
        }""", {"hi": a.max(1), "lo": a.min(1), "at": a.argmax(1), "s": b.sum(1), "m": b.mean(1), "less": a < 10, "d": (a - np.uint32(8)) // 3 % 1000,
                "neg": 1 - b.astype(np.int32)}, a=a, b=b)

    def test_reducers_and_defs_use_each_other(self):
        x = normal(3, 7)
        self.holds("""def larger(p, q) = where(p > q, p, q)
        reducer peak(x) {
          identity m = -inf, n = i32(0)
          lift     m = abs(x), n = i32(x > 0)
          merge    m = larger(a.m, b.m), n = a.n + b.n
          finish   (m, n)
        }
        def scaled(x, k) {
          m, n = peak(x, k)
          return (x / m, n)
        }
        program peaks(in x: f64[i, j], out y: f64[i, j], out n: i32[i], out all_: f64[]) {
          parallel i {
            v, c = scaled(x, j)
            y[i, j] = v
            n[i] = c
            m, k = peak(x, i, j)
            all_[] = m
          }
        }""", {"y": x / abs(x).max(1, keepdims=True), "n": (x > 0).sum(1), "all_": abs(x).max()}, x=x)

    def test_argmax_ties_and_several_axes(self):
        x = np.float64([[1, 5, 5, 2], [3, 3, 3, 3], [-1, -2, -2, -1], [np.nan, 5, np.nan, 2]])
        self.holds("""program ties(in x: f64[i, j], out hi: i32[i], out lo: i32[i], out col: i32[j], out rev: i64[i]) {
          parallel i {
            hi[i] = argmax(x, j)
            lo[i] = argmin(x, j)
            col[j] = argmax(x, i)
            rev[i] = argmax(x[i, extent(j) - 1 - j], j)
          }
        }""", {"hi": x.argmax(1), "lo": x.argmin(1), "col": x.argmax(0), "rev": x[:, ::-1].argmax(1)}, x=x)

    def test_windowed_ragged_attention(self):
        q, k, v = normal(6, 4, 3), normal(6, 2, 3), normal(6, 2, 2)
        off, seq = np.int32([0, 4, 4, 6]), np.int32([0, 0, 0, 0, 2, 2])
        o, l = np.zeros((6, 4, 2)), np.zeros((6, 4))
        for t in range(6):
            lo = max(off[seq[t]], t - 1)
            for h in range(4):
                s = k[lo:t + 1, h // 2] @ q[t, h] * 0.5
                e = np.exp(s)
                o[t, h], l[t, h] = e @ v[lo:t + 1, h // 2] / e.sum(), np.log(e.sum())
        self.holds("""program attention(in q: f64[tok, (g, r), d], in k: f64[tok, g, d], in v: f64[tok, g, e],
                in off: i32[b + 1] in 0 .. extent(tok) + 1 sorted, in seq: i32[tok] in 0 .. extent(b),
                           out o: f64[tok, (g, r), e], out lse: f64[tok, (g, r)], w: i32, scale: f64) {
          parallel tok, g, r {
            axis t in maximum(off[seq], tok - w + 1) .. tok + 1
            o_, l = attend(contract(q, k[t, g, d], d) * scale, v[t, g, e], t)
            o[tok, (g, r), e] = o_
            lse[tok, (g, r)] = l
          }
        }""", {"o": o, "lse": l}, q=q, k=k, v=v, off=off, seq=seq, w=2, scale=0.5)


if __name__ == "__main__":
    main()
