// SPDX-License-Identifier: Apache-2.0
#include "cli/live.h"

#include "cli/output.h"
#include "pipeline/module.h"

namespace gpuwatch::cli {

using base::Result;
using base::Status;

Result<std::unique_ptr<source::KmodSource>> start_live(const Flags& flags, Selection& selection,
                                                       gpuwatch_ring_mode mode, std::uint64_t ring_bytes) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  if (device->info_at_open().schema > GPUWATCH_SCHEMA)
    say("the module's records have schema " + std::to_string(device->info_at_open().schema) + ", this program knows " +
        std::to_string(GPUWATCH_SCHEMA) + ": what is new in them is not shown");
  // Without the plan the module's built-in one is used, which is safe and knows
  // less: worth a line, no reason to stop.
  if (const Status sent = pipeline::send_capture_plan(*device); !sent.ok()) say(sent.error().message());
  auto filter = selection.kernel_filter();
  if (!filter) return std::move(filter.error());
  source::KmodOptions options;
  options.ring_bytes = ring_bytes != 0 ? ring_bytes : flags.number("ring-bytes").value_or(0);
  options.mode = mode;
  options.filter = *filter;
  return source::KmodSource::start(std::move(*device), options);
}

void start_images(Selection& selection, source::KmodSource& source, bool keep) {
  if (!selection.wants(GPUWATCH_REC_IMAGE)) return;
  const auto give_up = [](const base::Error& error) {
    say(error.message() + "; going on without the GPU modules that programs load");
  };
  auto filter = selection.kernel_filter();
  if (!filter) return give_up(filter.error());
  auto watch = pipeline::watch_images(*filter, keep);
  if (!watch) return give_up(watch.error());
  source.set_images(std::move(*watch));
}

std::string loss_line(const model::LossCounts& lost, std::uint64_t records) {
  std::string line =
      "lost " + std::to_string(lost.total()) + " of " + std::to_string(records + lost.total()) + " records";
  bool first = true;
  for (std::size_t i = 0; i < lost.by_reason.size(); ++i) {
    if (lost.by_reason[i] == 0) continue;
    line += first ? ": " : ", ";
    const std::string_view name = model::loss_name(i);
    line +=
        (name.empty() ? "reason " + std::to_string(i) : std::string(name)) + " " + std::to_string(lost.by_reason[i]);
    first = false;
  }
  return line;
}

}  // namespace gpuwatch::cli
