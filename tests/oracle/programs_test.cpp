// Every program of the language page, by the oracle, against plain float64 loops.
// SPDX-License-Identifier: Apache-2.0
#include "oracle/fixture.h"

namespace cosmati::oracle {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

Case page(const std::string& name, int pack = 1) {
  static const std::string text = file_text("tests/programs/language_page.tile");
  return Case(text, name, DType::f32_, pack);
}

void check(Case& c, const std::vector<Values>& expected) {
  const Result wide = c.run();
  for (std::size_t k = 0; k < expected.size(); ++k) expect_values(wide, k, expected[k]);
  expect_typed_within(wide, c.run(Mode::typed));
  check_laws(c.program, 1);
  check_cuts(c.program, c.inputs, 1);
}

double gelu(double x) { return 0.5 * x * (1 + std::erf(x * 0.7071067811865476)); }

struct RowStats {
  double max = -inf, sum = 0, mean = 0, var = 0, squares = 0;
};
RowStats stats(const double* x, int n) {
  RowStats s;
  for (int c = 0; c < n; ++c) s.max = std::max(s.max, x[c]);
  for (int c = 0; c < n; ++c) s.sum += std::exp(x[c] - s.max), s.mean += x[c] / n, s.squares += x[c] * x[c] / n;
  for (int c = 0; c < n; ++c) s.var += (x[c] - s.mean) * (x[c] - s.mean) / n;
  return s;
}

constexpr int R = 5, C = 37;

TEST(Programs, Rows) {
  const Values x = normal({R, C}), g = normal({C}, 2), b = normal({C}, 3), res = normal({R, C}, 4);
  const float eps = 1e-5f, eps6 = 1e-6f;
  Values softmax, log_softmax, norm, h, rms, bg, lse;
  for (int r = 0; r < R; ++r) {
    const double* row = x.data() + r * C;
    const RowStats s = stats(row, C);
    double squares = 0;
    for (int c = 0; c < C; ++c) squares += (row[c] + res[r * C + c]) * (row[c] + res[r * C + c]) / C;
    lse.push_back(s.max + std::log(s.sum));
    for (int c = 0; c < C; ++c) {
      softmax.push_back(std::exp(row[c] - s.max) / s.sum);
      log_softmax.push_back(row[c] - s.max - std::log(s.sum));
      norm.push_back((row[c] - s.mean) / std::sqrt(s.var + eps) * g[c] + b[c]);
      h.push_back(row[c] + res[r * C + c]);
      rms.push_back(h.back() / std::sqrt(squares + eps6) * g[c]);
      bg.push_back(gelu(row[c] + b[c]));
    }
  }
  auto with_x = [&](const std::string& name, std::vector<std::string> outs) {
    Case c = page(name);
    c.tensor("x", {R, C}, x);
    for (const std::string& o : outs) c.tensor(o, {R, C});
    return c;
  };
  Case c1 = with_x("softmax", {"y"});
  check(c1, {softmax});
  Case c2 = with_x("log_softmax", {"y"});
  check(c2, {log_softmax});
  Case c3 = with_x("layer_norm", {"y"});
  check(c3.tensor("gamma", {C}, g).tensor("beta", {C}, b).scalar("eps", eps), {norm});
  Case c4 = with_x("add_rms_norm", {"h", "y"});
  check(c4.tensor("res", {R, C}, res).tensor("w", {C}, g).scalar("eps", eps6), {h, rms});
  Case c5 = with_x("bias_gelu", {"y"});
  check(c5.tensor("b", {C}, b), {bg});
  Case c6 = page("lse_rows");
  check(c6.tensor("x", {R, C}, x).tensor("y", {R}), {lse});
}

TEST(Programs, CrossEntropy) {
  const Values x = normal({R, C}), label{3, -100, 36, 0, -1};
  Values loss;
  for (int r = 0; r < R; ++r) {
    const RowStats s = stats(x.data() + r * C, C);
    loss.push_back(label[r] < 0 ? 0 : s.max + std::log(s.sum) - x[r * C + static_cast<int>(label[r])]);
  }
  Case c = page("cross_entropy");
  check(c.tensor("x", {R, C}, x).tensor("label", {R}, label).tensor("loss", {R}), {loss});
}

TEST(Programs, Argmax) {
  Values x = normal({R, C});
  x[5] = x[9] = 100;
  x[C + 4] = NAN;
  x[C + 2] = 1000;
  std::vector<std::int64_t> at;
  Values best;
  for (int r = 0; r < R; ++r) {
    int k = 0;
    for (int c = 1; c < C; ++c)
      if (x[r * C + c] > x[r * C + k]) k = c;
    at.push_back(k);
    best.push_back(x[r * C + k]);
  }
  at[1] = 4;
  Case c = page("argmax_rows");
  const Result r = c.tensor("x", {R, C}, x).tensor("i", {R}).run();
  expect_integers(r, 0, at);
  for (const double e : r.outputs[0].error) EXPECT_EQ(e, 0);
  x[C + 4] = 0;
  at[1] = 2;
  best[1] = 1000;
  Case m = page("max_arg");
  const Result both = m.tensor("x", {R, C}, x).tensor("v", {R}).tensor("i", {R}).run();
  expect_values(both, 0, best);
  expect_integers(both, 1, at);
}

TEST(Programs, Rope) {
  constexpr int T = 4, H = 3, P = 5, L = 9;
  const Values x = normal({T, H, 2 * P}), cs = normal({L, P}, 2), sn = normal({L, P}, 3), pos{8, 0, 3, 3};
  Values y(T * H * 2 * P);
  for (int t = 0; t < T; ++t)
    for (int h = 0; h < H; ++h)
      for (int p = 0; p < P; ++p) {
        const int o = (t * H + h) * 2 * P, at = static_cast<int>(pos[t]) * P + p;
        y[o + p] = x[o + p] * cs[at] - x[o + P + p] * sn[at];
        y[o + P + p] = x[o + P + p] * cs[at] + x[o + p] * sn[at];
      }
  Case c = page("rope");
  c.tensor("x", {T, H, 2 * P}, x)
      .tensor("pos", {T}, pos)
      .tensor("cs", {L, P}, cs)
      .tensor("sn", {L, P}, sn)
      .tensor("y", {T, H, 2 * P});
  check(c.extent("half", 2), {y});
}

TEST(Programs, SwigluAndQuantize) {
  const Values gu = normal({R, 2 * C});
  Values y, scale;
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < C; ++n) {
      const double g = gu[r * 2 * C + n];
      y.push_back(g / (1 + std::exp(-g)) * gu[r * 2 * C + C + n]);
    }
  Case c = page("swiglu");
  check(c.tensor("gu", {R, 2 * C}, gu).tensor("y", {R, C}).extent("two", 2), {y});

