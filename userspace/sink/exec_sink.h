// SPDX-License-Identifier: Apache-2.0
// ExecSink: runs a program for each alert, one at a time, with the alert's JSON
// line on its standard input. No shell, no argument from an alert, an
// environment of its own, a process group that is killed when its time is up.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "sink/sink.h"
#include "sink/token_bucket.h"

namespace gpuwatch::sink {

struct ExecOptions {
  std::vector<std::string> command{};  // absolute path, then fixed arguments
  std::chrono::milliseconds limit{10'000};
  Rate rate{};
  std::size_t output_bytes = 4096;  // of what it prints, kept for `log`
  // What a run printed, or what was wrong with it: one untrusted text, escaped.
  // Called on the sink's thread.
  std::function<void(const std::string&)> log{};
};

class ExecSink : public Sink {
 public:
  // Fails where the program is no executable file, or others than root and we
  // may change it.
  static base::Result<std::unique_ptr<Sink>> open(ExecOptions options);

  std::string_view name() const override { return "exec"; }
  bool wants(const Item& item) const override { return item.kind == ItemKind::kAlert; }
  Outcome write(std::span<const ItemPtr> items) override;
  void cancel() override;

 private:
  explicit ExecSink(ExecOptions options);
  base::Status run(const Item& item);

  ExecOptions options_;
  TokenBucket bucket_;
  base::Fd wake_;  // readable once cancelled
};

}  // namespace gpuwatch::sink
