// cosmati.Function: calls, plans and judgements.
// SPDX-License-Identifier: Apache-2.0
#include "bind/function.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "bind/call.h"
#include "bind/errors.h"
#include "bind/judge.h"

namespace cosmati::python {
namespace {

using Kind = Program::Parameter::Kind;

// The names in "[b, (g, r), rows..., i + 2]".
std::vector<std::string> axes_in(const std::string& shape) {
  std::vector<std::string> axes;
  std::string word;
  for (char c : shape + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
    } else {
      if (!word.empty() && !std::isdigit(static_cast<unsigned char>(word[0]))) axes.push_back(word);
      word.clear();
    }
  }
  return axes;
}

std::string declaration(const Program::Parameter& p) {
  return p.name + ": " + p.type + p.shape + (p.has_default ? " = ..." : "");
}

// ---- programs written in Python ------------------------------------------------------------------------------------
// The functions that this thread is capturing programs from.
thread_local std::vector<PyObject*> capturing;

Program capture(const std::string& name, PyObject* body) {
  nb::object code = nb::handle(body).attr("__code__");
  const Where where{nb::cast<std::string>(code.attr("co_filename")), nb::cast<int>(code.attr("co_firstlineno")), 1};
  cosmati::detail::CalledFrom at(where);
  return cosmati::program(name.c_str(), [body, name] {
    nb::gil_scoped_acquire held;
    if (std::find(capturing.begin(), capturing.end(), body) != capturing.end())
      throw Error(ErrorCode::not_supported, user_place(), "the program " + name + " is used in its own body");
    capturing.push_back(body);
    struct Pop {
      ~Pop() { capturing.pop_back(); }
    } pop;
    calling_python([&] { return nb::handle(body)(); });
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
#if PY_VERSION_HEX >= 0x03090000
  Py_VISIT(Py_TYPE(self));
#endif
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PyFunction>(self)->body.ptr());
  return 0;
}
int clear(PyObject* self) {
  nb::inst_ptr<PyFunction>(self)->body.reset();
  return 0;
}
PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

// What load() and program() were told; the keys are those of cosmati._programs.
struct Told {
  explicit Told(nb::dict told) {
    device = nb::cast<std::string>(told["device"]);
    threads = nb::cast<int>(told["threads"]);
    options.knobs = nb::cast<std::map<std::string, std::string>>(told["knobs"]);
    options.plan = nb::cast<std::optional<std::string>>(told["plan"]);
    if (const auto cache = nb::cast<std::optional<std::string>>(told["cache"])) options.cache = *cache;
    options.jit = nb::cast<bool>(told["jit"]) ? Jit::allow : Jit::forbid;
  }
  std::string device;
  int threads;
  Options options;
};

// ---- judgement -----------------------------------------------------------------------------------------------------
// The elements of a view, dense.
std::vector<char> dense_copy(const TensorView& view) {
  const std::size_t size = byte_size(view.dtype);
  std::vector<char> copy(static_cast<std::size_t>(view.elements()) * size);
  if (copy.empty()) return copy;
  std::vector<std::int64_t> at(view.shape.size(), 0);
  std::int64_t stride = 1;
  std::vector<std::int64_t> strides = view.strides;
  if (strides.empty()) {
    strides.resize(view.shape.size());
    for (std::size_t d = view.shape.size(); d-- > 0; stride *= view.shape[d]) strides[d] = stride;
  }
  for (char* to = copy.data();; to += size) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    std::memcpy(to, static_cast<const char*>(view.data) + offset * static_cast<std::int64_t>(size), size);
    std::size_t d = at.size();
    while (d > 0 && ++at[d - 1] == view.shape[d - 1]) at[--d] = 0;
    if (d == 0) return copy;
  }
}

// Runs on copies of what is written, and holds the result against the oracle.
std::vector<Judgement> check(PyFunction& self, nb::args args, nb::kwargs kwargs) {
  Call call(self, args, kwargs);
  call.make_outputs();
  call.bring_to_host();
  const Arguments before = call.arguments();
  return without_gil([&] {
    Arguments after = before;
    std::vector<std::vector<char>> copies;
    const auto parameters = self.program().parameters();
    for (auto& [name, argument] : after) {
      const auto p =
          std::find_if(parameters.begin(), parameters.end(), [&, &name = name](const auto& p) { return p.name == name; });
      if (p->kind != Kind::inout && p->kind != Kind::out) continue;
      auto& view = std::get<TensorView>(argument);
      copies.push_back(dense_copy(view));
      view = TensorView(copies.back().data(), view.dtype, view.shape);
    }
    call.function()(after);
    return judge(self.program(), before, after, interruptible());
  });
}

nb::object run(PyFunction& self, nb::args args, nb::kwargs kwargs) {
  Call call(self, args, kwargs);
  call.make_outputs();
  without_gil([&] { call.run(); });
  return call.results();
}

template <class Ask>
auto ask(PyFunction& self, nb::args args, nb::kwargs kwargs, const Ask& question) {
  Call call(self, args, kwargs);
  call.sketch_outputs();
  const Arguments arguments = call.arguments();
  return without_gil([&] { return question(call.function(), arguments); });
}

}  // namespace

