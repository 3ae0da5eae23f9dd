// SPDX-License-Identifier: Apache-2.0
// Lines of gpuwatch-probe, for people or as JSON; of both commands, the probe's
// own process and the one that asks an agent. It decides nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "probe/verify.h"

namespace gpuwatch::probe {

class Report {
 public:
  // `with_text`: each JSON line says in "text" what people are told, where they are.
  explicit Report(bool json, bool with_text = false) : json_(json), with_text_(with_text) {}
  void line(const nlohmann::json& object, const std::string& text);
  int failure(const Failure& failure, int gpu);
  bool json() const { return json_; }
  // Of several, from 1: stands in each JSON line from now on. 0: there is one.
  void set_round(std::uint64_t round) { round_ = round; }
  std::uint64_t round() const { return round_; }
  // Who read what verdicts are about: "gpu", by a kernel that ran there, or
  // "driver", which is asked for memory.
  void set_read_by(const char* who) { read_by_ = who; }
  const std::string& read_by() const { return read_by_; }

 private:
  bool json_;
  bool with_text_;
  std::uint64_t round_ = 0;
  std::string read_by_ = "gpu";
};

std::string format(const char* form, double value);
Nonce fresh_nonce();

struct Totals {
  std::size_t counts[5] = {};  // of functions
  std::size_t banks[5] = {};   // of constant banks
  std::size_t modules = 0;
  std::size_t skipped = 0;
  std::uint64_t bytes = 0;
  std::size_t batches = 0;
  double reading_ms[2] = {};  // on the GPU, of each of the two readings
};

// One function; with `quiet`, for people, not when it is in order.
void print_function(const FunctionVerdict& verdict, const std::string& label, int gpu, bool quiet, Report& report);
void print_bank(const FunctionVerdict& verdict, const std::string& label, int gpu, bool quiet, Report& report);
// Where the time of a batch went; JSON only.
void print_batch(const BatchFigures& figures, std::size_t number, int gpu, Report& report);
// Adds the numbers of verdicts to a line of sums.
void add_counts(const Totals& totals, nlohmann::json& object, std::string& text);

}  // namespace gpuwatch::probe
