// SPDX-License-Identifier: Apache-2.0
// The screen of top without a terminal: what is in a frame of any size, what
// keys do, and that no byte of a name reaches the terminal as it came.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "cli/top/cells.h"
#include "cli/top/feed.h"
#include "cli/top/table.h"
#include "cli/top/ui.h"
#include "unit/support.h"

namespace gpuwatch::cli::top {
namespace {

using model::Verdict;
using report::HeldContainer;
using report::HeldGpu;
using report::HeldProcess;
using report::HoldingsSnapshot;

constexpr std::uint64_t kSecond = 1'000'000'000;

HeldProcess process_of(std::uint32_t pid, const std::string& comm, std::uint64_t mib,
                       const std::string& container = "") {
  HeldProcess process;
  process.who.pid = pid;
  process.who.start_ns = pid;
  process.who.comm = comm;
  process.who.exe = "/usr/bin/" + comm;
  process.who.uid = 1000 + pid % 2;
  process.who.container_id = container;
  process.who.runtime = container.empty() ? "" : "docker";
  process.since_ns = kSecond * pid;
  process.last_ns = 90 * kSecond;
  process.open = true;
  process.contexts = 1;
  process.channels = 20;
  process.memory = {mib << 20, mib << 20};
  process.calls_per_second = pid;
  return process;
}

HoldingsSnapshot two_gpus() {
  HoldingsSnapshot snapshot;
  snapshot.at_ns = 100 * kSecond;
  snapshot.source = "rings";
  snapshot.driver_version = "580.159.04";
  snapshot.records = 1000;
  HeldGpu first;
  first.minor = 0;
  first.name = "NVIDIA H200";
  HeldContainer one{"c docker aaaaaaaaaaaaaaaa", {process_of(1, "alpha", 100, "aaaaaaaaaaaaaaaa")}};
  HeldContainer two{"c docker bbbbbbbbbbbbbbbb",
                    {process_of(2, "beta", 300, "bbbbbbbbbbbbbbbb"), process_of(3, "gamma", 200, "bbbbbbbbbbbbbbbb")}};
  two.processes[1].code.loads = 5;
  two.processes[1].code.verdicts[static_cast<std::size_t>(Verdict::kUnknown)] = 1;
  two.processes[1].code.verdicts[static_cast<std::size_t>(Verdict::kKnown)] = 4;
  first.containers = {one, two};
  HeldGpu second;
  second.minor = 1;
  second.containers = {{"i 7", {process_of(4, "delta", 0)}}};
  second.containers[0].processes[0].contexts = second.containers[0].processes[0].channels = 0;
  second.containers[0].processes[0].partial = true;
  snapshot.gpus = {first, second};
  return snapshot;
}

std::vector<std::string> lines_of(const Frame& frame) {
  std::vector<std::string> lines;
  for (const Line& line : frame) {
    std::string text;
    for (const Span& span : line) text += span.text;
    lines.push_back(text);
  }
  return lines;
}

std::string text_of(const Frame& frame) {
  std::string text;
  for (const std::string& line : lines_of(frame)) text += line + "\n";
  return text;
}

std::string selected(const Frame& frame) {
  for (const Line& line : frame)
    for (const Span& span : line)
      if (span.style == Style::kSelected &&
          span.text.find_first_not_of(" +\xe2\x94\x9c\x94\x80\x82") != std::string::npos)
        return span.text.substr(0, span.text.find_last_not_of(' ') + 1);
  return {};
}

struct Driven {
  HoldingsSnapshot snapshot = two_gpus();
  Ui ui{UiOptions{}};
  bool press(char c) { return ui.press({Key::kChar, static_cast<std::uint32_t>(c)}, snapshot); }
  bool press(Key::Code code, std::uint32_t value = 0) { return ui.press({code, value}, snapshot); }
  void type(const std::string& text) {
    for (const char c : text) press(c);
  }
  Frame frame(std::size_t width = 120, std::size_t height = 24) { return ui.draw(width, height, snapshot); }
};

TEST(TopCells, HarmlessAndOfTheRightWidth) {
  EXPECT_EQ(safe("a\x1b[31mb\n", false), "a\\x1b[31mb\\x0a");
  EXPECT_EQ(safe("\xe6\xbc\xa2", false), "\xe6\xbc\xa2");
  EXPECT_EQ(safe("\xe6\xbc\xa2", true), "\\xe6\\xbc\\xa2");
  EXPECT_EQ(safe("e\xcc\x81", false), "e\\xcc\\x81") << "a combining mark has no width";
  EXPECT_EQ(columns_of("\xe6\xbc\xa2x"), 3U);
  EXPECT_EQ(fit("abc", 5, false), "abc  ");
  EXPECT_EQ(fit("abc", 5, false, Side::kRight), "  abc");
  EXPECT_EQ(fit("abcdef", 4, true), "abc~");
  EXPECT_EQ(fit("abcdef", 0, true), "");
  EXPECT_EQ(fit("abcdef", 1, true), "~");
  EXPECT_EQ(columns_of(fit("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 4, false)), 4U) << "a wide one that does not fit";
  for (std::size_t columns = 0; columns < 12; ++columns)
    EXPECT_EQ(columns_of(fit("a\xe6\xbc\xa2\xf0\x9f\x92\xa5z\xc3\xa9", columns, false)), columns);
}

TEST(TopCells, NumbersInFewCharacters) {
  EXPECT_EQ(age_text(0), "0.0s");
  EXPECT_EQ(age_text(9'990'000'000), "9.9s");
  EXPECT_EQ(age_text(59 * kSecond), "59s");
  EXPECT_EQ(age_text(192 * kSecond), "3m12s");
  EXPECT_EQ(age_text(7500 * kSecond), "2h05m");
  EXPECT_EQ(age_text(273'600 * kSecond), "3d04h");
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(512), "0.5K");
  EXPECT_EQ(size_text(414ULL << 20), "414M");
  EXPECT_EQ(size_text(6246ULL << 20), "6.1G");
  EXPECT_EQ(size_text(~0ULL), "16E");
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(rate_text(0.42), "0.4");
  EXPECT_EQ(rate_text(1729.3), "1729");
  EXPECT_EQ(rate_text(250'000), "250k");
  EXPECT_EQ(clock_text(3'600'000'000'000, 60'000'000'000, -3600), "00:01:00");
  EXPECT_EQ(clock_text(0, -1'000'000'000, 0), "23:59:59");
}

TEST(TopRows, TreeSortedWithinItsBranches) {
  const HoldingsSnapshot snapshot = two_gpus();
  ListOptions options;
  std::vector<std::string> names;
  for (const Row& row : list(snapshot, options).rows) names.push_back(row.name);
  EXPECT_EQ(names, (std::vector<std::string>{"gpu0 NVIDIA H200", "docker:bbbbbbbbbbbb", "beta/2", "gamma/3",
                                             "docker:aaaaaaaaaaaa", "alpha/1", "gpu1", "no container", "delta/4"}));
  options.sort = Column::kCode;
  EXPECT_EQ(list(snapshot, options).rows[2].name, "gamma/3");
  options.sort = Column::kSince;
  EXPECT_EQ(list(snapshot, options).rows[1].name, "docker:aaaaaaaaaaaa") << "the oldest first";
  options.turned = true;
  EXPECT_EQ(list(snapshot, options).rows[1].name, "docker:bbbbbbbbbbbb");
  for (std::size_t i = 0; i < kColumns; ++i) {
    options.sort = static_cast<Column>(i);
    EXPECT_EQ(list(snapshot, options).rows.size(), 9U);
    EXPECT_EQ(column_named(column_info(options.sort).flag), options.sort);
  }
  EXPECT_EQ(column_named("nothing"), std::nullopt);
}

TEST(TopRows, FiltersByAnyWordAndCounts) {
  const HoldingsSnapshot snapshot = two_gpus();
  ListOptions options;
  const auto processes = [&](const char* filter) {
    options.filter = filter;
    return list(snapshot, options).processes;
  };
  EXPECT_EQ(processes(""), 4U);
  EXPECT_EQ(processes("GAMMA"), 1U);
  EXPECT_EQ(processes("bbbb"), 2U);
  EXPECT_EQ(processes("h200"), 3U);
  EXPECT_EQ(processes("unknown"), 1U);
  EXPECT_EQ(processes("/usr/bin/delta"), 1U);
  EXPECT_EQ(processes("nobody has that"), 0U);
  options.filter.clear();
  options.user = 1001;
  EXPECT_EQ(list(snapshot, options).processes, 2U);
  EXPECT_EQ(list(snapshot, options).hidden, 2U);
  options.user.reset();
  options.hide_open = true;
  EXPECT_EQ(list(snapshot, options).gpus, 1U);
}

TEST(TopRows, CodeSaysTheWorstAndHowMany) {
  report::HeldCode code;
  EXPECT_EQ(code_text(code), "-");
  code.loads = code.unjudged = 3;
  EXPECT_EQ(code_text(code), "3 loads");
  EXPECT_EQ(code_tone(code), Tone::kPlain);
  code.verdicts[static_cast<std::size_t>(Verdict::kKnown)] = 2;
  EXPECT_EQ(code_text(code), "known 2/3");
  EXPECT_EQ(code_tone(code), Tone::kGood);
  code.verdicts[static_cast<std::size_t>(Verdict::kDenied)] = 1;
  EXPECT_EQ(code_text(code), "denied 1/3");
  EXPECT_EQ(code_tone(code), Tone::kBad);
  report::HeldCode silent;
  silent.silent = true;
  EXPECT_EQ(code_text(silent), "no load seen");
  EXPECT_EQ(code_tone(silent), Tone::kBad);
}

TEST(TopUi, EveryLineIsAsWideAsTheScreenWhateverItsSize) {
  const std::string wide = "\xe6\xbc\xa2\xe5\xad\x97\x1b[2J\xff\xe2\x80\xae";
  for (const char* keys : {"", "h", "s", "u", "/", "t", "p", "jj\n"})
    for (std::size_t width = 1; width < 140; width += width < 30 ? 1 : 13)
      for (std::size_t height = 1; height < 30; height += height < 8 ? 1 : 7) {
        Driven driven;
        driven.snapshot.gpus[0].name = wide;
        for (HeldContainer& container : driven.snapshot.gpus[0].containers)
          for (HeldProcess& process : container.processes) process.who.comm = wide;
        driven.snapshot.source = driven.snapshot.driver_version = wide;
        for (const char* key = keys; *key != 0; ++key) {
          if (*key == '\n')
            driven.press(Key::kEnter);
          else
            driven.press(*key);
          (void)driven.frame(width, height);
        }
        const std::vector<std::string> lines = lines_of(driven.frame(width, height));
        ASSERT_EQ(lines.size(), height);
        for (const std::string& line : lines) {
          ASSERT_EQ(columns_of(line), width) << keys << " " << width << "x" << height << " " << line;
          for (const char c : line) ASSERT_GE(static_cast<unsigned char>(c), 0x20) << line;
          ASSERT_EQ(line.find("\xe2\x80\xae"), std::string::npos);
          ASSERT_EQ(line.find('\xff'), std::string::npos);
        }
      }
}

TEST(TopUi, HeaderTellsSourceTotalsAndLoss) {
  Driven driven;
  driven.snapshot.lost = {{"ring_full", 3}, {"too_big", 1}};
  const std::vector<std::string> lines = lines_of(driven.frame());
  EXPECT_NE(lines[0].find("2 GPUs, 2 containers, 4 processes, 600M  from rings, driver 580.159.04"), std::string::npos)
      << lines[0];
  EXPECT_NE(lines[1].find("lost 4 of 1004 records: ring_full 3, too_big 1"), std::string::npos) << lines[1];
  EXPECT_EQ(driven.frame()[1][0].style, Style::kBad);
  driven.ui.set_trouble("the daemon\x1b is gone");
  EXPECT_NE(lines_of(driven.frame())[1].find("the daemon\\x1b is gone"), std::string::npos);
}

TEST(TopUi, TheSelectionStaysWithItsRow) {
  Driven driven;
  (void)driven.frame();
  driven.press(Key::kDown);
  driven.press('j');
  EXPECT_EQ(selected(driven.frame()), "beta/2");
  // The other container comes first now.
  driven.snapshot.gpus[0].containers[0].processes[0].memory.live = 4ULL << 30;
  EXPECT_EQ(selected(driven.frame()), "beta/2");
  // It is gone: what took its place is selected.
  driven.snapshot.gpus[0].containers[1].processes.erase(driven.snapshot.gpus[0].containers[1].processes.begin());
  EXPECT_FALSE(selected(driven.frame()).empty());
  driven.press(Key::kEnd);
  EXPECT_EQ(selected(driven.frame()), "delta/4");
  driven.press(Key::kHome);
  EXPECT_EQ(selected(driven.frame()), "gpu0 NVIDIA H200");
}

TEST(TopUi, ScrollsToTheSelection) {
  Driven driven;
  (void)driven.frame(80, 7);
  for (int i = 0; i < 8; ++i) {
    driven.press(Key::kDown);
    EXPECT_FALSE(selected(driven.frame(80, 7)).empty()) << i;
  }
  EXPECT_EQ(selected(driven.frame(80, 7)), "delta/4");
  driven.press(Key::kPageUp);
  driven.press(Key::kPageUp);
  driven.press(Key::kPageUp);
  EXPECT_EQ(selected(driven.frame(80, 1)), "");
  EXPECT_FALSE(selected(driven.frame(20, 3)).empty());
}

TEST(TopUi, FoldsAndUnfolds) {
  Driven driven;
  (void)driven.frame();
  driven.press(' ');
  EXPECT_EQ(text_of(driven.frame()).find("beta"), std::string::npos);
  EXPECT_NE(text_of(driven.frame()).find("delta"), std::string::npos);
  EXPECT_NE(text_of(driven.frame()).find("+gpu0"), std::string::npos);
  driven.press('+');
  EXPECT_NE(text_of(driven.frame()).find("beta"), std::string::npos);
  driven.press(Key::kDown);
  driven.press(Key::kDown);
  EXPECT_EQ(selected(driven.frame()), "beta/2");
  driven.press('-');
  EXPECT_EQ(selected(driven.frame()), "docker:bbbbbbbbbbbb") << "folds what is above";
  EXPECT_EQ(text_of(driven.frame()).find("beta"), std::string::npos);
  driven.press('*');
  EXPECT_NE(text_of(driven.frame()).find("beta"), std::string::npos);
  driven.press(Key::kEnter);
  EXPECT_EQ(text_of(driven.frame()).find("beta"), std::string::npos);
}

TEST(TopUi, TreeAndPathAndOrder) {
  Driven driven;
  driven.press('t');
  EXPECT_NE(text_of(driven.frame()).find("beta/2 gpu0 docker:bbbbbbbbbbbb"), std::string::npos);
  driven.press(Key::kFunction, 5);
  driven.press('p');
  EXPECT_NE(text_of(driven.frame()).find("/usr/bin/beta/2"), std::string::npos);
  driven.press('P');
  EXPECT_NE(text_of(driven.frame()).find("by calls"), std::string::npos);
  driven.press('I');
  EXPECT_NE(text_of(driven.frame()).find("by calls, turned"), std::string::npos);
}

TEST(TopUi, FilterIsTypedAndTakenBack) {
  Driven driven;
  driven.press('/');
  driven.type("gam");
  EXPECT_NE(text_of(driven.frame()).find("filter: gam_"), std::string::npos);
  EXPECT_EQ(text_of(driven.frame()).find("beta"), std::string::npos);
  driven.press('q');  // a letter here
  EXPECT_NE(text_of(driven.frame()).find("nothing to show"), std::string::npos);
  driven.press(Key::kBackspace);
  driven.press(Key::kEnter);
  EXPECT_NE(text_of(driven.frame()).find("filter: gam; 3 hidden"), std::string::npos) << text_of(driven.frame());
  driven.press(Key::kFunction, 4);
  driven.press('x');
  driven.press(Key::kEscape);
  EXPECT_NE(text_of(driven.frame()).find("filter: gam; 3 hidden"), std::string::npos);
  driven.press(Key::kEscape);
  EXPECT_NE(text_of(driven.frame()).find("beta"), std::string::npos);
  driven.press('/');
  driven.ui.press({Key::kChar, 0x6f22}, driven.snapshot);
  EXPECT_NE(text_of(driven.frame()).find("filter: \xe6\xbc\xa2_"), std::string::npos);
  driven.press(Key::kBackspace);
  EXPECT_NE(text_of(driven.frame()).find("filter: _"), std::string::npos);
  for (int i = 0; i < 1000; ++i) driven.press('y');
  EXPECT_EQ(driven.ui.list_options().filter.size(), 128U);
}

TEST(TopUi, MenusOfColumnsAndUsers) {
  Driven driven;
  driven.press(Key::kFunction, 6);
  EXPECT_NE(text_of(driven.frame()).find("> memory"), std::string::npos);
  driven.press(Key::kHome);
  driven.press(Key::kEnter);
  EXPECT_EQ(driven.ui.list_options().sort, Column::kSince);
  driven.press('s');
  for (int i = 0; i < 100; ++i) driven.press(Key::kDown);
  driven.press(Key::kEnter);
  EXPECT_EQ(driven.ui.list_options().sort, Column::kUser);
  driven.press('u');
  EXPECT_NE(text_of(driven.frame()).find("> all users"), std::string::npos);
  driven.press(Key::kDown);
  driven.press(Key::kEnter);
  EXPECT_EQ(driven.ui.list_options().user, 1000U);
  driven.press('u');
  driven.press(Key::kEnter);
  driven.press('u');
  driven.press(Key::kHome);
  driven.press(Key::kEnter);
  EXPECT_EQ(driven.ui.list_options().user, std::nullopt);
}

TEST(TopUi, HelpNamesEveryKeyAndWhatItCannotSay) {
  Driven driven;
  driven.press(Key::kFunction, 1);
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += text_of(driven.frame(100, 12));
    driven.press(Key::kPageDown);
  }
  for (const char* key : {"F1 h ?", "F4 / \\", "F5 t", "F6 s", "F10 q", "Enter Space", "+ - *"})
    EXPECT_NE(text.find(key), std::string::npos) << key;
  EXPECT_NE(text.find("submission"), std::string::npos);
  driven.press(Key::kEscape);
  EXPECT_NE(text_of(driven.frame()).find("beta"), std::string::npos);
}

TEST(TopUi, EnterOnAProcessShowsAllThatIsKnown) {
  Driven driven;
  (void)driven.frame();
  for (int i = 0; i < 3; ++i) driven.press(Key::kDown);
  driven.press(Key::kEnter);
  const std::string text = text_of(driven.frame());
  EXPECT_NE(text.find("/usr/bin/gamma"), std::string::npos) << text;
  EXPECT_NE(text.find("bbbbbbbbbbbbbbbb"), std::string::npos) << text;
  EXPECT_NE(text.find("unknown 1/5, unknown 1, known 4"), std::string::npos) << text;
  EXPECT_NE(text.find("submission is not execution"), std::string::npos) << text;
  driven.snapshot.gpus.clear();
  EXPECT_NE(text_of(driven.frame()).find("the process is gone"), std::string::npos);
}

TEST(TopUi, LeavesWithQAndF10FromEverywhere) {
  Driven driven;
  EXPECT_FALSE(driven.press('q'));
  for (const char* keys : {"h", "s", "u", "/"}) {
    Driven other;
    other.press(*keys);
    EXPECT_FALSE(other.press(Key::kFunction, 10)) << keys;
  }
}

TEST(TopUi, NobodyThere) {
  Driven driven;
  driven.snapshot.gpus.clear();
  EXPECT_NE(text_of(driven.frame()).find("nobody holds a GPU"), std::string::npos);
  for (const char key : std::string("jk +-*tsuphIMPTVG")) driven.press(key);
  for (int code = 0; code <= Key::kOther; ++code) driven.press(static_cast<Key::Code>(code), 4);
  EXPECT_EQ(driven.frame(1, 1).size(), 1U);
}

TEST(TopTable, AllColumnsAndNoBlanksAtTheEnd) {
  std::string out;
  append_table(out, two_gpus(), {}, 0, false);
  EXPECT_NE(out.find("gamma/3"), std::string::npos);
  EXPECT_NE(out.find("unknown 1/5"), std::string::npos);
  EXPECT_NE(out.find(">1m36s"), std::string::npos) << "began before gpuwatch looked" << out;
  EXPECT_EQ(out.find(" \n"), std::string::npos);
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  out.clear();
  append_table(out, two_gpus(), {}, 0, true);
  EXPECT_NE(out.find("\x1b[31m"), std::string::npos);
}

TEST(TopFeed, Moments) {
  EXPECT_EQ(moment_from("")->kind, Moment::Kind::kEnd);
  EXPECT_EQ(moment_from("peak")->kind, Moment::Kind::kPeak);
  EXPECT_EQ(moment_from("1.5")->after_ns, 1'500'000'000U);
  EXPECT_FALSE(moment_from("noon").ok());
  EXPECT_FALSE(moment_from("-1").ok());
}

}  // namespace
}  // namespace gpuwatch::cli::top