  Values x = normal({R, C});
  for (int k = 0; k < C; ++k) x[C + k] = 0;
  std::vector<std::int64_t> q;
  for (int r = 0; r < R; ++r) {
    double a = 0;
    for (int k = 0; k < C; ++k) a = std::max(a, std::fabs(x[r * C + k]));
    scale.push_back(a / 127);
    for (int k = 0; k < C; ++k) q.push_back(a == 0 ? 0 : static_cast<std::int64_t>(std::nearbyint(x[r * C + k] / a * 127)));
  }
  Case z = page("quantize_rows");
  const Result r = z.tensor("x", {R, C}, x).tensor("q", {R, C}).tensor("scale", {R}).run();
  expect_integers(r, 0, q);
  expect_values(r, 1, scale);
}

TEST(Programs, ColumnsAndBackward) {
  const Values x = normal({R, C}), dy = normal({R, C}, 2), gamma = normal({C}, 3);
  const float eps = 1e-5f;
  Values sums(C), dx, dgamma(C), dbeta(C);
  for (int r = 0; r < R; ++r) {
    const RowStats s = stats(x.data() + r * C, C);
    const double inverse = 1 / std::sqrt(s.var + eps);
    double mg = 0, mgn = 0;
    for (int k = 0; k < C; ++k) {
      const double n = (x[r * C + k] - s.mean) * inverse, g = dy[r * C + k] * gamma[k];
      sums[k] += x[r * C + k];
      mg += g / C;
      mgn += g * n / C;
      dgamma[k] += dy[r * C + k] * n;
      dbeta[k] += dy[r * C + k];
    }
    for (int k = 0; k < C; ++k) dx.push_back((dy[r * C + k] * gamma[k] - mg - (x[r * C + k] - s.mean) * inverse * mgn) * inverse);
  }
  Case c = page("column_sums");
  check(c.tensor("x", {R, C}, x).tensor("s", {C}), {sums});
  Case b = page("layer_norm_backward");
  b.tensor("x", {R, C}, x).tensor("dy", {R, C}, dy).tensor("gamma", {C}, gamma).scalar("eps", eps);
  check(b.tensor("dx", {R, C}).tensor("dgamma", {C}).tensor("dbeta", {C}), {dx, dgamma, dbeta});
}

