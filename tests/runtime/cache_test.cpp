// The disk cache: what hits, what misses, and what a damaged or foreign entry or an unusable directory costs.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/cpu/cpu.h"
#include "library/build_id.h"
#include "library/cache_entry.h"
#include "library/disk_cache.h"
#include "runtime/fixture.h"

namespace cosmati::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Cache : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_cpu()) GTEST_SKIP() << "no cpu";
    std::string pattern = testing::TempDir() + "cosmati_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.cache = (folder_ / "cache").string();
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // Runs the program in a new Function and says how often it compiled; the results are right.
  std::size_t compiles(const Program& p, const Options& options, std::vector<std::int64_t> strides = {}) {
    std::vector<float> x = counted(12), y(6);
    const Function f(p, Device::cpu(), options);
    f(TensorView(x.data(), f32, {2, 3}, strides), view(y, {2, 3}));
    const std::int64_t row = strides.empty() ? 3 : strides[0], column = strides.empty() ? 1 : strides[1];
    for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], 2 * x[i / 3 * row + i % 3 * column]);
    return f.compiles();
  }
  std::size_t compiles() { return compiles(doubled(), options_); }

  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(*options_.cache.text()))
      if (entry.path().extension() == ".kernel") found.push_back(entry.path());
    return found;
  }
  static std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void put(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);  // whatever the umask
  }

  fs::path folder_;
  Options options_;
};

TEST_F(Cache, a_second_function_compiles_nothing_and_is_the_same) {
  const Logged logged;
  std::vector<float> x = counted(6), y(6), again(6);
  const Function first(doubled(), Device::cpu(), options_), second(doubled(), Device::cpu(), options_);
  const Launch a = first.prepare({{"x", view(x, {2, 3})}, {"y", view(y, {2, 3})}});
  const Launch b = second.prepare({{"x", view(x, {2, 3})}, {"y", view(again, {2, 3})}});
  a();
  b();
  EXPECT_EQ(first.compiles(), 1u);
  EXPECT_EQ(second.compiles(), 0u);
  EXPECT_EQ(y, again);
  EXPECT_EQ(a.kernel().plan(), b.kernel().plan());
  EXPECT_EQ(a.kernel().explain(), b.kernel().explain());
  EXPECT_EQ(a.kernel().domain(), b.kernel().domain());
  EXPECT_EQ(a.kernel().name(), b.kernel().name());
  EXPECT_THAT(logged.warnings(), IsEmpty());
  EXPECT_THAT(logged.infos(),
              ElementsAre(HasSubstr("doubled: compiled for cpu"), HasSubstr("doubled: read from the disk cache")));
}

TEST_F(Cache, every_shipped_program_reads_back) {
  for (const std::string& name : shipped_programs()) {
    const Program p = load(name);
    // Arrays of nothing: shapes are all that counts.
    Arguments arguments;
    for (const Program::Parameter& parameter : p.parameters())
      if (parameter.kind == Program::Parameter::Kind::scalar && !parameter.has_default) arguments.emplace_back(parameter.name, 1);
    const Function first(p, Device::cpu(), options_), second(p, Device::cpu(), options_);
    for (const Program::Parameter& parameter : p.parameters()) {
      if (parameter.kind == Program::Parameter::Kind::scalar || parameter.kind == Program::Parameter::Kind::out) continue;
      const auto rank = std::count(parameter.shape.begin(), parameter.shape.end(), ',') + (parameter.shape == "[]" ? 0 : 1);
      const auto composite = std::count(parameter.shape.begin(), parameter.shape.end(), '(');
      const DType t = dtype_from_name(parameter.type).value_or(f32);
      std::vector<std::int64_t> shape(rank - composite, 2);
      if (name == "conv_valid") shape.assign(shape.size(), 3);    // its window is 3 x 3
      if (name == "rope" && parameter.name == "x") shape[2] = 4;  // pairs
      arguments.emplace_back(parameter.name, TensorView(nullptr, t, shape));
    }
    try {
      const Kernel made = first.kernel(arguments), read = second.kernel(arguments);
      EXPECT_EQ(first.compiles(), 1u) << name;
      EXPECT_EQ(second.compiles(), 0u) << name;
      EXPECT_EQ(made.plan(), read.plan()) << name;
    } catch (const Error& e) {
      ADD_FAILURE() << name << ": " << e.what();
    }
  }
}

