// The disk cache: a directory of self-checked files that any number of processes share. Whatever is wrong with it costs one
// warning and never a launch.
//   HASH.kernel   an entry, published by one rename
//   lock          byte ranges of it are locked: one for each key that is being compiled. A lock ends with its process.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <cosmati/runtime.h>

namespace cosmati::library {

// Thread-safe.
class DiskCache {
 public:
  // The one of these options and of the environment; null where none is wanted or none is possible.
  static std::shared_ptr<DiskCache> of(const Options& options);

  DiskCache(std::string directory, std::int64_t limit);

  std::optional<std::string> read(const std::string& key);
  // Atomically; the last of several writers wins. Removes what is over the limit, least recently used first.
  void write(const std::string& key, const std::string& payload);
  // An entry that was read is not what it should be. Warns once until it is written again.
  void damaged(const std::string& key, const std::string& problem);

  // The right to compile a key, among all processes and threads. Where the directory cannot lock, everybody has it.
  class Lock {
   public:
    explicit Lock(int file = -1, std::int64_t at = 0) : file_(file), at_(at) {}
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    const int file_;
    const std::int64_t at_;
  };
  // Waits for whoever holds it, up to a minute: then it is better to compile twice.
  std::unique_ptr<Lock> lock(const std::string& key);

 private:
  std::string path_of(const std::string& key) const;
  bool make_directory();
  void unusable(const std::string& why);
  void sweep();

  const std::string directory_;
  const std::int64_t limit_;
  std::set<std::string> warned_;     // entries; "" for the directory
  std::int64_t unswept_bytes_ = -1;  // written since the last sweep; below 0 before the first
};

}  // namespace cosmati::library
