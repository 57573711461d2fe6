// CBOR, with the interface in the text form of kernel IR.
// SPDX-License-Identifier: Apache-2.0
#include "library/kernel_image.h"

#include <cosmati/error.h>
#include <nlohmann/json.hpp>

namespace cosmati::library {

using nlohmann::json;

kernel::Kernel interface_of(kernel::Kernel k) {
  for (kernel::Phase& phase : k.phases) phase.body.clear();
  k.vars.clear();
  k.stmts.clear();
  return k;
}

std::string to_bytes(const StoredKernel& stored) {
  const auto& [image, compiled] = stored;
  json j;
  j["name"] = image.name;
  j["plan"] = image.plan;
  j["explanation"] = image.explanation;
  j["domain"] = image.domain;
  j["interface"] = kernel::print(image.interface);
  j["prefix"] = compiled.prefix;
  j["object"] = json::binary(std::vector<std::uint8_t>(compiled.bytes.begin(), compiled.bytes.end()));
  std::string bytes;
  json::to_cbor(j, bytes);
  return bytes;
}

std::optional<StoredKernel> stored_kernel(std::string_view bytes) {
  try {
    const json j = json::from_cbor(bytes, true, false);
    if (!j.is_object()) return std::nullopt;
    StoredKernel stored;
    auto& [image, compiled] = stored;
    j.at("name").get_to(image.name);
    j.at("plan").get_to(image.plan);
    j.at("explanation").get_to(image.explanation);
    j.at("domain").get_to(image.domain);
    image.interface = kernel::parse(j.at("interface").get<std::string>());
    j.at("prefix").get_to(compiled.prefix);
    const json::binary_t& object = j.at("object").get_binary();
    compiled.bytes.assign(object.begin(), object.end());
    return stored;
  } catch (const json::exception&) {
  } catch (const Error&) {  // the interface is no kernel
  }
  return std::nullopt;
}

}  // namespace cosmati::library
