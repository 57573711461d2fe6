// Borrowing arrays and making new ones.
// SPDX-License-Identifier: Apache-2.0
#include "bind/arrays.h"

#include <nanobind/stl/string.h>

#include <cosmati/error.h>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "bind/errors.h"

namespace cosmati::python {
namespace {

[[noreturn]] void refuse(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::bad_argument, {}, message, hint);
}

constexpr std::uint16_t one = 1;
const bool little_endian = *reinterpret_cast<const unsigned char*>(&one) == 1;

// ---- the classes of libraries that a process may have imported -----------------------------------------------------
// A class of a module that is already imported, found once; null while it is not.
class Imported {
 public:
  Imported(const char* module, const char* name) : module_(module), name_(name) {}
  bool instance(nb::handle object) {
    if (!type_) find();
    return type_ && PyObject_TypeCheck(object.ptr(), type_);
  }
  bool exactly(nb::handle object) const { return Py_TYPE(object.ptr()) == type_; }

 private:
  void find() {
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), module_);
    PyObject* type = module ? PyObject_GetAttrString(module, name_) : nullptr;
    if (!type) PyErr_Clear();
    if (type && PyType_Check(type)) type_ = reinterpret_cast<PyTypeObject*>(type);
  }
  const char* module_;
  const char* name_;
  PyTypeObject* type_ = nullptr;
};
Imported numpy_array("numpy", "ndarray");
Imported masked_array("numpy.ma", "MaskedArray");
Imported torch_tensor("torch", "Tensor");

