// What the tool prints: lines for people, or one JSON object.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cosmati/error.h>
#include <cosmati/runtime.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

namespace cosmati::tools {

enum Exit : int { done = 0, check_failed = 1, wrong_input = 2, internal_error = 3, no_backend = 4 };

// Lines go to standard output at once; with `json` they are dropped, and finish() prints the object instead.
class Report {
 public:
  explicit Report(bool json) : json_(json) {}
  bool json() const { return json_; }
  void line(const std::string& text) const;
  // For people only: on standard error, and not at all with `json`.
  void note(const std::string& text) const;
  nlohmann::ordered_json& object() { return object_; }
  // Records an exception: its text on standard error (a JSON run keeps it in `errors`), its exit code returned and kept.
  int error(std::exception_ptr problem);
  void failed(Exit code);
  // Prints the object of a --json run. Returns the exit code.
  int finish();

 private:
  const bool json_;
  int code_ = done;
  nlohmann::ordered_json object_ = nlohmann::ordered_json::object(), errors_ = nlohmann::ordered_json::array();
};

// Numbers of an array, over its elements that are not NaN.
struct Summary {
  double min, max, mean;  // NaN where there is no element
  std::int64_t nan = 0;
};
Summary summarise(const TensorView& view);

// "f32[37,1537]".
std::string type_text(const TensorView& view);
std::string index_text(const std::vector<std::int64_t>& at);  // "(3, 5)"
// A number that JSON has no form for is a string: "nan", "inf", "-inf".
nlohmann::ordered_json number(double value);

}  // namespace cosmati::tools
