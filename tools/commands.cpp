// The commands of the tool, on the public headers. Files appear only after everything else has succeeded.
// SPDX-License-Identifier: Apache-2.0
#include "tools/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>

#include <cosmati/package.h>
#include <cosmati/program.h>

#include "support/suggest.h"
#include "tools/arguments.h"
#include "tools/copy.h"
#include "tools/interrupt.h"
#include "tools/npy.h"
#include "tools/prepare.h"
#include "tools/profile.h"
#include "tools/progress.h"

namespace cosmati::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void report_outputs(const Bindings& bindings, Report& report) {
  Json outputs = Json::array();
  for (const auto& [name, view] : bindings.written()) {
    const Summary s = summarise(view);
    report.line(fmt::format("{} {} {:.6g} {:.6g} {:.6g} {}", name, type_text(view), s.min, s.max, s.mean, s.nan));
    outputs.push_back({{"name", name},
                       {"dtype", cosmati::name(view.dtype)},
                       {"shape", view.shape},
                       {"min", number(s.min)},
                       {"max", number(s.max)},
                       {"mean", number(s.mean)},
                       {"nan", s.nan}});
  }
  report.object()["outputs"] = std::move(outputs);
}

void report_judgements(const std::vector<Judgement>& judgements, Report& report) {
  Json checks = Json::array();
  for (const Judgement& j : judgements) {
    std::string line = fmt::format("check {} {:.3g} {:.3g} {:.3g} ", j.output, j.max_abs, j.max_rel, j.bound);
    line += !j.ok        ? fmt::format("FAILED at {}: got {:.9g}, expected {:.9g}", index_text(j.at), j.got, j.expected)
            : j.judged() ? "ok"
                         : "unjudged";
    if (j.unjudged > 0)
      line += fmt::format(" ({} of {} elements unjudged: their bound exceeds their value)", j.unjudged, j.elements);
    report.line(line);
    Json check = {
        {"output", j.output}, {"max_abs", number(j.max_abs)}, {"max_rel", number(j.max_rel)}, {"bound", number(j.bound)},
        {"ok", j.ok},         {"judged", j.judged()},         {"unjudged", j.unjudged},       {"elements", j.elements}};
    if (!j.ok) {
      check["at"] = j.at;
      check["got"] = number(j.got);
      check["expected"] = number(j.expected);
      report.failed(check_failed);
    }
    checks.push_back(std::move(check));
  }
  report.object()["checks"] = std::move(checks);
}

// What --out names: any tensor of the program, so that generated inputs can be kept too.
const TensorView& tensor_to_write(const Prepared& p, const std::string& name) {
  const TensorView* view = p.bindings.find(name);
  if (!view) throw Error(ErrorCode::bad_argument, {}, fmt::format("--out: {} has no tensor '{}'", p.program.name(), name));
  return *view;
}

}  // namespace

void run(const Invocation& invocation, const RunOptions& options, Report& report) {
  Prepared p = prepare(invocation, report);
  std::vector<std::pair<std::string, std::string>> outs, probes;
  for (const std::string& text : options.outs) outs.push_back(split_assignment(text, "--out"));
  for (const std::string& text : options.probes) probes.push_back(split_assignment(text, "--probe"));
  std::set<fs::path> written;
  for (const auto* list : {&outs, &probes})
    for (const auto& [name, path] : *list)
      if (!written.insert(fs::path(path).lexically_normal()).second)
        throw Error(ErrorCode::bad_argument, {}, fmt::format("two results are written to {}", path), "name a file for each");
      else
        require_writable(path);
  for (const auto& [name, path] : outs) tensor_to_write(p, name);

  const Bindings before = options.check || options.time || !probes.empty() ? p.bindings.copy_written() : p.bindings;
  std::vector<NpyWriter> files;
  std::vector<std::string> lines;  // of probes: nothing is said of them where the run fails
  for (const auto& [name, path] : probes) {
    Progress progress("probing " + name);
    Probe found = probe(p.program, before.arguments(), name, progress.teller());
    lines.push_back(fmt::format("probe {} f64[{}] over {}", name, fmt::join(found.shape, ","), fmt::join(found.axes, ", ")));
    report.object()["probes"].push_back({{"name", name}, {"axes", found.axes}, {"shape", found.shape}, {"file", path}});
    files.emplace_back(path, TensorView(found.values.data(), DType::f64_, found.shape));
  }
  {
    Progress progress("running " + p.program.name());
    p.function(p.bindings.arguments(), progress.teller());
  }
  for (const std::string& line : lines) report.line(line);
  report_outputs(p.bindings, report);
  for (const auto& [name, path] : outs) files.emplace_back(path, tensor_to_write(p, name));
  if (options.check) {
    Progress progress("checking against the oracle");
    report_judgements(judge(p.program, before.arguments(), p.bindings.arguments(), progress.teller()), report);
  }
  if (options.time) {
    Progress progress("timing", 2);
    const Arguments arguments = before.arguments();
    // A copy reads and writes each of its bytes once.
    const std::int64_t bytes = (p.bindings.moved_bytes() + 1) / 2;
    const Timing t = time_beside_copy([&] { p.function(arguments); }, bytes);
    report.line(fmt::format("time {:.1f} us copy {:.1f} us ratio {:.2f} ({} bytes copied, medians of {})", t.ours_us, t.copy_us,
                            t.ours_us / t.copy_us, bytes, t.rounds));
    report.object()["time_us"] = t.ours_us;
    report.object()["copy_us"] = t.copy_us;
    report.object()["copy_bytes"] = bytes;
  }
  report.object()["compiles"] = p.function.compiles();
  for (NpyWriter& file : files) file.commit();
}

