// SPDX-License-Identifier: Apache-2.0
// The plan of hashing regions in chunks, level by level, and the same digests
// computed on the CPU. It knows no driver.
#pragma once

#include <array>
#include <vector>

#include "identify/bytes.h"
#include "identify/digest.h"
#include "kernels/tree.h"

namespace gpuwatch::probe {

using Nonce = std::array<std::uint8_t, 32>;

enum class Form { kTree, kFlat, kPlain };  // kPlain: SHA-256 of the bytes alone, for test vectors

struct Span {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

struct Level {
  std::vector<kernels::Region> regions;  // addresses of levels above 0 count from the start of the digests
  std::uint64_t chunks = 0;
};

struct HashPlan {
  std::vector<Level> levels;
  std::vector<std::uint64_t> roots;  // of each span: number of its root among all digests
  std::uint64_t digests = 0;
};

HashPlan plan_hash(const std::vector<Span>& spans, Form form);

// What a launch for `level` starts with; addresses are the caller's to fill in.
kernels::Job job_of(const HashPlan& plan, std::size_t level, Form form, const Nonce& nonce);

// From the digests of level 0, which are in their places, those of all levels.
void host_levels(const HashPlan& plan, Form form, const Nonce& nonce, std::vector<std::uint8_t>& digests);

// The root on the CPU.
identify::Digest host_root(identify::Bytes bytes, Form form, const Nonce& nonce);

}  // namespace gpuwatch::probe
