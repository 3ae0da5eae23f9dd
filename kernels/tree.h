// SPDX-License-Identifier: Apache-2.0
// What is hashed, in which order, so that GPU and host get the same root: the
// form of a chunk and the tables that a launch reads. Changing any of it wants
// another domain string. Nothing here touches memory of its own.
#pragma once

#include "kernels/sha256.h"

namespace gpuwatch::kernels {

// A digest of a chunk is SHA-256 over
//   domain, 32 bytes, zero-padded: "gpuwatch-probe-tree-v1" or "gpuwatch-probe-flat-v1"
//   nonce, 32 bytes
//   the bytes of the chunk
//   u64 number of the chunk in its level, u64 length of the region, u32 level, u32 bytes of this chunk;
//   little endian
// Level 0 has the region's bytes in chunks of kChunkBytes. The digests of a level, one after the other,
// are the bytes of the next, cut the same way; the level with one chunk gives the root. The flat form has
// one chunk with all bytes and level 0.
inline constexpr char kTreeDomain[33] = "gpuwatch-probe-tree-v1\0\0\0\0\0\0\0\0\0\0";
inline constexpr char kFlatDomain[33] = "gpuwatch-probe-flat-v1\0\0\0\0\0\0\0\0\0\0";
inline constexpr std::uint64_t kChunkBytes = 1024;
inline constexpr std::uint64_t kDigestBytes = 32;
inline constexpr std::uint32_t kTailBytes = 24;

// One region of one level, as the GPU reads it.
struct Region {
  std::uint64_t address;       // of the level's bytes
  std::uint64_t bytes;         // of the level
  std::uint64_t length;        // of the region itself
  std::uint64_t first_chunk;   // number of its first chunk in this launch
  std::uint64_t first_digest;  // where its digests go, counted in digests from `out`
};

// One launch: all regions of one level.
struct Job {
  ShaState state;  // after domain and nonce
  std::uint64_t before;
  std::uint64_t chunk_bytes;
  std::uint64_t regions_address;
  std::uint64_t regions;
  std::uint64_t chunks;
  std::uint64_t out_address;
  std::uint32_t level;
  std::uint32_t tail;  // 0: plain SHA-256 of each region, no domain and no tail
};

GPUWATCH_BOTH void put_number(std::uint8_t* out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

// Digest of chunk `chunk` of a region; `load` starts at the chunk.
template <typename Load>
GPUWATCH_BOTH ShaState chunk_digest(const Job& job, const Region& region, std::uint64_t chunk, std::uint64_t bytes,
                                    const Load& load) {
  std::uint8_t tail[kTailBytes];
  put_number(tail, chunk, 8);
  put_number(tail + 8, region.length, 8);
  put_number(tail + 16, job.level, 4);
  put_number(tail + 20, bytes, 4);
  ShaState state = job.state;
  sha_finish(state, job.before, load, bytes, tail, job.tail != 0 ? kTailBytes : 0);
  return state;
}

}  // namespace gpuwatch::kernels
