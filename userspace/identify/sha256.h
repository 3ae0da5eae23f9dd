// SPDX-License-Identifier: Apache-2.0
// SHA-256 of many byte sequences at once. One sequence leaves a core mostly
// idle, because each step waits for the one before; sixteen side by side in
// AVX-512 registers, or two in the SHA unit, fill it. Without either OpenSSL
// does the work. Pieces of a sequence are not copied: they must outlive run().
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "identify/bytes.h"
#include "identify/digest.h"

struct evp_md_ctx_st;

namespace gpuwatch::identify {

// One sequence, by OpenSSL.
Digest sha256(Bytes bytes);

// One sequence that comes in pieces, by OpenSSL.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(Bytes bytes);
  Digest finish();

 private:
  evp_md_ctx_st* context_;
};

class HashBatch {
 public:
  enum class Engine { kBest, kPairs, kOpenSsl };  // the latter two for tests and peers
  explicit HashBatch(Engine engine = Engine::kBest);

  // Starts the next sequence and gives its number. Pieces are added to the
  // last one started.
  std::size_t begin();
  void add(Bytes stable);      // kept by reference
  void add_copy(Bytes bytes);  // copied
  void add_copy(std::string_view text) { add_copy(as_bytes(text)); }

  void run();
  const Digest& result(std::size_t number) const { return results_[number]; }

  void clear();

 private:
  friend class Lane;
  // data == nullptr: `offset` into copies_.
  struct Piece {
    const std::uint8_t* data;
    std::size_t offset;
    std::size_t size;
  };
  Bytes bytes_of(const Piece& piece) const {
    return {piece.data != nullptr ? piece.data : copies_.data() + piece.offset, piece.size};
  }
  void run_lanes();
  void run_openssl();

  bool wide_;
  bool pairs_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> first_;  // of each sequence, in pieces_
  std::vector<std::uint8_t> copies_;
  std::vector<Digest> results_;
};

}  // namespace gpuwatch::identify
