// SPDX-License-Identifier: Apache-2.0
// Every committed recording of a real program decodes with names: no unnamed
// escape, UVM command or class. Controls without a public name exist; their
// number is printed. The default view tells each program's own story and does
// not cry over what CUDA programs habitually try.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "decode/decoder.h"
#include "decode/story.h"
#include "source/gwcap.h"

namespace gpuwatch::decode {
namespace {

using Told = std::map<model::StoryKind, int>;

// A scenario that makes one unknown and one forbidden call on purpose.
bool is_provocation(const std::filesystem::path& file) {
  return file.stem() == "raw-ioctl";
}

void check_story(const std::string& scenario, bool provocation, Told told) {
  using model::StoryKind;
  EXPECT_EQ(told[StoryKind::kDenied], provocation ? 1 : 0);
  EXPECT_EQ(told[StoryKind::kOpenFailed], 0);
  EXPECT_EQ(told[StoryKind::kDebuggerAttached], 0);
  EXPECT_EQ(told[StoryKind::kForeignMemory], 0);
  EXPECT_EQ(told[StoryKind::kClientCreated], told[StoryKind::kClientClosed]);
  EXPECT_EQ(told[StoryKind::kGpuOpened], told[StoryKind::kGpuClosed]);
  const bool cuda = scenario != "nvml" && scenario != "nvidia-smi" && scenario != "raw-ioctl";
  if (cuda) {
    EXPECT_GE(told[StoryKind::kContextCreated], 1);
    EXPECT_GE(told[StoryKind::kMemoryAllocated], 1);
  }
  if (scenario == "out-of-memory") {
    EXPECT_GE(told[StoryKind::kMemoryRefused], 1);
  }
  if (scenario == "ipc") {
    EXPECT_GE(told[StoryKind::kDuplicated] + told[StoryKind::kImported], 1);
  }
}

void check(const std::filesystem::path& file) {
  SCOPED_TRACE(file.string());
  auto reader = source::GwcapReader::open(file.string());
  ASSERT_TRUE(reader) << reader.error().message();
  const auto version = model::parse_driver_version(reader->header().driver_version);
  ASSERT_TRUE(version) << "recording does not say its driver's version: " << reader->header().driver_version;
  const Decoder decoder(*version);
  StoryBuilder story;
  std::vector<model::StoryEvent> events;
  Told told;
  for (;;) {
    auto record = reader->next();
    ASSERT_TRUE(record) << record.error().message();
    if (!record.value()) break;
    events.clear();
    story.observe(decoder.decode(*record.value()), events);
    for (const model::StoryEvent& event : events) ++told[event.kind];
  }
  const Stats& stats = decoder.stats();
  EXPECT_GT(stats.records, 0U);
  EXPECT_EQ(stats.malformed, 0U);
  EXPECT_EQ(stats.unknown_types, 0U);
  EXPECT_EQ(stats.unknown_escapes, is_provocation(file) ? 1U : 0U);
  EXPECT_EQ(stats.unknown_uvm, 0U);
  EXPECT_EQ(stats.unknown_classes, 0U);
  EXPECT_EQ(stats.unknown_status, 0U);
  std::printf("%s: %llu records, %llu controls without a name, %llu odd sizes\n", file.filename().c_str(),
              static_cast<unsigned long long>(stats.records), static_cast<unsigned long long>(stats.unknown_controls),
              static_cast<unsigned long long>(stats.size_mismatches));
  check_story(file.stem().string(), is_provocation(file), told);
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
