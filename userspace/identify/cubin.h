// SPDX-License-Identifier: Apache-2.0
// A cubin's kernels and the hashes K, T, D and M over its canonical form. Two
// steps, so that many images can be hashed side by side: plan() queues the
// sequences in a batch, finish() takes the results. The image must stay where
// it is in between.
#pragma once

#include <memory>

#include "identify/image.h"
#include "identify/limits.h"
#include "identify/sha256.h"

namespace gpuwatch::identify {

class CubinPlan {
 public:
  CubinPlan();
  CubinPlan(CubinPlan&&) noexcept;
  CubinPlan& operator=(CubinPlan&&) noexcept;
  ~CubinPlan();

  // Fills what is known without hashing; what is wrong goes to module.errors.
  void plan(Bytes image, const Limits& limits, HashBatch& batch, Module& module);
  // After batch.run(): k, t, d, m.
  void finish(const HashBatch& batch, Module& module);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// SM number of a cubin's header, both forms of e_flags.
std::uint32_t cubin_sm(Bytes header);

}  // namespace gpuwatch::identify
