// Numbers lie in the byte order of the machine: an entry of another machine has another key anyway.
// SPDX-License-Identifier: Apache-2.0
#include "library/cache_entry.h"

#include <fmt/format.h>

#include <cstring>

#include "support/hash.h"

namespace cosmati::library {
namespace {

struct Header {
  char magic[8];
  std::uint32_t format, unused;
  std::uint64_t key_bytes, payload_bytes;
  char hash[32];  // of the header with this field zero, the key and the payload
};
static_assert(sizeof(Header) == 64);
constexpr char magic[8] = {'c', 'o', 's', 'm', 'a', 't', 'i', '\n'};

// The hash of an entry whose hash field is zero.
void put_hash(std::string& entry) {
  const std::string hash = support::hash128(entry);
  std::memcpy(entry.data() + offsetof(Header, hash), hash.data(), sizeof(Header::hash));
}

}  // namespace

std::string encode_entry(std::string_view key, std::string_view payload) {
  Header header = {};
  std::memcpy(header.magic, magic, sizeof magic);
  header.format = cache_format;
  header.key_bytes = key.size();
  header.payload_bytes = payload.size();
  std::string entry(reinterpret_cast<const char*>(&header), sizeof header);
  entry.append(key).append(payload);
  put_hash(entry);
  return entry;
}

Decoded decode_entry(std::string_view bytes, std::string_view key) {
  Header header = {};
  if (bytes.size() < sizeof header) return {{}, fmt::format("it ends after {} bytes", bytes.size())};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0) return {{}, "it is no entry of a cache"};
  if (header.format != cache_format) return {{}, fmt::format("its format is {}, not {}", header.format, cache_format)};
  const std::uint64_t rest = bytes.size() - sizeof header;
  if (header.key_bytes > rest || header.payload_bytes != rest - header.key_bytes)
    return {{}, fmt::format("it has {} bytes, but its header says otherwise", bytes.size())};
  std::string copy(bytes);
  std::memset(copy.data() + offsetof(Header, hash), 0, sizeof header.hash);
  put_hash(copy);
  if (copy != bytes) return {{}, "its hash is not that of its contents"};
  if (bytes.substr(sizeof header, header.key_bytes) != key) return {{}, "it is of another kernel"};
  return {bytes.substr(sizeof header + header.key_bytes), {}};
}

}  // namespace cosmati::library
