// SPDX-License-Identifier: Apache-2.0
// The probe's SHA-256 and its chunked form on the CPU: NIST vectors, OpenSSL,
// and the form computed a second time from its description.
#include "probe/plan.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <random>
#include <string>

#include "probe/host_tree.h"

namespace gpuwatch::probe {
namespace {

using Buffer = std::vector<std::uint8_t>;

identify::Digest openssl(const Buffer& bytes) {
  identify::Digest digest;
  SHA256(bytes.data(), bytes.size(), digest.data());
  return digest;
}

Nonce nonce_of(std::uint8_t seed) {
  Nonce nonce;
  for (std::size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<std::uint8_t>(seed + 7 * i);
  return nonce;
}

void put(Buffer& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

// kernels/tree.h in other words, with OpenSSL.
identify::Digest described(const Buffer& bytes, bool tree, const Nonce& nonce) {
  Buffer data = bytes;
  for (std::uint32_t level = 0;; ++level) {
    const std::size_t step = tree ? 1024 : std::max<std::size_t>(data.size(), 1);
    Buffer next;
    identify::Digest digest{};
    std::uint64_t chunks = 0;
    for (std::size_t at = 0; at < data.size() || chunks == 0; at += step, ++chunks) {
      const std::size_t length = std::min(step, data.size() - at);
      Buffer message(32);
      const std::string domain = tree ? "gpuwatch-probe-tree-v1" : "gpuwatch-probe-flat-v1";
      std::copy(domain.begin(), domain.end(), message.begin());
      message.insert(message.end(), nonce.begin(), nonce.end());
      message.insert(message.end(), data.begin() + static_cast<long>(at),
                     data.begin() + static_cast<long>(at + length));
      put(message, chunks, 8);
      put(message, bytes.size(), 8);
      put(message, level, 4);
      put(message, length, 4);
      digest = openssl(message);
      next.insert(next.end(), digest.begin(), digest.end());
    }
    if (chunks == 1) return digest;
    data = next;
  }
}

TEST(Plan, NistVectors) {
  const std::pair<std::string, std::string> kVectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrst"
       "u",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [text, want] : kVectors)
    EXPECT_EQ(identify::to_hex(host_root(identify::as_bytes(text), Form::kPlain, {})), want);
}

TEST(Plan, RandomLengthsAndOffsetsEqualOpenSsl) {
  std::mt19937_64 random(7);
  Buffer pool(40'000);
  for (auto& byte : pool) byte = static_cast<std::uint8_t>(random());
  for (int i = 0; i < 2'000; ++i) {
    const std::size_t length = i < 300 ? static_cast<std::size_t>(i) : random() % 20'000;
    const std::size_t offset = random() % (pool.size() - length);
    const Buffer bytes(pool.begin() + static_cast<long>(offset), pool.begin() + static_cast<long>(offset + length));
    EXPECT_EQ(host_root({pool.data() + offset, length}, Form::kPlain, {}), openssl(bytes)) << length;
  }
}

TEST(Plan, FormsAreAsDescribed) {
  std::mt19937_64 random(8);
  for (const std::size_t length : {0u, 1u, 64u, 1000u, 1023u, 1024u, 1025u, 2048u, 32u * 1024u, 32u * 1024u + 1u,
                                   1024u * 1024u, 1024u * 1024u + 1024u, 3'000'001u}) {
    Buffer bytes(length);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const Nonce nonce = nonce_of(static_cast<std::uint8_t>(length));
    EXPECT_EQ(host_root(bytes, Form::kTree, nonce), described(bytes, true, nonce)) << length;
    EXPECT_EQ(host_root(bytes, Form::kFlat, nonce), described(bytes, false, nonce)) << length;
    EXPECT_NE(host_root(bytes, Form::kTree, nonce), host_root(bytes, Form::kTree, nonce_of(99)));
    EXPECT_NE(host_root(bytes, Form::kTree, nonce), host_root(bytes, Form::kFlat, nonce));
  }
}

TEST(Plan, EveryBitAndTheLengthCount) {
  Buffer bytes(5'000, 0);
  const Nonce nonce = nonce_of(3);
  const identify::Digest clean = host_root(bytes, Form::kTree, nonce);
  for (const std::size_t at : {0u, 1023u, 1024u, 4'095u, 4'999u}) {
    bytes[at] ^= 0x10;
    EXPECT_NE(host_root(bytes, Form::kTree, nonce), clean) << at;
    bytes[at] ^= 0x10;
  }
  bytes.push_back(0);
  EXPECT_NE(host_root(bytes, Form::kTree, nonce), clean);
}

TEST(Plan, RegionsOfDifferentDepthKeepTheirPlaces) {
  const HashPlan plan = plan_hash({{0x1000, 100}, {0x2000, 40'000}, {0x9000, 0}, {0x20000, 2'000}}, Form::kTree);
  ASSERT_EQ(plan.levels.size(), 3u);
  EXPECT_EQ(plan.levels[0].chunks, 1u + 40u + 1u + 2u);
  EXPECT_EQ(plan.levels[1].regions.size(), 2u);
  EXPECT_EQ(plan.levels[1].chunks, 2u + 1u);
  EXPECT_EQ(plan.levels[2].chunks, 1u);
  EXPECT_EQ(plan.digests, 44u + 3u + 1u);
  EXPECT_EQ(plan.roots, (std::vector<std::uint64_t>{0, 47, 41, 46}));
}

TEST(HostTree, ManyRegionsAtOnceAsEachAlone) {
  std::mt19937_64 random(9);
  Buffer pool(3 << 20);
  for (auto& byte : pool) byte = static_cast<std::uint8_t>(random());
  std::vector<identify::Bytes> regions;
  for (const std::size_t length : {0u, 1u, 1023u, 1024u, 1025u, 32u * 1024u, 32u * 1024u + 1u, 3u << 20})
    regions.push_back({pool.data(), length});
  for (int i = 0; i < 300; ++i) {
    const std::size_t length = random() % 60'000;
    regions.push_back({pool.data() + random() % (pool.size() - length), length});
  }
  for (const Form form : {Form::kTree, Form::kFlat, Form::kPlain}) {
    const Nonce nonce = nonce_of(5);
    const std::vector<identify::Digest> roots = host_roots(regions, form, nonce);
    ASSERT_EQ(roots.size(), regions.size());
    for (std::size_t i = 0; i < regions.size(); ++i)
      EXPECT_EQ(roots[i], host_root(regions[i], form, nonce)) << i << " " << regions[i].size();
  }
  EXPECT_TRUE(host_roots({}, Form::kTree, {}).empty());
}

}  // namespace
}  // namespace gpuwatch::probe
