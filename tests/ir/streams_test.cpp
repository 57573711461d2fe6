// Streams: what is carried, how values look inside a body, what may leave it.
// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/fixture.h"

namespace cosmati::ir {
namespace {

using ops::Op;
constexpr DType f32 = DType::f32_;
constexpr double inf = std::numeric_limits<double>::infinity();

class Streams : public Building {
 protected:
  AxisId row = axis("row"), t = axis("t"), d = axis("d");
  TensorId x = in("x", f32, {row, t, d}), w = in("w", DType::f16_, {t}), y = out("y", f32, {row, t, d}),
           s = out("s", f32, {row, d});

  void SetUp() override { b.parallel({row}, at()); }
  std::vector<ValueId> stream(bool tile, std::vector<ValueId> init,
                              const std::function<StreamResult(const std::vector<ValueId>&)>& body) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < init.size(); ++k) names.push_back(std::string(1, static_cast<char>('h' + k)));
    return b.stream(t, tile, names, std::move(init), body, at());
  }
};

TEST_F(Streams, a_recurrence_carries_the_axes_and_type_of_its_next) {
  int runs = 0;
  const std::vector<ValueId> out = stream(false, {i(0)}, [&](const std::vector<ValueId>& h) {
    ++runs;
    const ValueId next = op(Op::add, {h[0], bare(x)});
    store(y, {row, t, d}, next);
    return StreamResult{{next}, std::nullopt};
  });
  const Program& p = b.program();
  EXPECT_GT(runs, 1);
  ASSERT_EQ(p.streams.size(), 1u);  // attempts leave nothing behind
  ASSERT_EQ(p.stores.size(), 1u);
  EXPECT_EQ(p.stores[0].stream, StreamId{0});
  const Stream& st = p.streams[0];
  EXPECT_EQ(p[st.piece].piece, StreamId{0});
  EXPECT_EQ(st.carries[0].dtype, f32);
  EXPECT_EQ(st.carries[0].axes, (AxisSet{row, d}));
  EXPECT_EQ(b[out[0]].axes, (AxisSet{row, d}));
  EXPECT_EQ(type(st.carries[0].init), f32);
  EXPECT_TRUE(contains(b[st.carries[0].next].axes, st.piece));
  store(s, {row, d}, out[0]);
  verify(b.finish(at()), "test");
}

TEST_F(Streams, a_tile_stream_reduces_over_its_piece) {
  const ValueId outside = op(Op::exp, {bare(x)});
  const std::vector<ValueId> out = stream(true, {f(-inf), i(0)}, [&](const std::vector<ValueId>& c) {
    const ValueId m = op(Op::maximum, {c[0], reduce("max", outside, {t})});
    const ValueId l =
        op(Op::add, {op(Op::mul, {c[1], op(Op::exp_diff, {c[0], m})}), reduce("sum", op(Op::exp_diff, {bare(x), m}), {t})});
    StreamResult result{{m, l}, Lambda{}};
    const ValueId a0 = b.arg(0, c[0]), b0 = b.arg(2, c[0]), a1 = b.arg(1, c[1]), b1 = b.arg(3, c[1]);
    result.merge->results = {op(Op::maximum, {a0, b0}), op(Op::add, {a1, b1})};
    return result;
  });
  const Stream& st = b.program().streams[0];
  ASSERT_TRUE(st.merge);
  EXPECT_EQ(type(st.merge->results[1]), f32);
  EXPECT_EQ(b[out[1]].axes, (AxisSet{row, d}));
  store(s, {row, d}, op(Op::add, {out[0], out[1]}));
  store(y, {row, t, d}, outside);
  verify(b.finish(at()), "test");
}

TEST_F(Streams, pieces_and_carried_values_stay_inside) {
  ValueId leaked;
  stream(false, {i(0)}, [&](const std::vector<ValueId>& h) {
    leaked = op(Op::add, {h[0], bare(x)});
    return StreamResult{{leaked}, std::nullopt};
  });
  refused(ErrorCode::unknown_name, [&] { op(Op::exp, {leaked}); },
          {"belongs to the body of the stream over t and is used outside it"});
}

TEST_F(Streams, a_piece_may_not_be_carried) {
  refused(ErrorCode::cut_dependent,
          [&] {
            stream(true, {i(0)},
                   [&](const std::vector<ValueId>& h) { return StreamResult{{op(Op::add, {h[0], bare(x)})}, std::nullopt}; });
          },
          {"carried h depends on where the stream over t is cut: its next still has axis t"});
  EXPECT_NO_THROW(op(Op::exp, {bare(x)}));  // the stream is closed again
  EXPECT_EQ(b.coordinate(t, at()), coord(t));
}

