// SPDX-License-Identifier: Apache-2.0
// Lines in files are whole: after rotation, a full disk, a writer that was
// killed; and nothing is written where it should not be.
#include "sink/file_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "unit/sink/items.h"
#include "unit/support.h"

namespace gpuwatch::sink {
namespace {

using gpuwatch::test::ScratchDir;
using gpuwatch::test::slurp;
using gpuwatch::test::spill;
using test::item_of;

std::string line(int n) {
  return "{\"schema\":2,\"n\":" + std::to_string(n) + "}";
}

std::vector<ItemPtr> lines(int from, int to) {
  std::vector<ItemPtr> items;
  for (int n = from; n < to; ++n) items.push_back(item_of(line(n), ItemKind::kEvent));
  return items;
}

std::string text(int from, int to) {
  std::string out;
  for (int n = from; n < to; ++n) out += line(n) + "\n";
  return out;
}

std::unique_ptr<Sink> opened(const FileOptions& options) {
  auto sink = FileSink::open(options);
  EXPECT_TRUE(sink.ok()) << (sink.ok() ? "" : sink.error().message());
  return sink.ok() ? std::move(*sink) : nullptr;
}

TEST(FileSink, AppendsWholeLines) {
  const ScratchDir dir;
  const std::string path = dir.file("events.json");
  for (int round = 0; round < 2; ++round) {
    auto sink = opened({.path = path});
    EXPECT_EQ(sink->write(lines(0, 3)).sent, Outcome::kAll);
    EXPECT_TRUE(sink->flush().ok());
  }
  EXPECT_EQ(slurp(path), text(0, 3) + text(0, 3));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07, 0U);
}

TEST(FileSink, WritesTextAndLeavesEventsOut) {
  const ScratchDir dir;
  auto sink = opened({.path = dir.file("log"), .form = LineForm::kText, .events = false});
  EXPECT_FALSE(sink->wants(*item_of("e", ItemKind::kEvent)));
  EXPECT_TRUE(sink->wants(*item_of("a", ItemKind::kAlert)));
  EXPECT_TRUE(sink->wants(*item_of("l", ItemKind::kLoss)));
  const std::vector<ItemPtr> items = {item_of("a")};
  EXPECT_EQ(sink->write(items).sent, Outcome::kAll);
  EXPECT_EQ(slurp(dir.file("log")), "text of a\n");
}

TEST(FileSink, RefusesLinksAndOtherThings) {
  const ScratchDir dir;
  spill(dir.file("target"), "x\n");
  ASSERT_EQ(::symlink(dir.file("target").c_str(), dir.file("link").c_str()), 0);
  auto link = FileSink::open({.path = dir.file("link")});
  ASSERT_FALSE(link.ok());
  EXPECT_NE(link.error().message().find("symbolic link"), std::string::npos) << link.error().message();
  ASSERT_EQ(::mkfifo(dir.file("fifo").c_str(), 0600), 0);
  auto fifo = FileSink::open({.path = dir.file("fifo")});
  ASSERT_FALSE(fifo.ok());
  EXPECT_NE(fifo.error().message().find("no regular file"), std::string::npos) << fifo.error().message();
  EXPECT_FALSE(FileSink::open({.path = dir.file("no/such")}).ok());
  EXPECT_FALSE(FileSink::open({.path = "/tmp"}).ok());
  EXPECT_FALSE(FileSink::open({.path = ""}).ok());
}

TEST(FileSink, RotatesAtALineAndKeepsSome) {
  const ScratchDir dir;
  const std::string path = dir.file("log");
  auto sink = opened({.path = path, .rotate_bytes = 100, .keep = 2});
  EXPECT_EQ(sink->write(lines(10, 40)).sent, Outcome::kAll);
  // 20 bytes a line: five make 100. 30 lines: six files, of which three are left.
  EXPECT_EQ(slurp(path + ".2"), text(25, 30));
  EXPECT_EQ(slurp(path + ".1"), text(30, 35));
  EXPECT_EQ(slurp(path), text(35, 40));
  EXPECT_FALSE(std::filesystem::exists(path + ".3"));
  // The size is known again after a restart.
  sink = opened({.path = path, .rotate_bytes = 100, .keep = 0});
  EXPECT_EQ(sink->write(lines(50, 51)).sent, Outcome::kAll);
  EXPECT_EQ(slurp(path), text(50, 51));
  EXPECT_EQ(slurp(path + ".1"), text(30, 35));
}

TEST(FileSink, ReopensAfterTheFileWasMoved) {
  const ScratchDir dir;
  auto sink = opened({.path = dir.file("log")});
  EXPECT_EQ(sink->write(lines(0, 1)).sent, Outcome::kAll);
  ASSERT_EQ(::rename(dir.file("log").c_str(), dir.file("old").c_str()), 0);
  EXPECT_EQ(sink->write(lines(1, 2)).sent, Outcome::kAll);
  EXPECT_TRUE(sink->reopen().ok());
  EXPECT_EQ(sink->write(lines(2, 3)).sent, Outcome::kAll);
  EXPECT_EQ(slurp(dir.file("old")), text(0, 2));
  EXPECT_EQ(slurp(dir.file("log")), text(2, 3));
}

// A limit on the size of files cuts a write in two, as a full disk does.
TEST(FileSink, ATornLineIsTakenBack) {
  const ScratchDir dir;
  const std::string path = dir.file("log");
  auto sink = opened({.path = path});
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 50, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Outcome outcome = sink->write(lines(10, 20));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(outcome.sent, 2U);
  EXPECT_TRUE(outcome.retry);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->sys_errno(), EFBIG);
  EXPECT_EQ(slurp(path), text(10, 12));
  EXPECT_EQ(sink->write(lines(12, 20)).sent, Outcome::kAll);
  EXPECT_EQ(slurp(path), text(10, 20));
}

