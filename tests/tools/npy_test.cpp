// .npy files: round trips of every type, what NumPy writes, and headers that lie.
// SPDX-License-Identifier: Apache-2.0
#include "tools/npy.h"

#include <gmock/gmock.h>

#include <cosmati/error.h>

#include <cstring>
#include <numeric>

#include "tests/tools/temporary.h"

namespace cosmati::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file with this header text and payload, header padded as NumPy pads it.
std::string npy_bytes(std::string header, const std::string& data, int major = 1) {
  const std::size_t start = major == 1 ? 10 : 12;
  header.append(63 - (start + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (std::size_t i = 0; i < (major == 1 ? 2u : 4u); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

std::string header(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }";
}

std::string refusal(const std::string& path) {
  try {
    read_npy(path);
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::bad_file);
    EXPECT_THAT(e.what(), HasSubstr(path));
    return e.message;
  }
  return "accepted";
}

class Npy : public testing::Test {
 protected:
  std::string refuse(const std::string& bytes) { return refusal(write_file(folder_ / "a.npy", bytes)); }
  Array accept(const std::string& bytes) { return read_npy(write_file(folder_ / "a.npy", bytes)); }
  TemporaryFolder folder_;
};

TEST_F(Npy, EveryTypeComesBackAsItWasWritten) {
  for (int i = 0; i < dtype_count; ++i) {
    const DType t = static_cast<DType>(i);
    SCOPED_TRACE(name(t));
    Array a = make_array(t, {3, 5}, "a");
    unsigned char* bytes = static_cast<unsigned char*>(a.view.data);
    for (int k = 0; k < 15 * byte_size(t); ++k) bytes[k] = static_cast<unsigned char>(is_bool(t) ? k % 2 : 7 * k + 1);
    NpyWriter(folder_ / "a.npy", a.view).commit();
    const Array b = read_npy(folder_ / "a.npy");
    EXPECT_THAT(b.view.shape, ElementsAre(3, 5));
    EXPECT_EQ(byte_size(b.view.dtype), byte_size(t));
    const bool unnamed = t == DType::bf16_ || t == DType::f8e4m3_ || t == DType::f8e5m2_;
    EXPECT_EQ(b.view.dtype, !unnamed ? t : byte_size(t) == 2 ? DType::u16_ : DType::u8_);
    EXPECT_TRUE(b.view.read_only);
    EXPECT_EQ(std::memcmp(a.view.data, b.view.data, static_cast<std::size_t>(15 * byte_size(t))), 0);
  }
}

TEST_F(Npy, ShapesOfAllRanksComeBack) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{}, {1}, {7}, {0}, {0, 5}, {4, 0, 5, 2}, {2, 3, 1, 4}}) {
    NpyWriter(folder_ / "a.npy", make_array(DType::f32_, shape, "a").view).commit();
    EXPECT_EQ(read_npy(folder_ / "a.npy").view.shape, shape);
  }
}

TEST_F(Npy, ViewsAreWrittenDense) {
  std::vector<float> data(12);
  std::iota(data.begin(), data.end(), 0.f);
  NpyWriter(folder_ / "a.npy", TensorView(data.data(), DType::f32_, {4, 3}, {1, 4})).commit();
  const Array a = read_npy(folder_ / "a.npy");
  EXPECT_EQ(static_cast<const float*>(a.view.data)[1], 4.f);
  EXPECT_EQ(static_cast<const float*>(a.view.data)[3], 1.f);
}

