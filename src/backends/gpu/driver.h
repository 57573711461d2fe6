// driver: the functions of the CUDA driver that are used here, found when they are first needed, so that one library works with
// and without it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <optional>
#include <string>

namespace cosmati::gpu {

// As the driver declares them.
using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using StreamHandle = struct StreamTag*;

struct Driver {
  Result (*init)(unsigned flags);
  Result (*device_count)(int* count);
  Result (*device)(DeviceNumber* device, int index);
  Result (*device_name)(char* name, int length, DeviceNumber device);
  Result (*device_attribute)(int* value, int attribute, DeviceNumber device);
  Result (*retain_context)(Context* context, DeviceNumber device);
  Result (*release_context)(DeviceNumber device);
  Result (*push_context)(Context context);
  Result (*pop_context)(Context* context);
  Result (*synchronize)(StreamHandle stream);
  Result (*load_module)(Module* module, const void* image);
  Result (*unload_module)(Module module);
  Result (*function)(Function* function, Module module, const char* name);
  Result (*function_attribute)(int* value, int attribute, Function function);
  Result (*set_function_attribute)(Function function, int attribute, int value);
  Result (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters, void** extra);
  Result (*allocate)(Address* address, std::size_t bytes);
  Result (*free)(Address address);
  Result (*allocate_on)(Address* address, std::size_t bytes, StreamHandle stream);
  Result (*free_on)(Address address, StreamHandle stream);
  Result (*copy)(Address to, Address from, std::size_t bytes);  // of the host's memory too
  Result (*pointer_attribute)(void* value, int attribute, Address pointer);
  Result (*error_text)(Result result, const char** text);
};

// Why there is none on this machine; nothing: there is, with a device. Never throws.
std::optional<std::string> absent();
// Where present.
const Driver& driver();

// Throws Error{backend_absent} with what was being done and what the driver says.
void require(Result result, const char* doing);

}  // namespace cosmati::gpu
