// Files, locks and warnings of the disk cache.
// SPDX-License-Identifier: Apache-2.0
#include "library/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>
#include <thread>
#include <vector>

#include "library/cache_directory.h"
#include "library/cache_entry.h"
#include "runtime/log.h"
#include "support/fork.h"
#include "support/hash.h"

namespace cosmati::library {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::int64_t default_limit = std::int64_t{256} << 20;
constexpr std::int64_t largest_entry = std::int64_t{1} << 30;
constexpr std::chrono::seconds longest_wait{60};
constexpr std::chrono::hours abandoned{1};  // a temporary file of that age has lost its writer
constexpr std::int64_t sweep_lock = 0;      // keys lock other bytes
constexpr const char* entry_suffix = ".kernel";
constexpr const char* temporary_suffix = ".tmp";

// Whether a file was made by this cache: its name begins with a hash. Others may lie in the folder too.
bool is_own(const std::string& name) {
  constexpr std::size_t hash_digits = 32;
  return name.size() > hash_digits && name[hash_digits] == '.' && name.find_first_not_of("0123456789abcdef") == hash_digits;
}

std::string error_text(int code) { return std::generic_category().message(code); }

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0600)) {}
  explicit File(int fd) : fd_(fd) {}
  ~File() { close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  bool close() {
    const int fd = release();
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

// Why a file is none to take code from, or nothing.
std::string untrusted(const struct stat& facts) {
  if (!S_ISREG(facts.st_mode)) return "it is no file";
  if (facts.st_uid != 0 && facts.st_uid != ::geteuid()) return fmt::format("it belongs to the user {}", facts.st_uid);
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write it";
  if (facts.st_size > largest_entry) return fmt::format("it has {} bytes", facts.st_size);
  return "";
}

std::string read_all(int fd, std::int64_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

// Locks belong to the open file, not to the process: threads exclude each other too. They end when the file is closed, at the
// latest with the process.
bool set_lock(int fd, std::int64_t at, short type) {
#ifdef F_OFD_SETLK
  struct flock range = {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = at;
  range.l_len = 1;
  return ::fcntl(fd, F_OFD_SETLK, &range) == 0;
#else
  static_cast<void>(fd), static_cast<void>(at), static_cast<void>(type);
  errno = ENOSYS;
  return false;
#endif
}

const char* set_variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

// The directory these options and the environment name; empty: none.
std::string directory_of(const Options& options) {
  if (options.cache.text()) return *options.cache.text();
  if (const std::string directory = cache_directory(); !directory.empty()) return directory;
  if (std::getenv("COSMATI_CACHE_DIR")) return "";
  static std::once_flag once;
  std::call_once(once, [] {
    runtime::log(LogLevel::warning, "no disk cache: neither COSMATI_CACHE_DIR, XDG_CACHE_HOME nor HOME is set to a directory");
  });
  return "";
}

std::int64_t limit_of(const Options& options) {
  if (options.cache_limit > 0) return options.cache_limit;
  const char* text = set_variable("COSMATI_CACHE_LIMIT");
  if (!text) return default_limit;
  std::int64_t limit = 0;
  const char* end = text + std::strlen(text);
  const auto [at, failure] = std::from_chars(text, end, limit);
  if (failure == std::errc{} && at == end && limit > 0) return limit;
  static std::once_flag once;
  std::call_once(once, [&] {
    runtime::log(LogLevel::warning,
                 fmt::format("COSMATI_CACHE_LIMIT is '{}', not a number of bytes: {} is taken", text, default_limit));
  });
  return default_limit;
}

}  // namespace

std::shared_ptr<DiskCache> DiskCache::of(const Options& options) {
  const std::string named = directory_of(options);
  if (named.empty()) return nullptr;
  if (named.find('\0') != named.npos) {
    runtime::log(LogLevel::warning, "no disk cache: the name of its directory has a zero byte");
    return nullptr;
  }
  std::error_code unknown;
  const fs::path full = fs::absolute(named, unknown);
  const std::pair<std::string, std::int64_t> key = {unknown ? named : full.lexically_normal().string(), limit_of(options)};
  static auto* const all = new std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<DiskCache>>;
  std::lock_guard lock(support::short_mutex(all));
  auto& slot = (*all)[key];
  if (!slot) slot = std::make_shared<DiskCache>(key.first, key.second);
  return slot;
}

DiskCache::DiskCache(std::string directory, std::int64_t limit) : directory_(std::move(directory)), limit_(limit) {}

std::string DiskCache::path_of(const std::string& key) const { return directory_ + "/" + support::hash128(key) + entry_suffix; }

void DiskCache::unusable(const std::string& why) {
  {
    std::lock_guard lock(support::short_mutex(this));
    if (!warned_.insert("").second) return;
  }
  runtime::log(LogLevel::warning,
               fmt::format("the disk cache {} cannot be used: {}; kernels are compiled for this process only", directory_, why));
}

void DiskCache::damaged(const std::string& key, const std::string& problem) {
  const std::string path = path_of(key);
  {
    std::lock_guard lock(support::short_mutex(this));
    if (!warned_.insert(path).second) return;
  }
  runtime::log(LogLevel::warning, fmt::format("the cached kernel {} is ignored: {}", path, problem));
}

std::optional<std::string> DiskCache::read(const std::string& key) {
  const File file(path_of(key), O_RDONLY);
  if (!file) {
    // Nothing there, or a directory that was never made, is the ordinary case.
    if (errno != ENOENT) unusable(error_text(errno));
    return std::nullopt;
  }
  struct stat facts = {};
  std::string problem = ::fstat(file.get(), &facts) == 0 ? untrusted(facts) : error_text(errno);
  const std::string bytes = problem.empty() ? read_all(file.get(), facts.st_size) : "";
  Decoded entry;
  if (problem.empty()) {
    entry = decode_entry(bytes, key);
    problem = entry.problem;
  }
  if (!problem.empty()) {
    damaged(key, problem);
    return std::nullopt;
  }
  ::futimens(file.get(), nullptr);  // used now; where that may not be written, it counts as older
  return std::string(entry.payload);
}

bool DiskCache::make_directory() {
  if (::mkdir(directory_.c_str(), 0700) == 0 || errno == EEXIST) return true;
  std::error_code problem;
  fs::create_directories(fs::path(directory_).parent_path(), problem);
  if (!problem && (::mkdir(directory_.c_str(), 0700) == 0 || errno == EEXIST)) return true;
  unusable(problem ? problem.message() : error_text(errno));
  return false;
}

std::unique_ptr<DiskCache::Lock> DiskCache::lock(const std::string& key) {
  if (!make_directory()) return std::make_unique<Lock>();
  File file(directory_ + "/lock", O_RDWR | O_CREAT);
  if (!file) {
    unusable(error_text(errno));
    return std::make_unique<Lock>();
  }
  std::uint64_t bits = 0;
  const std::string hash = support::hash(key);
  std::from_chars(hash.data(), hash.data() + hash.size(), bits, 16);
  const auto at = static_cast<std::int64_t>(bits >> 2) + 1;
  const auto start = steady_clock::now();
  for (std::chrono::microseconds pause{200};; pause = std::min(pause * 2, std::chrono::microseconds{4000})) {
    if (set_lock(file.get(), at, F_WRLCK)) return std::make_unique<Lock>(file.release(), at);
    if ((errno != EAGAIN && errno != EACCES && errno != EINTR) || steady_clock::now() - start > longest_wait)
      return std::make_unique<Lock>();
    std::this_thread::sleep_for(pause);
  }
}

DiskCache::Lock::~Lock() {
  if (file_ < 0) return;
  // A forked child may hold the same open file: closing alone would leave the lock with it.
  set_lock(file_, at_, F_UNLCK);
  ::close(file_);
}

void DiskCache::write(const std::string& key, const std::string& payload) {
  if (!make_directory()) return;
  const std::string path = path_of(key), bytes = encode_entry(key, payload);
  std::string temporary = path + ".XXXXXX" + temporary_suffix;
  File file(::mkostemps(temporary.data(), static_cast<int>(std::strlen(temporary_suffix)), O_CLOEXEC));
  const bool made = static_cast<bool>(file);
  bool done = made && write_all(file.get(), bytes);
  int failure = errno;
  if (done && !file.close()) {
    done = false;
    failure = errno;
  }
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0) {
    done = false;
    failure = errno;
  }
  if (!done) {
    if (made) ::unlink(temporary.c_str());
    return unusable(error_text(failure));
  }
  {
    std::lock_guard lock(support::short_mutex(this));
    warned_.erase(path);
    const bool first = unswept_bytes_ < 0;
    unswept_bytes_ = (first ? 0 : unswept_bytes_) + static_cast<std::int64_t>(bytes.size());
    // Looking at every file takes a while when there are many.
    if (!first && unswept_bytes_ <= limit_ / 32) return;
    unswept_bytes_ = 0;
  }
  sweep();
}

void DiskCache::sweep() {
  const File file(directory_ + "/lock", O_RDWR | O_CREAT);
  if (!file || !set_lock(file.get(), sweep_lock, F_WRLCK)) return;  // another process is at it
  struct Entry {
    fs::file_time_type used;
    std::int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  std::error_code problem;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(directory_, problem), end; !problem && at != end; at.increment(problem)) {
    std::error_code gone;
    const fs::path path = at->path();
    if (!is_own(path.filename().string())) continue;
    const Entry entry{fs::last_write_time(path, gone), static_cast<std::int64_t>(fs::file_size(path, gone)), path};
    if (gone) continue;
    if (path.extension() == temporary_suffix) {
      if (now - entry.used > abandoned) ::unlink(path.c_str());
    } else if (path.extension() == entry_suffix) {
      total += entry.bytes;
      entries.push_back(entry);
    }
  }
  if (total > limit_) {
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
    for (const Entry& entry : entries) {
      if (total <= limit_ - limit_ / 8) break;
      ::unlink(entry.path.c_str());
      total -= entry.bytes;
    }
  }
  set_lock(file.get(), sweep_lock, F_UNLCK);
}

}  // namespace cosmati::library
