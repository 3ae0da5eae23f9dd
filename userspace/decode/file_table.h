// SPDX-License-Identifier: Apache-2.0
// FileTable: which open file a descriptor number of a process means, as far as
// the stream tells. Records name files by file_id and never by number, so this
// is worked out: a number is mapped right after the call that carries it, or
// only one open file is of the kind the driver takes there. Bounded; forgets
// the oldest file when full.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/call.h"

namespace gpuwatch::decode {

struct FoundFile {
  std::uint64_t file_id = 0;
  std::uint8_t node_kind = 0;
  std::uint32_t minor = 0;
};

class FileTable {
 public:
  enum class Wanted : std::uint8_t { kAny, kCtl, kMap, kUvm };

  void observe(const model::Call& call);

  // What is found is remembered until that file is closed, so that a second
  // file of its kind does not make the number unclear.
  std::optional<FoundFile> find(const model::Call& call, std::int32_t fd, Wanted wanted);

  std::size_t files() const { return files_.size(); }

  static constexpr std::size_t kMostFiles = 65536;

 private:
  using Process = std::pair<std::uint32_t, std::uint64_t>;  // tgid and start time

  struct File {
    std::uint64_t number = 0;  // in order of first sight
    std::uint8_t node_kind = 0;
    std::uint32_t minor = 0;
    std::vector<Process> holders;  // processes that were seen to use it
  };

  // What a process did last on a thread: the call that maps follows at once.
  struct Thread {
    std::uint64_t opened = 0;  // file that the last call opened
    std::int32_t fd = -1;      // descriptor that the last call wants mapped
  };

  struct Known {
    std::vector<std::uint64_t> files;
    std::map<std::int32_t, std::uint64_t> fds;
  };

  static Process process_of(const model::Call& call);
  void use(const model::Call& call);
  void forget(std::uint64_t file_id);
  std::optional<FoundFile> file(std::uint64_t file_id) const;

  std::map<std::uint64_t, File> files_;
  std::map<std::uint64_t, std::uint64_t> by_number_;
  std::map<Process, Known> processes_;
  std::map<std::pair<Process, std::uint32_t>, Thread> threads_;  // only those in the middle of something
  std::uint64_t next_number_ = 0;
};

}  // namespace gpuwatch::decode
