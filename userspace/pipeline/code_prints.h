// SPDX-License-Identifier: Apache-2.0
// From what identify finds to what judge compares: the one place that knows
// both. It decides nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "identify/identify.h"
#include "judge/baseline.h"
#include "judge/policy.h"
#include "model/fingerprint.h"

namespace gpuwatch::pipeline {

model::ModulePrint print_of(const identify::Entry& entry);

// Hands on every entry as it is found; keeps what went wrong.
class PrintSink : public identify::Sink {
 public:
  using Take = std::function<void(const std::string& file, const identify::Entry& entry)>;
  using Stop = bool (*)();  // asked now and then; nothing: never
  explicit PrintSink(Take take, Stop stop = nullptr) : take_(std::move(take)), stop_(stop) {}

  void entry(const std::string& file, const identify::Entry& entry) override { take_(file, entry); }
  void container(const std::string& file, const identify::Container& container) override;
  void error(const std::string& file, const std::string& what) override;
  bool stop_wanted() override { return stop_ != nullptr && stop_(); }

  // "file: what", at most a thousand; the count goes on.
  const std::vector<std::string>& errors() const { return errors_; }
  std::uint64_t error_count() const { return error_count_; }

 private:
  Take take_;
  Stop stop_;
  std::vector<std::string> errors_;
  std::uint64_t error_count_ = 0;
};

// Baselines opened for judging, in the order given.
class Baselines {
 public:
  // Of no names: $GPUWATCH_BASELINE, a list with colons, else the file
  // kDefaultBaseline where it is there.
  static base::Result<Baselines> open(std::vector<std::string> names);

  bool empty() const { return owned_.empty(); }
  std::span<judge::Lookup* const> lookups() const { return lookups_; }
  std::span<judge::Baseline* const> all() const { return all_; }

 private:
  std::vector<std::unique_ptr<judge::Baseline>> owned_;
  std::vector<judge::Lookup*> lookups_;
  std::vector<judge::Baseline*> all_;
};

inline constexpr char kDefaultBaseline[] = "/var/lib/gpuwatch/baseline.db";

// No name: a policy without rules.
base::Result<judge::Policy> read_policy(const std::string& name);

}  // namespace gpuwatch::pipeline
