// SPDX-License-Identifier: Apache-2.0
#include "probe/host_tree.h"

#include <algorithm>

#include "identify/sha256.h"

namespace gpuwatch::probe {

namespace {

constexpr std::size_t kAtOnce = 8192;  // chunks, which bounds what is copied for them

struct Region {
  identify::Bytes bytes;  // of the level
  std::uint64_t length;   // of the region itself
  std::size_t number;
  std::vector<std::uint8_t> digests;  // of the level above, for which they are the bytes
};

// All chunks of one level.
class Hasher {
 public:
  Hasher(Form form, const Nonce& nonce, std::uint32_t level) : tree_(form == Form::kTree), level_(level) {
    if (form == Form::kPlain) return;
    const char* domain = tree_ ? kernels::kTreeDomain : kernels::kFlatDomain;
    start_.assign(domain, domain + 32);
    start_.insert(start_.end(), nonce.begin(), nonce.end());
  }

  void run(std::vector<Region>& regions) {
    for (Region& region : regions) {
      const std::uint64_t step = tree_ ? kernels::kChunkBytes : std::max<std::uint64_t>(1, region.bytes.size());
      const std::uint64_t chunks = std::max<std::uint64_t>(1, (region.bytes.size() + step - 1) / step);
      region.digests.resize(chunks * kernels::kDigestBytes);
      for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::uint64_t begin = chunk * step;
        add(region, chunk, region.bytes.subspan(begin, std::min<std::uint64_t>(step, region.bytes.size() - begin)));
        if (places_.size() == kAtOnce) flush();
      }
    }
    flush();
  }

 private:
  void add(Region& region, std::uint64_t chunk, identify::Bytes bytes) {
    batch_.begin();
    if (!start_.empty()) batch_.add_copy(start_);
    batch_.add(bytes);
    if (!start_.empty()) {
      std::uint8_t tail[kernels::kTailBytes];
      kernels::put_number(tail, chunk, 8);
      kernels::put_number(tail + 8, region.length, 8);
      kernels::put_number(tail + 16, level_, 4);
      kernels::put_number(tail + 20, bytes.size(), 4);
      batch_.add_copy(identify::Bytes(tail));
    }
    places_.push_back(region.digests.data() + chunk * kernels::kDigestBytes);
  }

  void flush() {
    batch_.run();
    for (std::size_t i = 0; i < places_.size(); ++i)
      std::memcpy(places_[i], batch_.result(i).data(), kernels::kDigestBytes);
    batch_.clear();
    places_.clear();
  }

  bool tree_;
  std::uint32_t level_;
  std::vector<std::uint8_t> start_;  // domain and nonce
  identify::HashBatch batch_;
  std::vector<std::uint8_t*> places_;
};

}  // namespace

std::vector<identify::Digest> host_roots(const std::vector<identify::Bytes>& regions, Form form, const Nonce& nonce) {
  std::vector<identify::Digest> roots(regions.size());
  std::vector<Region> open;
  for (std::size_t i = 0; i < regions.size(); ++i) open.push_back({regions[i], regions[i].size(), i, {}});
  std::vector<std::vector<std::uint8_t>> lower;  // digests that are bytes of this level
  for (std::uint32_t level = 0; !open.empty(); ++level) {
    Hasher(form, nonce, level).run(open);
    std::vector<Region> next;
    for (Region& region : open) {
      if (region.digests.size() == kernels::kDigestBytes) {
        std::memcpy(roots[region.number].data(), region.digests.data(), kernels::kDigestBytes);
        continue;
      }
      next.push_back(std::move(region));
    }
    std::vector<std::vector<std::uint8_t>> bytes;
    for (Region& region : next) {
      bytes.push_back(std::move(region.digests));
      region.digests.clear();
      region.bytes = bytes.back();
    }
    lower = std::move(bytes);
    open = std::move(next);
  }
  return roots;
}

}  // namespace gpuwatch::probe
