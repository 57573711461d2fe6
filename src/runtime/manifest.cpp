// The kernel's interface stands in the text form of kernel IR, the program in its own language: neither has a second form here.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/hash.h"

namespace cosmati::runtime {
namespace {

using nlohmann::json;

json without_code(const Manifest& m) {
  json aliases = json::array();
  for (const auto& [in, out] : m.facts.aliases) aliases.push_back({in.index, out.index});
  return {{"format", package_format},
          {"program", m.program},
          {"target", {{"device", m.device}, {"architecture", m.architecture}, {"features", m.features}}},
          {"facts", {{"unit_stride", m.facts.unit_stride}, {"aliases", std::move(aliases)}}},
          {"kernel", kernel::print(m.image.interface)},
          {"name", m.image.name},
          {"plan", m.image.plan},
          {"explanation", m.image.explanation},
          {"domain", m.image.domain}};
}

json whole(const Manifest& m) {
  json j = without_code(m);
  j["code"] = {{"file", m.file}, {"hash", m.hash}};
  return j;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorCode::bad_file, Where{path_, 0, 0}, message, "package the program again");
  }
  template <class T>
  void read(const json& j, const char* field, T& into) const {
    const json& value = at(j, field);
    try {
      value.get_to(into);
    } catch (const json::exception&) {
      refuse(fmt::format("its field `{}` holds something else than a manifest does", field));
    }
  }
  const json& at(const json& j, const char* field) const {
    if (!j.is_object() || !j.contains(field)) refuse(fmt::format("it has no field `{}`", field));
    return j[field];
  }

 private:
  const std::string& path_;
};

}  // namespace

std::string to_json(const Manifest& manifest) { return whole(manifest).dump(1) + "\n"; }

Manifest manifest_of(const std::string& text, const std::string& path) {
  const Reader reader(path);
  json j;
  try {
    j = json::parse(text);
  } catch (const json::parse_error& e) {
    reader.refuse(fmt::format("it is damaged or cut short at byte {} of {}", e.byte, text.size()));
  }
  int format = 0;
  reader.read(j, "format", format);
  if (format != package_format)
    reader.refuse(fmt::format("it is a package of format {}, and this library reads format {}", format, package_format));
  Manifest m;
  reader.read(j, "program", m.program);
  reader.read(j, "name", m.image.name);
  reader.read(j, "plan", m.image.plan);
  reader.read(j, "explanation", m.image.explanation);
  reader.read(j, "domain", m.image.domain);
  const json& target = reader.at(j, "target");
  reader.read(target, "device", m.device);
  reader.read(target, "architecture", m.architecture);
  reader.read(target, "features", m.features);
  const json& facts = reader.at(j, "facts");
  reader.read(facts, "unit_stride", m.facts.unit_stride);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> aliases;
  reader.read(facts, "aliases", aliases);
  for (const auto& [in, out] : aliases) m.facts.aliases.emplace(ir::TensorId{in}, ir::TensorId{out});
  const json& code = reader.at(j, "code");
  reader.read(code, "file", m.file);
  reader.read(code, "hash", m.hash);
  std::string interface;
  reader.read(j, "kernel", interface);
  try {
    m.image.interface = kernel::parse(interface);
  } catch (const Error& e) {
    reader.refuse(fmt::format("its field `kernel` is none: {}", e.message));
  }
  if (whole(m) != j) reader.refuse("it holds something that no manifest does");
  return m;
}

std::string identity(const Manifest& manifest, const ir::Program& program) {
  std::string text = without_code(manifest).dump();
  for (const ir::Axis& axis : program.axes) text += "\naxis " + axis.name;
  for (const ir::Tensor& tensor : program.tensors) text += "\ntensor " + tensor.name;
  for (const ir::Scalar& scalar : program.scalars) text += "\nscalar " + scalar.name;
  return support::hash128(text);
}

std::string symbol_prefix(const std::string& identity) { return "cosmati_" + identity; }

}  // namespace cosmati::runtime
