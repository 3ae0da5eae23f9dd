// SPDX-License-Identifier: Apache-2.0
// KmodDevice: /dev/gpuwatch as typed calls. Each error names what was tried
// and the remedy. It holds no ring: see kmod_source.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/raw_record.h"
#include "source/image_bytes.h"

namespace gpuwatch::source {

inline constexpr const char* kDevicePath = "/dev/gpuwatch";

// Bounds of gpuwatch_setup.ring_bytes.
inline constexpr std::uint64_t kRingMin = 4096;
inline constexpr std::uint64_t kRingMax = 64ull << 20;

// Refuses another ABI major, and says both numbers. A newer minor or schema is
// fine.
base::Status check_versions(const gpuwatch_info& info);

class KmodDevice {
 public:
  // Opens and checks versions; remembers the answer as info_at_open().
  static base::Result<KmodDevice> open(const std::string& path = kDevicePath);

  // A consumer that somebody opened earlier, at whatever point it is.
  static base::Result<KmodDevice> adopt(base::Fd fd);

  const gpuwatch_info& info_at_open() const { return info_; }
  int fd() const { return fd_.get(); }
  base::Fd take_fd() && { return std::move(fd_); }

  base::Result<gpuwatch_info> info() const;
  base::Result<std::vector<gpuwatch_target>> targets() const;
  base::Result<gpuwatch_stats> stats() const;
  base::Status setup(std::uint64_t ring_bytes, gpuwatch_ring_mode mode, std::uint32_t watermark_bytes,
                     std::uint32_t flags = 0);
  base::Status set_filter(const gpuwatch_filter& filter);
  base::Status enable();
  base::Status disable();
  base::Status attach();

  // The number of calls still inside the driver: 0 when the hooks are out.
  base::Result<std::uint32_t> detach(std::uint32_t timeout_ms);

  // Module images. The id of the probe; the file at `fd` may be closed then.
  base::Result<std::uint32_t> add_probe(const gpuwatch_probe& probe) const;
  base::Status remove_probe(std::uint32_t id) const;
  // Bytes stored under that id, mapped; this consumer's hold on them is given up.
  base::Result<ImageBytes> take_image(std::uint64_t id) const;
  base::Status drop_image(std::uint64_t id) const;
  base::Result<gpuwatch_image_status> image_status() const;

  // The new plan's number.
  base::Result<std::uint32_t> set_plan(std::span<const gpuwatch_plan_entry> entries,
                                       std::span<const gpuwatch_plan_size> sizes, std::uint32_t default_bytes);

 private:
  explicit KmodDevice(base::Fd fd) : fd_(std::move(fd)) {}

  base::Fd fd_;
  gpuwatch_info info_{};
};

}  // namespace gpuwatch::source
