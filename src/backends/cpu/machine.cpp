// Each compilation has its own context and target machine, so any number of threads compile at once; what they share is the
// linker (LLJIT), one object at a time, which takes a small part of a millisecond. Passes are few: kernel IR comes with its loops
// and values placed. SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/machine.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "backends/cpu/scalar.h"
#include "support/check.h"

namespace cosmati::cpu {
namespace {

unsigned llvm_major() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return major;
}

// From LLVM 18 on the linker places all of an object in one block of memory, where code reaches its constants by a 32-bit
// displacement. Before, sections may lie anywhere, and every constant costs an address of 64 bits.
LLVMCodeModel code_model() { return llvm_major() >= 18 ? LLVMCodeModelSmall : LLVMCodeModelJITDefault; }

// From LLVM 18 on, a combiner named in a pipeline ends the process when one sweep leaves something to do, unless told not to
// look.
std::string lean_passes() {
  const char* combine = llvm_major() >= 18 ? "instcombine<no-verify-fixpoint>" : "instcombine";
  return fmt::format("function(sroa,early-cse<memssa>,{0},simplifycfg,loop-mssa(licm),gvn,{0})", combine);
}

std::string take(char* message) {
  std::string text = message ? message : "";
  LLVMDisposeMessage(message);
  return text;
}

void expect(LLVMErrorRef error, const char* what) {
  if (!error) return;
  char* message = LLVMGetErrorMessage(error);
  std::string text = message;
  LLVMDisposeErrorMessage(message);
  throw InternalError(fmt::format("cpu: LLVM, {}: {}", what, text));
}

struct Native {
  HostFacts facts;
  std::string triple;
  LLVMTargetRef target = nullptr;
};

const Native& native() {
  static const Native made = [] {
    Native n;
    COSMATI_CHECK(!LLVMInitializeNativeTarget() && !LLVMInitializeNativeAsmPrinter(), "LLVM was built without this processor");
    n.facts = {take(LLVMGetHostCPUName()), take(LLVMGetHostCPUFeatures())};
    n.triple = take(LLVMGetDefaultTargetTriple());
    char* message = nullptr;
    if (LLVMGetTargetFromTriple(n.triple.c_str(), &n.target, &message))
      throw InternalError(fmt::format("cpu: LLVM, target {}: {}", n.triple, take(message)));
    return n;
  }();
  return made;
}

void keep_diagnostic(LLVMDiagnosticInfoRef info, void* text) {
  if (LLVMGetDiagInfoSeverity(info) == LLVMDSError)
    *static_cast<std::string*>(text) += take(LLVMGetDiagInfoDescription(info)) + "\n";
}

// The base of this architecture and some features, as LLVM names them.
HostFacts base_with(const std::vector<std::string>& features) {
#if defined(__x86_64__)
  const char* base = "x86-64";
#else
  const char* base = "generic";
#endif
  return {base, features.empty() ? "" : fmt::format("+{}", fmt::join(features, ",+"))};
}

// ---- the linker ------------------------------------------------------------------------------------------------------

// Functions that code calls by name: the rows of library_functions, and what LLVM calls where the processor lacks an instruction.
std::vector<std::pair<const char*, void*>> symbols() {
  std::vector<std::pair<const char*, void*>> all;
  for (const LibraryFunction& row : library_functions()) all.emplace_back(row.symbol, row.address);
  using F1 = float (*)(float);
  using D1 = double (*)(double);
  using F3 = float (*)(float, float, float);
  using D3 = double (*)(double, double, double);
#define ROW(f)                                                            \
  all.emplace_back(#f, reinterpret_cast<void*>(static_cast<D1>(std::f))); \
  all.emplace_back(#f "f", reinterpret_cast<void*>(static_cast<F1>(std::f)))
  ROW(floor);
  ROW(ceil);
  ROW(trunc);
  ROW(nearbyint);
  ROW(sqrt);
#undef ROW
  all.emplace_back("fma", reinterpret_cast<void*>(static_cast<D3>(std::fma)));
  all.emplace_back("fmaf", reinterpret_cast<void*>(static_cast<F3>(std::fma)));
  return all;
}

// Held while the linker works, and across a fork, so that a child finds the linker whole.
std::mutex& linking() {
  static std::mutex* const made = [] {
    auto* mutex = new std::mutex;
    pthread_atfork([] { linking().lock(); }, [] { linking().unlock(); }, [] { linking().unlock(); });
    return mutex;
  }();
  return *made;
}

// ---- what follows is called with `linking` held ----

struct Linked {
  LLVMOrcResourceTrackerRef tracker = nullptr;
  std::size_t uses = 0;
};

// By prefix. Neither this nor the linker is ever destroyed: executables may outlive everything else of the process.
std::map<std::string, Linked>& linked() {
  static auto* const made = new std::map<std::string, Linked>;
  return *made;
}

LLVMOrcLLJITRef linker() {
  static const LLVMOrcLLJITRef made = [] {
    native();
    LLVMOrcLLJITRef jit = nullptr;
    expect(LLVMOrcCreateLLJIT(&jit, LLVMOrcCreateLLJITBuilder()), "making the linker");
    std::vector<LLVMOrcCSymbolMapPair> pairs;
    for (const auto& [name, address] : symbols())
      pairs.push_back({LLVMOrcLLJITMangleAndIntern(jit, name),
                       {reinterpret_cast<LLVMOrcExecutorAddress>(address), {LLVMJITSymbolGenericFlagsExported, 0}}});
    expect(LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit), LLVMOrcAbsoluteSymbols(pairs.data(), pairs.size())),
           "naming the library functions");
    return jit;
  }();
  return made;
}

}  // namespace