TEST(Programs, ConvTransposeGram) {
  constexpr int Ch = 2, I = 4, J = 3, F = 3;
  const Values x = normal({Ch, I + 2, J + 2}), w = normal({F, Ch, 3, 3}, 2);
  Values y(F * I * J);
  for (int f = 0; f < F; ++f)
    for (int i = 0; i < I; ++i)
      for (int j = 0; j < J; ++j)
        for (int c = 0; c < Ch; ++c)
          for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 3; ++b)
              y[(f * I + i) * J + j] += x[(c * (I + 2) + i + a) * (J + 2) + j + b] * w[((f * Ch + c) * 3 + a) * 3 + b];
  Case c = page("conv_valid");
  c.tensor("x", {Ch, I + 2, J + 2}, x).tensor("w", {F, Ch, 3, 3}, w).tensor("y", {F, I, J});
  check(c.extent("di", 3).extent("dj", 3), {y});

  const Values m = normal({I, J});
  Values t(I * J), gram(I * I);
  for (int i = 0; i < I; ++i)
    for (int j = 0; j < J; ++j) t[j * I + i] = m[i * J + j];
  for (int i = 0; i < I; ++i)
    for (int k = 0; k < I; ++k)
      for (int j = 0; j < J; ++j) gram[i * I + k] += m[i * J + j] * m[k * J + j];
  Case tr = page("transpose");
  check(tr.tensor("x", {I, J}, m).tensor("y", {J, I}), {t});
  Case gr = page("gram");
  check(gr.tensor("x", {I, J}, m).tensor("y", {I, I}).extent("j", I), {gram});
}

TEST(Programs, Products) {
  constexpr int B = 2, M = 7, N = 5, K = 33;
  const Values a = normal({B, M, K}), w = normal({N, K}, 2), bias = normal({N}, 3), res = normal({M, N}, 4),
               wt = normal({K, N}, 5);
  Values lg, bm;
  for (int b = 0; b < B; ++b)
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        double s = 0, u = 0;
        for (int k = 0; k < K; ++k) s += a[(b * M + m) * K + k] * w[n * K + k], u += a[(b * M + m) * K + k] * wt[k * N + n];
        if (b == 0) lg.push_back(gelu(s + bias[n]) + res[m * N + n]);
        bm.push_back(u);
      }
  Case l = page("linear_gelu");
  l.tensor("a", {M, K}, Values(a.begin(), a.begin() + M * K))
      .tensor("w", {N, K}, w)
      .tensor("bias", {N}, bias)
      .tensor("res", {M, N}, res);
  check(l.tensor("y", {M, N}), {lg});
  Case m = page("batched_matmul");
  check(m.tensor("a", {B, M, K}, a).tensor("w", {K, N}, wt).tensor("y", {B, M, N}), {bm});
}

// One query over keys lo .. hi: out has E elements; the log of the sum is returned.
template <class Key, class Value>
double attend(const double* q, Key key, Value value, int lo, int hi, int D, int E, double scale, double* out) {
  std::vector<double> x;
  double m = -inf, l = 0;
  for (int t = lo; t < hi; ++t) {
    double s = 0;
    for (int d = 0; d < D; ++d) s += q[d] * key(t)[d];
    x.push_back(s * scale);
    m = std::max(m, x.back());
  }
  for (int e = 0; e < E; ++e) out[e] = 0;
  for (int t = lo; t < hi; ++t) {
    const double p = std::exp(x[t - lo] - m);
    l += p;
    for (int e = 0; e < E; ++e) out[e] += p * value(t)[e];
  }
  for (int e = 0; e < E; ++e) out[e] = l == 0 ? 0 : out[e] / l;
  return m + std::log(l);
}