// ---- element types -------------------------------------------------------------------------------------------------
struct DLPackName {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr std::uint8_t dlpack_code(const DTypeInfo& row) {
  if (row.klass == DTypeClass::boolean) return dlpack::code_bool;
  if (row.klass == DTypeClass::signed_int) return dlpack::code_int;
  if (row.klass == DTypeClass::unsigned_int) return dlpack::code_uint;
  if (row.bytes == 1) return row.exponent_bits == 4 ? dlpack::code_f8e4m3fn : dlpack::code_f8e5m2;
  return row.bytes == 2 && row.exponent_bits == 8 ? dlpack::code_bfloat : dlpack::code_float;
}

std::optional<DType> dtype_of(const dlpack::DataType& type) {
  for (int i = 0; type.lanes == 1 && i < dtype_count; ++i)
    if (dlpack_code(dtype_table[i]) == type.code && dtype_table[i].bytes * 8 == type.bits) return static_cast<DType>(i);
  return std::nullopt;
}

std::string dtype_names() {
  std::string names;
  for (int i = 0; i < dtype_count; ++i) names += (i ? ", " : "") + array_name(static_cast<DType>(i));
  return names;
}

// A format of the struct module that is one number of this machine's byte order.
std::optional<DType> dtype_of(const char* format, Py_ssize_t itemsize, const std::string& parameter) {
  if (!format) format = "B";
  if (*format == '@' || *format == '=' || *format == (little_endian ? '<' : '>')) {
    ++format;
  } else if (*format == '<' || *format == '>' || *format == '!') {
    if (itemsize > 1)
      refuse(parameter + " has the byte order of another machine", "convert it: x.astype(x.dtype.newbyteorder('='))");
    ++format;
  }
  if (!*format || format[1]) return std::nullopt;
  dlpack::DataType type{0, static_cast<std::uint8_t>(itemsize * 8), 1};
  if (std::strchr("bhilqn", *format))
    type.code = dlpack::code_int;
  else if (std::strchr("BHILQN", *format))
    type.code = dlpack::code_uint;
  else if (std::strchr("efd", *format))
    type.code = dlpack::code_float;
  else if (*format == '?')
    type.code = dlpack::code_bool;
  else
    return std::nullopt;
  return dtype_of(type);
}

// The types that NumPy knows from ml_dtypes only, which no buffer carries.
std::optional<DType> dtype_of_ml_dtypes(nb::handle array) {
  nb::object dtype = array.attr("dtype");
  const auto name = text_of(dtype.attr("name"));
  for (DType t : {bf16, f8e4m3, f8e5m2})
    if (name == array_name(t)) return t;
  return std::nullopt;
}

nb::handle keywords(const char* name) { return nb::make_tuple(nb::str(name)).release(); }

std::string device_name(std::int64_t type, std::int64_t id) {
  static constexpr std::pair<int, const char*> names[] = {
      {4, "opencl"}, {7, "vulkan"}, {8, "metal"}, {10, "rocm"}, {14, "oneapi"}};
  for (const auto& [value, name] : names)
    if (value == type) return std::string(name) + ":" + std::to_string(id);
  return "DLPack's device (" + std::to_string(type) + ", " + std::to_string(id) + ")";
}

// The functions that the class of an object offers, or null. One class is remembered, which is most often the next one too; by a
// weak reference, for a class of the user's holds the module that it is of, and with it what else is there.
const dlpack::ExchangeApi* exchange_api(PyTypeObject* type) {
  static nb::handle last;
  static const dlpack::ExchangeApi* of_last = nullptr;
  if (last.is_valid()) {
    const nb::object remembered = nb::steal(PyObject_CallNoArgs(last.ptr()));
    if (remembered.ptr() == reinterpret_cast<PyObject*>(type)) return of_last;
  }
  const dlpack::ExchangeApi* api = nullptr;
  nb::object capsule = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__dlpack_c_exchange_api__"));
  if (capsule.is_valid() && PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api"))
    api = static_cast<const dlpack::ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  PyErr_Clear();
  while (api && api->major != 1) api = api->previous;
  PyObject* remembered = PyWeakref_NewRef(reinterpret_cast<PyObject*>(type), nullptr);
  if (!remembered) PyErr_Clear();
  last.dec_ref();
  last = remembered;
  return of_last = api;
}

// Host memory has no stream: the argument is left out, which means None. The stream is the producer's own, so it has nothing to
// wait for. Producers that predate versions know no max_version.
nb::object export_of(nb::handle object, std::optional<void*> stream) {
  static const nb::handle name = nb::str("__dlpack__").release(), version = nb::make_tuple(1, 1).release(),
                          of_host[] = {keywords("max_version"), nb::handle()},
                          of_gpu[] = {nb::make_tuple(nb::str("stream"), nb::str("max_version")).release(), keywords("stream")};
  nb::object number;
  if (stream) number = nb::int_(reinterpret_cast<std::uintptr_t>(*stream));
  PyObject* arguments[4] = {object.ptr()};
  std::size_t count = 1;
  if (stream) arguments[count++] = number.ptr();
  arguments[count] = version.ptr();
  const nb::handle* names = stream ? of_gpu : of_host;
  nb::object capsule = nb::steal(PyObject_VectorcallMethod(name.ptr(), arguments, 1, names[0].ptr()));
  if (!capsule.is_valid() && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = nb::steal(PyObject_VectorcallMethod(name.ptr(), arguments, 1, names[1].ptr()));
  }
  return capsule;
}

// The stream on which the library of an array puts its work for a GPU now: as its functions, torch or the protocol of CUDA arrays
// say; else the driver's default one.
void* current_stream(nb::handle object, std::int64_t type, int gpu) {
  const auto legacy = reinterpret_cast<void*>(std::uintptr_t{1});  // a name that the driver and DLPack have for it
  void* stream = nullptr;
  if (const dlpack::ExchangeApi* api = exchange_api(Py_TYPE(object.ptr())); api && api->current_stream) {
    if (api->current_stream(static_cast<std::int32_t>(type), gpu, &stream) != 0) nb::raise_python_error();
  } else if (torch_tensor.instance(object)) {
    nb::object current = nb::module_::import_("torch.cuda").attr("current_stream")(gpu);
    stream = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(current.attr("cuda_stream")));
  } else if (nb::hasattr(object, "__cuda_array_interface__")) {
    nb::object named = object.attr("__cuda_array_interface__").attr("get")("stream");
    if (!named.is_none()) stream = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(named));
  }
  return stream ? stream : legacy;
}

// What a producer raised instead of exporting. An interrupt is nobody's mistake.
[[noreturn]] void unreadable(nb::python_error& error, const std::string& parameter) {
  if (!error.matches(PyExc_Exception)) throw std::move(error);
  refuse(parameter + " cannot be read through DLPack: " + text_of(error.value()));
}

}  // namespace

std::string array_name(DType dtype) {
  const DTypeInfo& row = info(dtype);
  if (row.klass == DTypeClass::boolean) return "bool";
  if (dtype == bf16) return "bfloat16";
  if (dtype == f8e4m3) return "float8_e4m3fn";
  if (dtype == f8e5m2) return "float8_e5m2";
  const char* kind = row.klass == DTypeClass::floating ? "float" : row.klass == DTypeClass::signed_int ? "int" : "uint";
  return kind + std::to_string(row.bytes * 8);
}