const HostFacts& host_facts() { return native().facts; }

static bool has_all(std::initializer_list<const char*> names) {
  const std::string features = "," + host_facts().features + ",";
  return std::all_of(names.begin(), names.end(),
                     [&](const char* name) { return features.find(fmt::format(",+{},", name)) != std::string::npos; });
}

bool converts_half() {
#if defined(__x86_64__)
  return has_all({"f16c"});
#else
  return has_all({"neon"});
#endif
}

bool has_ldexp() { return has_all({"avx512f", "avx512vl"}); }

bool converts_bf16() { return has_all({"avx512f", "avx512dq", "avx512bf16"}); }

std::string compiler_identity() {
  const Native& n = native();
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return fmt::format("LLVM {}.{}.{}, {}, {}, {}, code model {}, {}", major, minor, patch, n.triple, n.facts.cpu, n.facts.features,
                     static_cast<int>(code_model()), lean_passes());
}

Unit::Unit(const std::string& name, const std::vector<std::string>* features)
    : context_(LLVMContextCreate()),
      module_(LLVMModuleCreateWithNameInContext(name.c_str(), context_)),
      machine_(nullptr),
      for_linker_(features) {
  const Native& n = native();
  LLVMContextSetDiagnosticHandler(context_, keep_diagnostic, &diagnostics_);
  const HostFacts target = features ? base_with(*features) : n.facts;
  machine_ = LLVMCreateTargetMachine(n.target, n.triple.c_str(), target.cpu.c_str(), target.features.c_str(),
                                     LLVMCodeGenLevelDefault, LLVMRelocPIC, features ? LLVMCodeModelSmall : code_model());
  const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine_);
  LLVMSetModuleDataLayout(module_, layout);
  LLVMDisposeTargetData(layout);
  LLVMSetTarget(module_, n.triple.c_str());
}

Unit::~Unit() {
  LLVMDisposeTargetMachine(machine_);
  LLVMDisposeModule(module_);
  LLVMContextDispose(context_);
}

void Unit::verify(const char* when) const {
  char* message = nullptr;
  const bool broken = LLVMVerifyModule(module_, LLVMReturnStatusAction, &message);
  const std::string text = take(message);
  if (broken) throw InternalError(fmt::format("cpu: the LLVM module is malformed {}: {}\n{}", when, text, llvm()));
}

void Unit::finish(int optimization) {
  verify("as generated");
  if (optimization == 0) return;
  const LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  const LLVMErrorRef error = LLVMRunPasses(module_, lean_passes().c_str(), machine_, options);
  LLVMDisposePassBuilderOptions(options);
  expect(error, "passes");
  if (for_linker_) prepare_for_linker();
  verify("after the passes");
}

// Functions of libm get their own names only now: passes would take them for what they know about those. Instructions are chosen
// from the features and ordered for this processor.
void Unit::prepare_for_linker() const {
  constexpr std::string_view own = "cosmati_", key = "tune-cpu";
  for (const LibraryFunction& row : library_functions())
    if (const LLVMValueRef f = LLVMGetNamedFunction(module_, row.symbol)) {
      const std::string_view name = std::string_view(row.symbol).substr(own.size());
      LLVMSetValueName2(f, name.data(), name.size());
    }
  const std::string& cpu = host_facts().cpu;
  const LLVMAttributeRef tuned = LLVMCreateStringAttribute(context_, key.data(), key.size(), cpu.data(), cpu.size());
  for (LLVMValueRef f = LLVMGetFirstFunction(module_); f; f = LLVMGetNextFunction(f))
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, tuned);
}

std::string Unit::llvm() const { return take(LLVMPrintModuleToString(module_)); }

std::string Unit::bytes(LLVMCodeGenFileType type) const {
  char* message = nullptr;
  LLVMMemoryBufferRef buffer = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine_, module_, type, &message, &buffer))
    throw InternalError(fmt::format("cpu: LLVM, code generation: {}", take(message)));
  std::string made(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  if (!diagnostics_.empty()) throw InternalError(fmt::format("cpu: LLVM, code generation: {}", diagnostics_));
  return made;
}

std::string Unit::assembly() const { return bytes(LLVMAssemblyFile); }
std::string Unit::object() const { return bytes(LLVMObjectFile); }

LinkedObject::LinkedObject(const std::string& prefix, const std::string& object) : prefix_(prefix) {
  std::lock_guard lock(linking());
  const auto [at, fresh] = linked().try_emplace(prefix_);
  if (++at->second.uses > 1) return;
  const LLVMOrcLLJITRef jit = linker();
  at->second.tracker = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(jit));
  const LLVMErrorRef error = LLVMOrcLLJITAddObjectFileWithRT(
      jit, at->second.tracker, LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data(), object.size(), prefix.c_str()));
  if (!error) return;
  LLVMOrcReleaseResourceTracker(at->second.tracker);
  linked().erase(at);
  expect(error, "adding an object");
}

LinkedObject::~LinkedObject() {
  std::lock_guard lock(linking());
  const auto at = linked().find(prefix_);
  if (--at->second.uses > 0) return;
  if (const LLVMErrorRef error = LLVMOrcResourceTrackerRemove(at->second.tracker)) LLVMConsumeError(error);
  LLVMOrcReleaseResourceTracker(at->second.tracker);
  linked().erase(at);
}

void* LinkedObject::address(const std::string& symbol) const {
  std::lock_guard lock(linking());
  LLVMOrcExecutorAddress address = 0;
  expect(LLVMOrcLLJITLookup(linker(), &address, symbol.c_str()), "linking");
  return reinterpret_cast<void*>(address);
}

}  // namespace cosmati::cpu