void check(const std::vector<std::string>& files, std::uint64_t seed, Report& report) {
  std::vector<Program> programs;
  for (const std::string& spec : files) {
    try {
      std::error_code ignored;
      const bool one = !fs::exists(spec, ignored) && spec.find(':') != std::string::npos;
      for (Program& program : one ? std::vector{load(spec)} : load_all(spec)) programs.push_back(std::move(program));
    } catch (...) {
      report.error(std::current_exception());
    }
  }
  Json checked = Json::array();
  Progress progress(fmt::format("checking {} programs", programs.size()));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    bool ok = true;
    try {
      cosmati::check(programs[i], seed);
      report.line(programs[i].name() + ": ok");
    } catch (...) {
      ok = false;
      report.error(std::current_exception());
    }
    checked.push_back({{"name", programs[i].name()}, {"ok", ok}});
    progress.fraction(static_cast<double>(i + 1) / static_cast<double>(programs.size()));
  }
  report.object()["programs"] = std::move(checked);
}

void plan(const Invocation& invocation, const std::string& save, const std::string& svg, Report& report) {
  Prepared p = prepare(invocation, report);
  const std::string text = p.function.plan(p.bindings.arguments());
  if (!save.empty()) write_text(save, text + "\n");
  if (!svg.empty()) write_text(svg, p.function.picture(p.bindings.arguments()));
  if (report.json()) {
    report.object() = Json::parse(text);
    return;
  }
  std::string explained = p.function.explain(p.bindings.arguments());
  while (!explained.empty() && explained.back() == '\n') explained.pop_back();
  report.line(explained);
}

void emit(const Invocation& invocation, const std::string& as, Report& report) {
  Prepared p = prepare(invocation, report);
  std::string text = p.function.emit(p.bindings.arguments(), as);
  report.object()["as"] = as;
  report.object()["text"] = text;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  report.line(text);
}

void package(const Invocation& invocation, Report& report) {
  Invocation rest = invocation;
  const std::string folder = rest.arguments.empty() ? "" : rest.arguments.back();
  const bool assignment = folder.find('=') < folder.find('/');
  if (folder.empty() || assignment)
    throw Error(ErrorCode::bad_argument, {}, "no folder is given for the package",
                fmt::format("name it last: cosmati package {} name=ARG... DIR", invocation.program));
  rest.arguments.pop_back();
  Prepared p = prepare(rest, report);
  {
    const Uninterrupted alone;
    p.function.package(p.bindings.arguments(), folder);
  }
  for (const Program::Parameter& parameter : p.program.parameters())
    for (const std::string& text : rest.arguments)
      if (parameter.kind == Program::Parameter::Kind::scalar && parameter.has_default && text.starts_with(parameter.name + "="))
        report.note(fmt::format("the package does not keep {}: every call gives it, or has the default of the program", text));
  const Package made = Package::open(folder, device_of(invocation));
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  report.line(fmt::format("{}: {} in {}", p.program.name(), fmt::join(files, ", "), folder));
  for (const std::string& condition : made.kernel().domain()) report.line("  " + condition);
  report.line("  no output shares memory with another argument");  // arrays of the command line never do
  report.object()["folder"] = folder;
  report.object()["files"] = files;
  report.object()["identity"] = made.identity();
  report.object()["domain"] = made.kernel().domain();
}

void list_devices(Report& report) {
  Json list = Json::array();
  for (const DeviceInfo& device : devices()) {
    report.line(fmt::format("{:<8}{:<9}{}", device.name, device.present ? "present" : "absent", device.detail));
    list.push_back({{"name", device.name}, {"present", device.present}, {"detail", device.detail}});
    if (device.name != "cpu" || !device.present) continue;
    list.back()["profile"] = nullptr;
    try {
      const std::optional<Json> profile = read_profile();
      if (profile) list.back()["profile"] = *profile;
      report.line(fmt::format(
          "{:17}{}", "",
          profile ? fmt::format("calibrated {}: {}", profile->at("measured").get<std::string>(), profile_summary(*profile))
                  : "not calibrated (cosmati calibrate)"));
    } catch (const Error& e) {  // a broken profile is as good as none
      fmt::print(stderr, "cosmati: warning: {}\n", e.what());
      report.line(fmt::format("{:17}not calibrated: its profile is broken", ""));
    }
  }
  report.object()["devices"] = std::move(list);
}

void docs(const std::string& page, const std::string& folder, Report& report) {
  std::map<std::string, std::string> pages = reference_pages();
  if (!page.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, text] : pages) names.push_back(name);
    if (!pages.count(page)) {
      const std::string near = support::suggest(page, names);
      throw Error(ErrorCode::bad_argument, {}, fmt::format("there is no page '{}'", page),
                  near.empty() ? fmt::format("the pages are {}", fmt::join(names, ", ")) : near);
    }
    pages = {{page, pages.at(page)}};
  }
  if (folder.empty()) {
    for (const auto& [name, text] : pages) {
      report.line(text);
      report.object()["pages"][name] = text;
    }
    return;
  }
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw Error(ErrorCode::bad_file, Where{folder, 0, 0}, "the folder cannot be made: " + problem.message());
  for (const auto& [name, text] : pages) {
    const fs::path path = fs::path(folder) / (name + ".md");
    write_text(path.string(), text);
    report.line("wrote " + path.string());
    report.object()["files"].push_back(path.string());
  }
}

}  // namespace cosmati::tools