// ---- borrowing -----------------------------------------------------------------------------------------------------
Array::Array(nb::handle object, const std::string& parameter) {
  try {
    if (numpy_array.instance(object)) {
      if (!numpy_array.exactly(object) && masked_array.instance(object))
        refuse(parameter + " is a masked array, and a program would read what is under the mask",
               "pass " + parameter + ".filled(VALUE), or the mask as an array of its own");
      producer = Producer::numpy;
      borrow_buffer(object, parameter);
    } else if (torch_tensor.instance(object)) {
      producer = Producer::torch;
      if (nb::cast<bool>(object.attr("requires_grad")))
        refuse(parameter + " requires a gradient, and none flows through a program", "pass " + parameter + ".detach()");
      borrow_dlpack(object, parameter);
    } else if (nb::hasattr(object, "__dlpack__")) {
      borrow_dlpack(object, parameter);
    } else if (PyObject_CheckBuffer(object.ptr())) {
      borrow_buffer(object, parameter);
    } else {
      refuse(parameter + " is of type " + class_name(object) + ", and an array is needed",
             "pass a NumPy array, or anything with __dlpack__");
    }
  } catch (...) {
    release();
    throw;
  }
}

Array& Array::operator=(Array&& other) noexcept {
  if (this == &other) return *this;
  release();
  view = std::move(other.view);
  producer = other.producer;
  gpu = other.gpu;
  stream = other.stream;
  host_ = std::move(other.host_);
  buffer_ = other.buffer_;
  managed_ = other.managed_;
  held_ = std::exchange(other.held_, Held::nothing);
  return *this;
}

void Array::release() {
  switch (std::exchange(held_, Held::nothing)) {
    case Held::nothing:
      break;
    case Held::buffer:
      PyBuffer_Release(&buffer_);
      break;
    case Held::managed: {
      auto* managed = static_cast<dlpack::Managed*>(managed_);
      if (managed->deleter) managed->deleter(managed);
      break;
    }
    case Held::versioned: {
      auto* managed = static_cast<dlpack::ManagedVersioned*>(managed_);
      if (managed->deleter) managed->deleter(managed);
      break;
    }
  }
}

void Array::borrow_buffer(nb::handle object, const std::string& parameter) {
  std::optional<DType> dtype;
  if (PyObject_GetBuffer(object.ptr(), &buffer_, PyBUF_RECORDS_RO) == 0) {
    held_ = Held::buffer;
    dtype = dtype_of(buffer_.format, buffer_.itemsize, parameter);
  } else {
    PyErr_Clear();
    if (producer == Producer::numpy) dtype = dtype_of_ml_dtypes(object);
    if (dtype) {
      nb::object bits = object.attr("view")(byte_size(*dtype) == 2 ? "u2" : "u1");
      if (PyObject_GetBuffer(bits.ptr(), &buffer_, PyBUF_RECORDS_RO) != 0) nb::raise_python_error();
      held_ = Held::buffer;
    }
  }
  if (!dtype) {
    const bool named = nb::hasattr(object, "dtype");
    const auto type = named ? text_of(object.attr("dtype")) : class_name(object);
    refuse(parameter + " has elements of type " + type + ", which no program takes", "the types are " + dtype_names());
  }
  view.data = buffer_.buf;
  view.dtype = *dtype;
  view.read_only = buffer_.readonly;
  view.shape.assign(buffer_.shape, buffer_.shape + buffer_.ndim);
  view.strides.resize(buffer_.ndim);
  bool empty = false;
  for (int d = 0; d < buffer_.ndim; ++d) empty |= buffer_.shape[d] == 0;
  for (int d = 0; d < buffer_.ndim; ++d) {
    const std::int64_t bytes = buffer_.strides[d];
    view.strides[d] = bytes / buffer_.itemsize;
    if (bytes % buffer_.itemsize && buffer_.shape[d] > 1 && !empty)
      refuse(parameter + " steps by " + std::to_string(bytes) + " bytes in dimension " + std::to_string(d) +
                 ", which is no multiple of its elements of " + std::to_string(buffer_.itemsize) + " bytes",
             "pass a copy: " + parameter + ".copy()");
  }
}