TEST_F(Npy, FortranOrderIsAViewOfTheFile) {
  const float data[] = {0, 1, 2, 3, 4, 5};
  const std::string payload(reinterpret_cast<const char*>(data), sizeof data);
  const Array a = accept(npy_bytes(header("<f4", "(2, 3)", true), payload));
  EXPECT_THAT(a.view.strides, ElementsAre(1, 2));
  std::vector<float> rows;
  for_each_element(a.view, [&](const char* e) {
    float f;
    std::memcpy(&f, e, 4);
    rows.push_back(f);
  });
  EXPECT_THAT(rows, ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST_F(Npy, AllVersionsAndKeyOrdersAreRead) {
  for (int major : {1, 2, 3}) EXPECT_EQ(accept(npy_bytes(header("|u1", "(2,)"), "ab", major)).view.elements(), 2);
  EXPECT_EQ(accept(npy_bytes("{\"shape\": (2L, 1), 'fortran_order':False,'descr':'|i1'}", "ab")).view.rank(), 2);
  EXPECT_EQ(accept(npy_bytes(header("?", "()"), "\x01")).view.dtype, DType::bool_);
}

TEST_F(Npy, OpaqueElementsAreMarked) {
  EXPECT_TRUE(accept(npy_bytes(header("<V2", "(1,)"), "ab")).opaque);
  EXPECT_TRUE(accept(npy_bytes(header("|V1", "(1,)"), "a")).opaque);
  EXPECT_FALSE(accept(npy_bytes(header("<u2", "(1,)"), "ab")).opaque);
}

TEST_F(Npy, BoolsAreZeroOrOne) {
  const Array a = accept(npy_bytes(header("|b1", "(3,)"), std::string("\x00\x02\xff", 3)));
  const unsigned char* p = static_cast<const unsigned char*>(a.view.data);
  EXPECT_THAT(std::vector<int>({p[0], p[1], p[2]}), ElementsAre(0, 1, 1));
}

TEST_F(Npy, DataBehindAnOddHeaderIsAligned) {
  std::string head = header("<f4", "(1,)");
  std::string bytes = "\x93NUMPY\x01";
  bytes += '\0';
  if ((head.size() + 10) % 4 == 0) head += ' ';
  bytes += static_cast<char>(head.size());
  bytes += '\0';
  const Array a = accept(bytes + head + std::string(4, 'x'));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.view.data) % 4, 0u);
}

