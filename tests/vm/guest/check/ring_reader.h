// SPDX-License-Identifier: Apache-2.0
// A consumer of /dev/gpuwatch made for tests alone: it shares no code with the
// reader of user space, so that both cannot be wrong in the same way.
#pragma once

#include <linux/gpuwatch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace gpuwatch::check {

using OnRecord = std::function<void(const gpuwatch_rec&, std::span<const std::byte>)>;

class RingReader {
 public:
  struct Setup {
    std::uint64_t ring_bytes = 32 << 20;
    std::uint32_t watermark_bytes = 0;
    bool overwrite = false;
    bool by_read = false;  // read(2) instead of mmap(2)
  };

  // Opens, maps and enables; ends the program with its reason when it cannot.
  explicit RingReader(const Setup& setup);
  ~RingReader();
  RingReader(const RingReader&) = delete;
  RingReader& operator=(const RingReader&) = delete;

  int fd() const { return fd_; }
  void disable();
  // Everything committed so far; returns the number of records.
  std::size_t drain(const OnRecord& on_record);
  // By gpuwatch_loss, from the producer pages (or the statistics with by_read).
  std::vector<std::uint64_t> lost() const;
  std::uint64_t records() const;
  // Sum over the rings of next_seq - records - lost[FULL] - lost[TOO_BIG]: 0.
  std::int64_t unaccounted() const;
  std::uint64_t bad_records() const { return bad_; }

 private:
  struct Cpu {
    gpuwatch_ring_consumer* consumer = nullptr;
    const gpuwatch_ring_producer* producer = nullptr;
    const std::byte* data = nullptr;
    std::uint64_t next_seq = 0;
  };
  std::size_t drain_cpu(Cpu& cpu, const OnRecord& on_record);
  std::size_t drain_read(const OnRecord& on_record);
  std::size_t walk(std::span<const std::byte> bytes, const OnRecord& on_record);
  gpuwatch_stats stats() const;

  int fd_ = -1;
  Setup setup_;
  const gpuwatch_meta* meta_ = nullptr;
  std::vector<Cpu> cpus_;
  std::uint64_t bad_ = 0;
};

[[noreturn]] void die(const char* what);

}  // namespace gpuwatch::check