void Array::borrow_dlpack(nb::handle object, const std::string& parameter) {
  if (const dlpack::ExchangeApi* api = exchange_api(Py_TYPE(object.ptr()))) {
    dlpack::ManagedVersioned* managed = nullptr;
    if (api->from_object(object.ptr(), &managed) != 0 || !managed) {
      nb::python_error error;
      unreadable(error, parameter);
    }
    take(managed, object, parameter);
    return;
  }
  // Where the data is decides before it is exported: an export may wait for a device.
  if (nb::hasattr(object, "__dlpack_device__")) {
    nb::object device;
    try {
      device = object.attr("__dlpack_device__")();
    } catch (nb::python_error& error) {
      unreadable(error, parameter);
    }
    place(nb::cast<std::int64_t>(device[0]), nb::cast<std::int64_t>(device[1]), object, parameter);
  }
  nb::object capsule = export_of(object, gpu ? std::optional(stream) : std::nullopt);
  if (!capsule.is_valid()) {
    nb::python_error error;
    unreadable(error, parameter);
  }
  const char* is = PyCapsule_CheckExact(capsule.ptr()) ? PyCapsule_GetName(capsule.ptr()) : nullptr;
  if (is && std::strcmp(is, "dltensor_versioned") == 0) {
    auto* managed = static_cast<dlpack::ManagedVersioned*>(PyCapsule_GetPointer(capsule.ptr(), is));
    if (PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned") != 0) nb::raise_python_error();
    take(managed, object, parameter);
  } else if (is && std::strcmp(is, "dltensor") == 0) {
    auto* managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), is));
    if (PyCapsule_SetName(capsule.ptr(), "used_dltensor") != 0) nb::raise_python_error();
    managed_ = managed;
    held_ = Held::managed;
    read(managed->tensor, object, parameter);
  } else {
    refuse("the __dlpack__ of " + parameter + " returns no capsule that can still be used");
  }
}

void Array::place(std::int64_t type, std::int64_t id, nb::handle object, const std::string& parameter) {
  if (type == dlpack::device_cpu || type == dlpack::device_cuda_host) return;
  if (type != dlpack::device_cuda && type != dlpack::device_cuda_managed)
    refuse(parameter + " is on " + device_name(type, id) + ", where no program runs", "copy it to the host, or to a GPU of CUDA");
  if (gpu) return;
  gpu = static_cast<int>(id);
  stream = current_stream(object, type, *gpu);
}

TensorView Array::on_host(const TensorView& there) {
  if (!gpu || there.elements() == 0) return there;
  std::int64_t lo = 0, hi = 0;
  const TensorView dense(nullptr, there.dtype, there.shape);
  const std::vector<std::int64_t>& strides = there.strides.empty() ? dense.strides : there.strides;
  for (std::size_t d = 0; d < there.shape.size(); ++d) {
    const std::int64_t steps = (there.shape[d] - 1) * strides[d];
    (steps < 0 ? lo : hi) += steps;
  }
  const std::int64_t size = byte_size(there.dtype);
  host_.resize(static_cast<std::size_t>((hi + 1 - lo) * size));
  const Device device = Device::cuda(*gpu);
  device.adopt(stream).wait();
  device.copy(host_.data(), static_cast<const char*>(there.data) + lo * size, host_.size());
  TensorView here = there;
  here.data = host_.data() - lo * size;
  return here;
}

void Array::take(dlpack::ManagedVersioned* managed, nb::handle object, const std::string& parameter) {
  managed_ = managed;
  held_ = Held::versioned;
  if (managed->major != 1)
    refuse(parameter + " is exported as version " + std::to_string(managed->major) + " of DLPack, and version 1 is understood");
  view.read_only = managed->flags & dlpack::flag_read_only;
  read(managed->tensor, object, parameter);
}

void Array::read(const dlpack::Tensor& tensor, nb::handle object, const std::string& parameter) {
  place(tensor.device.type, tensor.device.id, object, parameter);
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  if (!dtype)
    refuse(parameter + " has elements of DLPack's type (" + std::to_string(tensor.dtype.code) + ", " +
               std::to_string(tensor.dtype.bits) + " bits, " + std::to_string(tensor.dtype.lanes) +
               " lanes), which no program takes",
           "the types are " + dtype_names());
  view.dtype = *dtype;
  view.data = tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
  view.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.strides) view.strides.assign(tensor.strides, tensor.strides + tensor.ndim);
}

// ---- new arrays ----------------------------------------------------------------------------------------------------
namespace {

nb::object shape_tuple(const std::vector<std::int64_t>& shape) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t d = 0; d < shape.size(); ++d)
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(d), PyLong_FromLongLong(shape[d]));
  return tuple;
}

// The dtype objects of a library, each looked up once.
class DTypeObjects {
 public:
  template <class Find>
  nb::handle get(DType t, const Find& find) {
    nb::handle& slot = found_[static_cast<int>(t)];
    if (!slot.is_valid()) slot = nb::object(find(array_name(t))).release();
    return slot;
  }

 private:
  nb::handle found_[dtype_count];
};

