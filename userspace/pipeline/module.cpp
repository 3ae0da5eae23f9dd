// SPDX-License-Identifier: Apache-2.0
#include "pipeline/module.h"

#include "decode/capture_plan.h"
#include "source/host_info.h"

namespace gpuwatch::pipeline {

using base::Error;
using base::Result;
using base::Status;

Status send_capture_plan(source::KmodDevice& device) {
  const auto version = model::parse_driver_version(source::driver_version()).value_or(model::DriverVersion{});
  const decode::CapturePlan plan = decode::make_capture_plan(version);
  auto generation = device.set_plan(plan.entries, plan.sizes, plan.default_bytes);
  if (generation.ok()) return {};
  const std::uint32_t current = device.info_at_open().plan_generation;
  return Error(generation.error().code(),
               generation.error().message() + "; going on with " +
                   (current == 0 ? "the built-in plan" : "plan " + std::to_string(current)) +
                   ", which may copy fewer bytes",
               generation.error().sys_errno());
}

Result<std::unique_ptr<source::ImageWatch>> watch_images(const gpuwatch_filter& filter, bool keep) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  return watch_images(std::move(*device), filter, keep);
}

Result<std::unique_ptr<source::ImageWatch>> watch_images(source::KmodDevice device, const gpuwatch_filter& filter,
                                                         bool keep) {
  source::ImageWatchOptions options;
  options.filter = filter;
  options.keep = keep;
  return source::ImageWatch::start(std::move(device), options);
}

}  // namespace gpuwatch::pipeline
