// SPDX-License-Identifier: Apache-2.0
#include "daemon/rings.h"

#include <sys/resource.h>

#include "daemon/log.h"
#include "pipeline/module.h"

namespace gpuwatch::daemon {

using base::Result;
using base::Status;

namespace {

// A batch keeps its space in the ring until all of it is copied: small ones make
// room soon.
constexpr std::size_t kBatch = 512;

Status resume(base::Fd ring, base::Fd memory, Rings& rings) {
  auto progress = Progress::adopt(std::move(memory));
  if (!progress) return std::move(progress.error());
  auto device = source::KmodDevice::adopt(std::move(ring));
  if (!device) return std::move(device.error());
  auto source = source::KmodSource::resume(std::move(*device), kBatch);
  if (!source) return std::move(source.error());
  rings.source = std::move(*source);
  rings.progress.emplace(std::move(*progress));
  rings.resumed = true;
  return {};
}

Status begin(const Settings& settings, Rings& rings) {
  auto device = source::KmodDevice::open();
  if (!device) return std::move(device.error());
  if (const Status sent = pipeline::send_capture_plan(*device); !sent.ok())
    say(Level::kWarning, sent.error().message());
  source::KmodOptions how;
  how.ring_bytes = settings.number(Key::kRingBytes);
  how.batch_records = kBatch;
  how.filter.cgroup_fd = -1;
  how.hold_images = settings.flag(Key::kImages);
  auto source = source::KmodSource::start(std::move(*device), how);
  if (!source) return std::move(source.error());
  rings.source = std::move(*source);
  auto progress = Progress::create();
  if (!progress) return std::move(progress.error());
  rings.progress.emplace(std::move(*progress));
  return {};
}

}  // namespace

Result<Rings> open_rings(const Settings& settings, std::vector<KeptFd> kept, Notify& notify) {
  Rings rings;
  // 20 minus the nice value that the reader may give itself; units do it by
  // LimitNICE=, where this is refused.
  constexpr rlimit kNiceLimit{30, 30};
  (void)::setrlimit(RLIMIT_NICE, &kNiceLimit);
  base::Fd ring, memory;
  for (KeptFd& one : kept) (one.name == kRingName ? ring : memory) = std::move(one.fd);
  if (ring.valid() && memory.valid())
    if (const Status status = resume(std::move(ring), std::move(memory), rings); !status.ok())
      say(Level::kWarning, "cannot go on with the ring of the earlier process: " + status.error().message() +
                               "; beginning with a new one");
  if (!rings.resumed)
    if (Status status = begin(settings, rings); !status.ok()) return std::move(status.error());
  rings.source->hold();
  if (notify.keeps() && !rings.resumed) {
    notify.forget(kRingName);
    notify.forget(kProgressName);
    if (!notify.keep(kRingName, rings.source->device().fd()) || !notify.keep(kProgressName, rings.progress->fd()))
      say(Level::kWarning, "nobody keeps the ring: a restart begins with an empty one");
  }
  if (settings.flag(Key::kImages)) {
    auto device = source::KmodDevice::open();
    if (device)
      rings.image_device.emplace(std::move(*device));
    else
      say(Level::kWarning, device.error().message() + "; going on without the GPU modules that programs load");
  }
  return rings;
}

}  // namespace gpuwatch::daemon
