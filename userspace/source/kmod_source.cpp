// SPDX-License-Identifier: Apache-2.0
#include "source/kmod_source.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/clock.h"
#include "source/host_info.h"
#include "source/image_watch.h"

namespace gpuwatch::source {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

std::uint64_t default_ring_bytes(std::uint32_t cpus) {
  const std::uint64_t share = (256ull << 20) / std::max<std::uint32_t>(cpus, 1);
  return std::clamp<std::uint64_t>(std::bit_floor(share), 256 << 10, 4 << 20);
}

Status check_meta(const gpuwatch_meta& meta, std::uint64_t ring_bytes, std::uint64_t page_bytes) {
  const auto wrong = [](const std::string& what) {
    return Error(Code::kBadInput,
                 "the module's meta page: " + what + "; install module and program of the same release", EPROTO);
  };
  if (meta.struct_len < sizeof meta) return wrong("struct of " + std::to_string(meta.struct_len) + " bytes");
  if (meta.abi_major != GPUWATCH_ABI_MAJOR) return wrong("ABI " + std::to_string(meta.abi_major));
  if (meta.page_bytes != page_bytes) return wrong("page of " + std::to_string(meta.page_bytes) + " bytes");
  if (meta.ring_bytes != ring_bytes || !std::has_single_bit(meta.ring_bytes))
    return wrong("ring of " + std::to_string(meta.ring_bytes) + " bytes where " + std::to_string(ring_bytes) +
                 " were asked for");
  if (meta.nr_cpus == 0 || meta.nr_cpus > 65536) return wrong(std::to_string(meta.nr_cpus) + " CPUs");
  if (meta.cpu_stride < 2 * page_bytes + 2 * ring_bytes || meta.cpu_stride % page_bytes != 0 ||
      meta.cpu_stride > (1ull << 40))
    return wrong("stride of " + std::to_string(meta.cpu_stride) + " bytes");
  return {};
}

KmodSource::KmodSource(KmodDevice device) : device_(std::move(device)) {}

KmodSource::~KmodSource() {
  for (const Mapping& mapping : mappings_) ::munmap(mapping.address, mapping.length);
}

Result<const std::byte*> KmodSource::map(std::uint64_t offset, std::size_t length, bool writable) {
  void* address = ::mmap(nullptr, length, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, device_.fd(),
                         static_cast<off_t>(offset));
  if (address == MAP_FAILED) {
    Error error = Error::from_errno("mapping " + std::to_string(length) + " bytes at " + std::to_string(offset) +
                                    " of the rings");
    if (writable && error.sys_errno() == EACCES)
      return Error(Code::kPermission, error.message() + "; the node is not writable for you: run it as root", EACCES);
    return error;
  }
  mappings_.push_back({address, length});
  return static_cast<const std::byte*>(address);
}

Status KmodSource::map_rings(std::uint64_t ring_bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  auto first = map(0, page, false);
  if (!first) return std::move(first.error());
  gpuwatch_meta meta{};
  std::memcpy(&meta, *first, sizeof meta);
  if (Status status = check_meta(meta, ring_bytes, page); !status.ok()) return status;
  std::vector<RingView> rings;
  for (std::uint32_t cpu = 0; cpu < meta.nr_cpus; ++cpu) {
    const std::uint64_t at = GPUWATCH_MMAP_CPU(&meta, cpu);
    auto consumer = map(at, page, true);
    if (!consumer) return std::move(consumer.error());
    auto producer = map(at + page, page + 2 * ring_bytes, false);
    if (!producer) return std::move(producer.error());
    RingView ring;
    ring.consumer = reinterpret_cast<gpuwatch_ring_consumer*>(const_cast<std::byte*>(*consumer));
    ring.producer = reinterpret_cast<const gpuwatch_ring_producer*>(*producer);
    ring.data = *producer + page;
    ring.cpu = cpu;
    rings.push_back(ring);
  }
  merger_ = std::make_unique<RingMerger>(std::move(rings), ring_bytes, base::monotonic_ns);
  return {};
}

Result<std::unique_ptr<KmodSource>> KmodSource::start(KmodDevice device, const KmodOptions& options) {
  std::unique_ptr<KmodSource> source(new KmodSource(std::move(device)));
  KmodDevice& dev = source->device_;
  const std::uint64_t ring_bytes =
      options.ring_bytes != 0 ? options.ring_bytes : default_ring_bytes(dev.info_at_open().nr_cpus);
  // An eighth of the ring leaves a reader that was woken the time of seven
  // more before anything is lost, and keeps wake-ups rare.
  const auto watermark = options.watermark_bytes != 0
                             ? options.watermark_bytes
                             : static_cast<std::uint32_t>(std::max<std::uint64_t>(ring_bytes / 8, 1));
  source->batch_records_ = options.batch_records;
  source->header_ = describe_host("kmod");
  source->header_.abi_major = dev.info_at_open().abi_major;
  source->header_.abi_minor = dev.info_at_open().abi_minor;
  source->header_.schema = dev.info_at_open().schema;
  source->probe_missed_before_ = dev.info_at_open().probe_missed;
  const std::uint32_t flags = options.hold_images ? GPUWATCH_SETUP_HOLD_IMAGES : 0;
  if (Status status = dev.setup(ring_bytes, options.mode, watermark, flags); !status.ok())
    return std::move(status.error());
  if (Status status = dev.set_filter(options.filter); !status.ok()) return std::move(status.error());
  if (Status status = source->map_rings(ring_bytes); !status.ok()) return std::move(status.error());
  if (Status status = dev.enable(); !status.ok()) return std::move(status.error());
  return source;
}

Result<std::unique_ptr<KmodSource>> KmodSource::resume(KmodDevice device, std::size_t batch_records) {
  std::unique_ptr<KmodSource> source(new KmodSource(std::move(device)));
  const gpuwatch_info& info = source->device_.info_at_open();
  source->resumed_ = true;
  source->batch_records_ = batch_records;
  source->header_ = describe_host("kmod");
  source->header_.abi_major = info.abi_major;
  source->header_.abi_minor = info.abi_minor;
  source->header_.schema = info.schema;
  source->probe_missed_before_ = info.probe_missed;
  auto first = source->map(0, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), false);
  if (!first) return std::move(first.error());
  gpuwatch_meta meta{};
  std::memcpy(&meta, *first, sizeof meta);
  if (Status status = source->map_rings(meta.ring_bytes); !status.ok()) return std::move(status.error());
  return source;
}

