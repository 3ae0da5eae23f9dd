// SPDX-License-Identifier: Apache-2.0
// The canonical form that K, D and M are hashes of: items of a length, a type
// byte and data, and names without what depends on the path of a source file.
// A change of any rule here needs new version strings in cubin.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "identify/bytes.h"
#include "identify/sha256.h"

namespace gpuwatch::identify {

// `name` with the path hash of internal names as eight zeros.
std::string canonical_name(std::string_view name);

// `name` as bytes like "N:name" or "S:section", seen from function `self`,
// whose own name becomes "@".
std::string seen_from(std::string_view reference, std::string_view self);

void append_int(std::string& out, std::uint64_t value);
void append_text(std::string& out, std::string_view text);
void append_bytes(std::string& out, Bytes bytes);

// Writes items to the last sequence of a batch.
class ItemWriter {
 public:
  explicit ItemWriter(HashBatch& batch) : batch_(batch) {}
  void integer(std::uint64_t value);
  void text(std::string_view text);
  // Long ones are kept by reference: they must outlive the batch's run().
  void bytes(Bytes bytes);
  void encoded(std::string_view items) { batch_.add_copy(items); }

 private:
  HashBatch& batch_;
  std::string scratch_;
};

}  // namespace gpuwatch::identify
