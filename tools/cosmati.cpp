// cosmati, the command-line tool: options and help texts. What the commands do is in tools/commands.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>

#include <cosmati/log.h>
#include <cosmati/runtime.h>

#include "support/suggest.h"
#include "tools/calibrate.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/tune.h"

namespace {

using cosmati::tools::Invocation;
using cosmati::tools::Report;
using cosmati::tools::RunOptions;

constexpr const char* argument_help =
    "PROGRAM is a file with one program, file:name, or the name of a shipped program; a path that exists wins.\n"
    "ARG is one of\n"
    "  file.npy             an array; C or Fortran order, used in place\n"
    "  bf16:file.npy        the same, its u2 or V2 elements read as bf16 (u1 or V1 as f8e4m3, f8e5m2);\n"
    "                       u2 given to a floating parameter is bf16 without saying so\n"
    "  f32[37,1537]:GEN     a generated array; GEN is normal, uniform, zeros, ones, arange or index\n"
    "                       (index: uniform integers inside the parameter's contract)\n"
    "  0.5, 3, true         a scalar\n"
    "Outputs are made by the tool; where nothing binds an extent, give the output as i=i32[37,8]:zeros.\n"
    "An inout is given with name= and written with --out.\n";
constexpr const char* exit_help =
    "Exit codes: 0 done, 1 --check found a wrong output, 2 the input is wrong, 3 an internal error, 4 the backend is absent.\n";

void add_repeated(CLI::App* app, const char* name, std::vector<std::string>& into, const char* help, const char* form) {
  app->add_option(name, into, help)->type_name(form)->allow_extra_args(false);
}

// The parser would take -1 for the largest seed.
std::string is_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? "" : fmt::format("'{}' is no seed, which is a whole number from 0 to 18446744073709551615", text);
}

void add_invocation(CLI::App* app, Invocation& i, bool with_plan = true, const char* words = "name=ARG for every input") {
  app->add_option("program", i.program, "the program")->required()->type_name("PROGRAM");
  app->add_option("arguments", i.arguments, words)->type_name("name=ARG");
  app->add_option("--device", i.device, "where it runs (default: COSMATI_DEVICE, else cpu)")->type_name("oracle|sim|cpu|cuda");
  add_repeated(app, "--set", i.knobs, "set a knob of the planner exactly", "knob=v");
  if (with_plan) app->add_option("--plan", i.plan, "replay a plan exactly, or refuse it")->type_name("F.json");
  app->add_option("--seed", i.seed, "seed of the generators (default 0)")->type_name("N")->check(is_seed);
}

// The parser's own message, or better: the command or option that it does not know, and what may have been meant.
cosmati::Error refusal(const CLI::App& app, const CLI::ParseError& problem, const std::vector<std::string>& words) {
  auto error = [](const std::string& what, const std::string& hint) {
    return cosmati::Error(cosmati::ErrorCode::bad_argument, {}, what, hint);
  };
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  std::vector<std::string> known;
  if (parsed.empty()) {
    for (const CLI::App* command : app.get_subcommands(nullptr)) known.push_back(command->get_name());
    const std::string all = fmt::format("the commands are {}", fmt::join(known, ", "));
    for (const std::string& word : words) {
      if (word[0] == '-') continue;
      const bool option = app.get_option_no_throw("--" + word) != nullptr;  // help, version
      const std::string near = option ? fmt::format("cosmati --{}", word) : cosmati::support::suggest(word, known);
      return error(fmt::format("there is no command '{}'", word), near.empty() ? all : near);
    }
    return words.empty() ? error("no command is given", all) : error(problem.what(), "cosmati --help");
  }
  const CLI::App& command = *parsed.front();
  const std::string help = fmt::format("cosmati {} --help", command.get_name());
  if (!dynamic_cast<const CLI::ExtrasError*>(&problem)) return error(problem.what(), help);
  for (const CLI::Option* option : command.get_options()) known.push_back(option->get_name());
  for (const std::string& word : command.remaining()) {
    if (word[0] != '-') continue;
    const std::string option = word.substr(0, word.find('=')), near = cosmati::support::suggest(option, known);
    return error(fmt::format("{} has no option '{}'", command.get_name(), option), near.empty() ? help : near);
  }
  return error(problem.what(), help);
}

}  // namespace