constexpr int B = 2, G = 2, P = 3, S = 4, D = 5, E = 6;

TEST(Programs, Attention) {
  for (const int K : {1, 3, 4, 11}) {  // fewer keys than queries: the first queries see none
    const Values q = normal({B, G * P, S, D}), k = normal({B, G, K, D}, 2), v = normal({B, G, K, E}, 3);
    const float scale = 0.4f;
    const int w = 2;
    Values o(B * G * P * S * E), lse, windowed = o;
    for (int b = 0; b < B; ++b)
      for (int g = 0; g < G; ++g)
        for (int r = 0; r < P; ++r)
          for (int s = 0; s < S; ++s) {
            const int at = ((b * G + g) * P + r) * S + s, last = s + K - S;
            auto key = [&](int t) { return k.data() + ((b * G + g) * K + t) * D; };
            auto value = [&](int t) { return v.data() + ((b * G + g) * K + t) * E; };
            lse.push_back(attend(q.data() + at * D, key, value, 0, std::max(0, last + 1), D, E, scale, o.data() + at * E));
            attend(q.data() + at * D, key, value, std::max(0, last - w + 1), std::max(std::max(0, last - w + 1), last + 1), D, E,
                   scale, windowed.data() + at * E);
          }
    Case c = page("attention");
    c.tensor("q", {B, G * P, S, D}, q)
        .tensor("k", {B, G, K, D}, k)
        .tensor("v", {B, G, K, E}, v)
        .scalar("scale", scale)
        .extent("r", P);
    c.tensor("o", {B, G * P, S, E}).tensor("lse", {B, G * P, S});
    check(c, {o, lse});
    Case n = page("attention_window");
    n.tensor("q", {B, G * P, S, D}, q)
        .tensor("k", {B, G, K, D}, k)
        .tensor("v", {B, G, K, E}, v)
        .scalar("scale", scale)
        .scalar("w", w);
    check(n.extent("r", P).tensor("o", {B, G * P, S, E}), {windowed});
  }
}

TEST(Programs, Streamed) {
  constexpr int H = 3, K = 9;
  const Values q = normal({B, H, S, D}), k = normal({B, H, K, D}, 2), v = normal({B, H, K, E}, 3);
  const float scale = 0.4f;
  Values o(B * H * S * E);
  for (int at = 0; at < B * H * S; ++at)
    attend(
        q.data() + at * D, [&](int t) { return k.data() + (at / S * K + t) * D; },
        [&](int t) { return v.data() + (at / S * K + t) * E; }, 0, at % S + 1 + K - S, D, E, scale, o.data() + at * E);
  Case c = page("attention_streamed");
  c.tensor("q", {B, H, S, D}, q)
      .tensor("k", {B, H, K, D}, k)
      .tensor("v", {B, H, K, E}, v)
      .scalar("scale", scale)
      .tensor("o", {B, H, S, E});
  check(c, {o});
}

TEST(Programs, Decode) {
  constexpr int K = 8, Pages = 5, Slot = 4, N = 2;
  const Values q = normal({B, G * P, D}), k = normal({B, G, K, D}, 2), v = normal({B, G, K, E}, 3), len{0, 7}, table{4, 1, 2, 0};
  const float scale = 0.4f;
  const Values pk = normal({Pages, Slot, G, D}, 4), pv = normal({Pages, Slot, G, E}, 5);
  Values o(B * G * P * E), paged = o;
  for (int b = 0; b < B; ++b)
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < P; ++r) {
        const int at = (b * G + g) * P + r, n = static_cast<int>(len[b]);
        auto row = [&](int t) { return (static_cast<int>(table[b * N + t / Slot]) * Slot + t % Slot) * G + g; };
        attend(
            q.data() + at * D, [&](int t) { return k.data() + ((b * G + g) * K + t) * D; },
            [&](int t) { return v.data() + ((b * G + g) * K + t) * E; }, 0, n, D, E, scale, o.data() + at * E);
        attend(
            q.data() + at * D, [&](int t) { return pk.data() + row(t) * D; }, [&](int t) { return pv.data() + row(t) * E; }, 0, n,
            D, E, scale, paged.data() + at * E);
      }
  Case c = page("decode");
  c.tensor("q", {B, G * P, D}, q)
      .tensor("k", {B, G, K, D}, k)
      .tensor("v", {B, G, K, E}, v)
      .tensor("len", {B}, len)
      .scalar("scale", scale);
  check(c.extent("r", P).tensor("o", {B, G * P, E}), {o});
  Case d = page("decode_paged");
  d.tensor("q", {B, G * P, D}, q)
      .tensor("k", {Pages, Slot, G, D}, pk)
      .tensor("v", {Pages, Slot, G, E}, pv)
      .tensor("table", {B, N}, table);
  check(d.tensor("len", {B}, len).scalar("scale", scale).extent("r", P).tensor("o", {B, G * P, E}), {paged});
}

