// SPDX-License-Identifier: Apache-2.0
// All ways of hashing agree with each other and with the published vectors.
#include "identify/sha256.h"

#include <gtest/gtest.h>

#include <random>

namespace gpuwatch::identify {
namespace {

class Engines : public ::testing::TestWithParam<HashBatch::Engine> {};

TEST_P(Engines, PublishedVectors) {
  const std::pair<std::string, std::string> vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  HashBatch batch(GetParam());
  for (const auto& [text, hex] : vectors) {
    batch.begin();
    batch.add(as_bytes(text));
  }
  batch.run();
  for (std::size_t i = 0; i < std::size(vectors); ++i) EXPECT_EQ(to_hex(batch.result(i)), vectors[i].second);
}

// Many sequences of all lengths around block borders, in odd pieces.
TEST_P(Engines, ManyInPiecesAgreeWithOneByOne) {
  std::mt19937_64 random(7);
  std::string pool(1 << 20, '\0');
  for (char& c : pool) c = static_cast<char>(random());
  for (const std::size_t count : {1u, 2u, 3u, 6u, 7u, 15u, 16u, 17u, 100u}) {
    HashBatch batch(GetParam());
    std::vector<std::string> whole(count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(batch.begin(), i);
      std::size_t left = i < 70 ? i * 3 : random() % 20'000;
      while (left > 0) {
        const std::size_t n = std::min<std::size_t>(left, 1 + random() % (random() % 4 == 0 ? 3000 : 70));
        const Bytes piece = as_bytes(pool).subspan(random() % (pool.size() - n), n);
        if (random() % 2 == 0)
          batch.add(piece);
        else
          batch.add_copy(piece);
        whole[i] += as_text(piece);
        left -= n;
      }
    }
    batch.run();
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(batch.result(i), sha256(as_bytes(whole[i]))) << i << " of " << count;
  }
}

TEST_P(Engines, CanBeUsedAgain) {
  HashBatch batch(GetParam());
  for (int round = 0; round < 3; ++round) {
    batch.clear();
    batch.begin();
    batch.add_copy("abc");
    batch.begin();
    batch.run();
    EXPECT_EQ(batch.result(0), sha256(as_bytes("abc")));
    EXPECT_EQ(batch.result(1), sha256({}));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Engines,
                         ::testing::Values(HashBatch::Engine::kBest, HashBatch::Engine::kPairs,
                                           HashBatch::Engine::kOpenSsl));

TEST(Sha256, InPieces) {
  Sha256 hash;
  hash.update(as_bytes("a"));
  hash.update({});
  hash.update(as_bytes("bc"));
  EXPECT_EQ(hash.finish(), sha256(as_bytes("abc")));
}

}  // namespace
}  // namespace gpuwatch::identify