int main(int argc, char** argv) {
  // A pipe that closes or a limit on the size of files is a failed write like any other, and leaves no temporary file behind.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  cosmati::tools::listen_for_interrupts();
  cosmati::set_log([](cosmati::LogLevel level, const std::string& message) {
    if (level == cosmati::LogLevel::warning) fmt::print(stderr, "cosmati: warning: {}\n", message);
  });
  CLI::App app("cosmati: compiles and runs tile programs.\n", "cosmati");
  app.require_subcommand(1);
  app.set_version_flag("--version", cosmati::version());
  app.footer(std::string("\nExamples:\n"
                         "  cosmati run softmax 'x=f32[37,1537]:normal' --check\n"
                         "  cosmati run layer_norm x=x.npy gamma=g.npy beta=b.npy --out y=y.npy --time\n"
                         "  cosmati check my.tile\n"
                         "`cosmati COMMAND --help` says more.\n\n") +
             exit_help);

  bool json = false;
  Invocation invocation;
  RunOptions run_options;
  cosmati::tools::TuneOptions tune_options;
  std::vector<std::string> files;
  std::string as = "kernel", folder, page, save, svg;

  CLI::App* run = app.add_subcommand("run", "Run a program and print one line an output: name dtype[extents] min max mean nan");
  add_invocation(run, invocation);
  add_repeated(run, "--out", run_options.outs, "write a tensor to a .npy file", "name=F.npy");
  add_repeated(run, "--probe", run_options.probes, "write the oracle's float64 value of a name of the program", "NAME=F.npy");
  run->add_flag("--check", run_options.check, "hold every output against the oracle: check name max_abs max_rel bound ok");
  run->add_flag("--time", run_options.time,
                "time the program and a memcpy of as many bytes as it reads and writes, in turns, on as many threads, on the "
                "same arrays again and again: time US copy US ratio (ours over the copy's)");
  run->footer(std::string("\n") + argument_help +
              "\nExamples:\n"
              "  cosmati run softmax 'x=f32[37,1537]:normal' --check --time\n"
              "  cosmati run cross_entropy x=logits.npy 'label=i32[64]:index' --out loss=loss.npy\n"
              "  cosmati run my.tile:scale x=x.npy k=0.5 --device sim --check\n\n" +
              exit_help);

  CLI::App* check =
      app.add_subcommand("check", "Parse, type and prove programs, and check their streams and reducers on small extents");
  check->add_option("files", files, "files, file:name, or shipped programs")->required()->type_name("FILE");
  check->add_option("--seed", invocation.seed, "seed of the data (default 0)")->type_name("N")->check(is_seed);
  check->footer(
      std::string(
          "\nPrints `name: ok` a program.\n\nExamples:\n  cosmati check my.tile other.tile\n  cosmati check softmax\n\n") +
      exit_help);

  CLI::App* plan = app.add_subcommand("plan", "Print the plan of a program at these arguments");
  add_invocation(plan, invocation);
  plan->add_option("--save", save, "write the plan as JSON, for --plan")->type_name("F.json");
  plan->add_option("--svg", svg, "draw which worker owns which element")->type_name("F.svg");
  plan->footer(
      std::string(
          "\nA phase gives each of its axes as digits (resource, stride, extent): grid, spread over the workers; lane, next to\n"
          "each other in a vector, or the threads of a GPU's subgroup; subgroup, which of these; reg, next to each other in\n"
          "registers; step, one after the other in a loop. `home` says where a value is kept, `streaming` whether reductions\n"
          "were joined, `domain` for which arguments the plan holds. Prices order candidates and do not foretell times: the\n"
          "first within 15 % of the cheapest is chosen, so that many shapes share a plan, and those that come `next` may be\n"
          "cheaper by as much (a GPU has the cheapest). `not tried`: there was no time to price them; `tune` tries them.\n\n") +
      argument_help +
      "\nExamples:\n  cosmati plan softmax 'x=f32[1024,4096]:zeros'\n  cosmati plan softmax x=x.npy --save p.json\n"
      "  cosmati plan softmax 'x=f32[4,40]:zeros' --svg softmax.svg\n\n" +
      exit_help);

  CLI::App* emit = app.add_subcommand("emit", "Print what a program becomes at these arguments");
  add_invocation(emit, invocation);
  emit->add_option("--as", as, "the level (default kernel)")->type_name("tile|kernel|llvm|asm|cuda");
  emit->footer(std::string("\n") + argument_help + "\nExample:\n  cosmati emit softmax 'x=f32[8,64]:zeros' --as asm\n\n" +
               exit_help);

  CLI::App* package = app.add_subcommand("package", "Compile a program ahead of time, for programs that link no compiler");
  add_invocation(package, invocation, true, "name=ARG for every input, and last the folder that is made");
  package->footer(
      std::string("\n") + argument_help +
      "\nThe plan is that of these arguments; the package takes any extents of the same dtypes, ranks and unit strides. DIR gets "
      "the code, manifest.json and\n"
      "a C++ header with the program as a typed function; <cosmati/package.h> and libcosmati_runtime open it. The code runs on\n"
      "processors that have every feature of this one that it lists.\n"
      "\nExamples:\n"
      "  cosmati package softmax 'x=f32[1024,4096]:zeros' softmax.package\n"
      "  cosmati package my.tile:scale 'x=bf16[8,8]:zeros' k=1 out/scale\n\n" +
      exit_help);

  CLI::App* tune = app.add_subcommand("tune", "Search for a faster plan by measurement, and save it");
  add_invocation(tune, invocation, false);
  tune->add_option("--minutes", tune_options.minutes, "how long it may take (default 1)")->type_name("N");
  tune->add_option("--most", tune_options.most, "how many settings it tries at most")->type_name("N");
  tune->add_option("--save", tune_options.save, "where the plan goes, for --plan (default PROGRAM.plan.json)")
      ->type_name("F.json");
  tune->footer(
      std::string(
          "\nSettings of the knobs are drawn from the seed. Each is held against the oracle before it is timed, in rounds "
          "beside\n"
          "the default plan. The best are measured again, and what is printed is that: the ratio of the times in a round,\n"
          "the median of the rounds with their range. Knobs that --set names stay as they are.\n\n") +
      argument_help +
      "\nExamples:\n  cosmati tune softmax 'x=f32[1024,4096]:normal' --minutes 5 --save softmax.json\n"
      "  cosmati tune my.tile:scale x=x.npy k=0.5 --set lanes=8 --save scale.json\n\n" +
      exit_help);

  CLI::App* calibrate = app.add_subcommand("calibrate", "Measure what this machine reaches, and keep it as a profile");
  calibrate->add_option("--save", save, "where the profile goes (default: the cache directory)")->type_name("F.json");
  calibrate->footer(
      std::string(
          "\nBandwidth of reads, writes and copies by cache level and threads; the time of a launch; how many exp, div "
          "and fma a\n"
          "compiled program does in a nanosecond. A few seconds. The profile carries the processor, its cores and the\n"
          "version of the library; `cosmati devices` prints it and says where it lies. Plans are priced by it from then on;\n"
          "delete the file to be without. Run it on an idle machine. With --save the profile is only kept for looking at it.\n\n"
          "Examples:\n  cosmati calibrate --save here.json\n\n") +
      exit_help);

  CLI::App* devices = app.add_subcommand("devices", "List the devices and whether they are present");
  devices->footer(std::string("\nExamples:\n  cosmati devices\n  cosmati devices --json\n\n") + exit_help);
  CLI::App* docs =
      app.add_subcommand("docs", "Print the reference, from the tables of operations, reducers, types, errors and knobs");
  docs->add_option("page", page, "one page: dtypes, errors, knobs, ops, programs, reducers, refusals (default: all)")
      ->type_name("PAGE");
  docs->add_option("--write", folder, "write one page a file into this folder instead")->type_name("FOLDER");
  docs->footer(std::string("\nExamples:\n  cosmati docs\n  cosmati docs programs\n  cosmati docs --write docs/reference\n\n") +
               exit_help);

  for (CLI::App* command : {run, check, plan, emit, package, tune, calibrate, devices, docs})
    command->add_flag("--json", json, "print one JSON object");

  for (int i = 1; i < argc; ++i) json |= std::strcmp(argv[i], "--json") == 0;
  Report report(json);
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& e) {
      return app.exit(e);
    } catch (const CLI::ParseError& e) {
      throw refusal(app, e, {argv + 1, argv + argc});
    }
    if (run->parsed()) cosmati::tools::run(invocation, run_options, report);
    if (check->parsed()) cosmati::tools::check(files, invocation.seed, report);
    if (plan->parsed()) cosmati::tools::plan(invocation, save, svg, report);
    if (emit->parsed()) cosmati::tools::emit(invocation, as, report);
    if (package->parsed()) cosmati::tools::package(invocation, report);
    if (tune->parsed()) cosmati::tools::tune(invocation, tune_options, report);
    if (calibrate->parsed()) cosmati::tools::calibrate(save, report);
    if (devices->parsed()) cosmati::tools::list_devices(report);
    if (docs->parsed()) cosmati::tools::docs(page, folder, report);
  } catch (const cosmati::Error& e) {
    // The library reads the text of a plan and does not know its file.
    const bool of_plan = e.code == cosmati::ErrorCode::bad_plan && e.where.file.empty();
    report.error(of_plan ? std::make_exception_ptr(cosmati::Error(e.code, {invocation.plan, 0, 0}, e.message, e.hint, e.origin))
                         : std::current_exception());
  } catch (...) {
    report.error(std::current_exception());
  }
  return report.finish();
}
