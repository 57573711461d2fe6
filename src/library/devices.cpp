// The devices that functions run on.
// SPDX-License-Identifier: Apache-2.0
#include <cosmati/device.h>

#include "backends/registry.h"

namespace cosmati {

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> infos;
  for (const backends::Backend& b : backends::list()) infos.push_back({b.name, b.present, b.detail});
  return infos;
}

}  // namespace cosmati