TEST_F(Cache, what_changes_code_misses) {
  ASSERT_EQ(compiles(), 1u);
  EXPECT_EQ(compiles(), 0u);
  EXPECT_EQ(compiles(doubled(), options_, {6, 2}), 1u) << "other facts";
  EXPECT_EQ(compiles(doubled(), options_, {5, 1}), 0u) << "the same facts";
  const std::string head = "program doubled(in x: f32[i, j], out y: f32[i, j]) {\n";
  EXPECT_EQ(compiles(program(head + " parallel i, j { y[i, j] = x + x }\n}"), options_), 1u) << "another program of that name";
  EXPECT_EQ(compiles(program("# a comment\n" + head + "  parallel i,j {\n  y[i, j] = x * 2 }\n}"), options_), 0u)
      << "the same program";
  const Program named = program(head + " parallel i, j {\n  m = x * 2\n  y[i, j] = m\n }\n}");
  Options knob = options_;
  knob.knobs["home.m"] = "reload";
  EXPECT_EQ(compiles(named, options_), 1u);
  EXPECT_EQ(compiles(named, knob), 1u) << "a knob";
  Options planned = options_;
  std::vector<float> x(6), y(6);
  planned.plan = Function(doubled(), Device::cpu(), options_).plan({{"x", view(x, {2, 3})}, {"y", view(y, {2, 3})}});
  EXPECT_EQ(compiles(doubled(), planned), 1u) << "a plan";
  EXPECT_EQ(compiles(doubled(), planned), 0u);
  std::vector<double> wide(6), out(6);
  const Program generic = program("program g<T: any>(in x: T[i], out y: T[i]) {\n parallel i { y[i] = x }\n}");
  const Function f(generic, Device::cpu(), options_);
  f(view(wide, {6}), view(out, {6}));
  f(view(x, {6}), view(y, {6}));
  EXPECT_EQ(f.compiles(), 2u) << "another dtype";
}

TEST_F(Cache, one_row_and_many_share_code) {
  std::vector<float> x(12), y(12);
  const Function f(doubled(), Device::cpu(), options_);
  f(view(x, {1, 12}), view(y, {1, 12}));
  f(view(x, {3, 4}), view(y, {3, 4}));
  EXPECT_EQ(f.compiles(), 1u) << "a dimension of one element has no stride to rely on";
  EXPECT_EQ(f.kernel({{"x", view(x, {1, 12})}, {"y", view(y, {1, 12})}}).domain(),
            f.kernel({{"x", view(x, {3, 4})}, {"y", view(y, {3, 4})}}).domain());
  f(view(x, {12, 1}), view(y, {12, 1}));
  EXPECT_EQ(f.compiles(), 2u) << "the elements of one column follow each other";
}

TEST_F(Cache, the_key_names_the_build_the_compiler_and_the_processor) {
  compiles();
  const std::string entry = bytes_of(entries().at(0));
  for (const std::string& part : {std::string(library::build_id()), version(), cpu::identity(), std::string("x: f32[i, j]")})
    EXPECT_THAT(entry, HasSubstr(part));
  EXPECT_EQ(library::build_id().size(), 32u);
  EXPECT_THAT(cpu::identity(), testing::ContainsRegex("LLVM [0-9]+\\.[0-9]+.*-.*-.*, .+, [-+][a-z0-9].*function\\("));
}

TEST_F(Cache, two_compilations_give_the_same_bytes) {
  compiles();
  const std::string entry = bytes_of(entries().at(0));
  fs::remove_all(*options_.cache.text());
  compiles();
  EXPECT_EQ(bytes_of(entries().at(0)), entry);
}

TEST_F(Cache, a_damaged_entry_costs_one_warning_and_is_rebuilt) {
  compiles();
  const fs::path path = entries().at(0);
  const std::string whole = bytes_of(path);
  const auto broken = [&](const std::string& what, const std::string& bytes) {
    fs::remove(path);
    put(path, bytes);
    const Logged logged;
    EXPECT_EQ(compiles(), 1u) << what;
    EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr(path.string()))) << what;
    EXPECT_EQ(bytes_of(path), whole) << what;
    EXPECT_EQ(compiles(), 0u) << what;
    EXPECT_EQ(logged.warnings().size(), 1u) << what;
  };
  broken("empty", "");
  for (const std::size_t length : {std::size_t{1}, std::size_t{63}, std::size_t{64}, whole.size() / 2, whole.size() - 1})
    broken("truncated", whole.substr(0, length));
  broken("longer", whole + "x");
  broken("zeroed", std::string(whole.size(), '\0'));
  broken("zeroed behind", whole.substr(0, whole.size() / 2) + std::string(whole.size() - whole.size() / 2, '\0'));
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 60) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    broken("a bit flipped", flipped);
  }
  std::string another_format = whole;
  another_format[8] = 99;
  broken("of another format", another_format);
  broken("whole, of another key", library::encode_entry("another key", "and its kernel"));
}

