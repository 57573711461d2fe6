// The binary interface of DLPack: the plain form, the versioned one of DLPack 1, and the table of functions of a library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cosmati::python::dlpack {

struct Device {
  std::int32_t type;
  std::int32_t id;
};
inline constexpr std::int32_t device_cpu = 1, device_cuda = 2, device_cuda_host = 3, device_cuda_managed = 13;

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
inline constexpr std::uint8_t code_int = 0, code_uint = 1, code_float = 2, code_bfloat = 4, code_bool = 6, code_f8e4m3fn = 10,
                              code_f8e5m2 = 12;

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: dense row-major
  std::uint64_t byte_offset;
};

struct Managed {
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

inline constexpr std::uint64_t flag_read_only = 1;
struct ManagedVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

// What a library offers consumers in C, as the capsule type.__dlpack_c_exchange_api__: an export without a call of Python.
struct ExchangeApi {
  std::uint32_t major, minor;
  ExchangeApi* previous;  // of an earlier major version
  int (*allocate)(Tensor* prototype, ManagedVersioned** out, void* context, void (*fail)(void*, const char*, const char*));
  int (*from_object)(void* object, ManagedVersioned** out);  // not 0: a Python exception is set
  int (*to_object)(ManagedVersioned* tensor, void** out);
  int (*borrow_object)(void* object, Tensor* out);
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** out);  // on which the library puts its work
};

}  // namespace cosmati::python::dlpack
