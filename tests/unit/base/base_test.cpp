// SPDX-License-Identifier: Apache-2.0
// Unit tests of the base room: checksums, escaping, whole reads and writes.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <climits>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/io.h"
#include "base/scope_exit.h"
#include "unit/support.h"

namespace gpuwatch::base {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c(bytes("")), 0u);
  EXPECT_EQ(crc32c(bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(bytes(std::string(32, '\0'))), 0x8a9136aau);  // RFC 3720 B.4
}

TEST(Crc32c, SeedContinues) {
  const std::string_view text = "The quick brown fox jumps over the lazy dog";
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32c(bytes(text.substr(cut)), crc32c(bytes(text.substr(0, cut)))), crc32c(bytes(text)));
}

TEST(Crc32c, TableAndInstructionAgree) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(crc32c(bytes(text), 7), crc32c_by_table(bytes(text), 7)) << text.size();
    text += static_cast<char>(i * 37);
  }
}

TEST(Escape, ControlBytesBecomeHex) {
  EXPECT_EQ(escaped("plain text"), "plain text");
  EXPECT_EQ(escaped("a\nb\tc\x1b[31m\x7f\\"), "a\\x0ab\\x09c\\x1b[31m\\x7f\\x5c");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), "\\x00");
}

TEST(Escape, Utf8IsKeptWhereHarmless) {
  EXPECT_EQ(escaped("gr\xc3\xbc\xc3\x9f \xf0\x9f\x8e\x89"), "gr\xc3\xbc\xc3\x9f \xf0\x9f\x8e\x89");
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xc2\\x9b");                    // C1 CSI
  EXPECT_EQ(escaped("\xe2\x80\xae"), "\\xe2\\x80\\xae");           // right-to-left override
  EXPECT_EQ(escaped("\xe2\x80"), "\\xe2\\x80");                    // cut short
  EXPECT_EQ(escaped("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(escaped("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");  // beyond Unicode
}

TEST(Escape, NoOutputByteIsAControl) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (unsigned char c : escaped(all)) EXPECT_TRUE(c >= 0x20 && c != 0x7f);
}

TEST(Escape, ToUtf8ReplacesBadBytes) {
  EXPECT_EQ(to_utf8("ok"), "ok");
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a\xef\xbf\xbd"
            "b");
}

TEST(Io, ReadTextFile) {
  test::ScratchDir dir;
  test::spill(dir.file("f"), "one\ntwo\n\n");
  auto text = read_text_file(dir.file("f"));
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "one\ntwo");
  EXPECT_EQ(read_text_file(dir.file("absent")).error().code(), Code::kNotFound);
  test::spill(dir.file("big"), std::string(10000, 'x'));
  EXPECT_EQ(read_text_file(dir.file("big"), 5000).error().code(), Code::kLimit);
}

TEST(Io, WriteAllReportsAFullDisk) {
  Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.valid()) GTEST_SKIP() << "no /dev/full here";
  const Status status = write_all(full.get(), "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().sys_errno(), ENOSPC);
}

// A pipe that nobody writes to would be waited for.
TEST(Io, OpenPlainOpensNothingElse) {
  char name[] = "/tmp/gw-open-plain.XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string folder = name;
  const ScopeExit remove([&] { std::filesystem::remove_all(folder); });
  const std::string plain = folder + "/plain", link = folder + "/link", pipe = folder + "/pipe";
  std::ofstream(plain) << "text";
  ASSERT_EQ(::symlink(plain.c_str(), link.c_str()), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  char text[8];
  for (const std::string& path : {plain, link}) {
    const auto fd = open_plain(path);
    ASSERT_TRUE(fd.ok());
    EXPECT_EQ(::read(fd.value().get(), text, sizeof text), 4);
  }
  const Fd there(::open(folder.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_TRUE(open_plain("plain", Links::kRefuse, there.get()).ok());
  for (const auto& [path, links] : std::vector<std::pair<std::string, Links>>{
           {link, Links::kRefuse}, {pipe, Links::kFollow}, {folder, Links::kFollow}, {"/dev/null", Links::kFollow}}) {
    const auto fd = open_plain(path, links);
    ASSERT_FALSE(fd.ok()) << path;
    EXPECT_EQ(fd.error().code(), Code::kBadInput);
    EXPECT_EQ(fd.error().message(), path + " is not a regular file");
  }
  EXPECT_EQ(open_plain(folder + "/none").error().code(), Code::kNotFound);
}

TEST(Fd, MovesAndCloses) {
  int number = -1;
  {
    Fd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = a.get();
    Fd b(std::move(a));
    EXPECT_FALSE(a.valid());  // NOLINT: the state after a move is the point
    EXPECT_EQ(b.get(), number);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(ScopeExit, RunsUnlessDismissed) {
  int runs = 0;
  {
    ScopeExit guard([&] { ++runs; });
  }
  {
    ScopeExit guard([&] { ++runs; });
    guard.dismiss();
  }
  EXPECT_EQ(runs, 1);
}

TEST(Clock, OffsetsLeadToTheOtherClock) {
  const ClockOffsets offsets = measure_clock_offsets();
  const auto guess = static_cast<std::int64_t>(monotonic_ns()) + offsets.realtime_minus_monotonic_ns;
  const auto real = static_cast<std::int64_t>(realtime_ns());
  EXPECT_LT(std::llabs(real - guess), 1'000'000'000);
  EXPECT_GE(offsets.boottime_minus_monotonic_ns, -1'000'000);
}

TEST(Error, CarriesErrnoAndContext) {
  Error error = Error::from_errno("open", ENOENT).with_context("config");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.message(), "config: open: No such file or directory");
  EXPECT_EQ(Error::from_errno("x", EPERM).code(), Code::kPermission);
}

}  // namespace
}  // namespace gpuwatch::base