PyFunction::PyFunction(Program program, nb::object body, std::string device, int threads, Options options)
    : body(std::move(body)),
      program_(std::move(program)),
      device_(std::move(device)),
      threads_(threads),
      options_(std::move(options)) {
  captured_ = this->body.is_valid();
}

// The garbage collector takes the body of a function that nothing reaches any more, but a finalizer may still call it.
void PyFunction::need_body() const {
  if (captured_ && !body.is_valid())
    throw Error(ErrorCode::not_supported, {}, "this program is used after the garbage collector took it apart");
}

std::string PyFunction::name() const {
  need_body();
  return without_gil([&] { return program_.name(); });
}

const PyFunction::Signature& PyFunction::signature() {
  if (signature_) return *signature_;
  need_body();
  // A capture runs Python, so another thread may be here at the same time: the first result stays.
  Signature found;
  found.declared = without_gil([&] { return program_.parameters(); });
  for (std::size_t i = 0; i < found.declared.size(); ++i) {
    const Program::Parameter& p = found.declared[i];
    found.parameters.push_back({p.name, nb::steal(PyUnicode_InternFromString(p.name.c_str())), p.kind, axes_in(p.shape)});
    if (p.kind == Kind::in || p.kind == Kind::inout) found.inputs.push_back(i);
    if (p.kind == Kind::out) found.outs.push_back(i);
  }
  if (!signature_) signature_ = std::move(found);
  return *signature_;
}

const PyFunction::OnDevice& PyFunction::on(std::optional<std::string> device, std::optional<int> gpu,
                                           const std::string& parameter) {
  need_body();
  std::string wanted = device ? *device : device_;
  if (gpu) {
    const std::string there = "cuda:" + std::to_string(*gpu);
    if (wanted.empty() || wanted == "cuda") wanted = there;
    if (wanted != there)
      throw Error(ErrorCode::bad_argument, {}, parameter + " is on " + there + ", and the program is to run on " + wanted,
                  "leave device= out, or copy the arrays to the host");
  }
  if (auto it = functions_.find(wanted); it != functions_.end()) return it->second;
  Device found = Device::cpu();
  try {
    found = wanted.empty() ? Device::pick() : Device::named(wanted);
  } catch (const Error& error) {
    if (!gpu) throw;
    throw Error(error.code, {}, parameter + " is on " + wanted + ", and " + error.message, "copy it to the host");
  }
  if (found.name() == "cpu" && threads_ != 0) found = Device::cpu(threads_);
  return functions_.emplace(wanted, OnDevice{found, cosmati::Function(program_, found, options_)}).first->second;
}

