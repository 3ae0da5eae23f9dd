// SPDX-License-Identifier: Apache-2.0
// Ed25519 signatures over the digest of a baseline's contents. Keys are PEM
// files as openssl makes them (`openssl genpkey -algorithm ed25519`). A
// signature says who vouched for the contents; whether that key is to be
// trusted is for whoever names it.
#pragma once

#include <string>

#include "base/result.h"
#include "judge/baseline.h"

namespace gpuwatch::judge {

// What is signed: this text, a NUL, and the 32 bytes of contents_digest().
inline constexpr char kSignedPrefix[] = "gpuwatch-baseline-signature-v1";

// Signs and stores the signature in the baseline.
base::Status sign_baseline(Baseline& baseline, const std::string& private_key_file);

enum class SignatureState {
  kGood,
  kUnsigned,
  kOtherKey,  // signed, by another key than the one given
  kBad,       // the contents are not those that were signed
};

base::Result<SignatureState> verify_baseline(Baseline& baseline, const std::string& public_key_file);

}  // namespace gpuwatch::judge
