// SPDX-License-Identifier: Apache-2.0
// The canonical form that K, D and M are hashes of: items of a length, a type
// byte and data, and names without what depends on the path of a source file.
// A change of any rule here needs new version strings in cubin.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "identify/bytes.h"
#include "identify/sha256.h"

namespace gpuwatch::identify {

// `name` with the path hash of internal names as eight zeros.
std::string canonical_name(std::string_view name);

// May canonical_name() change it? Most names it does not.
bool holds_path_hash(std::string_view name);

// Canonical names that live as long as this and the names given to it.
class CanonicalNames {
 public:
  std::string_view get(std::string_view name);

 private:
  std::deque<std::string> changed_;
};

// References in canonical names, "N:name" and "S:section", as function `self`
// sees them, whose own name becomes "@"; `self` is empty where there is none.
void append_symbol(std::string& out, std::string_view name, std::string_view self);
void append_section(std::string& out, std::string_view name, std::string_view self);

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
  void head(char type, std::size_t size);
  HashBatch& batch_;
};

}  // namespace gpuwatch::identify
