// SPDX-License-Identifier: Apache-2.0
#include "cli/live.h"

#include "cli/output.h"
#include "decode/capture_plan.h"
#include "source/host_info.h"
#include "source/image_watch.h"

namespace gpuwatch::cli {

using base::Result;
using base::Status;

namespace {

// Without the plan the module's built-in one is used, which is safe and knows
// less: worth a line, no reason to stop.
void send_plan(source::KmodDevice& device) {
  const auto version = model::parse_driver_version(source::driver_version()).value_or(model::DriverVersion{});
  const decode::CapturePlan plan = decode::make_capture_plan(version);
  auto generation = device.set_plan(plan.entries, plan.sizes, plan.default_bytes);
  if (generation.ok()) return;
  const std::uint32_t current = device.info_at_open().plan_generation;
  say(generation.error().message() + "; going on with " +
      (current == 0 ? "the built-in plan" : "plan " + std::to_string(current)) + ", which may copy fewer bytes");
}

}  // namespace

Result<std::unique_ptr<source::KmodSource>> start_live(const Flags& flags, Selection& selection,
                                                       gpuwatch_ring_mode mode, std::uint64_t ring_bytes) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  if (device->info_at_open().schema > GPUWATCH_SCHEMA)
    say("the module's records have schema " + std::to_string(device->info_at_open().schema) + ", this program knows " +
        std::to_string(GPUWATCH_SCHEMA) + ": what is new in them is not shown");
  send_plan(*device);
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
  auto device = source::KmodDevice::open();
  if (!device) return give_up(device.error());
  auto filter = selection.kernel_filter();
  if (!filter) return give_up(filter.error());
  source::ImageWatchOptions options;
  options.filter = *filter;
  options.keep = keep;
  auto watch = source::ImageWatch::start(std::move(*device), options);
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