TEST(FileSink, AFullDiskIsToldAndNothingIsTorn) {
  base::Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.valid()) GTEST_SKIP() << "no /dev/full";
  auto sink = FileSink::on_descriptor(full.get(), LineForm::kJson);
  const Outcome outcome = sink->write(lines(0, 3));
  EXPECT_EQ(outcome.sent, 0U);
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->sys_errno(), ENOSPC);
  EXPECT_TRUE(outcome.retry);
}

TEST(FileSink, MendsWhatAKilledWriterLeft) {
  const ScratchDir dir;
  const struct {
    std::string left, mended;
  } kCases[] = {
      {text(0, 2) + "{\"schema\":2,\"n\":", text(0, 2)}, {text(0, 2) + "{\"sc", text(0, 2)}, {"{\"schema\":2", ""},
      {"notes of somebody", "notes of somebody\n"},      {text(0, 1), text(0, 1)},           {"", ""},
  };
  for (const auto& one : kCases) {
    spill(dir.file("log"), one.left);
    auto sink = opened({.path = dir.file("log")});
    EXPECT_EQ(sink->write(lines(7, 8)).sent, Outcome::kAll);
    EXPECT_EQ(slurp(dir.file("log")), one.mended + text(7, 8));
  }
}

// A reload opens the new sink while the old one writes: what is not yet a line is
// left alone as long as somebody here may write its rest.
TEST(FileSink, DoesNotMendWhatAnotherSinkIsWriting) {
  const ScratchDir dir;
  const std::string path = dir.file("log");
  const std::string half = text(0, 2) + "{\"schema\":2,\"n\":";
  auto before = opened({.path = path});
  spill(path, half);
  auto fresh = opened({.path = path});
  EXPECT_EQ(slurp(path), half);
  before.reset();
  EXPECT_TRUE(fresh->reopen().ok());
  EXPECT_EQ(slurp(path), half);
  fresh.reset();
  opened({.path = path});
  EXPECT_EQ(slurp(path), text(0, 2));
}

TEST(FileSink, AStreamWhoseReaderIsGone) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  base::Fd out(ends[1]);
  auto sink = FileSink::on_descriptor(out.get(), LineForm::kJson);
  EXPECT_EQ(sink->write(lines(0, 2)).sent, Outcome::kAll);
  char bytes[200];
  const ssize_t n = ::read(ends[0], bytes, sizeof bytes);
  EXPECT_EQ(std::string(bytes, static_cast<std::size_t>(n)), text(0, 2));
  ::close(ends[0]);
  ::signal(SIGPIPE, SIG_IGN);
  const Outcome outcome = sink->write(lines(2, 3));
  ASSERT_TRUE(outcome.error.has_value());
  EXPECT_EQ(outcome.error->sys_errno(), EPIPE);
  EXPECT_FALSE(outcome.retry);
}

TEST(FileSink, AStreamThatTookHalfALineGetsTheRestFirst) {
  const ScratchDir dir;
  base::Fd out(::open(dir.file("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  auto sink = FileSink::on_descriptor(out.get(), LineForm::kJson);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 50, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Outcome outcome = sink->write(lines(10, 20));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(outcome.sent, 3U);  // the third has begun
  EXPECT_EQ(sink->write(lines(13, 20)).sent, Outcome::kAll);
  EXPECT_EQ(slurp(dir.file("out")), text(10, 20));
}

}  // namespace
}  // namespace gpuwatch::sink
