// SPDX-License-Identifier: Apache-2.0
// Unit tests of the output buffer: one write per flush, quiet end at a closed
// pipe, an error at a full disk.
#include "cli/output.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/fd.h"
#include "unit/support.h"

namespace gpuwatch::cli {
namespace {

TEST(Output, KeepsUntilFlushed) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const base::Fd reader(ends[0]);
  const base::Fd writer(ends[1]);
  Output output(writer.get());
  output.buffer() += "line\n";
  ASSERT_TRUE(output.flush_if_full().ok());
  char bytes[16];
  EXPECT_EQ(::read(reader.get(), bytes, sizeof bytes), -1);
  ASSERT_TRUE(output.flush().ok());
  EXPECT_EQ(::read(reader.get(), bytes, sizeof bytes), 5);
  EXPECT_TRUE(output.buffer().empty());
}

TEST(Output, AClosedPipeIsNoError) {
  const auto handler = std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const base::Fd writer(ends[1]);
  Output output(writer.get());
  for (int i = 0; i < 2; ++i) {
    output.buffer() += "line\n";
    EXPECT_TRUE(output.flush().ok());
    EXPECT_TRUE(output.closed());
  }
  std::signal(SIGPIPE, handler);
}

TEST(Output, AFullDiskIsAnError) {
  const base::Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full.valid()) GTEST_SKIP() << "no /dev/full here";
  Output output(full.get());
  output.buffer() = "line\n";
  const base::Status status = output.flush();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message().substr(0, 15), "standard output");
}

}  // namespace
}  // namespace gpuwatch::cli
