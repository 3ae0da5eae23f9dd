// SPDX-License-Identifier: Apache-2.0
// Timeline: what is collected, that it stays bounded, and that the picture holds
// it. tests/cli checks pictures of recordings with an XML parser.
#include "report/timeline.h"

#include <gtest/gtest.h>

#include "report/timeline_svg.h"
#include "unit/report/events.h"

namespace gpuwatch::report {
namespace {

using model::StoryKind;
using test::call_of;
using test::channel_of;
using test::context_of;
using test::memory_of;

model::Actor nobody(const gpuwatch_rec& head) {
  model::Actor actor;
  actor.tgid = head.tgid;
  return actor;
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

std::string picture(const Timeline& timeline, TimelineSvgOptions options = {}) {
  return timeline_svg(timeline.result(), {}, options);
}

void live_a_life(Timeline& timeline, std::uint32_t pid, std::uint64_t at_ns) {
  timeline.observe(call_of(pid, at_ns, 0));
  timeline.observe(channel_of(pid, at_ns + 1000, 1, "GR0"));
  timeline.observe(channel_of(pid, at_ns + 1000, 2, "COPY0"));
  timeline.observe(context_of(pid, at_ns + 2000, pid));
  timeline.observe(memory_of(pid, at_ns + 3000, 1 << 20, 1 << 20, 1 << 20));
  timeline.observe(memory_of(pid, at_ns + 5000, 1 << 20, 0, 0, false));
  timeline.observe(context_of(pid, at_ns + 6000, pid, false));
  timeline.observe(channel_of(pid, at_ns + 6000, 1, "GR0", false));
  timeline.observe(call_of(pid, at_ns + 10'000, 0));
}

TEST(Timeline, CollectsLifelinesAndMemory) {
  Timeline timeline(nobody);
  live_a_life(timeline, 7, 1'000'000);
  const TimelineResult result = timeline.result();
  ASSERT_EQ(result.processes.size(), 1U);
  const ProcessLine& line = result.processes.front();
  ASSERT_EQ(line.contexts.size(), 1U);
  EXPECT_EQ(line.contexts[0].from_ns, 1'002'000U);
  EXPECT_EQ(line.contexts[0].to_ns, 1'006'000U);
  EXPECT_EQ(line.contexts[0].channels, 20U);
  ASSERT_EQ(line.channels.size(), 2U);
  EXPECT_EQ(line.channels[0].use, ChannelUse::kCompute);
  EXPECT_EQ(line.channels[0].to_ns, 1'006'000U);
  EXPECT_EQ(line.channels[1].use, ChannelUse::kCopy);
  EXPECT_EQ(line.channels[1].to_ns, kOpenEnd);
  ASSERT_EQ(line.gpus.size(), 1U);
  EXPECT_EQ(line.gpus[0].memory.peak, 1U << 20);
  EXPECT_EQ(line.gpus[0].memory.last, 0U);
}

TEST(Timeline, PictureHoldsEachLifelineAndThePeak) {
  Timeline timeline(nobody);
  live_a_life(timeline, 7, 1'000'000);
  const std::string svg = picture(timeline);
  EXPECT_EQ(count_of(svg, "class=\"ctx\""), 2U);  // one of them in the legend
  EXPECT_EQ(count_of(svg, "class=\"cmp\""), 2U);
  EXPECT_EQ(count_of(svg, "class=\"cpy\""), 2U);
  EXPECT_NE(svg.find(">1.0 MiB</text>"), std::string::npos);
  EXPECT_NE(svg.find(">app/7</text>"), std::string::npos);
}

TEST(Timeline, MarksOfDenialsAndFindingsHaveTheirSignAndText) {
  Timeline timeline(nobody);
  timeline.observe(call_of(7, 1'000'000, 0));
  model::DenialBody denial;
  denial.detail = "SYSTEM_GET_LOCK_TIMES";
  denial.status_name = "NV_ERR_INSUFFICIENT_PERMISSIONS";
  timeline.observe(test::event_of(StoryKind::kCallDenied, 7, 1'500'000, denial));
  timeline.observe(test::event_of(StoryKind::kSecurityFinding, 7, 1'600'000, model::FindingBody{}));
  timeline.observe(call_of(7, 2'000'000, 0));
  ASSERT_EQ(timeline.result().processes.front().marks.size(), 2U);
  const std::string svg = picture(timeline);
  EXPECT_EQ(count_of(svg, "class=\"mx\""), 2U);
  EXPECT_EQ(count_of(svg, "class=\"ms\""), 2U);
  EXPECT_NE(svg.find("SYSTEM_GET_LOCK_TIMES: NV_ERR_INSUFFICIENT_PERMISSIONS"), std::string::npos);
}

TEST(Timeline, HostileNamesDoNotBreakThePicture) {
  Timeline timeline([](const gpuwatch_rec&) {
    model::Actor actor;
    actor.exe = "/x/</text><script>alert(1)</script>\xff&";
    return actor;
  });
  model::Call call = call_of(7, 1000);
  std::memcpy(call.record.head.comm, "<&\"'>\x01\xf0\x28\x8c", 10);
  timeline.observe(call);
  TimelineSvgOptions options;
  options.title = "]]><svg onload=\"x\">";
  const std::string svg = picture(timeline, options);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(count_of(svg, "<svg"), 1U);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
}

TEST(Timeline, ManyProcessesAreRowsAndTheRestIsCounted) {
  Timeline timeline(nobody, {.processes = 40});
  for (std::uint32_t pid = 1; pid <= 50; ++pid) live_a_life(timeline, pid, pid * 100'000);
  const TimelineResult result = timeline.result();
  EXPECT_EQ(result.processes.size(), 40U);
  EXPECT_EQ(result.processes_left_out, 10U);
  EXPECT_EQ(result.calls_left_out, 20U);
  const std::string svg = picture(timeline);
  EXPECT_EQ(count_of(svg, ">app/"), TimelineSvgOptions::kShown);
  EXPECT_NE(svg.find("left out: 26 processes with 52 calls"), std::string::npos);
  EXPECT_LT(svg.size(), 200'000U);
}

TEST(Timeline, LongCurvesGetCoarserAndKeepTheirPeak) {
  Curve curve;
  for (std::uint64_t i = 1; i <= 100'000; ++i) curve.add(i, i == 33'333 ? 1'000'000 : i % 100, 256);
  EXPECT_LE(curve.points.size(), 257U);
  EXPECT_EQ(curve.peak, 1'000'000U);
  EXPECT_TRUE(
      std::any_of(curve.points.begin(), curve.points.end(), [](const auto& p) { return p.value == 1'000'000; }));
  EXPECT_EQ(curve.points.back().value, 100'000U % 100);
  EXPECT_EQ(curve.last, 100'000U % 100);
  for (std::size_t i = 1; i < curve.points.size(); ++i) EXPECT_LT(curve.points[i - 1].time_ns, curve.points[i].time_ns);
}

TEST(Timeline, StripsWidenAndLoseNoCall) {
  Strip strip;
  for (std::uint64_t i = 0; i < 10'000; ++i) strip.add(5'000'000 + i * 1'000'000, 128);
  EXPECT_LE(strip.bins.size(), 128U);
  std::uint64_t all = 0;
  for (const std::uint32_t bin : strip.bins) all += bin;
  EXPECT_EQ(all, 10'000U);
  EXPECT_GE(strip.width_ns * strip.bins.size(), 9'999'000'000U);
}

TEST(Timeline, PartOfTheTimeShowsWhatLivedThen) {
  Timeline timeline(nobody);
  live_a_life(timeline, 7, 1'000'000);
  TimelineSvgOptions options;
  options.since_ns = 7000;
  options.until_ns = 9000;
  const std::string svg = picture(timeline, options);
  EXPECT_EQ(count_of(svg, "class=\"ctx\""), 1U);  // the legend's
  EXPECT_EQ(count_of(svg, "class=\"cpy\""), 2U);  // never ended
}

TEST(Timeline, TimesMayBeAnything) {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  const std::uint64_t times[] = {0, 1, 1'000'000, kLast / 2, kLast - 1, kLast};
  for (const std::uint64_t first : times)
    for (const std::uint64_t second : times) {
      Timeline timeline(nobody);
      for (const std::uint64_t at : {first, second}) {
        timeline.observe(call_of(7, at, kLast / 3));
        timeline.observe(memory_of(7, at, kLast, kLast, kLast));
        timeline.observe(context_of(7, at, at));
        timeline.observe(channel_of(7, at, 1, "GR0"));
        timeline.observe(test::event_of(StoryKind::kCallDenied, 7, at, model::DenialBody{}));
      }
      for (const std::uint64_t since : {std::uint64_t{0}, kLast / 2, kLast - 1}) {
        TimelineSvgOptions options;
        options.since_ns = since;
        const std::string svg = picture(timeline, options);
        EXPECT_TRUE(svg.ends_with("</svg>\n"));
        EXPECT_LT(svg.size(), 20'000U);
        EXPECT_EQ(svg.find("nan"), std::string::npos);
        EXPECT_EQ(svg.find("inf"), std::string::npos);
      }
    }
}

TEST(Timeline, EmptyRecordingIsAPictureToo) {
  const std::string svg = picture(Timeline(nobody));
  EXPECT_NE(svg.find("nobody called the driver"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

}  // namespace
}  // namespace gpuwatch::report
