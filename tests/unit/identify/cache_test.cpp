// SPDX-License-Identifier: Apache-2.0
// The cache gives back what it was given, over restarts, and survives damage.
#include "identify/cache.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "identify/identify.h"
#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

constexpr std::uint64_t kRoom = 64 << 20;

Module some_module(const std::string& name = "kernel") {
  Module module;
  module.kind = Kind::kElf;
  module.sm = 90;
  module.has_modules = true;
  module.m[0] = 7;
  module.p.emplace();
  module.errors.push_back("odd");
  module.kernels.resize(1);
  module.kernels[0].name = name;
  module.kernels[0].code_bytes = 1ull << 40;
  return module;
}

class CacheTest : public ::testing::Test {
 protected:
  Cache open(std::uint64_t room = kRoom) {
    auto cache = Cache::open(path_, room, warning_);
    EXPECT_TRUE(cache.ok()) << cache.error().message();
    return std::move(*cache);
  }
  void sql(const std::string& text) {
    sqlite3* db = nullptr;
    ASSERT_EQ(::sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(::sqlite3_exec(db, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << ::sqlite3_errmsg(db);
    ::sqlite3_close(db);
  }

  test::ScratchDir dir_;
  std::string path_ = dir_.file("deep/er/hashes.sqlite");
  std::string warning_;
  Image image_;
  Digest digest_{};
};

TEST_F(CacheTest, KeepsModulesOverRestarts) {
  {
    Cache cache = open();
    EXPECT_FALSE(cache.module(digest_, image_));
    cache.store(digest_, image_, some_module());
  }
  Cache cache = open();
  EXPECT_EQ(warning_, "");
  const auto module = cache.module(digest_, image_);
  ASSERT_TRUE(module);
  EXPECT_EQ(module->kernels[0].name, "kernel");
  EXPECT_EQ(module->kernels[0].code_bytes, 1ull << 40);
  EXPECT_EQ(module->errors, std::vector<std::string>{"odd"});
  image_.compression = Compression::kZstd;  // the same bytes, read in another way
  EXPECT_FALSE(cache.module(digest_, image_));
}

TEST_F(CacheTest, FilesByIdentity) {
  const FileKey key{1, 2, 3, 4, 5};
  CachedScan scan;
  scan.scan.images.resize(2);
  scan.scan.containers.resize(1);
  scan.stored.resize(2);
  Cache cache = open();
  cache.store(key, scan);
  ASSERT_TRUE(cache.file(key));
  EXPECT_EQ(cache.file(key)->scan.images.size(), 2u);
  for (FileKey other : {FileKey{9, 2, 3, 4, 5}, {1, 9, 3, 4, 5}, {1, 2, 9, 4, 5}, {1, 2, 3, 9, 5}, {1, 2, 3, 4, 9}})
    EXPECT_FALSE(cache.file(other));
}

TEST_F(CacheTest, GarbageIsReplacedWithAWarning) {
  { open(); }
  test::spill(path_, "this is no database, whatever its name says, and it is long enough to be looked at");
  {
    Cache cache = open();
    EXPECT_NE(warning_.find("replaced by an empty one"), std::string::npos) << warning_;
    cache.store(digest_, image_, some_module());
  }
  EXPECT_TRUE(open().module(digest_, image_));
}

TEST_F(CacheTest, DamagedPagesNeverGiveAResult) {
  {
    Cache cache = open();
    for (std::uint8_t i = 0; i < 200; ++i) {
      digest_[0] = i;
      cache.store(digest_, image_, some_module("kernel number " + std::to_string(i)));
    }
  }
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string good = test::slurp(path_);
  for (std::size_t at = 100; at < good.size(); at += 4099) {
    std::string bad = good;
    for (std::size_t i = 0; i < 64 && at + i < bad.size(); ++i) bad[at + i] = static_cast<char>(~bad[at + i]);
    test::spill(path_, bad);
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
    Cache cache = open();
    for (std::uint8_t i = 0; i < 200; ++i) {
      digest_[0] = i;
      if (const auto module = cache.module(digest_, image_)) {
        EXPECT_EQ(module->kernels[0].name, "kernel number " + std::to_string(i)) << at;
      }
    }
  }
}

TEST_F(CacheTest, AChangedRowIsIgnored) {
  {
    Cache cache = open();
    cache.store(digest_, image_, some_module());
  }
  sql("UPDATE module SET data = replace(data, 'kernel', 'kerneL')");
  Cache cache = open();
  EXPECT_FALSE(cache.module(digest_, image_));
  EXPECT_NE(cache.trouble(), "");
}

TEST_F(CacheTest, AForeignSchemaIsReplaced) {
  { open(); }
  sql("CREATE TABLE more(a); CREATE TRIGGER t AFTER INSERT ON module BEGIN DELETE FROM file; END");
  open();
  EXPECT_NE(warning_.find("another version or another program"), std::string::npos) << warning_;
}

TEST_F(CacheTest, WhatOthersCanWriteIsRefused) {
  { open(); }
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  auto cache = Cache::open(path_, kRoom, warning_);
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(cache.error().message().find("others can write it"), std::string::npos);
}

TEST_F(CacheTest, IsBounded) {
  constexpr std::uint64_t kSmall = 256 << 10;
  {
    Cache cache = open(kSmall);
    for (int i = 0; i < 2000; ++i) {
      std::memcpy(digest_.data(), &i, sizeof i);
      cache.store(digest_, image_, some_module(std::string(500, 'n')));
    }
  }
  sqlite3* db = nullptr;
  ASSERT_EQ(::sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  ASSERT_EQ(::sqlite3_prepare_v2(db, "SELECT total(length(data)), count(*) FROM module", -1, &statement, nullptr),
            SQLITE_OK);
  ASSERT_EQ(::sqlite3_step(statement), SQLITE_ROW);
  EXPECT_LE(::sqlite3_column_double(statement, 0), static_cast<double>(kSmall));
  EXPECT_GT(::sqlite3_column_int64(statement, 1), 0);
  ::sqlite3_finalize(statement);
  ::sqlite3_close(db);
}

TEST_F(CacheTest, ASecondLookTakesItAllFromTheCache) {
  const std::string file = dir_.file("lib.so");
  test::spill(file, test::sample("a_def.o"));
  std::string first;
  for (int round = 0; round < 3; ++round) {
    Options options;
    options.cache_path = path_;
    options.workers = 1;
    Identifier identifier(options);
    Collector found;
    ASSERT_TRUE(identifier.path(file, found).ok());
    ASSERT_EQ(found.report.parts.size(), 3u);
    std::string all;
    for (const auto& part : found.report.parts) {
      ASSERT_TRUE(part.entry) << part.error;
      EXPECT_EQ(part.entry->from_cache, round != 0);
      all += to_hex(part.entry->module.r) + to_hex(part.entry->module.m) + to_hex(part.entry->stored);
    }
    if (round == 0) first = all;
    EXPECT_EQ(all, first);
    // The same bytes under another name and inode are known, too.
    if (round == 1) {
      std::filesystem::remove(file);
      test::spill(file, test::sample("a_def.o"));
    }
  }
}

}  // namespace
}  // namespace gpuwatch::identify
