// SPDX-License-Identifier: Apache-2.0
// GPU code that a running process has at hand: files it has mapped, whatever
// became of their names, and images in memory of no file. What is found was in
// memory; that it was loaded is proven by IMAGE records alone. A process is
// gone through in steps of bounded work and, later, only where its mappings
// changed. It stops nobody, and parses nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "scan/magics.h"
#include "scan/maps.h"

namespace gpuwatch::scan {

struct MappedFile {
  base::Fd fd;  // open for reading: the very file that is mapped
  std::string path;
  std::uint32_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  bool deleted = false;  // has no name any more
  bool memfd = false;    // never had one
  bool by_path = false;  // map_files was not to be had: found by name, and compared
};

struct MemoryImage {
  FindKind kind = FindKind::kContainer;
  std::uint64_t address = 0;
  std::string mapping;  // "[heap]", "[anon]", ...
  std::vector<std::byte> bytes;
};

class ScanSink {
 public:
  virtual ~ScanSink() = default;
  virtual void file(MappedFile file) = 0;
  virtual void memory(MemoryImage image) = 0;
};

struct ScanOptions {
  std::string proc = "/proc";                // replaced in tests
  std::uint64_t image_bytes = 64ull << 20;   // of one image in memory
  std::uint64_t found_bytes = 512ull << 20;  // of all images of one process
  std::uint64_t memory_bytes = 64ull << 30;  // looked at in one process
  std::size_t processes = 4096;              // remembered
};

struct ScanCounts {
  std::uint64_t files = 0;
  std::uint64_t images = 0;
  std::uint64_t bytes = 0;       // of memory looked at
  std::uint64_t refused = 0;     // mappings that could not be opened or read
  std::uint64_t over_limit = 0;  // images left out for their size
};

// Whether the process with that number is the one that started then
// (CLOCK_BOOTTIME), and not another that got its number.
bool is_process(const std::string& proc, std::uint32_t pid, std::uint64_t start_ns);

class ProcessScan {
 public:
  explicit ProcessScan(ScanOptions options = {}) : options_(std::move(options)) {}

  // Goes on with the process until about `budget` bytes of memory were looked
  // at. True: nothing is left that is new. Files seen in any process before are
  // not given again. An error: the process is gone, or may not be looked into.
  base::Result<bool> step(std::uint32_t pid, std::uint64_t budget, ScanSink& sink);

  const ScanCounts& counts() const { return counts_; }

 private:
  using FileKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::int64_t>;  // device, inode, size, mtime
  struct Process {
    std::uint64_t start = 0;
    std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> done;  // begin, end, inode
    std::vector<Mapping> todo;
    std::uint64_t at = 0;       // within the first of todo
    std::uint64_t skip_to = 0;  // end of the image found last
    std::uint64_t found_bytes = 0;
    std::uint64_t looked_bytes = 0;
  };

  base::Status list(std::uint32_t pid, Process& process, ScanSink& sink);
  void give_file(std::uint32_t pid, const Mapping& mapping, ScanSink& sink);
  void look(int memory, Process& process, std::uint64_t budget, ScanSink& sink);

  ScanOptions options_;
  ScanCounts counts_;
  std::map<std::uint32_t, Process> processes_;
  std::set<FileKey> files_;
};

}  // namespace gpuwatch::scan
