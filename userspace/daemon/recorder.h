// SPDX-License-Identifier: Apache-2.0
// Recorder: the newest records, in memory, for a dump when something happened.
// Bounded by bytes; of processes and cgroups it keeps the definitions longer, so
// that a dump can be read. Any thread may dump; only the worker adds.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "daemon/intake.h"
#include "source/gwcap_format.h"

namespace gpuwatch::daemon {

struct Dump {
  std::string path;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
};

class Recorder {
 public:
  explicit Recorder(std::size_t limit_bytes) : limit_(limit_bytes) {}

  void add(const Intake::Batch& batch);
  void set_limit(std::size_t bytes);

  // Writes what is there as a recording, whole or not at all.
  base::Result<Dump> dump(const std::string& path, const source::GwcapHeader& header) const;

  std::size_t bytes() const;

 private:
  struct Piece {
    ChunkPtr chunk;
    std::size_t begin = 0, end = 0;
  };
  using DefinitionKey = std::pair<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>>;

  void trim();

  mutable std::mutex lock_;
  std::size_t limit_;
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;  // of chunks that are held
  std::map<DefinitionKey, std::vector<std::byte>> definitions_;
  std::deque<DefinitionKey> order_;
  std::size_t definition_bytes_ = 0;
};

// Removes the oldest *.gwcap of a directory beyond `keep`.
void keep_newest(const std::string& directory, std::size_t keep);

}  // namespace gpuwatch::daemon