TEST(Programs, Ragged) {
  constexpr int T = 9, Q = 3;
  const Values q = normal({T, G * P, D}), k = normal({T, G, D}, 2), v = normal({T, G, E}, 3), off{0, 4, 4, 9},
               seq{0, 0, 0, 0, 2, 2, 2, 2, 2};
  const float scale = 0.4f;
  Values o(T * G * P * E);
  for (int t = 0; t < T; ++t)
    for (int h = 0; h < G * P; ++h)
      attend(
          q.data() + (t * G * P + h) * D, [&](int u) { return k.data() + (u * G + h / P) * D; },
          [&](int u) { return v.data() + (u * G + h / P) * E; }, static_cast<int>(off[static_cast<int>(seq[t])]), t + 1, D, E,
          scale, o.data() + (t * G * P + h) * E);
  Case c = page("attention_ragged");
  c.tensor("q", {T, G * P, D}, q)
      .tensor("k", {T, G, D}, k)
      .tensor("v", {T, G, E}, v)
      .tensor("off", {Q + 1}, off)
      .tensor("seq", {T}, seq);
  check(c.scalar("scale", scale).extent("r", P).tensor("o", {T, G * P, E}), {o});
}

TEST(Programs, Recurrence) {
  constexpr int T = 20;
  const Values a = normal({B, T, D}), x = normal({B, T, D}, 2);
  Values y(B * T * D);
  for (int b = 0; b < B; ++b)
    for (int d = 0; d < D; ++d) {
      double h = 0;
      for (int t = 0; t < T; ++t) y[(b * T + t) * D + d] = h = h * a[(b * T + t) * D + d] + x[(b * T + t) * D + d];
    }
  Case c = page("linear_recurrence");
  c.tensor("a", {B, T, D}, a).tensor("x", {B, T, D}, x).tensor("y", {B, T, D});
  const Result wide = c.run();
  expect_values(wide, 0, y, inf);
  expect_typed_within(wide, c.run(Mode::typed));
}

TEST(Programs, AnyLeadingDimensions) {
  const float eps = 1e-6f;
  for (const int pack : {0, 1, 2}) {
    Shape shape = pack == 0 ? Shape{C} : pack == 1 ? Shape{R, C} : Shape{2, 3, C};
    const Values x = normal(shape), w = normal({C}, 2);
    Values y;
    for (std::size_t r = 0; r < x.size() / C; ++r)
      for (int k = 0; k < C; ++k) y.push_back(x[r * C + k] / std::sqrt(stats(x.data() + r * C, C).squares + eps) * w[k]);
    Case c = page("rms_norm", pack);
    check(c.tensor("x", shape, x).tensor("w", {C}, w).tensor("y", shape).scalar("eps", eps), {y});
  }
}

TEST(Programs, CrossEntropyOfALinearMap) {
  constexpr int W = 11;
  const Values h = normal({R, D}), w = normal({W, D}, 2), label{0, 10, 3, 3, 7};
  Values loss;
  for (int r = 0; r < R; ++r) {
    Values x(W);
    for (int k = 0; k < W; ++k)
      for (int d = 0; d < D; ++d) x[k] += h[r * D + d] * w[k * D + d];
    const RowStats s = stats(x.data(), W);
    loss.push_back(s.max + std::log(s.sum) - x[static_cast<int>(label[r])]);
  }
  Case c = page("cross_entropy_linear");
  c.tensor("h", {R, D}, h).tensor("w", {W, D}, w).tensor("label", {R}, label).tensor("loss", {R});
  check(c, {loss});
}

}  // namespace
}  // namespace cosmati::oracle
