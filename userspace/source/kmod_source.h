// SPDX-License-Identifier: Apache-2.0
// KmodSource: records of the loaded kernel module, live from its rings, or in
// overwrite mode as a flight recorder that is dumped on demand. It follows at
// the rate of the ring: it sleeps in poll() and makes no call per record.
#pragma once

#include <memory>

#include "base/fd.h"
#include "source/kmod_device.h"
#include "source/ring_merger.h"
#include "source/source.h"

namespace gpuwatch::source {

class ImageWatch;

struct KmodOptions {
  std::uint64_t ring_bytes = 0;  // per CPU, a power of two; 0: chosen by number of CPUs
  gpuwatch_ring_mode mode = GPUWATCH_MODE_DROP_NEWEST;
  gpuwatch_filter filter{};  // cgroup_fd -1 where none is meant
  bool hold_images = false;  // that others' probes capture, too
  std::size_t batch_records = 4096;
  std::uint32_t watermark_bytes = 0;  // that wake a waiting reader; 0: an eighth of a ring
};

// Bytes per CPU for a machine of that many CPUs: at most 4 MiB each and
// 256 MiB together, at least 256 KiB each.
std::uint64_t default_ring_bytes(std::uint32_t cpus);

// Checks a mapped meta page against what was asked for.
base::Status check_meta(const gpuwatch_meta& meta, std::uint64_t ring_bytes, std::uint64_t page_bytes);

class KmodSource final : public Source {
 public:
  // Sets up rings and filter, maps and enables.
  static base::Result<std::unique_ptr<KmodSource>> start(KmodDevice device, const KmodOptions& options);
  // Goes on where an earlier reader of the same consumer stopped: its rings are
  // set up and filled. What that one had read and not released comes again.
  static base::Result<std::unique_ptr<KmodSource>> resume(KmodDevice device, std::size_t batch_records = 4096);
  ~KmodSource() override;

  // See ring_merger.h: space is given back by release_read() only.
  void hold() { merger_->hold(resumed_); }
  void release_read() { merger_->release_read(); }
  bool pressed() const { return merger_->pressed(); }

  base::Status next_batch(std::vector<model::RawRecord>& batch) override;
  bool ended() const override { return stopped_ && drained_; }
  base::Status wait(std::chrono::milliseconds timeout) override;
  base::Status stop() override;
  model::LossCounts lost() override;
  const GwcapHeader& header() const override { return header_; }

  // Overwrite mode: what the rings hold now, in order.
  base::Status snapshot(const std::function<base::Status(const model::RawRecord&, model::Bytes)>& sink);

  const KmodDevice& device() const { return device_; }

  // From now on module images are captured, and take_image() gives them.
  void set_images(std::unique_ptr<ImageWatch> images);
  ImageWatch* images() { return images_.get(); }
  base::Result<ImageBytes> take_image(const gpuwatch_rec_image& image) override;

 private:
  struct Mapping {
    void* address = nullptr;
    std::size_t length = 0;
  };

  explicit KmodSource(KmodDevice device);
  base::Result<const std::byte*> map(std::uint64_t offset, std::size_t length, bool writable);
  base::Status map_rings(std::uint64_t ring_bytes);

  KmodDevice device_;
  GwcapHeader header_;
  std::vector<Mapping> mappings_;
  std::unique_ptr<RingMerger> merger_;
  std::size_t batch_records_ = 4096;
  bool stopped_ = false;
  bool drained_ = false;
  bool resumed_ = false;
  std::uint64_t probe_missed_before_ = 0;
  std::unique_ptr<ImageWatch> images_;
};

}  // namespace gpuwatch::source
