// SPDX-License-Identifier: Apache-2.0
// Reads the shards that recorded processes left in a directory and makes one
// stream of records of them, as the kernel module would have delivered it. The
// shards were writable by the recorded programs, so every byte is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/raw_record.h"

namespace gpuwatch::preload {

struct NotFollowed {
  std::string path;
  std::string reason;
  std::uint32_t tgid = 0;
};

struct Recording {
  // Records back to back, ordered by time_ns, each thread's in order; cpu and
  // seq are consistent: per cpu, seq counts from 0 without a gap.
  std::vector<std::byte> bytes;
  std::uint64_t records = 0;

  std::uint64_t lost_full = 0;      // shard at its maximum or disk full
  std::uint64_t lost_too_big = 0;   // over GPUWATCH_REC_MAX
  std::uint64_t unfinished = 0;     // calls that never returned
  std::uint64_t damaged_bytes = 0;  // skipped: torn or overwritten
  std::uint64_t adopted = 0;        // files seen in use whose opening was not
  std::uint64_t processes = 0;      // program images with a shard
  std::uint64_t killed = 0;         // of them ended without notice: their
                                    // releases carry the time of the last call
  std::uint64_t plan_errors = 0;    // of them fell back to the built-in plan
  std::vector<NotFollowed> not_followed;

  std::uint64_t lost() const { return lost_full + lost_too_big; }
};

struct ShardLimits {
  std::uint64_t bytes = 8ull << 30;  // of all shards together
  std::size_t not_followed = 1000;   // entries kept
};

// Fails when the directory cannot be read or is over the limits; a damaged
// shard is read as far as it makes sense and counted.
base::Result<Recording> read_shards(const std::string& directory, const ShardLimits& limits = {});

// A shard that is open: it can be read where nothing can be opened.
struct OpenShard {
  std::string path;
  base::Fd fd;
};

// Opens the shards of a directory, up to kOpenShardsMax, and reads nothing of
// them. Only files that a recorder makes: regular, no link to one, with no second
// name; what is none has no descriptor here.
inline constexpr std::size_t kOpenShardsMax = 65536;
base::Result<std::vector<OpenShard>> open_shards(const std::string& directory);
// As often as wanted: each time as far as they have come.
base::Result<Recording> read_shards(std::span<const OpenShard> shards, const ShardLimits& limits = {});

// Removes the shards and images of `directory`, and the directory when it is empty then.
base::Status remove_shards(const std::string& directory);

}  // namespace gpuwatch::preload