nb::object numpy_empty(DType dtype, const std::vector<std::int64_t>& shape, const std::string& parameter) {
  static nb::handle empty;
  static DTypeObjects dtypes;
  if (!empty.is_valid()) {
    try {
      empty = nb::object(nb::module_::import_("numpy").attr("empty")).release();
    } catch (nb::python_error&) {
      refuse("nothing can make the array for " + parameter + ": NumPy is not installed", "pass it as out=");
    }
  }
  nb::handle type = dtypes.get(dtype, [&](const std::string& name) -> nb::object {
    nb::module_ numpy = nb::module_::import_("numpy");
    if (dtype != bf16 && dtype != f8e4m3 && dtype != f8e5m2) return numpy.attr("dtype")(name);
    try {
      return numpy.attr("dtype")(nb::module_::import_("ml_dtypes").attr(name.c_str()));
    } catch (nb::python_error&) {
      refuse(parameter + " is " + std::string(cosmati::name(dtype)) + ", which NumPy knows only with the package ml_dtypes",
             "install ml_dtypes, or pass " + parameter + " as out=");
    }
  });
  nb::object shape_object = shape_tuple(shape);
  PyObject* arguments[] = {shape_object.ptr(), type.ptr()};
  nb::object made = nb::steal(PyObject_Vectorcall(empty.ptr(), arguments, 2, nullptr));
  if (!made.is_valid()) nb::raise_python_error();
  return made;
}

nb::object torch_empty(DType dtype, const std::vector<std::int64_t>& shape, std::optional<int> gpu,
                       const std::string& parameter) {
  static const nb::handle torch = nb::module_::import_("torch").release();
  static const nb::handle empty = nb::object(torch.attr("empty")).release(),
                          names = nb::make_tuple(nb::str("dtype"), nb::str("device")).release();
  static DTypeObjects dtypes;
  nb::handle type = dtypes.get(dtype, [&](const std::string& name) -> nb::object {
    if (!nb::hasattr(torch, name.c_str()))
      refuse(parameter + " is " + std::string(cosmati::name(dtype)) + ", which this torch does not know");
    return torch.attr(name.c_str());
  });
  static const nb::handle host = nb::object(torch.attr("device")("cpu")).release();
  static std::map<int, nb::handle> gpus;
  nb::handle device = host;
  if (gpu) {
    nb::handle& slot = gpus[*gpu];
    if (!slot.is_valid()) slot = nb::object(torch.attr("device")("cuda", *gpu)).release();
    device = slot;
  }
  nb::object shape_object = shape_tuple(shape);
  PyObject* arguments[] = {shape_object.ptr(), type.ptr(), device.ptr()};
  nb::object made = nb::steal(PyObject_Vectorcall(empty.ptr(), arguments, 1, names.ptr()));
  if (!made.is_valid()) nb::raise_python_error();
  return made;
}

// By the array API, on the device of an array of the same library.
nb::object empty_of(nb::handle like, DType dtype, const std::vector<std::int64_t>& shape, const std::string& parameter) {
  if (!like.is_valid() || !nb::hasattr(like, "__array_namespace__"))
    refuse("nothing can make the array for " + parameter + " beside those on a GPU: their library has no __array_namespace__",
           "pass it as out=");
  nb::object library = like.attr("__array_namespace__")();
  const std::string type = array_name(dtype);
  if (!nb::hasattr(library, type.c_str()))
    refuse(parameter + " is " + std::string(cosmati::name(dtype)) + ", which the library of the first array does not know",
           "pass it as out=");
  nb::dict how;
  how["dtype"] = library.attr(type.c_str());
  how["device"] = like.attr("device");
  return library.attr("empty")(shape_tuple(shape), **how);
}

}  // namespace

std::string device_name(std::optional<int> gpu) { return gpu ? "cuda:" + std::to_string(*gpu) : "the host"; }

nb::object allocate(DType dtype, const std::vector<std::int64_t>& shape, const Beside& beside, const std::string& parameter) {
  if (beside.producer == Producer::torch) return torch_empty(dtype, shape, beside.gpu, parameter);
  return beside.gpu ? empty_of(beside.like, dtype, shape, parameter) : numpy_empty(dtype, shape, parameter);
}

nb::object as_array_of(const Beside& beside, nb::object made) {
  const nb::handle like = beside.like;
  if (beside.gpu || !like.is_valid() || numpy_array.instance(like) || torch_tensor.instance(like) ||
      !nb::hasattr(like, "__array_namespace__"))
    return made;
  return like.attr("__array_namespace__")().attr("asarray")(made);
}

}  // namespace cosmati::python