Status KmodSource::next_batch(std::vector<model::RawRecord>& batch) {
  if (!stopped_) return merger_->next_batch(batch, batch_records_);
  Status status = merger_->drain_batch(batch, batch_records_);
  drained_ = status.ok() && batch.empty();
  return status;
}

Status KmodSource::wait(std::chrono::milliseconds timeout) {
  if (stopped_) return {};
  pollfd poller{device_.fd(), POLLIN, 0};
  if (::poll(&poller, 1, static_cast<int>(timeout.count())) < 0 && errno != EINTR)
    return Error::from_errno("waiting for records");
  return {};
}

Status KmodSource::stop() {
  if (stopped_) return {};
  stopped_ = true;
  return device_.disable();
}

model::LossCounts KmodSource::lost() {
  model::LossCounts lost = merger_->lost();
  // Module-wide, so in no ring: what was missed since we began.
  if (auto stats = device_.stats(); stats.ok()) {
    const std::uint64_t missed = stats->lost[GPUWATCH_LOSS_PROBE_MISSED];
    lost.by_reason[GPUWATCH_LOSS_PROBE_MISSED] = missed > probe_missed_before_ ? missed - probe_missed_before_ : 0;
  }
  return lost;
}

void KmodSource::set_images(std::unique_ptr<ImageWatch> images) {
  images_ = std::move(images);
}

Result<ImageBytes> KmodSource::take_image(const gpuwatch_rec_image& image) {
  if (!images_) return Source::take_image(image);
  return images_->take(image.id);
}

Status KmodSource::snapshot(const std::function<Status(const model::RawRecord&, model::Bytes)>& sink) {
  return merger_->snapshot(sink);
}

}  // namespace gpuwatch::source
