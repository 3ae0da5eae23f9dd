// SPDX-License-Identifier: Apache-2.0
// Shards that no recorder would write: the reader must stay within them.
#include "preload/shards.h"

#include <sys/stat.h>

#include <cstring>
#include <random>

#include "harness.h"

namespace gpuwatch::preload {
namespace {

class HostileShards : public Recorded {
 protected:
  // A shard as the recorder leaves it, to be damaged.
  std::vector<char> real_shard() {
    run({"basic"});
    for (const auto& file : std::filesystem::directory_iterator(shards())) {
      path_ = file.path();
      std::ifstream in(path_, std::ios::binary);
      std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      gw_shard_head head;
      std::memcpy(&head, bytes.data(), sizeof head);
      bytes.resize(head.tail);
      return bytes;
    }
    return {};
  }

  base::Result<Recording> reread(const std::vector<char>& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return read_shards(shards());
  }

  std::filesystem::path path_;
};

TEST_F(HostileShards, TruncatedAnywhere) {
  const auto bytes = real_shard();
  ASSERT_GT(bytes.size(), 4096u);
  std::uint64_t last = 0;
  for (std::size_t cut = 4096; cut <= bytes.size(); cut += 8) {
    const auto result = reread({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut)});
    ASSERT_TRUE(result.ok());
    ASSERT_GE(result.value().records + 3, last) << "more bytes never give much less";
    last = result.value().records;
  }
  EXPECT_EQ(last, recording_.records);
}

TEST_F(HostileShards, AbsurdHeadAndTail) {
  auto bytes = real_shard();
  gw_shard_head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  head.tail = UINT64_MAX;
  std::memcpy(bytes.data(), &head, sizeof head);
  auto result = reread(bytes);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().records, recording_.records);
  head.magic = 1;
  std::memcpy(bytes.data(), &head, sizeof head);
  result = reread(bytes);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().records, 0u);
  EXPECT_EQ(result.value().damaged_bytes, 1u);
}

TEST_F(HostileShards, RandomDamage) {
  const auto bytes = real_shard();
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    auto damaged = bytes;
    for (int i = 0; i < 8; ++i)
      damaged[sizeof(gw_shard_head) + random() % (bytes.size() - sizeof(gw_shard_head))] = static_cast<char>(random());
    const auto result = reread(damaged);
    ASSERT_TRUE(result.ok());
    for (model::Bytes rest(result.value().bytes); !rest.empty();) {
      const auto record = model::parse_record(rest);
      ASSERT_TRUE(record.has_value());
      rest = rest.subspan(record->head.len);
    }
  }
}

TEST_F(HostileShards, OverTheLimit) {
  real_shard();
  const auto result = read_shards(shards(), {.bytes = 64, .not_followed = 1});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), base::Code::kLimit);
}

TEST_F(HostileShards, AHoleDoesNotHideWhatFollows) {
  auto bytes = real_shard();
  std::uint64_t cookie;
  std::memcpy(&cookie, bytes.data() + offsetof(gw_shard_head, cookie), sizeof cookie);
  std::memset(bytes.data() + 4096, 0, sizeof(gw_shard_entry));  // reserved, never written
  const auto result = reread(bytes);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().records + 1, recording_.records);
  EXPECT_GT(result.value().damaged_bytes, 0u);
}

TEST_F(HostileShards, LinksAndDirectoriesAreLeftAlone) {
  std::filesystem::create_symlink("/dev/zero", shards() + "/1.0.gwshard");
  std::filesystem::create_directory(shards() + "/2.0.gwshard");
  ASSERT_EQ(::mkfifo((shards() + "/3.0.gwshard").c_str(), 0600), 0);
  const auto result = read_shards(shards());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().records, 0u);
}

// Somebody else's file that the recorded process cannot read, but can give a name here.
TEST_F(HostileShards, AFileWithASecondNameIsNotOpened) {
  const auto bytes = real_shard();
  std::filesystem::create_hard_link(path_, shards() + "/other");
  auto result = read_shards(shards());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().records, 0u);
  EXPECT_EQ(result.value().damaged_bytes, 1u);
  std::filesystem::remove(shards() + "/other");
  result = read_shards(shards());
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().records, recording_.records);
}

// By descriptors: as far as the file has come, whatever has its name by then.
TEST_F(HostileShards, OpenOnesAreReadAsOftenAsWanted) {
  const auto bytes = real_shard();
  auto open = open_shards(shards());
  ASSERT_TRUE(open.ok());
  ASSERT_EQ(open->size(), 1u);
  for (int i = 0; i < 2; ++i) {
    const auto result = read_shards(*open);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result.value().records, recording_.records);
  }
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("/dev/zero", path_);
  EXPECT_EQ(read_shards(*open).value().records, recording_.records);
  open = open_shards(shards());
  ASSERT_TRUE(open.ok());
  EXPECT_TRUE(open->empty());
}

}  // namespace
}  // namespace gpuwatch::preload
