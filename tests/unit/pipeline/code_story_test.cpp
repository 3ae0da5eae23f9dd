// SPDX-License-Identifier: Apache-2.0
// Unit tests of what is told of loads and of channels without one, as far as no
// image has to be hashed: that is shown in the guest (tests/vm/images/at-code).
#include "pipeline/code_story.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/io.h"
#include "model/definitions.h"
#include "pipeline/image_places.h"
#include "unit/support.h"

namespace gpuwatch::pipeline {
namespace {

using test::Blob;

class NoSource final : public source::Source {
 public:
  base::Status next_batch(std::vector<model::RawRecord>& batch) override {
    batch.clear();
    return {};
  }
  bool ended() const override { return true; }
  base::Status wait(std::chrono::milliseconds) override { return {}; }
  base::Status stop() override { return {}; }
  model::LossCounts lost() override { return {}; }
  const source::GwcapHeader& header() const override { return header_; }

 private:
  source::GwcapHeader header_;
};

Blob load_record(gpuwatch_rec head, gpuwatch_image_kind kind, std::uint32_t flags, std::string_view text) {
  gpuwatch_rec_image image{};
  image.kind = kind;
  image.flags = flags;
  image.bytes = 5000;
  image.head_len = static_cast<std::uint32_t>(text.size());
  std::memcpy(image.symbol, "cuModuleLoad", 12);
  Blob payload;
  test::append_struct(payload, image);
  for (const char c : text) payload.push_back(static_cast<std::byte>(c));
  test::pad8(payload);
  return test::finish_record(head, payload);
}

model::StoryEvent channel(model::StoryKind kind, std::uint64_t time_ns, std::uint32_t tgid, std::int32_t minor = 0) {
  model::StoryEvent event;
  event.kind = kind;
  event.head.time_ns = time_ns;
  event.head.tgid = tgid;
  event.gpu_minor = minor;
  event.body = model::ChannelBody{};
  return event;
}

constexpr auto kCreated = model::StoryKind::kChannelCreated;
constexpr auto kDestroyed = model::StoryKind::kChannelDestroyed;

TEST(Unverified, ToldOnceWhenTheTimeIsOver) {
  Unverified unverified(1000);
  std::vector<model::StoryEvent> out;
  unverified.observe(channel(kCreated, 100, 7));
  unverified.observe(channel(kCreated, 600, 7));
  unverified.advance(1099, out);
  EXPECT_TRUE(out.empty());
  unverified.advance(9000, out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].kind, model::StoryKind::kUnverified);
  EXPECT_EQ(out[0].head.time_ns, 1100U);  // whoever looked, and when
  EXPECT_EQ(std::get<model::UnverifiedBody>(out[0].body).channels, 2U);
  unverified.observe(channel(kCreated, 9500, 7));
  unverified.advance(99000, out);
  EXPECT_EQ(out.size(), 1U);
}

TEST(Unverified, NotOfWhoLoadedOrHasNoChannelLeft) {
  Unverified unverified(1000);
  std::vector<model::StoryEvent> out;
  unverified.observe(channel(kCreated, 100, 7));
  unverified.observe(channel(kCreated, 100, 8));
  unverified.observe(channel(kDestroyed, 200, 8));
  gpuwatch_rec head{};
  head.tgid = 7;
  unverified.loaded(head);
  head.tgid = 9;
  unverified.loaded(head);
  unverified.observe(channel(kCreated, 300, 9));
  unverified.advance(99000, out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(unverified.holders(), (std::vector<std::uint32_t>{7, 9}));
}

TEST(Unverified, AnotherProcessWithTheNumberIsAnother) {
  Unverified unverified(1000);
  std::vector<model::StoryEvent> out;
  gpuwatch_rec earlier{};
  earlier.tgid = 7;
  earlier.start_ns = 5;
  unverified.loaded(earlier);
  auto event = channel(kCreated, 100, 7);
  event.head.start_ns = 50;
  unverified.observe(event);
  unverified.advance(5000, out);
  EXPECT_EQ(out.size(), 1U);
}

class Story : public ::testing::Test {
 protected:
  std::vector<model::StoryEvent> observe(CodeStory& story, const Blob& record) {
    std::vector<model::StoryEvent> out;
    story.observe(
        *model::parse_record(record), {}, [](const gpuwatch_rec&) { return model::Actor(); }, out);
    return out;
  }
  NoSource source_;
};

TEST_F(Story, LoadsWhoseBytesWereNotCapturedSayWhy) {
  CodeStory story({}, CodeJudge({}, {}, *judge::Policy::parse("jit allow\n", "p")), nullptr, source_);
  const auto head = test::make_head(GPUWATCH_REC_IMAGE);
  auto out = observe(story, load_record(head, GPUWATCH_IMAGE_ELF, GPUWATCH_IMAGEF_OVER_BUDGET,
                                        "\x7f"
                                        "ELF"));
  ASSERT_EQ(out.size(), 1U);
  const auto& body = std::get<model::ModuleBody>(out[0].body);
  EXPECT_EQ(out[0].kind, model::StoryKind::kModuleLoad);
  EXPECT_EQ(body.loader, "cuModuleLoad");
  EXPECT_EQ(body.verdict, model::Verdict::kUnverified);
  EXPECT_EQ(body.problem, "the image was over the budget of all captures");
  out = observe(story, load_record(head, GPUWATCH_IMAGE_PATH, 0, "/opt/x.cubin"));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<model::ModuleBody>(out[0].body).source, "/opt/x.cubin");
  EXPECT_EQ(std::get<model::ModuleBody>(out[0].body).name, "x.cubin");
  EXPECT_TRUE(observe(story, load_record(head, GPUWATCH_IMAGE_CALL, 0, "")).empty());
  EXPECT_EQ(story.findings(), 2U);
  EXPECT_EQ(
      story.gap_line(),
      "2 of 2 loads not verified: 1 not captured by the recorder, 1 not kept, or gone before they could be fetched");
}

// Nothing is judged where nobody asks for it, and nothing is a finding.
TEST_F(Story, WithoutABaselineThereIsNoVerdict) {
  CodeStory story({}, CodeJudge({}, {}, {}), nullptr, source_);
  const auto out = observe(story, load_record(test::make_head(GPUWATCH_REC_IMAGE), GPUWATCH_IMAGE_PATH, 0, "/x"));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_FALSE(std::get<model::ModuleBody>(out[0].body).judged);
  EXPECT_EQ(story.findings(), 0U);
}

// Whatever does not fit into the queue is told at once and counted.
TEST_F(Story, AFullQueueIsToldAndCounted) {
  CodeStoryOptions options;
  options.live = true;
  options.queue_loads = 0;
  CodeStory story(options, CodeJudge({}, {}, {}), nullptr, source_);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(
        observe(story, load_record(test::make_head(GPUWATCH_REC_IMAGE), GPUWATCH_IMAGE_ELF, GPUWATCH_IMAGEF_TOO_BIG,
                                   "\x7f"
                                   "ELF"))
            .size(),
        1U);
  EXPECT_EQ(story.gap_line(), "3 of 3 loads not verified: 3 more at a time than can be hashed");
}

// Live and in step the same is told.
TEST_F(Story, LiveTellsTheSame) {
  CodeStoryOptions options;
  options.live = true;
  CodeStory live(options, CodeJudge({}, {}, {}), nullptr, source_);
  std::vector<model::StoryEvent> out;
  for (int i = 0; i < 50; ++i)
    for (const auto& event :
         observe(live, load_record(test::make_head(GPUWATCH_REC_IMAGE), GPUWATCH_IMAGE_ELF, GPUWATCH_IMAGEF_FAULT,
                                   "\x7f"
                                   "ELF")))
      out.push_back(event);
  live.finish({}, out);
  EXPECT_EQ(out.size(), 50U);
  EXPECT_EQ(live.gap_line(), "50 of 50 loads not verified: 50 not captured by the recorder");
}

// Who waits for records hears of a verdict without waiting for its time to be over.
TEST_F(Story, SaysWhenThereIsSomethingToTell) {
  CodeStoryOptions options;
  options.live = true;
  std::promise<void> heard;
  std::atomic<int> calls{0};
  CodeStory live(options, CodeJudge({}, {}, {}), nullptr, source_);
  live.when_done([&] {
    if (calls++ == 0) heard.set_value();
  });
  const Blob load = load_record(test::make_head(GPUWATCH_REC_IMAGE), GPUWATCH_IMAGE_ELF, GPUWATCH_IMAGEF_FAULT,
                                "\x7f"
                                "ELF");
  EXPECT_TRUE(observe(live, load).empty());
  heard.get_future().wait();
  std::vector<model::StoryEvent> out;
  live.settle(0, {}, out);
  EXPECT_EQ(out.size(), 1U);
  EXPECT_EQ(calls, 1);
}

gpuwatch_rec own_head() {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_IMAGE);
  head.tgid = static_cast<std::uint32_t>(::getpid());
  std::string stat = *base::read_text_file("/proc/self/stat");
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22; ++field) at = stat.find(' ', at + 1);
  head.start_ns = std::strtoull(stat.c_str() + at + 1, nullptr, 10) *
                  (1'000'000'000U / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
  return head;
}

