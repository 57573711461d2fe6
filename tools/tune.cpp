// The search only finds candidates. What is reported is measured again after it, because the best of many noisy ratios is too
// good. SPDX-License-Identifier: Apache-2.0
#include "tools/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <cosmati/machine.h>

#include "tools/paired.h"
#include "tools/prepare.h"
#include "tools/progress.h"
#include "tools/settings.h"

namespace cosmati::tools {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int screening_rounds = 4, confirming_rounds = 12;
constexpr double screening_sample_s = 0.002, confirming_sample_s = 0.01;
constexpr double search_share = 0.7;  // of the time; the rest confirms
constexpr std::size_t finalists = 3;
constexpr double hopeless = 10;  // times as slow as the default plan in one run: not worth a round

double since_s(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A setting that is ready to be timed.
struct Candidate {
  Knobs knobs;
  std::string plan;   // for the user's own arguments
  Bindings bindings;  // with what it writes in memory of its own
  Launch launch;
  Timed timed;
  Ratio ratio;

  Candidate(Knobs knobs, std::string plan, Bindings own, Launch l)
      : knobs(std::move(knobs)), plan(std::move(plan)), bindings(std::move(own)), launch(std::move(l)), timed([this] {
          launch();
        }) {}
};
using CandidatePtr = std::unique_ptr<Candidate>;

// Bytes that no result has: a plan that forgets an element is found out.
void poison_outputs(const Program& program, const Bindings& bindings) {
  for (const Program::Parameter& p : program.parameters())
    if (p.kind == Program::Parameter::Kind::out)
      if (const TensorView* view = bindings.find(p.name); view && view->elements() > 0)
        std::memset(view->data, 0xff,
                    static_cast<std::size_t>(view->elements()) * static_cast<std::size_t>(byte_size(view->dtype)));
}

class Tuner {
 public:
  Tuner(const Invocation& invocation, const TuneOptions& options, Report& report)
      : options_(options),
        report_(report),
        device_(device_of(invocation)),
        limit_s_(options.minutes * 60),
        p_(prepare(invocation, report)),
        progress_("tuning " + p_.program.name(), limit_s_),
        before_(p_.bindings.copy_written()),
        settings_(p_.function.knobs(p_.bindings.arguments()), knobs_of(invocation), invocation.seed),
        judge_(p_.program, before_.arguments()) {}

  void run() {
    baseline_ = make(settings_.automatic(), true);
    if (!baseline_) return;
    baseline_->timed.calibrate(screening_sample_s);
    seen_.insert(mapping_of(baseline_->plan));
    search();
    if (tried_ == 0 || measured_ == 0) nothing_measured();
    confirm();
    conclude();
  }

 private:
  bool before(double share) const { return since_s(begin_) < share * limit_s_; }

  static std::string mapping_of(const std::string& plan) { return Json::parse(plan)["mapping"].dump(); }

  // Planned, compiled, run once and judged. Null, and counted, where it cannot be used.
  CandidatePtr make(const Knobs& knobs, bool is_default = false) {
    Options options;
    options.knobs = knobs;
    options.cache = "";
    Function function(p_.program, device_, options);
    std::string plan;
    try {
      plan = function.plan(p_.bindings.arguments());
    } catch (const Error& e) {
      if (is_default || e.code != ErrorCode::bad_knob) throw;
      ++refused_[e.message];
      return nullptr;
    }
    if (!is_default && !seen_.insert(mapping_of(plan)).second) {
      ++same_;
      return nullptr;
    }
    Bindings own = before_.copy_written();
    poison_outputs(p_.program, own);
    Launch launch = function.prepare(own.arguments());
    auto made = std::make_unique<Candidate>(knobs, std::move(plan), own, std::move(launch));
    const auto begin = Clock::now();
    made->launch();
    const double once_s = since_s(begin);
    for (const Judgement& j : judge_(made->bindings.arguments())) {
      if (j.ok) continue;
      wrong_.push_back(
          {{"knobs", knobs}, {"output", j.output}, {"at", j.at}, {"got", number(j.got)}, {"expected", number(j.expected)}});
      report_.line(fmt::format("{}: {} is WRONG at {}: got {:.9g}, expected {:.9g}",
                               is_default ? "the default plan" : text_of(knobs), j.output, index_text(j.at), j.got, j.expected));
      report_.failed(check_failed);
      return nullptr;
    }
    if (is_default) {
      once_s_ = once_s;
    } else if (once_s > hopeless * once_s_ + 0.001) {
      ++slow_;
      return nullptr;
    }
    return made;
  }

  void search() {
    const std::size_t most =
        options_.most > 0 ? static_cast<std::size_t>(options_.most) : std::numeric_limits<std::size_t>::max();
    while (before(search_share) && tried_ < most) {
      std::optional<Knobs> knobs = settings_.next();
      if (!knobs) break;
      ++tried_;
      tried_list_.push_back(*knobs);
      CandidatePtr candidate = make(*knobs);
      progress_.fraction(std::min(1.0, since_s(begin_) / limit_s_));
      if (!candidate) continue;
      candidate->timed.calibrate(screening_sample_s);
      candidate->ratio = in_rounds(candidate->timed, baseline_->timed, screening_rounds, [&] { return before(search_share); });
      ++measured_;
      best_.push_back(std::move(candidate));
      std::stable_sort(best_.begin(), best_.end(),
                       [](const auto& a, const auto& b) { return a->ratio.median < b->ratio.median; });
      if (best_.size() > finalists) best_.pop_back();
    }
  }

  [[noreturn]] void nothing_measured() const {
    if (before(search_share))
      throw Error(ErrorCode::bad_argument, {},
                  fmt::format("{} has no setting of the knobs that differs from the default plan and works ({} tried)",
                              p_.program.name(), tried_),
                  "leave more knobs open");
    throw Error(ErrorCode::bad_argument, {},
                fmt::format("the time limit of {} ended before one setting was measured", human_seconds(limit_s_)),
                "give more --minutes");
  }

  void confirm() {
    baseline_->timed.calibrate(confirming_sample_s);
    for (std::size_t i = 0; i < best_.size(); ++i) {
      const double share = search_share + (1 - search_share) * static_cast<double>(i + 1) / static_cast<double>(best_.size());
      if (i > 0 && !before(1)) {  // without confirmation it is no winner
        best_.resize(i);
        break;
      }
      best_[i]->timed.calibrate(confirming_sample_s);
      best_[i]->ratio = in_rounds(best_[i]->timed, baseline_->timed, confirming_rounds, [&] { return before(share); });
      progress_.fraction(std::min(1.0, since_s(begin_) / limit_s_));
    }
    std::stable_sort(best_.begin(), best_.end(), [](const auto& a, const auto& b) { return a->ratio.median < b->ratio.median; });
  }

  void conclude() {
    std::int64_t refused = 0;
    Json reasons = Json::object();
    for (const auto& [reason, count] : refused_) refused += count, reasons[reason] = count;
    report_.line(fmt::format("tried {} settings: {} measured, {} planned alike, {} refused, {} too slow, {} wrong", tried_,
                             measured_, same_, refused, slow_, wrong_.size()));
    const Candidate& best = *best_.front();
    const bool faster = best.ratio.median < 1;
    if (faster)
      report_.line(fmt::format("best: {}: {} of the time of the default plan", text_of(best.knobs), text_of(best.ratio)));
    else
      report_.line(
          fmt::format("best: the default plan; the next, {}, takes {} of its time", text_of(best.knobs), text_of(best.ratio)));

    const Json environment = Json::parse(cosmati::environment());
    const Json ratio = {{"median", best.ratio.median}, {"low", best.ratio.low},     {"high", best.ratio.high},
                        {"better", best.ratio.better}, {"worse", best.ratio.worse}, {"rounds", best.ratio.rounds}};
    Json plan = Json::parse(faster ? best.plan : baseline_->plan);
    plan["environment"] = environment;
    if (faster) plan["tuned"] = ratio;
    const std::string file = options_.save.empty() ? p_.program.name() + ".plan.json" : options_.save;
    write_text(file, plan.dump(2) + "\n");
    report_.line("saved " + file);
    report_.object() = {{"program", p_.program.name()},
                        {"device", device_.name()},
                        {"environment", environment},
                        {"tried", tried_list_},
                        {"measured", measured_},
                        {"planned_alike", same_},
                        {"refused", reasons},
                        {"too_slow", slow_},
                        {"wrong", wrong_},
                        {"faster", faster},
                        {"knobs", plan["knobs"]},
                        {"best_knobs", best.knobs},
                        {"best_ratio", ratio},
                        {"file", file}};
  }

  const Clock::time_point begin_ = Clock::now();
  const TuneOptions& options_;
  Report& report_;
  const Device device_;
  const double limit_s_;
  const Prepared p_;
  Progress progress_;
  const Bindings before_;
  Settings settings_;
  const Judge judge_;
  CandidatePtr baseline_;
  double once_s_ = 0;
  std::vector<CandidatePtr> best_;  // the fastest so far, the fastest first
  std::set<std::string> seen_;      // mappings
  std::size_t tried_ = 0;
  std::vector<Knobs> tried_list_;
  int measured_ = 0, same_ = 0, slow_ = 0;
  std::map<std::string, int> refused_;
  Json wrong_ = Json::array();
};

}  // namespace

void tune(const Invocation& invocation, const TuneOptions& options, Report& report) {
  if (!(options.minutes > 0) || !std::isfinite(options.minutes))
    throw Error(ErrorCode::bad_argument, {}, fmt::format("--minutes is {}, and tuning needs time", options.minutes),
                "--minutes takes a number above 0");
  if (options.most < 0)
    throw Error(ErrorCode::bad_argument, {}, fmt::format("--most is {}; it takes a number of settings", options.most));
  if (device_of(invocation).name() == "oracle")
    throw Error(ErrorCode::bad_argument, {}, "the oracle has no plans to tune", "tune on cpu or sim");
  require_writable(options.save.empty() ? load(invocation.program).name() + ".plan.json" : options.save);
  Tuner(invocation, options, report).run();
}

}  // namespace cosmati::tools
