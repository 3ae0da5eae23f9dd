// SPDX-License-Identifier: Apache-2.0
// Every committed recording of a real program decodes with names: no unnamed
// escape, UVM command or class. Controls without a public name exist; their
// number is printed.
#include <gtest/gtest.h>

#include <filesystem>

#include "decode/decoder.h"
#include "source/gwcap.h"

namespace gpuwatch::decode {
namespace {

void check(const std::filesystem::path& file) {
  SCOPED_TRACE(file.string());
  auto reader = source::GwcapReader::open(file.string());
  ASSERT_TRUE(reader) << reader.error().message();
  const auto version = model::parse_driver_version(reader->header().driver_version);
  ASSERT_TRUE(version) << "recording does not say its driver's version: " << reader->header().driver_version;
  const Decoder decoder(*version);
  for (;;) {
    auto record = reader->next();
    ASSERT_TRUE(record) << record.error().message();
    if (!record.value()) break;
    decoder.decode(*record.value());
  }
  const Stats& stats = decoder.stats();
  EXPECT_GT(stats.records, 0U);
  EXPECT_EQ(stats.malformed, 0U);
  EXPECT_EQ(stats.unknown_types, 0U);
  EXPECT_EQ(stats.unknown_escapes, 0U);
  EXPECT_EQ(stats.unknown_uvm, 0U);
  EXPECT_EQ(stats.unknown_classes, 0U);
  EXPECT_EQ(stats.unknown_status, 0U);
  std::printf("%s: %llu records, %llu controls without a name, %llu odd sizes\n", file.filename().c_str(),
              static_cast<unsigned long long>(stats.records), static_cast<unsigned long long>(stats.unknown_controls),
              static_cast<unsigned long long>(stats.size_mismatches));
}

TEST(Golden, EveryRecordingHasNames) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GOLDEN_DIR)) {
    if (entry.path().extension() != ".gwcap") continue;
    check(entry.path());
    ++files;
  }
  if (files == 0) GTEST_SKIP() << "no recordings under " << GOLDEN_DIR;
}

}  // namespace
}  // namespace gpuwatch::decode