std::size_t PyFunction::compiles() const {
  std::size_t sum = 0;
  for (const auto& [name, on] : functions_) sum += on.function.compiles();
  return sum;
}

std::string PyFunction::repr() {
  std::string ins, outs;
  for (const Program::Parameter& p : signature().declared) {
    std::string& list = p.kind == Kind::out ? outs : ins;
    list += (list.empty() ? "" : ", ") + std::string(p.kind == Kind::inout ? "inout " : "") + declaration(p);
  }
  return "<cosmati.Function " + name() + "(" + ins + ")" + (outs.empty() ? "" : " -> " + outs) + ">";
}

void bind_function(nb::module_& m) {
  bind_judge(m);
  nb::class_<Program::Parameter>(m, "Parameter", "One parameter of a program, as it was declared.")
      .def_prop_ro("name", [](const Program::Parameter& p) { return p.name; })
      .def_prop_ro(
          "kind",
          [](const Program::Parameter& p) {
            constexpr const char* names[] = {"in", "out", "inout", "scalar"};
            return names[static_cast<int>(p.kind)];
          },
          "\"in\", \"out\", \"inout\" or \"scalar\".")
      .def_prop_ro(
          "type", [](const Program::Parameter& p) { return p.type; }, "Its dtype, as \"f32\", or the name of a dtype variable.")
      .def_prop_ro(
          "shape", [](const Program::Parameter& p) { return p.shape; }, "Its dimensions, as \"[row, col]\"; empty of a scalar.")
      .def_prop_ro(
          "has_default", [](const Program::Parameter& p) { return p.has_default; }, "Whether a scalar may be left out.")
      .def("__repr__", [](const Program::Parameter& p) { return "<cosmati.Parameter " + declaration(p) + ">"; });

  nb::class_<Judgement>(m, "Judgement", "One output held against the float64 oracle.")
      .def_ro("output", &Judgement::output, "The name of the output.")
      .def_ro("ok", &Judgement::ok, "Whether every element is within its bound.")
      .def_ro("max_abs", &Judgement::max_abs, "The largest absolute difference from the oracle.")
      .def_ro("max_rel", &Judgement::max_rel, "The largest relative difference from the oracle.")
      .def_ro("bound", &Judgement::bound, "The bound of the element where the absolute difference is largest.")
      .def_prop_ro(
          "at", [](const Judgement& j) { return nb::tuple(nb::cast(j.at)); }, nb::sig("def at(self) -> tuple[int, ...]"),
          "The index of the first element out of bounds.")
      .def_ro("got", &Judgement::got, "The value there.")
      .def_ro("expected", &Judgement::expected, "The oracle's value there.")
      .def_ro("unjudged", &Judgement::unjudged,
              "How many elements have a bound above their value, so that `ok` says nothing of them.")
      .def_ro("elements", &Judgement::elements, "How many elements the output has.")
      .def_prop_ro("judged", &Judgement::judged, "Whether `ok` says something of at least half of the elements.")
      .def("__bool__", [](const Judgement& j) { return j.ok; })
      .def("__repr__", [](const Judgement& j) {
        const char* verdict = !j.ok ? "out of bounds" : j.judged() ? "ok" : "unjudged";
        nb::object text = nb::str("<cosmati.Judgement {}: {}, max_abs {:.3g}, max_rel {:.3g}, bound {:.3g}>");
        return nb::cast<std::string>(text.attr("format")(j.output, verdict, j.max_abs, j.max_rel, j.bound));
      });

  using KnobChoices = cosmati::Function::KnobChoices;
  nb::class_<KnobChoices>(m, "KnobChoices", "A knob of a program, and values worth trying.")
      .def_ro("knob", &KnobChoices::knob, "Its name.")
      .def_ro("values", &KnobChoices::values, "Values that are legal while the other knobs are automatic.")
      .def_ro("automatic", &KnobChoices::automatic, "What an absent knob means, where that is one value.")
      .def("__repr__", [](const KnobChoices& k) {
        std::string values;
        for (const std::string& value : k.values) values += (values.empty() ? "" : " | ") + value;
        return "<cosmati.KnobChoices " + k.knob + ": " + values + ">";
      });

  nb::class_<PyFunction>(m, "Function", nb::type_slots(slots),
                         R"(A program that is called with arrays.

Arrays are NumPy's, or anything with __dlpack__ in the host's memory or on a GPU of CUDA, of any strides. Those of a GPU are
computed there, on the stream on which their library works then, which is not waited for. The inputs (in and inout) are passed by position in
declared order or by name, scalars by name; a scalar with a default may be left out. Outputs are returned in declared order: one
array, or a tuple of several, made by the library of the first input. `out=` is an array to write, a tuple of
one for each output (None: made), or a dict of arrays by the names of outputs. An inout array is written in place. `device=` is "cpu", "cuda", "cuda:1",
"sim" or "oracle"; arrays of the host are moved to a GPU and back. An axis of an output that no argument has takes its
extent by its name: f(x, h=16).

The GIL is released while it compiles and runs; one Function may be called by several threads.

Raises Error, naming the argument and the rule, and then nothing is written.)")
      .def("__call__", run, nb::arg("args"), nb::arg("kwargs"),
           nb::sig("def __call__(self, *args: typing.Any, **kwargs: typing.Any) -> typing.Any"),
           "Run, and return the outputs in declared order: one array, a tuple of several, or None.")
      .def(
          "check", [](PyFunction& self, nb::args args, nb::kwargs kwargs) { return check(self, args, kwargs); }, nb::arg("args"),
          nb::arg("kwargs"), nb::sig("def check(self, *args: typing.Any, **kwargs: typing.Any) -> list[Judgement]"),
          "Run on copies of what is written, and hold every output against the float64 oracle.")
      .def(
          "judge", [](PyFunction& self, nb::args args, nb::kwargs kwargs) { return PyJudge(self, args, kwargs); },
          nb::arg("args"), nb::arg("kwargs"), nb::sig("def judge(self, *args, **kwargs) -> Judge"),
          "Run the oracle only, on arguments like these, and return what holds any arrays against its results.")
      .def(
          "explain",
          [](PyFunction& self, nb::args args, nb::kwargs kwargs) {
            return ask(self, args, kwargs, [](const auto& f, const auto& arguments) { return f.explain(arguments); });
          },
          nb::arg("args"), nb::arg("kwargs"), nb::sig("def explain(self, *args: typing.Any, **kwargs: typing.Any) -> str"),
          "The plan for arguments like these, for people. Nothing is compiled.")
      .def(
          "plan",
          [](PyFunction& self, nb::args args, nb::kwargs kwargs) {
            return ask(self, args, kwargs, [](const auto& f, const auto& arguments) { return f.plan(arguments); });
          },
          nb::arg("args"), nb::arg("kwargs"), nb::sig("def plan(self, *args: typing.Any, **kwargs: typing.Any) -> str"),
          "The plan for arguments like these, as canonical JSON; load(..., plan=TEXT) replays it. Nothing is compiled.")
      .def(
          "facts",
          [](PyFunction& self, nb::args args, nb::kwargs kwargs) {
            return ask(self, args, kwargs, [](const auto& f, const auto& arguments) { return f.facts(arguments); });
          },
          nb::arg("args"), nb::arg("kwargs"), nb::sig("def facts(self, *args: typing.Any, **kwargs: typing.Any) -> list[str]"),
          "What a kernel for arguments like these relies on, one condition a string. Nothing is compiled.")
      .def(
          "knobs",
          [](PyFunction& self, nb::args args, nb::kwargs kwargs) {
            return ask(self, args, kwargs, [](const auto& f, const auto& arguments) { return f.knobs(arguments); });
          },
          nb::arg("args"), nb::arg("kwargs"),
          nb::sig("def knobs(self, *args: typing.Any, **kwargs: typing.Any) -> list[KnobChoices]"),
          "The knobs that the plan for arguments like these has, and values for load(..., knobs={...}). Nothing is compiled.")
      .def(
          "source",
          [](PyFunction& self, nb::args args, nb::kwargs kwargs) {
            std::string as = "tile";
            nb::kwargs rest;
            nb::dict kept = nb::borrow<nb::dict>(rest);
            for (auto [key, value] : kwargs) {
              if (nb::cast<std::string>(key) == "as_")
                as = text_of(value);
              else
                kept[key] = value;
            }
            return ask(self, args, rest, [&](const auto& f, const auto& arguments) { return f.emit(arguments, as); });
          },
          nb::arg("args"), nb::arg("kwargs"),
          nb::sig("def source(self, *args: typing.Any, as_: str = \"tile\", **kwargs: typing.Any) -> str"),
          "What runs for arguments like these, as \"tile\", \"kernel\", \"llvm\" or \"asm\".")
      .def(
          "text",
          [](PyFunction& self, nb::dict types, nb::dict packs) {
            std::vector<std::pair<std::string, DType>> bound;
            for (auto [variable, type] : types) {
              const nb::object name = nb::hasattr(type, "name") ? nb::object(type.attr("name")) : nb::borrow(type);
              const auto text = text_of(name);
              const std::optional<DType> dtype = dtype_from_name(text);
              if (!dtype)
                throw Error(ErrorCode::bad_argument, {}, "there is no dtype " + text, "docs/reference/dtypes.md lists them");
              bound.emplace_back(nb::cast<std::string>(variable), *dtype);
            }
            std::vector<std::pair<std::string, int>> counts;
            for (auto [pack, count] : packs) counts.emplace_back(nb::cast<std::string>(pack), nb::cast<int>(count));
            return without_gil([&] { return print(self.program(), bound, counts); });
          },
          nb::arg("types") = nb::dict(), nb::arg("packs") = nb::dict(),
          nb::sig("def text(self, types: dict[str, DType | str] = {}, packs: dict[str, int] = {}) -> str"),
          "The program as text, at dtypes for its variables and dimensions for its packs: text({\"T\": \"f32\"}, {\"rows\": 2}).")
      .def(
          "verify", [](PyFunction& self, std::uint64_t seed) { without_gil([&] { cosmati::check(self.program(), seed); }); },
          nb::arg("seed") = 0,
          "Type and prove the program for representative dtypes, and test its streams and reducers. Raises the first Error.")
      .def_prop_ro("name", &PyFunction::name, "The name of the program.")
      .def_prop_ro(
          "parameters", [](PyFunction& self) { return nb::tuple(nb::cast(self.signature().declared)); },
          nb::sig("def parameters(self) -> tuple[Parameter, ...]"), "What a caller hands over, in declared order.")
      .def_prop_ro("compiles", &PyFunction::compiles, "How many kernels this function compiled.")
      .def("__repr__", [](PyFunction& self) { return self.repr(); });

  m.def("_load", [](const std::string& spec, nb::dict told) {
    const Told t(told);
    return PyFunction(without_gil([&] { return cosmati::load(spec); }), nb::object(), t.device, t.threads, t.options);
  });
  m.def("_parse", [](const std::string& text, const std::string& file, nb::dict told) {
    const Told t(told);
    std::vector<PyFunction> functions;
    for (Program& program : without_gil([&] { return parse(text, file); }))
      functions.emplace_back(std::move(program), nb::object(), t.device, t.threads, t.options);
    return functions;
  });
  m.def("_capture", [](const std::string& name, nb::object body, nb::dict told) {
    const Told t(told);
    return PyFunction(capture(name, body.ptr()), body, t.device, t.threads, t.options);
  });
}

}  // namespace cosmati::python
