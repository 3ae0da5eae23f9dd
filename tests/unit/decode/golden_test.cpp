// SPDX-License-Identifier: Apache-2.0
// Every committed recording of a real program decodes with names: no unnamed
// escape, UVM command or class. Controls without a public name exist; their
// number is printed. The default view tells each program's own story and does
// not cry over what CUDA programs habitually try.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "decode/decoder.h"
#include "decode/describe.h"
#include "decode/story.h"
#include "source/gwcap.h"

namespace gpuwatch::decode {
namespace {

using Told = std::map<model::StoryKind, int>;

// A scenario that makes one unknown and one forbidden call on purpose.
bool is_provocation(const std::filesystem::path& file) {
  return file.stem() == "raw-ioctl";
}

// The whole story of each recording is compared by golden-stories; here is what
// must hold for all of them.
void check_story(const std::string& scenario, bool provocation, Told told, const Tree& tree) {
  using model::StoryKind;
  EXPECT_EQ(told[StoryKind::kCallDenied], provocation ? 1 : 0);
  EXPECT_EQ(told[StoryKind::kSecurityFinding], provocation ? 1 : 0);
  EXPECT_EQ(told[StoryKind::kOpenFailed], 0);
  EXPECT_EQ(told[StoryKind::kChannelCreated], 20 * told[StoryKind::kContextCreated]);
  EXPECT_EQ(told[StoryKind::kGpuFault], scenario == "illegal-access" ? 1 : 0);
  EXPECT_EQ(told[StoryKind::kMemoryRefused] > 0, scenario == "out-of-memory");
  EXPECT_EQ(told[StoryKind::kShareDuplicated], scenario == "ipc" ? 1 : 0);
  EXPECT_EQ(tree.stats().ignored, 0U);
  // Eight at a time until the time is up: the last ones are cut off.
  if (scenario == "churn-8") return;
  EXPECT_EQ(told[StoryKind::kClientCreated], told[StoryKind::kClientClosed]);
  EXPECT_EQ(told[StoryKind::kGpuOpened], told[StoryKind::kGpuClosed]);
  EXPECT_EQ(told[StoryKind::kContextCreated], told[StoryKind::kContextDestroyed]);
  EXPECT_EQ(told[StoryKind::kChannelCreated], told[StoryKind::kChannelDestroyed]);
  EXPECT_EQ(tree.stats().objects, 0U) << "everything ends with its file";
  for (const auto& gpu : tree.gpus()) EXPECT_EQ(gpu.memory.live, 0U);
}

// What all recordings together hold, for the line at the end.
struct Totals {
  int files = 0;
  std::uint64_t records = 0;
  std::uint64_t escapes = 0, uvm = 0, allocs = 0, controls = 0;
  std::uint64_t unnamed_controls = 0;
  std::uint64_t provoked = 0;  // unnamed on purpose
  std::uint64_t fields = 0;
  Unnamed unnamed;
};

// Commands without a name in any public header: those of the legacy interfaces,
// marked by bit 15 and named by family, and those of the classes whose whole
// command set is not public.
bool may_be_unnamed(const model::Call& call) {
  const std::uint32_t control = call.get32(model::Field::kControl);
  const bool legacy = (control & 0x8000) != 0 && call.interface.find("NON_PRIVILEGED") != std::string_view::npos;
  return legacy || control >> 16 == 0x2081 || control >> 16 == 0x2082;
}

void count(const model::Call& call, Totals& totals) {
  if (call.space == model::Space::kFrontend) ++totals.escapes;
  if (call.space == model::Space::kUvm) ++totals.uvm;
  if (call.has(model::Field::kClass)) ++totals.allocs;
  if (!call.has(model::Field::kControl)) return;
  ++totals.controls;
  if (!call.detail.empty()) return;
  ++totals.unnamed_controls;
  EXPECT_TRUE(may_be_unnamed(call)) << std::hex << call.get(model::Field::kControl) << " " << call.interface;
  EXPECT_FALSE(call.interface.empty());
}

void check(const std::filesystem::path& file, Totals& totals) {
  SCOPED_TRACE(file.string());
  auto reader = source::GwcapReader::open(file.string());
  ASSERT_TRUE(reader) << reader.error().message();
  const auto version = model::parse_driver_version(reader->header().driver_version);
  ASSERT_TRUE(version) << "recording does not say its driver's version: " << reader->header().driver_version;
  const Decoder decoder(*version);
  EXPECT_FALSE(decoder.inherited());
  Describer describer(*version);
  StoryBuilder story;
  std::vector<model::StoryEvent> events;
  Told told;
  for (;;) {
    auto record = reader->next();
    ASSERT_TRUE(record) << record.error().message();
    if (!record.value()) break;
    events.clear();
    const model::Call call = decoder.decode(*record.value());
    count(call, totals);
    describer.observe(call);
    for (const auto& part : describer.describe(call).parts) {
      EXPECT_TRUE(part.layout_branch.empty()) << part.struct_name;
      EXPECT_TRUE(part.table_bytes == 0 || part.elements > 1 || part.table_bytes == part.bytes) << part.struct_name;
      totals.fields += part.fields.size();
    }
    story.observe(call, events);
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
  EXPECT_EQ(stats.unknown_nvkms + stats.unknown_other, 0U);
  ++totals.files;
  totals.records += stats.records;
  totals.provoked += stats.unknown_escapes;
  const Unnamed& unnamed = describer.unnamed();
  EXPECT_EQ(unnamed.statuses + unnamed.classes + unnamed.enums, 0U);
  totals.unnamed.structs += unnamed.structs;
  totals.unnamed.bytes += unnamed.bytes;
  totals.unnamed.bits += unnamed.bits;
  events.clear();
  story.finish(events);
  for (const model::StoryEvent& event : events) ++told[event.kind];
  check_story(file.stem().string(), is_provocation(file), told, story.tree());
}

TEST(Golden, EveryRecordingHasNames) {
  Totals totals;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(GOLDEN_DIR))
    if (entry.path().extension() == ".gwcap") check(entry.path(), totals);
  if (totals.files == 0) GTEST_SKIP() << "no recordings under " << GOLDEN_DIR;
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  std::printf(
      "%d recordings, %llu records; unnamed: %llu of %llu escapes (on purpose), 0 of %llu UVM commands, "
      "0 of %llu classes, %llu of %llu controls, all in ranges that have no public names\n",
      totals.files, number(totals.records), number(totals.provoked), number(totals.escapes), number(totals.uvm),
      number(totals.allocs), number(totals.unnamed_controls), number(totals.controls));
  std::printf("%llu fields; %llu parameters of structs without known fields, %llu bytes that belong to no field\n",
              number(totals.fields), number(totals.unnamed.structs), number(totals.unnamed.bytes));
  EXPECT_EQ(totals.provoked, 1U);
}

}  // namespace
}  // namespace gpuwatch::decode
