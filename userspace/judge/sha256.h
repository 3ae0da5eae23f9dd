// SPDX-License-Identifier: Apache-2.0
// SHA-256 of a stream by OpenSSL, for digests of whole baselines. Hashing GPU
// code is identify's.
#pragma once

#include <memory>
#include <string_view>

#include "model/fingerprint.h"

struct evp_md_ctx_st;

namespace gpuwatch::judge {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void add(std::string_view bytes);
  model::Digest finish();

 private:
  evp_md_ctx_st* context_;
};

}  // namespace gpuwatch::judge
