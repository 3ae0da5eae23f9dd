// SPDX-License-Identifier: Apache-2.0
// Unit tests of View: which records lead to lines, and that no byte of a
// hostile name reaches the terminal as a control.
#include "cli/view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/live.h"
#include "unit/support.h"

namespace gpuwatch::cli {
namespace {

using test::Blob;

std::optional<Filter> filter_of(const std::string& text) {
  auto filter = Filter::compile(text);
  EXPECT_TRUE(filter.ok());
  return std::move(*filter);
}

TEST(View, RawGivesOneLinePerRecord) {
  const Selection selection;
  ViewOptions options;
  options.raw = true;
  View view(options, {}, std::nullopt, selection);
  std::string out;
  const Blob open = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  const Blob call = test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL), 0xc020462a, -22);
  EXPECT_EQ(view.observe(*model::parse_record(open), out), 1u);
  EXPECT_EQ(view.observe(*model::parse_record(call), out), 1u);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
  EXPECT_NE(out.find("open(nvidiactl"), std::string::npos) << out;
  EXPECT_NE(out.find("EINVAL"), std::string::npos) << out;
}

// A recording that does not name its driver: the first program that opens a GPU does.
TEST(View, TheStreamTellsTheDriver) {
  const Selection selection;
  ViewOptions options;
  options.raw = options.fields = true;
  View view(options, {}, std::nullopt, selection);
  EXPECT_EQ(view.decoder().branch(), "595");
  std::string answer(72, '\0');
  answer[4] = 1;
  answer.replace(8, 10, "550.90.07\0", 10);
  const Blob check =
      test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL), 0xc04846d2, 0, {{GPUWATCH_CAP_ARG_OUT, answer}});
  std::string out;
  EXPECT_EQ(view.observe(*model::parse_record(check), out), 1u);
  EXPECT_EQ(view.decoder().branch(), "550");
  EXPECT_FALSE(view.decoder().inherited());
  EXPECT_NE(out.find("versionString = \"550.90.07\""), std::string::npos) << out;
  // A header that names it is not overruled.
  View told(options, {580, 159, 4}, std::nullopt, selection);
  EXPECT_EQ(told.observe(*model::parse_record(check), out), 1u);
  EXPECT_EQ(told.decoder().branch(), "580");
}

TEST(View, FilterDecidesPerCall) {
  const Selection selection;
  ViewOptions options;
  options.raw = true;
  View view(options, {}, filter_of("class==ioctl"), selection);
  std::string out;
  const Blob open = test::open_record(test::make_head(GPUWATCH_REC_OPEN));
  const Blob call = test::ioctl_record(test::make_head(GPUWATCH_REC_IOCTL), 0xc020462a, 0);
  EXPECT_EQ(view.observe(*model::parse_record(open), out), 0u);
  EXPECT_EQ(view.observe(*model::parse_record(call), out), 1u);
}

TEST(View, JsonLinesParse) {
  const Selection selection;
  ViewOptions options;
  options.raw = options.json = true;
  View view(options, {}, std::nullopt, selection);
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_OPEN);
  std::memcpy(head.comm, "\xff\"\n\x1b", 5);
  std::string out;
  EXPECT_EQ(view.observe(*model::parse_record(test::open_record(head)), out), 1u);
  const auto json = nlohmann::json::parse(out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << out;
}

TEST(View, HostileNamesCannotActOnTheTerminal) {
  const Selection selection;
  for (bool raw : {false, true}) {
    ViewOptions options;
    options.raw = raw;
    View view(options, {}, std::nullopt, selection);
    gpuwatch_rec head = test::make_head(GPUWATCH_REC_TASK);
    std::memcpy(head.comm, "\x1b]0;x\x07\n\r\x9b\x7f", 10);
    gpuwatch_rec_task task{};
    const std::string path = "/tmp/\x1b[2J\n\xe2\x80\xae";
    task.path_len = static_cast<__u32>(path.size());
    Blob payload;
    test::append_struct(payload, task);
    for (char c : path) payload.push_back(static_cast<std::byte>(c));
    test::pad8(payload);
    std::string out;
    view.observe(*model::parse_record(test::finish_record(head, payload)), out);
    head.type = GPUWATCH_REC_OPEN;
    head.node_kind = GPUWATCH_NODE_GPU;
    view.observe(*model::parse_record(test::open_record(head, -1)), out);
    EXPECT_FALSE(out.empty());
    for (unsigned char c : out) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << out;
    EXPECT_LE(std::count(out.begin(), out.end(), '\n'), 2);
  }
}

TEST(View, MalformedPayloadsDoNotStopIt) {
  const Selection selection;
  for (bool json : {false, true})
    for (bool raw : {false, true})
      for (unsigned type = 0; type < 12; ++type) {
        ViewOptions options;
        options.raw = raw;
        options.json = json;
        View view(options, {}, filter_of("pid>=0 || failed"), selection);
        gpuwatch_rec head = test::make_head(GPUWATCH_REC_OPEN);
        head.type = static_cast<__u16>(type);
        head.node_kind = 255;
        std::string out;
        for (std::size_t n = 0; n <= 96; n += 8) {
          const Blob record = test::finish_record(head, Blob(n, std::byte{0xff}));
          view.observe(*model::parse_record(record), out);
        }
      }
}

TEST(LossLine, NamesReasons) {
  model::LossCounts lost;
  EXPECT_EQ(loss_line(lost, 12), "lost 0 of 12 records");
  lost.by_reason[GPUWATCH_LOSS_RING_FULL] = 3;
  lost.by_reason[GPUWATCH_LOSS_PROBE_MISSED] = 1;
  EXPECT_EQ(loss_line(lost, 12), "lost 4 of 16 records: ring_full 3, probe_missed 1");
}

}  // namespace
}  // namespace gpuwatch::cli
