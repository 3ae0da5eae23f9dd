// SPDX-License-Identifier: Apache-2.0
#include "made_up.h"

#include <cstring>
#include <limits>

#include "cli/status_report.h"
#include "report/holdings.h"

namespace gpuwatch::golden {

namespace {

constexpr char kHostile[] = "\x1b[31m\xff\"\\\n\xed\xa0\x80";
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

report::HeldProcess process(std::uint32_t pid) {
  report::HeldProcess out;
  out.who.pid = pid;
  out.who.uid = 0xffffffffU;
  out.who.start_ns = kMost;
  return out;
}

}  // namespace

std::string made_up_status() {
  cli::StatusReport least;
  least.module_error = kHostile;
  std::string out = cli::status_json(least);

  cli::StatusReport all;
  all.kernel_release = all.driver_version = kHostile;
  gpuwatch_info info{};
  std::memset(info.release, 'x', sizeof info.release);
  info.features = kMost;
  info.probe_missed = kMost;
  info.attached = info.nr_consumers = info.nr_cpus = 1;
  all.module = info;
  for (std::uint32_t kind = 0; kind < 4; ++kind) {
    gpuwatch_target target{};
    std::memcpy(target.module, kHostile, sizeof kHostile);
    target.op = kind;
    target.method = kind < 3 ? kind : 0;
    target.error = kind == 0 ? -16 : 0;
    all.functions.push_back(target);
  }
  gpuwatch_image_status images{};
  images.lost[0] = images.lost[GPUWATCH_IMAGE_LOSS_MAX - 1] = kMost;
  all.images = images;
  all.daemon_running = true;
  cli::BaselineState baseline;
  baseline.path = baseline.label = baseline.signed_by = kHostile;
  baseline.deny = true;
  baseline.modified_unix = std::numeric_limits<std::int64_t>::max();
  all.baselines.push_back(baseline);
  baseline.error = kHostile;
  all.baselines.push_back(baseline);
  out += cli::status_json(all);

  // What was not seen has its reason in place of it.
  all.functions.clear();
  all.functions_error = all.images_error = all.daemon_error = kHostile;
  all.images.reset();
  all.daemon_running.reset();
  return out + cli::status_json(all);
}

std::string made_up_holdings() {
  report::HoldingsSnapshot least;
  least.source = "rings";
  report::HoldingsSnapshot all = least;
  all.source = "daemon";
  all.driver_version = kHostile;
  all.realtime_offset_ns = -1;
  all.lost = {{kHostile, kMost}};
  report::HeldProcess full = process(1);
  full.who.ns_pid = 2;
  full.who.cgroup_id = 3;
  full.who.slurm_job = 4;
  for (std::string* text : {&full.who.comm, &full.who.exe, &full.who.cgroup_path, &full.who.runtime,
                            &full.who.container_id, &full.who.container_name, &full.who.image, &full.who.pod_uid,
                            &full.who.pod_name, &full.who.pod_namespace, &full.who.unit})
    *text = kHostile;
  full.partial = full.open = full.code.silent = true;
  full.ended_ns = full.findings = full.denied = full.calls = kMost;
  full.calls_per_second = 0.5;
  full.gpu_percent = 100;
  full.code.loads = full.code.unjudged = full.code.jit_allowed = 1;
  for (std::uint64_t& count : full.code.verdicts) count = 1;
  report::HeldGpu gpu;
  gpu.containers.push_back({"a", {full, process(2)}});
  gpu.containers.push_back({"b", {process(3)}});
  all.gpus.push_back(gpu);
  gpu.minor = gpu.device = 0;
  gpu.pci = gpu.uuid = gpu.name = kHostile;
  all.gpus.push_back(gpu);
  return report::holdings_json(least) + "\n" + report::holdings_json(all) + "\n";
}

}  // namespace gpuwatch::golden
