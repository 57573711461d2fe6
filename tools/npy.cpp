// The .npy format. Nothing of a file is believed: lengths, types, shapes and their products are checked against its size.
// SPDX-License-Identifier: Apache-2.0
#include "tools/npy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <cosmati/error.h>

namespace cosmati::tools {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header = std::size_t{1} << 20;
constexpr std::size_t most_dimensions = 64;

[[noreturn]] void bad_file(const std::string& path, const std::string& what, const std::string& hint = {}) {
  throw Error(ErrorCode::bad_file, Where{path, 0, 0}, what, hint);
}

// ---- types --------------------------------------------------------------------------------------------------------
struct FileType {
  char kind;
  int bytes;
  DType dtype;
  bool opaque;
};
constexpr FileType file_types[] = {
    {'b', 1, DType::bool_, false}, {'i', 1, DType::i8_, false},  {'i', 2, DType::i16_, false}, {'i', 4, DType::i32_, false},
    {'i', 8, DType::i64_, false},  {'u', 1, DType::u8_, false},  {'u', 2, DType::u16_, false}, {'u', 4, DType::u32_, false},
    {'f', 2, DType::f16_, false},  {'f', 4, DType::f32_, false}, {'f', 8, DType::f64_, false}, {'V', 1, DType::u8_, true},
    {'V', 2, DType::u16_, true},
};

std::string descr_of(DType t) {
  if (t == DType::bf16_) t = DType::u16_;
  if (t == DType::f8e4m3_ || t == DType::f8e5m2_) t = DType::u8_;
  for (const FileType& row : file_types)
    if (row.dtype == t) return fmt::format("{}{}{}", row.bytes == 1 ? '|' : '<', row.kind, row.bytes);
  throw InternalError(fmt::format("no .npy type for {}", name(t)));
}

const FileType& type_of(const std::string& descr, const std::string& path) {
  if (!descr.empty()) {
    const char order = descr[0];
    const bool has_order = order == '<' || order == '>' || order == '=' || order == '|';
    const std::string kind = descr.substr(has_order ? 1 : 0);
    for (const FileType& row : file_types) {
      if (kind != fmt::format("{}{}", row.kind, row.bytes) && !(row.kind == 'b' && kind == "?")) continue;
      if (order == '>' && row.bytes > 1)
        bad_file(path, fmt::format("the elements are big-endian ('{}')", descr),
                 "write the array with a little-endian dtype, for example a.astype(a.dtype.newbyteorder('<'))");
      return row;
    }
    if (kind.starts_with('O'))
      bad_file(path, "the array holds Python objects (dtype object)", "write numbers: a.astype(numpy.float32)");
  }
  bad_file(path, fmt::format("the element type '{}' is none of the language's", descr),
           "bool, i1 i2 i4 i8, u1 u2 u4, f2 f4 f8; bf16 as u2 and f8 as u1");
}

// ---- the header: a Python dictionary with three known keys ------------------------------------------------------------
struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> shape;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header parse() {
    Header h;
    bool have_descr = false, have_order = false, have_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string("a key");
      expect(':');
      bool* have = key == "descr" ? &have_descr : key == "fortran_order" ? &have_order : key == "shape" ? &have_shape : nullptr;
      if (!have) wrong(fmt::format("the header has an unknown key '{}'", printable(key)));
      if (*have) wrong(fmt::format("the header gives '{}' twice", key));
      *have = true;
      if (have == &have_descr) {
        blanks();
        if (peek() == '[') wrong("the array has a structured dtype");
        h.descr = string("the dtype");
      } else if (have == &have_order) {
        h.fortran = boolean();
      } else {
        h.shape = shape();
      }
      if (accept('}')) break;
      expect(',');
    }
    blanks();
    if (at_ != text_.size()) wrong("something follows the header's dictionary");
    for (auto [have, key] : {std::pair{have_descr, "descr"}, {have_order, "fortran_order"}, {have_shape, "shape"}})
      if (!have) wrong(fmt::format("the header lacks '{}'", key));
    return h;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const { bad_file(path_, what); }
  static std::string printable(const std::string& s) {
    std::string out;
    for (unsigned char c : s.substr(0, 40)) out += c >= 32 && c < 127 ? static_cast<char>(c) : '?';
    return out;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
  }
  bool accept(char c) {
    blanks();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) wrong(fmt::format("the header is damaged: '{}' expected at byte {}", c, at_));
  }
  std::string string(const char* what) {
    blanks();
    const char quote = peek();
    if (quote != '\'' && quote != '"') wrong(fmt::format("the header is damaged: {} expected at byte {}", what, at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) wrong("the header is damaged: a string does not end");
    std::string s(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    blanks();
    for (auto [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    wrong("the header is damaged: fortran_order is neither True nor False");
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> out;
    expect('(');
    while (!accept(')')) {
      blanks();
      if (peek() == '-') wrong("the shape has a negative extent");
      if (peek() < '0' || peek() > '9') wrong(fmt::format("the header is damaged: an extent expected at byte {}", at_));
      std::int64_t value = 0;
      while (peek() >= '0' && peek() <= '9') {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, peek() - '0', &value))
          wrong("the shape has an extent beyond 64 bits");
        ++at_;
      }
      if (peek() == 'L') ++at_;  // Python 2 wrote long integers so
      out.push_back(value);
      if (out.size() > most_dimensions) wrong(fmt::format("the shape has more than {} dimensions", most_dimensions));
      if (accept(')')) return out;
      expect(',');
    }
    return out;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

// The product of the extents, each at least 1, times the element's size; nothing if beyond 63 bits. Zero extents count as one, so
// that strides cannot overflow either.
std::optional<std::int64_t> bytes_of(const std::vector<std::int64_t>& shape, int element) {
  std::int64_t bytes = element;
  for (std::int64_t n : shape)
    if (n < 0 || __builtin_mul_overflow(bytes, n > 0 ? n : 1, &bytes)) return std::nullopt;
  return bytes;
}

bool is_empty(const std::vector<std::int64_t>& shape) {
  for (std::int64_t n : shape)
    if (n == 0) return true;
  return false;
}

std::shared_ptr<void> allocate(std::size_t bytes, const std::string& what) {
  // Virtual memory is handed out freely; touching more than there is would end the process.
  const std::size_t machine =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  void* p = bytes < machine ? std::aligned_alloc(64, (bytes / 64 + 1) * 64) : nullptr;
  if (!p) throw Error(ErrorCode::bad_argument, {}, fmt::format("{}: no memory for {} bytes", what, bytes));
  return {p, [](void* q) { std::free(q); }};
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Array make_array(DType dtype, const std::vector<std::int64_t>& shape, const std::string& what) {
  std::optional<std::int64_t> bytes = bytes_of(shape, byte_size(dtype));
  if (!bytes)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("{}: the size of the shape is negative or beyond 64 bits", what));
  if (is_empty(shape)) bytes = 0;
  Array a;
  a.memory = allocate(static_cast<std::size_t>(*bytes), what);
  std::memset(a.memory.get(), 0xff, static_cast<std::size_t>(*bytes));
  if (dtype == DType::bool_) std::memset(a.memory.get(), 1, static_cast<std::size_t>(*bytes));
  a.view = TensorView(a.memory.get(), dtype, shape);
  return a;
}

Array dense_copy(const TensorView& view, const std::string& what) {
  Array a = make_array(view.dtype, view.shape, what);
  char* to = static_cast<char*>(a.view.data);
  const std::size_t bytes = static_cast<std::size_t>(byte_size(view.dtype));
  for_each_element(view, [&](const char* element) {
    std::memcpy(to, element, bytes);
    to += bytes;
  });
  return a;
}

Array read_npy(const std::string& path) {
  // Without O_NONBLOCK a pipe that nobody writes would hold up its own refusal.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) bad_file(path, fmt::format("the file does not open: {}", std::strerror(errno)));
  struct stat st{};
  if (::fstat(file.fd, &st) != 0) bad_file(path, fmt::format("the file has no size: {}", std::strerror(errno)));
  if (!S_ISREG(st.st_mode)) bad_file(path, "not a regular file");
  const std::size_t size = static_cast<std::size_t>(st.st_size);
  if (size < 10) bad_file(path, fmt::format("not a .npy file: only {} bytes long", size));

  void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (map == MAP_FAILED) bad_file(path, fmt::format("the file cannot be mapped: {}", std::strerror(errno)));
  std::shared_ptr<void> memory(map, [size](void* p) { ::munmap(p, size); });
  const std::string_view text(static_cast<const char*>(map), size);

  if (text.substr(0, magic.size()) != magic)
    bad_file(path, "not a .npy file: it does not begin with \\x93NUMPY",
             text.substr(0, 2) == "PK" ? "numpy.savez made an archive; numpy.save writes one array" : "numpy.save writes one");
  const int major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3) bad_file(path, fmt::format("version {} of .npy is not known (1 to 3 are)", major));
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (size < 8 + length_bytes) bad_file(path, "the file ends inside its header");
  std::size_t header = 0;
  for (std::size_t i = 0; i < length_bytes; ++i)
    header |= static_cast<std::size_t>(static_cast<unsigned char>(text[8 + i])) << (8 * i);
  const std::size_t begin = 8 + length_bytes;
  if (header > size - begin)
    bad_file(path, fmt::format("the header says it is {} bytes long, but the file has {} left", header, size - begin));
  if (header > longest_header)
    bad_file(path, fmt::format("the header is {} bytes long; at most {} are read", header, longest_header));

  const Header h = HeaderParser(text.substr(begin, header), path).parse();
  const FileType& type = type_of(h.descr, path);
  std::optional<std::int64_t> bytes = bytes_of(h.shape, type.bytes);
  if (!bytes) bad_file(path, "the size of the shape is beyond 64 bits");
  if (is_empty(h.shape)) bytes = 0;
  const std::size_t available = size - begin - header;
  if (static_cast<std::size_t>(*bytes) != available)
    bad_file(path, fmt::format("shape ({}) of {} needs {} bytes, but {} follow the header", fmt::join(h.shape, ", "), h.descr,
                               *bytes, available));

  Array a;
  a.opaque = type.opaque;
  a.memory = memory;
  char* data = static_cast<char*>(map) + begin + header;
  std::vector<std::int64_t> strides;
  if (h.fortran && h.shape.size() > 1) {
    std::int64_t stride = 1;
    for (std::int64_t n : h.shape) {
      strides.push_back(stride);
      stride *= n > 0 ? n : 1;
    }
  }
  bool copy = (begin + header) % static_cast<std::size_t>(type.bytes) != 0;
  // A bool is one byte of 0 or 1 to generated code; a file may hold anything.
  if (type.dtype == DType::bool_)
    for (std::int64_t i = 0; i < *bytes; ++i) copy |= static_cast<unsigned char>(data[i]) > 1;
  if (copy) {
    a.memory = allocate(static_cast<std::size_t>(*bytes), path);
    std::memcpy(a.memory.get(), data, static_cast<std::size_t>(*bytes));
    data = static_cast<char*>(a.memory.get());
    if (type.dtype == DType::bool_)
      for (std::int64_t i = 0; i < *bytes; ++i) data[i] = data[i] != 0;
  }
  a.view = TensorView(data, type.dtype, h.shape, strides);
  a.view.read_only = true;
  return a;
}

void require_replaceable(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    bad_file(path, "something that is not a regular file is there, and is not replaced");
}

NpyWriter::NpyWriter(std::string path, const TensorView& view) : path_(std::move(path)) {
  require_replaceable(path_);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", descr_of(view.dtype),
                                   fmt::join(view.shape, ", "), view.shape.size() == 1 ? "," : "");
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string start(magic);
  start += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  start += header;

  int fd = -1;
  {
    const Uninterrupted alone;
    temporary_ = path_ + ".XXXXXX";
    fd = ::mkstemp(temporary_.data());
    if (fd < 0) {
      temporary_.clear();
      bad_file(path_, fmt::format("the file cannot be made: {}", std::strerror(errno)));
    }
    removal_ = std::make_unique<WhenInterrupted>([temporary = temporary_] { ::unlink(temporary.c_str()); });
  }
  // mkstemp makes a private file; the result gets the mode that any new file has.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  (void)::fchmod(fd, 0666 & ~mask);
  std::FILE* file = ::fdopen(fd, "wb");
  bool good = file != nullptr && std::fwrite(start.data(), 1, start.size(), file) == start.size();
  const std::size_t bytes = static_cast<std::size_t>(byte_size(view.dtype));
  if (good && view.strides.empty()) {
    const std::size_t all = static_cast<std::size_t>(view.elements()) * bytes;
    good = all == 0 || std::fwrite(view.data, 1, all, file) == all;
  } else if (good) {
    for_each_element(view, [&](const char* element) { good = good && std::fwrite(element, 1, bytes, file) == bytes; });
  }
  if (file ? std::fclose(file) != 0 : ::close(fd) != 0) good = false;
  if (!good) {
    const int why = errno;
    ::unlink(temporary_.c_str());
    temporary_.clear();
    bad_file(path_, fmt::format("the file cannot be written: {}", std::strerror(why)));
  }
}

NpyWriter::NpyWriter(NpyWriter&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), removal_(std::move(other.removal_)) {}

NpyWriter::~NpyWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NpyWriter::commit() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    bad_file(path_, fmt::format("the file cannot be renamed into place: {}", std::strerror(errno)));
  temporary_.clear();
}

}  // namespace cosmati::tools