TEST_F(Cache, an_entry_with_a_right_hash_and_wrong_contents_is_rebuilt) {
  compiles();
  const fs::path path = entries().at(0);
  const std::string whole = bytes_of(path);
  std::uint64_t key_bytes = 0;
  std::memcpy(&key_bytes, whole.data() + 16, sizeof key_bytes);
  const std::string key = whole.substr(64, key_bytes), payload = whole.substr(64 + key_bytes);
  ASSERT_EQ(library::encode_entry(key, payload), whole);
  std::string no_object = payload;
  no_object.replace(no_object.find("\177ELF"), 4, "\177FLE");
  for (const std::string& wrong : {std::string("no kernel"), std::string(), payload.substr(0, payload.size() / 2), no_object}) {
    put(path, library::encode_entry(key, wrong));
    const Logged logged;
    EXPECT_EQ(compiles(), 1u);
    EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr(path.string())));
    EXPECT_EQ(compiles(), 0u);
  }
}

TEST_F(Cache, an_entry_of_another_build_compiler_or_processor_is_rebuilt) {
  compiles();
  const fs::path path = entries().at(0);
  const std::string whole = bytes_of(path);
  std::uint64_t key_bytes = 0;
  std::memcpy(&key_bytes, whole.data() + 16, sizeof key_bytes);
  const std::string key = whole.substr(64, key_bytes), payload = whole.substr(64 + key_bytes);
  // LLVM and its version, the triple, the processor, its features, and how LLVM is told to optimise.
  std::vector<std::string> parts = {std::string(library::build_id()), version()};
  std::istringstream identity(cpu::identity());
  for (std::string part; identity >> part;) parts.push_back(part);
  EXPECT_GT(parts.size(), 5u);
  for (const std::string& part : parts) {
    std::string other = key;
    const std::size_t at = other.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    other[at + part.size() - 1] = static_cast<char>(other[at + part.size() - 1] ^ 1);
    fs::remove(path);
    put(path, library::encode_entry(other, payload));
    EXPECT_EQ(compiles(), 1u) << part;
    EXPECT_EQ(bytes_of(path), whole) << part;
    EXPECT_EQ(compiles(), 0u) << part;
  }
}

TEST_F(Cache, something_else_in_the_place_of_an_entry_is_ignored_once) {
  compiles();
  const fs::path path = entries().at(0);
  fs::remove(path);
  fs::create_directory(path);
  const Logged logged;
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(compiles(), 1u) << "it can neither be read nor replaced";
  EXPECT_THAT(logged.warnings().size(), testing::Le(2u));
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(compiles(), 1u) << "nobody waits for a pipe";
  EXPECT_EQ(compiles(), 0u) << "replaced";
}

TEST_F(Cache, a_file_in_the_place_of_the_directory_costs_one_warning) {
  for (const std::string below : {"", "/deeper/still"}) {
    const fs::path file = folder_ / ("file" + std::to_string(below.size()));
    put(file, "something of the user's");
    Options options;
    options.cache = file.string() + below;
    const Logged logged;
    EXPECT_EQ(compiles(doubled(), options), 1u);
    EXPECT_EQ(compiles(doubled(), options), 1u);
    EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr(file.string())));
    EXPECT_EQ(bytes_of(file), "something of the user's");
  }
}

