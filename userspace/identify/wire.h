// SPDX-License-Identifier: Apache-2.0
// The one binary form of what this room knows: between worker and parent, and
// in the cache. Fixed order, little endian, strings with their length. A reader
// never trusts a count further than the bytes that are there; after an error
// everything it gives is zero and ok() is false.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "identify/bytes.h"
#include "identify/image.h"
#include "identify/scan.h"

namespace gpuwatch::identify {

// To be raised when any form below changes: caches of another version are
// thrown away.
inline constexpr std::uint32_t kWireVersion = 1;

class WireWriter {
 public:
  void number(std::uint64_t value);  // one to ten bytes
  void byte(std::uint8_t value) { out_ += static_cast<char>(value); }
  void text(std::string_view text);
  void digest(const Digest& digest) { out_.append(reinterpret_cast<const char*>(digest.data()), digest.size()); }
  void texts(const std::vector<std::string>& list);

  const std::string& str() const { return out_; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class WireReader {
 public:
  explicit WireReader(Bytes bytes) : bytes_(bytes) {}

  std::uint64_t number();
  std::uint32_t number32();
  std::uint8_t byte();
  std::string text(std::size_t max = 1 << 20);
  Digest digest();
  std::vector<std::string> texts(std::size_t max_count = 1 << 16);
  // A count of things that take at least `each` bytes.
  std::size_t count(std::size_t each);

  bool ok() const { return ok_; }
  bool done() const { return ok_ && at_ == bytes_.size(); }
  void fail() { ok_ = false; }

 private:
  Bytes take(std::size_t size);
  Bytes bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

void write(WireWriter& out, const Image& image);
void write(WireWriter& out, const Container& container);
void write(WireWriter& out, const Module& module);
void write(WireWriter& out, const Scan& scan);
void read(WireReader& in, Image& image);
void read(WireReader& in, Container& container);
void read(WireReader& in, Module& module);
void read(WireReader& in, Scan& scan);

}  // namespace gpuwatch::identify