TEST_F(Streams, refusals) {
  auto same = [](const std::vector<ValueId>& h) { return StreamResult{h, std::nullopt}; };
  refused(ErrorCode::not_supported, [&] { b.stream(row, false, {"h"}, {i(0)}, same, at()); }, {"row is a program axis"});
  refused(ErrorCode::extra_axis, [&] { stream(false, {bare(x)}, same); }, {"has the streamed axis t"});
  refused(ErrorCode::not_supported,
          [&] {
            stream(false, {i(0)},
                   [&](const std::vector<ValueId>&) { return StreamResult{{reduce("sum", bare(x), {t})}, std::nullopt}; });
          },
          {"t is a single point inside the stream over t"});
  refused(ErrorCode::store_conflict,
          [&] {
            stream(false, {i(0)}, [&](const std::vector<ValueId>& h) {
              store(s, {row, d}, f(1));
              return StreamResult{h, std::nullopt};
            });
          },
          {"every step of the stream over t would store s[row, d]"});
  refused(ErrorCode::not_supported, [&] {
    stream(false, {i(0)}, [&](const std::vector<ValueId>& h) { return StreamResult{stream(false, h, same), std::nullopt}; });
  });
  refused(ErrorCode::not_supported,
          [&] {
            stream(false, {i(0)},
                   [&](const std::vector<ValueId>&) { return StreamResult{{reduce("sum", bare(x), {row})}, std::nullopt}; });
          },
          {"sum reduces over the program axis row inside the stream over t"});
  refused(ErrorCode::type_mismatch,
          [&] { stream(false, {i(0)}, [&](const std::vector<ValueId>&) { return StreamResult{{}, std::nullopt}; }); });
  refused(ErrorCode::type_mismatch,
          [&] { stream(false, {f(0.5)}, [&](const std::vector<ValueId>&) { return StreamResult{{coord(t)}, std::nullopt}; }); },
          {"carried h is i64, but its initial value is a real number"});
}

TEST_F(Streams, weak_carries_become_concrete) {
  const std::vector<ValueId> out = stream(false, {i(0), f(0)}, [&](const std::vector<ValueId>& h) {
    return StreamResult{{op(Op::add, {h[0], i(1)}), op(Op::mul, {h[1], f(0.5)})}, std::nullopt};
  });
  EXPECT_EQ(type(out[0]), DType::i64_);
  EXPECT_EQ(type(out[1]), f32);
  EXPECT_FALSE(b[out[0]].weak);
}

TEST_F(Streams, a_narrow_carry_is_kept_narrow) {
  const std::vector<ValueId> out =
      stream(false, {i(0)}, [&](const std::vector<ValueId>&) { return StreamResult{{bare(w)}, std::nullopt}; });
  EXPECT_EQ(type(out[0]), DType::f16_);
}

TEST_F(Streams, inside_other_streams) {
  const std::vector<ValueId> out = stream(false, {i(0)}, [&](const std::vector<ValueId>& h) {
    const std::vector<ValueId> inner = b.stream(
        d, true, {"k"}, {i(0)},
        [&](const std::vector<ValueId>& k) {
          return StreamResult{{op(Op::add, {k[0], reduce("sum", op(Op::add, {bare(x), h[0]}), {d})})}, std::nullopt};
        },
        at());
    return StreamResult{{inner[0]}, std::nullopt};
  });
  ASSERT_EQ(b.program().streams.size(), 2u);
  EXPECT_EQ(b.program().streams[1].parent, StreamId{0});
  EXPECT_EQ(b[out[0]].axes, AxisSet{row});
  store(s, {row, d}, out[0]);
  store(y, {row, t, d}, out[0]);
  verify(b.finish(at()), "test");
}

TEST_F(Streams, other_points_can_be_read_unless_they_are_carried) {
  const ValueId outside = op(Op::exp, {bare(x)});
  stream(false, {i(0)}, [&](const std::vector<ValueId>& h) {
    const ValueId before = op(Op::sub, {coord(t), i(1)});
    const ValueId previous = b.replace(outside, {{t, before}}, i(0), at());
    EXPECT_EQ(std::get<Replace>(b[previous].node).binds[0].first, t);
    refused(ErrorCode::not_supported, [&] { b.replace(op(Op::add, {h[0], bare(x)}), {{t, before}}, i(0), at()); },
            {"depends on what the stream over t carries"});
    return StreamResult{{previous}, std::nullopt};
  });
}

TEST_F(Streams, a_range_reaches_the_result) {
  const AxisId u = axis("u");
  b.range(u, i(0), op(Op::add, {coord(row), i(1)}), at());
  const std::vector<ValueId> out = b.stream(
      u, false, {"h"}, {i(0)},
      [&](const std::vector<ValueId>& h) { return StreamResult{{op(Op::add, {h[0], i(1)})}, std::nullopt}; }, at());
  EXPECT_EQ(b[out[0]].axes, AxisSet{row});
}

}  // namespace
}  // namespace cosmati::ir