TEST_F(Cache, the_directory_follows_from_options_then_environment) {
  const Logged logged;
  const auto in = [&](const fs::path& directory) { return fs::exists(directory) && !fs::is_empty(directory); };
  const std::string home = (folder_ / "home").string(), xdg = (folder_ / "xdg").string(), named = (folder_ / "named").string();
  const Options defaults;
  const auto set = [](const char* variable, const char* value) { value ? ::setenv(variable, value, 1) : ::unsetenv(variable); };
  const char* before[] = {std::getenv("COSMATI_CACHE_DIR"), std::getenv("XDG_CACHE_HOME"), std::getenv("HOME")};
  const std::string kept[] = {before[0] ? before[0] : "", before[1] ? before[1] : "", before[2] ? before[2] : ""};
  set("COSMATI_CACHE_DIR", nullptr);
  set("XDG_CACHE_HOME", nullptr);
  set("HOME", home.c_str());
  EXPECT_EQ(compiles(doubled(), defaults), 1u);
  EXPECT_TRUE(in(fs::path(home) / ".cache/cosmati"));
  set("XDG_CACHE_HOME", xdg.c_str());
  EXPECT_EQ(compiles(doubled(), defaults), 1u);
  EXPECT_TRUE(in(fs::path(xdg) / "cosmati"));
  set("COSMATI_CACHE_DIR", named.c_str());
  EXPECT_EQ(compiles(doubled(), defaults), 1u);
  EXPECT_TRUE(in(named));
  EXPECT_EQ(compiles(doubled(), options_), 1u) << "the option wins";
  EXPECT_EQ(compiles(doubled(), uncached()), 1u) << "and can say none";
  set("COSMATI_CACHE_DIR", "");
  EXPECT_EQ(compiles(doubled(), defaults), 1u) << "so can the environment";
  EXPECT_THAT(logged.warnings(), IsEmpty());
  set("COSMATI_CACHE_DIR", nullptr);
  set("XDG_CACHE_HOME", nullptr);
  set("HOME", nullptr);
  EXPECT_EQ(compiles(doubled(), defaults), 1u);
  EXPECT_EQ(compiles(doubled(), defaults), 1u);
  EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("HOME")));
  for (int i = 0; i < 3; ++i) {
    const char* names[] = {"COSMATI_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    set(names[i], before[i] ? kept[i].c_str() : nullptr);
  }
}

TEST_F(Cache, a_name_with_a_zero_byte_is_no_directory) {
  Options options;
  options.cache = (folder_ / "a").string() + std::string(1, '\0') + "/../../b";
  const Logged logged;
  EXPECT_EQ(compiles(doubled(), options), 1u);
  EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("zero byte")));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Cache, only_the_owner_may_write_code_into_it) {
  compiles();
  struct stat facts = {};
  ASSERT_EQ(::stat(options_.cache.text()->c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat(entries().at(0).c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777 & ~0600, 0u);
}

TEST_F(Cache, code_that_somebody_else_may_have_written_is_not_run) {
  compiles();
  const fs::path path = entries().at(0);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const Logged logged;
  EXPECT_EQ(compiles(), 1u);
  EXPECT_THAT(logged.warnings(), ElementsAre(HasSubstr("others may write it")));
  EXPECT_EQ(compiles(), 0u);
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_EQ(compiles(), 1u);
  EXPECT_THAT(logged.warnings().back(), HasSubstr("belongs to the user 65534"));
  EXPECT_EQ(compiles(), 0u);
}

TEST_F(Cache, holds_a_bounded_number_of_bytes_and_forgets_what_was_used_least_recently) {
  library::DiskCache cache((folder_ / "small").string(), 10'000);
  const std::string left = "small/" + std::string(32, '0') + ".kernel.abcdef.tmp", other = "small/important.kernel";
  const std::string payload(900, 'x');
  const auto key = [](int i) { return "key " + std::to_string(i); };
  const auto age = [&](int hours) {  // of everything that is there
    for (const auto& entry : fs::directory_iterator(folder_ / "small"))
      fs::last_write_time(entry, fs::last_write_time(entry) - std::chrono::hours(hours));
  };
  for (int i = 0; i < 9; ++i) {
    cache.write(key(i), payload);
    age(1);
  }
  EXPECT_EQ(cache.read(key(0)), payload) << "nine fit, and this one is the latest now";
  put(folder_ / other, "of somebody else");
  put(folder_ / left, "of a process that was killed");
  age(2);
  EXPECT_EQ(cache.read(key(0)), payload);
  cache.write(key(9), payload);
  cache.write(key(10), payload);
  std::uintmax_t total = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "small")) total += entry.file_size();
  EXPECT_LE(total, 10'000u + fs::file_size(folder_ / other));
  EXPECT_EQ(cache.read(key(0)), payload);
  EXPECT_EQ(cache.read(key(10)), payload);
  EXPECT_EQ(cache.read(key(1)), std::nullopt);
  EXPECT_FALSE(fs::exists(folder_ / left));
}

TEST_F(Cache, forbidden_compilation_takes_what_the_cache_has) {
  Options forbidding = options_;
  forbidding.jit = Jit::forbid;
  EXPECT_THROW(compiles(doubled(), forbidding), Error);
  compiles();
  EXPECT_EQ(compiles(doubled(), forbidding), 0u);
}

}  // namespace
}  // namespace cosmati::test
