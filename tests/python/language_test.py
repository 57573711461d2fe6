# Programs written in Python and the texts of the language page print the same, so they mean the same and are planned the same.
# SPDX-License-Identifier: Apache-2.0
import pathlib
import unittest

import cosmati as co
from cosmati import Axes, Axis, any_float, any_int, any_type, attend, contract, exp, exp_diff, f32, i8, i32, i64, inout, like, log
from cosmati import maximum, mean, mean_var, named, output, parallel, rsqrt, scalar, silu, sqrt, stream, tiles, u32, where

PAGE = pathlib.Path(__file__).resolve().parent.parent / "programs" / "language_page.tile"


def of_page(name):
    return co.load(f"{PAGE}:{name}")


class SameAsText(unittest.TestCase):
    maxDiff = None

    def same(self, body, text, types=None, packs=None):
        function = co.program(body)
        types = {"T": "f32"} if types is None else types
        self.assertEqual(function.text(types, packs or {}), text.text(types, packs or {}))
        for ours, theirs in zip(function.parameters, text.parameters, strict=True):
            for what in ("name", "kind", "type", "shape", "has_default"):
                self.assertEqual(getattr(ours, what), getattr(theirs, what), ours.name)

    def test_softmax(self):
        def softmax():
            row, col = Axis("row"), Axis("col")
            x = co.input("x", any_float, [row, col])
            y = output("y", like(x), [row, col])
            with parallel(row):
                e = named("e", exp(x - co.max(x, col)))
                y[row, col] = e / co.sum(e, col)

        for dtype in (co.f32, co.bf16, co.f16, co.f64):
            self.same(softmax, of_page("softmax"), {"T": dtype})

    def test_layer_norm_has_a_scalar_with_a_default(self):
        def layer_norm():
            row, col = Axis("row"), Axis("col")
            x = co.input("x", any_float, [row, col])
            gamma, beta = co.input("gamma", like(x), [col]), co.input("beta", like(x), [col])
            y = output("y", like(x), [row, col])
            eps = scalar("eps", f32, 1e-5)
            with parallel(row):
                mu, var = mean_var(x, col)
                named("mu", mu), named("var", var)
                y[row, col] = (x - mu) * rsqrt(var + eps) * gamma + beta

        self.same(layer_norm, of_page("layer_norm"))

    def test_cross_entropy_has_a_contract_and_a_gather_with_an_else(self):
        def cross_entropy():
            row, col = Axis("row"), Axis("col")
            x = co.input("x", any_float, [row, col])
            label = co.input("label", i32, [row], within=(-100, col.extent()))
            loss = output("loss", f32, [row])
            with parallel(row):
                m = named("m", co.max(x, col))
                lse = named("lse", m + log(co.sum(exp(x - m), col)))
                loss[row] = where(label < 0, 0, lse - x[row, label].otherwise(0))

        self.same(cross_entropy, of_page("cross_entropy"))

    def test_rope_has_a_composite_dimension(self):
        for dim in (lambda *axes: axes, co.dim):

            def rope():
                tok, h, half, p, place = Axis("tok"), Axis("h"), Axis("half", 2), Axis("p"), Axis("place")
                x = co.input("x", any_float, [tok, h, dim(half, p)])
                pos = co.input("pos", i32, [tok], within=(0, place.extent()))
                cs, sn = co.input("cs", f32, [place, p]), co.input("sn", f32, [place, p])
                y = output("y", like(x), [tok, h, dim(half, p)])
                with parallel(tok, h):
                    c, s = named("c", cs[pos, p]), named("s", sn[pos, p])
                    a, b = named("a", x[tok, h, dim(0, p)]), named("b", x[tok, h, dim(1, p)])
                    y[tok, h, dim(0, p)] = a * c - b * s
                    y[tok, h, dim(1, p)] = b * c + a * s

            self.same(rope, of_page("rope"))

    def test_swiglu_calls_the_prelude(self):
        def swiglu():
            row, two, n = Axis("row"), Axis("two", 2), Axis("n")
            gu = co.input("gu", any_float, [row, (two, n)])
            y = output("y", like(gu), [row, n])
            with parallel(row, n):
                y[row, n] = silu(gu[row, (0, n)]) * gu[row, (1, n)]

        self.same(swiglu, of_page("swiglu"))

    def test_quantize_rows_casts_by_calling_a_dtype(self):
        def quantize_rows():
            row, col = Axis("row"), Axis("col")
            x = co.input("x", any_float, [row, col])
            q = output("q", i8, [row, col])
            scale = output("scale", f32, [row])
            with parallel(row):
                a = named("a", co.max(abs(x), col))
                scale[row] = a / 127
                q[row, col] = i8(co.round(where(a == 0, 0, x / a * 127)))

        self.same(quantize_rows, of_page("quantize_rows"))

    def test_layer_norm_backward_reduces_over_a_program_axis(self):
        def layer_norm_backward():
            row, col = Axis("row"), Axis("col")
            x = co.input("x", any_float, [row, col])
            dy, gamma = co.input("dy", like(x), [row, col]), co.input("gamma", like(x), [col])
            dx = output("dx", like(x), [row, col])
            dgamma, dbeta = output("dgamma", f32, [col]), output("dbeta", f32, [col])
            eps = scalar("eps", f32, 1e-5)
            with parallel(row):
                mu, var = mean_var(x, col)
                named("mu", mu), named("var", var)
                r = named("r", rsqrt(var + eps))
                n = named("n", (x - mu) * r)
                g = named("g", dy * gamma)
                dx[row, col] = (g - mean(g, col) - n * mean(g * n, col)) * r
                dgamma[col] = co.sum(dy * n, row)
                dbeta[col] = co.sum(dy, row)

        self.same(layer_norm_backward, of_page("layer_norm_backward"))

    def test_conv_valid_has_borders(self):
        def conv_valid():
            c, i, j, f, di, dj = Axis("c"), Axis("i"), Axis("j"), Axis("f"), Axis("di", 3), Axis("dj", 3)
            x = co.input("x", any_float, [c, i + 2, j + 2])
            w = co.input("w", like(x), [f, c, di, dj])
            y = output("y", like(x), [f, i, j])
            with parallel(f, i, j):
                y[f, i, j] = contract(x[c, i + di, j + dj], w, c, di, dj)

        self.same(conv_valid, of_page("conv_valid"))

    def test_transpose_stores_an_access(self):
        def transpose():
            i, j = Axis("i"), Axis("j")
            x = co.input("x", any_float, [i, j])
            y = output("y", like(x), [j, i])
            with parallel(i, j):
                y[j, i] = x[i, j]

        self.same(transpose, of_page("transpose"))

    def test_gram_reads_one_parameter_at_two_axes(self):
        def gram():
            i, d = Axis("i"), Axis("d")
            j = Axis("j", i.extent())
            x = co.input("x", any_float, [i, d])
            y = output("y", f32, [i, j])
            with parallel(i, j):
                y[i, j] = contract(x[i, d], x[j, d], d)

        self.same(gram, of_page("gram"))

    def test_attention_has_a_range_and_calls_attend(self):
        def attention():
            b, g, r, s, d, c, e = (Axis(name) for name in "bgrsdce")
            q = co.input("q", any_float, [b, (g, r), s, d])
            k, v = co.input("k", like(q), [b, g, c, d]), co.input("v", like(q), [b, g, c, e])
            o = output("o", like(q), [b, (g, r), s, e])
            lse = output("lse", f32, [b, (g, r), s])
            scale = scalar("scale", f32, 1 / sqrt(f32(d.extent())))
            with parallel(b, g, r, s):
                t = Axis("t", 0, s + 1 + c.extent() - s.extent())
                out, l = attend(contract(q, k[b, g, t, d], d) * scale, v[b, g, t, e], t)
                named("out_", out), named("l", l)
                o[b, (g, r), s, e] = out
                lse[b, (g, r), s] = l

        self.same(attention, of_page("attention"), {"T": "bf16"})

    def test_ragged_attention_has_sorted_contracts(self):
        def attention_ragged():
            tok, g, r, d, e, b = (Axis(name) for name in ("tok", "g", "r", "d", "e", "b"))
            q = co.input("q", any_float, [tok, (g, r), d])
            k, v = co.input("k", like(q), [tok, g, d]), co.input("v", like(q), [tok, g, e])
            off = co.input("off", i32, [b + 1], within=(0, tok.extent() + 1), sorted=True)
            seq = co.input("seq", i32, [tok], within=(0, b.extent()))
            o = output("o", like(q), [tok, (g, r), e])
            scale = scalar("scale", f32)
            with parallel(tok, g, r):
                t = Axis("t", off[seq], tok + 1)
                out, l = attend(contract(q, k[t, g, d], d) * scale, v[t, g, e], t)
                named("out_", out), named("l", l)
                o[tok, (g, r), e] = out

        self.same(attention_ragged, of_page("attention_ragged"))

    def test_rms_norm_takes_any_leading_dimensions(self):
        def rms_norm():
            rows, col = Axes("rows"), Axis("col")
            x, = [co.input("x", any_float, [rows, col])]
            w = co.input("w", like(x), [col])
            y = output("y", like(x), [rows, col])
            eps = scalar("eps", f32, 1e-6)
            with parallel(rows):
                y[rows, col] = x * rsqrt(mean(x * x, col) + eps) * w

        for rank in (0, 1, 3):
            self.same(rms_norm, of_page("rms_norm"), packs={"rows": rank})

    def test_cross_entropy_of_a_linear_layer_replaces(self):
        def cross_entropy_linear():
            row, d, word = Axis("row"), Axis("d"), Axis("word")
            h, = [co.input("h", any_float, [row, d])]
            w = co.input("w", like(h), [word, d])
            label = co.input("label", i32, [row], within=(0, word.extent()))
            loss = output("loss", f32, [row])
            with parallel(row):
                x = named("x", contract(h, w, d))
                m = named("m", co.max(x, word))
                loss[row] = m + log(co.sum(exp_diff(x, m), word)) - x.at(word, label)

        self.same(cross_entropy_linear, of_page("cross_entropy_linear"))

    def test_a_stream_of_tiles_has_a_merge(self):
        text = co.program("""program p<T: float>(in x: T[row, col], out y: f32[row]) {
          parallel row {
            stream tile col carry carried_0 = -inf, carried_1 = 0 {
              m = maximum(carried_0, max(x, col))
              next carried_0 = m, carried_1 = carried_1 * exp_diff(carried_0, m) + sum(exp_diff(x, m), col)
              merge carried_0 = maximum(a.carried_0, b.carried_0), carried_1 = a.carried_1 * exp_diff(a.carried_0, carried_0) + b.carried_1 * exp_diff(b.carried_0, carried_0)
            }
            y[row] = carried_0 + log(carried_1)
          }
        }""")

        def p():
            row, col = Axis("row"), Axis("col")
            x = co.input("x", any_float, [row, col])
            y = output("y", f32, [row])

            def body(m, l):
                now = named("m", maximum(m, co.max(x, col)))
                return now, l * exp_diff(m, now) + co.sum(exp_diff(x, now), col)

            def merge(a, b):
                both = maximum(a[0], b[0])
                return both, a[1] * exp_diff(a[0], both) + b[1] * exp_diff(b[0], both)

            with parallel(row):
                m, l = stream(tiles(col), (-co.inf, 0), body, merge)
                y[row] = m + log(l)

        self.same(p, text)

    def test_a_stream_by_index_stores(self):
        text = co.program("""program p(in a: f32[b, t], inout y: f32[b, t]) {
          parallel b {
            stream t carry carried_0 = 0 {
              h = carried_0 * a + y
              y[b, t] = h
              next carried_0 = h
            }
          }
        }""")

        def p():
            b, t = Axis("b"), Axis("t")
            a = co.input("a", f32, [b, t])
            y = inout("y", like(a), [b, t])

            def body(h):
                now = named("h", h * a + y)
                y[b, t] = now
                return now

            with parallel(b):
                stream(t, 0, body)

        self.same(p, text, {})

    def test_a_reducer_of_the_user_an_order_and_a_relaxation(self):
        text = co.program("""reducer best(x0, x1) {
          identity s0 = -inf, s1 = -1
          lift s0 = x0, s1 = x1
          merge s0 = maximum(a.s0, b.s0), s1 = where(a.s0 > b.s0 or b.s1 < 0, a.s1, b.s1)
          finish (s0, s1)
        }
        program p(in x: bf16[row, col], in w: bf16[col], out v: f32[row], out i: i64[row], out s: f32[row], out c: f32[row]) {
          parallel row {
            value, at = best(x, col, col)
            v[row] = value
            i[row] = at
            s[row] = sum(x, col, order: left)
            c[row] = contract(exp(x), w, col, relax: narrow)
          }
        }""")

        def p():
            row, col = Axis("row"), Axis("col")
            x, w = co.input("x", co.bf16, [row, col]), co.input("w", co.bf16, [col])
            v, i, s, c = output("v", f32, [row]), output("i", i64, [row]), output("s", f32, [row]), output("c", f32, [row])
            best = co.Reducer(
                "best",
                lambda: (-co.inf, -1),
                lambda x, i: (x, i),
                lambda a, b: (maximum(a[0], b[0]), where((a[0] > b[0]) | (b[1] < 0), a[1], b[1])),
                lambda state: (state[0], state[1]),
            )
            with parallel(row):
                value, at = best(x, col, col)
                named("value", value), named("at", at)
                v[row] = value
                i[row] = at
                s[row] = co.sum(x, col, order="left")
                c[row] = contract(exp(x), w, col, relax="narrow")

        self.same(p, text, {})

    def test_operators_integers_and_scalars(self):
        text = co.program("""program p<T: int, U: any>(in x: T[n], in z: U[n, 4], in k: u32[n], out y: i32[n], out b: bool[n], out u: u32[n], out total: U[n], w: i32) {
          require w > 0
          parallel n {
            y[n] = i32(x) // w + i32(x) % 3 - -w
            b[n] = not (x == 0) and (x < 5 or n != 2)
            u[n] = (k & 255 | (k ^ 3)) << 2 >> 1
            total[n] = z[n, clamp(n, 0, 3)]
          }
        }""")

        def p():
            n = Axis("n")
            x, z, k = co.input("x", any_int, [n]), co.input("z", any_type, [n, 4]), co.input("k", u32, [n])
            y, b, u = output("y", i32, [n]), output("b", co.boolean, [n]), output("u", u32, [n])
            total = output("total", like(z), [n])
            w = scalar("w", i32)
            co.require(w > 0)
            with parallel(n):
                y[n] = i32(x) // w + i32(x) % 3 - -w
                b[n] = ~(x == 0) & ((x < 5) | (n != 2))
                u[n] = ((k & 255) | (k ^ 3)) << 2 >> 1
                total[n] = z[n, co.clamp(n, 0, 3)]

        self.same(p, text, {"T": "i8", "U": "f16"})

    def test_every_function_of_the_table_is_there(self):
        # The rows of ops.def and reducers.def, read from the table itself.
        include = PAGE.parent.parent.parent / "include" / "cosmati"
        for table, row in (("ops.def", "OP("), ("reducers.def", "REDUCER(")):
            names = [line[len(row) :].split(",")[0] for line in (include / table).read_text().splitlines() if line.startswith(row)]
            self.assertGreater(len(names), 10)
            for name in names:
                self.assertTrue(callable(getattr(co, name)), name)
                self.assertTrue(getattr(co, name).__doc__.strip(), name)


if __name__ == "__main__":
    unittest.main()
