// SPDX-License-Identifier: Apache-2.0
#include "identify/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "identify/sha256_ni.h"
#include "identify/sha256_wide.h"

namespace gpuwatch::identify {

namespace {

// A digest that OpenSSL refuses to compute must not become a wrong one: these
// calls fail only for want of memory or a broken installation.
void must(int ok) {
  if (ok != 1) std::abort();
}

EVP_MD_CTX* context() {
  static thread_local const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> kept(EVP_MD_CTX_new(),
                                                                                         EVP_MD_CTX_free);
  if (!kept) std::abort();
  return kept.get();
}

constexpr std::uint32_t kInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

}  // namespace

Digest sha256(Bytes bytes) {
  Digest out;
  must(EVP_DigestInit_ex(context(), EVP_sha256(), nullptr));
  must(EVP_DigestUpdate(context(), bytes.data(), bytes.size()));
  must(EVP_DigestFinal_ex(context(), out.data(), nullptr));
  return out;
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  must(context_ != nullptr ? EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() {
  EVP_MD_CTX_free(context_);
}

void Sha256::update(Bytes bytes) {
  must(EVP_DigestUpdate(context_, bytes.data(), bytes.size()));
}

Digest Sha256::finish() {
  Digest out;
  must(EVP_DigestFinal_ex(context_, out.data(), nullptr));
  return out;
}

// One of the sequences in work: gives runs of whole blocks, assembles those
// that straddle pieces, appends the padding.
class Lane {
 public:
  bool start(const HashBatch& batch, std::size_t number) {
    batch_ = &batch;
    number_ = number;
    piece_ = batch.first_[number];
    end_ = number + 1 < batch.first_.size() ? batch.first_[number + 1] : batch.pieces_.size();
    offset_ = 0;
    total_ = 0;
    kept_ = 0;
    padded_ = false;
    std::copy(std::begin(kInitial), std::end(kInitial), state_);
    return advance();
  }

  const std::uint8_t* data() const { return run_; }
  std::size_t blocks() const { return run_blocks_; }
  std::uint32_t* state() { return state_; }
  const std::uint32_t* state() const { return state_; }
  std::size_t number() const { return number_; }

  // `n` blocks of the run are done. False: the sequence is complete.
  bool consume(std::size_t n) {
    run_ += 64 * n;
    run_blocks_ -= n;
    return run_blocks_ > 0 || advance();
  }

  Digest digest() const {
    Digest out;
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return out;
  }

 private:
  bool advance() {
    while (piece_ < end_) {
      const Bytes bytes = batch_->bytes_of(batch_->pieces_[piece_]).subspan(offset_);
      if (kept_ == 0 && bytes.size() >= 64) {
        run_ = bytes.data();
        run_blocks_ = bytes.size() / 64;
        take(64 * run_blocks_);
        return true;
      }
      const std::size_t n = std::min(bytes.size(), 64 - kept_);
      if (n != 0) std::memcpy(block_ + kept_, bytes.data(), n);
      kept_ += n;
      take(n);
      if (offset_ == batch_->pieces_[piece_].size) {
        ++piece_;
        offset_ = 0;
      }
      if (kept_ == 64) {
        run_ = block_;
        run_blocks_ = 1;
        kept_ = 0;
        return true;
      }
    }
    return pad();
  }

  void take(std::size_t n) {
    offset_ += n;
    total_ += n;
  }

  bool pad() {
    if (padded_) return false;
    padded_ = true;
    block_[kept_] = 0x80;
    run_blocks_ = kept_ + 9 > 64 ? 2 : 1;
    std::memset(block_ + kept_ + 1, 0, 64 * run_blocks_ - kept_ - 1);
    for (std::size_t i = 0; i < 8; ++i)
      block_[64 * run_blocks_ - 1 - i] = static_cast<std::uint8_t>((total_ * 8) >> (8 * i));
    run_ = block_;
    return true;
  }

  const HashBatch* batch_ = nullptr;
  std::size_t number_ = 0;
  std::size_t piece_ = 0;
  std::size_t end_ = 0;
  std::size_t offset_ = 0;
  std::uint64_t total_ = 0;
  std::size_t kept_ = 0;
  bool padded_ = false;
  const std::uint8_t* run_ = nullptr;
  std::size_t run_blocks_ = 0;
  std::uint32_t state_[8] = {};
  std::uint8_t block_[128] = {};
};

HashBatch::HashBatch(Engine engine)
    : wide_(engine == Engine::kBest && sha_wide_usable() && sha_ni_usable()),
      pairs_(engine != Engine::kOpenSsl && sha_ni_usable()) {}

std::size_t HashBatch::begin() {
  first_.push_back(pieces_.size());
  return first_.size() - 1;
}

void HashBatch::add(Bytes stable) {
  if (!stable.empty()) pieces_.push_back({stable.data(), 0, stable.size()});
}

void HashBatch::add_copy(Bytes bytes) {
  if (bytes.empty()) return;
  const std::size_t offset = copies_.size();
  copies_.insert(copies_.end(), bytes.begin(), bytes.end());
  // Neighbours of one sequence become one piece.
  if (pieces_.size() > first_.back() && pieces_.back().data == nullptr &&
      pieces_.back().offset + pieces_.back().size == offset)
    pieces_.back().size += bytes.size();
  else
    pieces_.push_back({nullptr, offset, bytes.size()});
}

void HashBatch::clear() {
  pieces_.clear();
  first_.clear();
  copies_.clear();
  results_.clear();
}

void HashBatch::run() {
  results_.assign(first_.size(), {});
  if (pairs_)
    run_lanes();
  else
    run_openssl();
}

void HashBatch::run_lanes() {
  // Longest first, so that the last ones are short and the lanes end together.
  std::vector<std::size_t> order(first_.size());
  std::vector<std::uint64_t> sizes(first_.size(), 0);
  for (std::size_t number = 0; number < order.size(); ++number) {
    order[number] = number;
    const std::size_t end = number + 1 < first_.size() ? first_[number + 1] : pieces_.size();
    for (std::size_t piece = first_[number]; piece < end; ++piece) sizes[number] += pieces_[piece].size;
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b; });

  std::vector<Lane> lanes(wide_ ? kWideLanes : 2);
  std::size_t next = 0;
  std::size_t busy = 0;  // lanes [0, busy) are at work
  const auto fill = [&](Lane& lane) { lane.start(*this, order[next++]); };
  while (busy < lanes.size() && next < order.size()) fill(lanes[busy++]);
  // `n` blocks of every lane in [0, count) are done.
  const auto step = [&](std::size_t count, std::size_t n) {
    for (std::size_t i = count; i-- > 0;) {
      if (lanes[i].consume(n)) continue;
      results_[lanes[i].number()] = lanes[i].digest();
      if (next < order.size())
        fill(lanes[i]);
      else if (--busy != i)
        lanes[i] = lanes[busy];
    }
  };
  const auto shortest = [&](std::size_t count) {
    std::size_t n = lanes[0].blocks();
    for (std::size_t i = 1; i < count; ++i) n = std::min(n, lanes[i].blocks());
    return n;
  };

  // Below this many lanes the SHA unit is faster.
  constexpr std::size_t kWideMin = 9;
  if (wide_ && busy >= kWideMin) {
    WideState state;
    const std::uint8_t* data[kWideLanes];
    while (busy >= kWideMin) {
      const std::size_t n = shortest(busy);
      for (std::size_t i = 0; i < kWideLanes; ++i) {
        const Lane& lane = lanes[i < busy ? i : 0];
        data[i] = lane.data();
        for (std::size_t w = 0; w < 8; ++w) state.words[w][i] = lane.state()[w];
      }
      sha_wide(state, data, n);
      for (std::size_t i = 0; i < busy; ++i)
        for (std::size_t w = 0; w < 8; ++w) lanes[i].state()[w] = state.words[w][i];
      step(busy, n);
    }
  }
  while (busy >= 2) {
    // Two lanes at a time; the others wait, and are the shorter ones.
    const std::size_t n = shortest(2);
    sha_ni_two(lanes[0].state(), lanes[0].data(), lanes[1].state(), lanes[1].data(), n);
    step(2, n);
  }
  while (busy == 1) {
    const std::size_t n = lanes[0].blocks();
    sha_ni_one(lanes[0].state(), lanes[0].data(), n);
    step(1, n);
  }
}

void HashBatch::run_openssl() {
  for (std::size_t number = 0; number < first_.size(); ++number) {
    must(EVP_DigestInit_ex(context(), EVP_sha256(), nullptr));
    const std::size_t end = number + 1 < first_.size() ? first_[number + 1] : pieces_.size();
    for (std::size_t piece = first_[number]; piece < end; ++piece) {
      const Bytes bytes = bytes_of(pieces_[piece]);
      must(EVP_DigestUpdate(context(), bytes.data(), bytes.size()));
    }
    must(EVP_DigestFinal_ex(context(), results_[number].data(), nullptr));
  }
}

}  // namespace gpuwatch::identify
