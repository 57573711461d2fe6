// CBOR, with the interface in the text form of kernel IR.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_image.h"

#include <cosmati/error.h>
#include <nlohmann/json.hpp>

namespace cosmati::runtime {

using nlohmann::json;

kernel::Kernel interface_of(kernel::Kernel k) {
  for (kernel::Phase& phase : k.phases) phase.body.clear();
  k.vars.clear();
  k.stmts.clear();
  return k;
}

std::string to_bytes(const KernelImage& image) {
  json j;
  j["name"] = image.name;
  j["plan"] = image.plan;
  j["explanation"] = image.explanation;
  j["domain"] = image.domain;
  j["interface"] = kernel::print(image.interface);
  j["prefix"] = image.object.prefix;
  j["object"] = json::binary(std::vector<std::uint8_t>(image.object.bytes.begin(), image.object.bytes.end()));
  std::string bytes;
  json::to_cbor(j, bytes);
  return bytes;
}

std::optional<KernelImage> image_of(std::string_view bytes) {
  try {
    const json j = json::from_cbor(bytes, true, false);
    if (!j.is_object()) return std::nullopt;
    KernelImage image;
    j.at("name").get_to(image.name);
    j.at("plan").get_to(image.plan);
    j.at("explanation").get_to(image.explanation);
    j.at("domain").get_to(image.domain);
    image.interface = kernel::parse(j.at("interface").get<std::string>());
    j.at("prefix").get_to(image.object.prefix);
    const json::binary_t& object = j.at("object").get_binary();
    image.object.bytes.assign(object.begin(), object.end());
    return image;
  } catch (const json::exception&) {
  } catch (const Error&) {  // the interface is no kernel
  }
  return std::nullopt;
}

}  // namespace cosmati::runtime
