// SPDX-License-Identifier: Apache-2.0
#include "judge/sha256.h"

#include <openssl/evp.h>

#include <new>

namespace gpuwatch::judge {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr || EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(context_);
}

void Sha256::add(std::string_view bytes) {
  EVP_DigestUpdate(context_, bytes.data(), bytes.size());
}

model::Digest Sha256::finish() {
  model::Digest digest{};
  EVP_DigestFinal_ex(context_, digest.data(), nullptr);
  return digest;
}

}  // namespace gpuwatch::judge