TEST_F(Npy, WrongFilesAreRefusedByName) {
  EXPECT_THAT(refusal(folder_ / "none.npy"), HasSubstr("does not open"));
  EXPECT_THAT(refusal(folder_ / ""), HasSubstr("regular"));
  EXPECT_THAT(refuse(""), HasSubstr("0 bytes"));
  EXPECT_THAT(refuse("PK\x03\x04 not an array at all"), HasSubstr("does not begin"));
  EXPECT_THAT(refuse(npy_bytes(header("|u1", "(1,)"), "a", 4)), HasSubstr("version 4"));
  EXPECT_THAT(refuse(std::string("\x93NUMPY\x01\x00\xff\xff{}", 12)), HasSubstr("65535 bytes long, but the file has 2"));
  EXPECT_THAT(refuse(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14)), HasSubstr("4294967295"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(3,)"), "12345678")), HasSubstr("needs 12 bytes, but 8"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(1,)"), "12345678")), HasSubstr("needs 4 bytes, but 8"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(-1,)"), "1234")), HasSubstr("negative"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(4611686018427387904, 4)"), "")), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(99999999999999999999,)"), "")), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(0, 9223372036854775807)"), "")), HasSubstr("beyond 64 bits"));
  EXPECT_THAT(refuse(npy_bytes(header(">f4", "(1,)"), "1234")), HasSubstr("big-endian"));
  EXPECT_THAT(refuse(npy_bytes(header("|O", "(1,)"), "12345678")), HasSubstr("object"));
  EXPECT_THAT(refuse(npy_bytes(header("<c8", "(1,)"), "12345678")), HasSubstr("'<c8'"));
  EXPECT_THAT(refuse(npy_bytes(header("<u8", "(1,)"), "12345678")), HasSubstr("'<u8'"));
  EXPECT_THAT(refuse(npy_bytes("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")),
              HasSubstr("structured"));
  EXPECT_THAT(refuse(npy_bytes("{'descr': '<f4', 'shape': (1,)}", "1234")), HasSubstr("lacks 'fortran_order'"));
  EXPECT_THAT(refuse(npy_bytes("{'descr': '<f4', 'descr': '<f4'}", "1234")), HasSubstr("twice"));
  EXPECT_THAT(refuse(npy_bytes("{'descr': '<f4', 'evil': 1}", "1234")), HasSubstr("unknown key 'evil'"));
  EXPECT_THAT(refuse(npy_bytes("{'descr': '<f4", "1234")), HasSubstr("does not end"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(1,)") + "x", "1234")), HasSubstr("follows"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "(1 2)"), "1234")), HasSubstr("damaged"));
  EXPECT_THAT(refuse(npy_bytes(header("<f4", "1"), "1234")), HasSubstr("damaged"));
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  EXPECT_THAT(refuse(npy_bytes(header("<f4", many + ")"), "1234")), HasSubstr("64 dimensions"));
}

// Flips, cuts and insertions over valid files: each is read whole or refused with bad_file; nothing else happens.
TEST_F(Npy, MutatedFilesAreReadOrRefused) {
  std::uint64_t state = 1;
  auto random = [&](std::size_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state >> 33) % n);
  };
  const std::string pieces[] = {"-", "9",    "99999999999999999999", "(", ")", "'", ",", "L", "True", ">", "O", "\\x00", "{",
                                "[", "\xff", std::string(1, '\0')};
  int accepted = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    const int major = 1 + static_cast<int>(random(3));
    std::string bytes =
        npy_bytes(header(round % 2 ? "<f4" : "|b1", "(2, 3)", random(2)), std::string(round % 2 ? 24 : 6, 'x'), major);
    for (std::size_t k = 1 + random(2); k > 0; --k) {
      const std::size_t at = random(std::min<std::size_t>(bytes.size(), 90));
      switch (random(5)) {
        case 0:
          bytes[at] = static_cast<char>(random(256));
          break;
        case 1:
          bytes.resize(at + 1);
          break;
        case 2:
          bytes.insert(at, pieces[random(std::size(pieces))]);
          break;
        case 3:
          bytes.erase(at, 1 + random(4));
          break;
        default:
          bytes[std::min(bytes.size() - 1, 6 + random(6))] = static_cast<char>(random(256));
          break;
      }
      if (bytes.size() < 12) break;
    }
    const std::string path = write_file(folder_ / "a.npy", bytes);
    try {
      const Array a = read_npy(path);
      std::int64_t seen = 0;
      unsigned sum = 0;
      for_each_element(a.view, [&](const char* e) {
        sum += static_cast<unsigned char>(*e);
        ++seen;
      });
      EXPECT_EQ(seen, a.view.elements());
      EXPECT_LE(seen, static_cast<std::int64_t>(bytes.size()));
      EXPECT_LE(sum, 255u * bytes.size());
      ++accepted;
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::bad_file);
      ++refused;
    }
  }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 1000);
}

TEST_F(Npy, NothingIsLeftWithoutCommit) {
  const Array a = make_array(DType::f32_, {4}, "a");
  {
    NpyWriter writer(folder_ / "a.npy", a.view);
  }
  EXPECT_EQ(folder_.files(), 0u);
  {
    NpyWriter writer(folder_ / "a.npy", a.view);
    NpyWriter moved(std::move(writer));
    moved.commit();
  }
  EXPECT_EQ(folder_.files(), 1u);
  EXPECT_THROW(NpyWriter(folder_ / "no/such/folder/a.npy", a.view), Error);
}

TEST_F(Npy, ArraysOfImpossibleSizeAreRefused) {
  EXPECT_THROW(make_array(DType::f32_, {-1}, "a"), Error);
  EXPECT_THROW(make_array(DType::f64_, {std::int64_t{1} << 40, std::int64_t{1} << 40}, "a"), Error);
  EXPECT_THROW(make_array(DType::f64_, {std::int64_t{1} << 59}, "a"), Error);
}

TEST_F(Npy, CopiesOfViewsAreDense) {
  float data[] = {0, 1, 2, 3, 4, 5};
  const Array reversed = dense_copy(TensorView(data + 5, DType::f32_, {3}, {-2}), "a");
  EXPECT_EQ(static_cast<const float*>(reversed.view.data)[0], 5);
  EXPECT_EQ(static_cast<const float*>(reversed.view.data)[2], 1);
  EXPECT_FALSE(reversed.view.read_only);
}

}  // namespace
}  // namespace cosmati::tools