TEST(ImagePlaces, FileMemoryAndNeither) {
  void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ImagePlaces places;
  gpuwatch_rec_image image{};
  image.kind = GPUWATCH_IMAGE_ELF;
  image.image_address = reinterpret_cast<std::uintptr_t>(&"bytes of this program");
  const PlaceOfImage file = places.find(own_head(), image);
  EXPECT_EQ(file.place, model::ImagePlace::kFile);
  EXPECT_TRUE(file.path.ends_with("unit-pipeline")) << file.path;
  EXPECT_NE(file.inode, 0U);
  image.image_address = reinterpret_cast<std::uintptr_t>(memory);
  EXPECT_EQ(places.find(own_head(), image).place, model::ImagePlace::kMemory);
  ::munmap(memory, 4096);
  gpuwatch_rec other = own_head();
  other.start_ns += 60'000'000'000;  // the number's earlier owner
  EXPECT_EQ(places.find(other, image).place, model::ImagePlace::kUnknown);
  image.kind = GPUWATCH_IMAGE_PATH;
  EXPECT_EQ(places.find(own_head(), image).place, model::ImagePlace::kUnknown);
}

TEST(ImagePlaces, ComesBackFromTheRecord) {
  PlaceOfImage place;
  place.place = model::ImagePlace::kFile;
  place.path = "/lib/libx.so";
  place.inode = 12;
  const Blob record = load_record(test::make_head(GPUWATCH_REC_IMAGE), GPUWATCH_IMAGE_ELF, 0,
                                  "\x7f"
                                  "ELF");
  model::RawRecord longer = *model::parse_record(record);
  const auto payload = with_place(*model::parse_record(record), place, longer.head.len);
  longer.payload = payload;
  EXPECT_EQ(longer.head.len, sizeof longer.head + payload.size());
  EXPECT_EQ(longer.head.len % 8, 0U);
  const auto load = CodeWatch::read(longer);
  ASSERT_TRUE(load.has_value());
  EXPECT_EQ(load->place, model::ImagePlace::kFile);
  EXPECT_EQ(load->file, "/lib/libx.so");
}

}  // namespace
}  // namespace gpuwatch::pipeline
