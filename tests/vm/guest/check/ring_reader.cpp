// SPDX-License-Identifier: Apache-2.0
// Maps the rings as include/uapi/linux/gpuwatch.h describes and walks them.
#include "ring_reader.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpuwatch::check {

void die(const char* what) {
  std::fprintf(stderr, "gw-check: %s: %s\n", what, std::strerror(errno));
  std::exit(2);
}

RingReader::RingReader(const Setup& setup) : setup_(setup) {
  fd_ = ::open("/dev/gpuwatch", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0) die("/dev/gpuwatch");
  gpuwatch_setup request{};
  request.abi_major = GPUWATCH_ABI_MAJOR;
  request.mode = setup.overwrite ? GPUWATCH_MODE_OVERWRITE : GPUWATCH_MODE_DROP_NEWEST;
  request.watermark_bytes = setup.watermark_bytes;
  request.ring_bytes = setup.ring_bytes;
  if (::ioctl(fd_, GPUWATCH_IOC_SETUP, &request) != 0) die("setup");
  if (!setup.by_read) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    void* meta = ::mmap(nullptr, page, PROT_READ, MAP_SHARED, fd_, 0);
    if (meta == MAP_FAILED) die("map the first page");
    meta_ = static_cast<const gpuwatch_meta*>(meta);
    for (std::uint32_t i = 0; i < meta_->nr_cpus; ++i) {
      const auto at = static_cast<off_t>(GPUWATCH_MMAP_CPU(meta_, i));
      void* consumer = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, at);
      void* rest = ::mmap(nullptr, page + 2 * meta_->ring_bytes, PROT_READ, MAP_SHARED, fd_, at + static_cast<off_t>(page));
      if (consumer == MAP_FAILED || rest == MAP_FAILED) die("map a ring");
      Cpu cpu;
      cpu.consumer = static_cast<gpuwatch_ring_consumer*>(consumer);
      cpu.producer = static_cast<const gpuwatch_ring_producer*>(rest);
      cpu.data = static_cast<const std::byte*>(rest) + page;
      cpus_.push_back(cpu);
    }
  }
  if (::ioctl(fd_, GPUWATCH_IOC_ENABLE) != 0) die("enable");
}

RingReader::~RingReader() { ::close(fd_); }

void RingReader::disable() {
  if (::ioctl(fd_, GPUWATCH_IOC_DISABLE) != 0) die("disable");
}

std::size_t RingReader::walk(std::span<const std::byte> bytes, const OnRecord& on_record) {
  std::size_t count = 0;
  while (bytes.size() >= sizeof(gpuwatch_rec)) {
    gpuwatch_rec head;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.len < sizeof head || head.len % 8 != 0 || head.len > bytes.size()) break;
    on_record(head, bytes.subspan(sizeof head, head.len - sizeof head));
    bytes = bytes.subspan(head.len);
    ++count;
  }
  if (!bytes.empty()) ++bad_;  // the kernel promises whole records
  return count;
}

// Gives room back after every record: the command under test is faster.
std::size_t RingReader::drain_cpu(Cpu& cpu, const OnRecord& on_record) {
  const std::uint64_t head = __atomic_load_n(&cpu.producer->head, __ATOMIC_ACQUIRE);
  const std::uint64_t tail = cpu.consumer->tail;
  if (head == tail) return 0;
  if (head - tail > meta_->ring_bytes) ++bad_;
  std::uint64_t done = tail;
  const std::size_t count = walk({cpu.data + tail % meta_->ring_bytes, head - tail},
                                 [&](const gpuwatch_rec& record, std::span<const std::byte> payload) {
                                   on_record(record, payload);
                                   done += record.len;
                                   __atomic_store_n(&cpu.consumer->tail, done, __ATOMIC_RELEASE);
                                 });
  __atomic_store_n(&cpu.consumer->tail, head, __ATOMIC_RELEASE);
  return count;
}

std::size_t RingReader::drain_read(const OnRecord& on_record) {
  static std::byte buffer[1 << 20];
  std::size_t count = 0;
  for (;;) {
    const ssize_t got = ::read(fd_, buffer, sizeof buffer);
    if (got < 0 && errno == EAGAIN) return count;
    if (got < 0) die("read");
    if (got == 0) return count;
    count += walk({buffer, static_cast<std::size_t>(got)}, on_record);
  }
}

std::size_t RingReader::drain(const OnRecord& on_record) {
  if (setup_.by_read) return drain_read(on_record);
  std::size_t count = 0;
  for (Cpu& cpu : cpus_) count += drain_cpu(cpu, on_record);
  return count;
}

gpuwatch_stats RingReader::stats() const {
  gpuwatch_stats stats{};
  if (::ioctl(fd_, GPUWATCH_IOC_GET_STATS, &stats) != 0) die("statistics");
  return stats;
}

std::vector<std::uint64_t> RingReader::lost() const {
  const gpuwatch_stats sum = stats();
  return {std::begin(sum.lost), std::end(sum.lost)};
}

std::uint64_t RingReader::records() const { return stats().records; }

std::int64_t RingReader::unaccounted() const {
  std::int64_t rest = 0;
  for (const Cpu& cpu : cpus_)
    rest += static_cast<std::int64_t>(cpu.producer->next_seq - cpu.producer->records -
                                      cpu.producer->lost[GPUWATCH_LOSS_RING_FULL] -
                                      cpu.producer->lost[GPUWATCH_LOSS_TOO_BIG]);
  return rest;
}

}  // namespace gpuwatch::check
