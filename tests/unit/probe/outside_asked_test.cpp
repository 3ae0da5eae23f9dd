// SPDX-License-Identifier: Apache-2.0
// The control files across the boundary: what is asked arrives, and what a side
// that was taken over may make the other do.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "probe/outside/asked_files.h"

namespace gpuwatch::probe::outside {
namespace {

constexpr int kFile = 10;
constexpr Handle kClient = 0xC1D00001, kDebugger = 0x5C000089, kMemory = 0x5C000096;

// Answers for one client of one file, and counts.
class OneClient : public TargetFiles {
 public:
  std::vector<int> files{3, kFile};
  int readings = 0, questions = 0;
  Failure control_files(std::vector<int>& out) override {
    out = files;
    return {};
  }
  Failure knows(int file, Handle client, Answer& answer) override {
    ++questions;
    answer = {0, file == kFile && client == kClient ? 0u : 0x23u};
    return {};
  }
  Failure read(int, Handle, Handle debugger, Handle memory, std::uint64_t offset, std::span<std::uint8_t> out,
               Answer& answer) override {
    ++readings;
    if (memory == 1) return {Outcome::kNoProcess, "gone"};
    answer = {0, debugger == kDebugger && memory == kMemory ? 0u : 0x36u};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(offset + i);
    return {};
  }
};

TEST(AskedFiles, EachCallAndItsAnswer) {
  const pid_t asks = ::fork();
  if (asks == 0) {
    OneClient driver;
    const Window window(4096);
    ServedFiles served(driver, window.bytes());
    ::_exit(agent::run_without_rights(
        [&](std::span<const std::uint8_t> request, agent::Told& told) { return served.serve(request, told); },
        [&](agent::Parent& parent) {
          AskedFiles files(parent, window.bytes());
          std::vector<int> numbers;
          Answer answer;
          if (files.knows(3, kClient, answer) || answer.error != EBADF) return 19;
          if (files.control_files(numbers) || numbers != std::vector<int>{3, kFile}) return 20;
          if (files.knows(3, kClient, answer) || answer.status != 0x23) return 21;
          std::vector<std::uint8_t> bytes(4096, 0xee);
          // No file has answered for the client yet.
          if (files.read(kFile, kClient, kDebugger, kMemory, 0, bytes, answer) || answer.error != EPERM) return 22;
          if (files.knows(kFile, kClient, answer) || !answer.good()) return 23;
          if (files.read(kFile, kClient, kDebugger, kMemory, 7, bytes, answer) || !answer.good()) return 24;
          for (std::size_t i = 0; i < bytes.size(); ++i)
            if (bytes[i] != static_cast<std::uint8_t>(7 + i)) return 25;
          if (files.read(kFile, kClient, 1, kMemory, 0, bytes, answer) || answer.status != 0x36) return 26;
          if (bytes[0] != 7) return 27;  // what was refused changes nothing
          if (files.read(kFile, kClient, kDebugger, 1, 0, bytes, answer).outcome != Outcome::kNoProcess) return 28;
          bytes.resize(4097);
          if (!files.read(kFile, kClient, kDebugger, kMemory, 0, bytes, answer)) return 29;
          return 40;
        }));
  }
  int status = 0;
  ::waitpid(asks, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 40) << status;
}

// As the other side sends it.
struct Raw {
  std::uint32_t what = 0;
  std::int32_t file = 0;
  std::uint32_t client = 0, debugger = 0, memory = 0, bytes = 0;
  std::uint64_t offset = 0;
};

class Served : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(serve({1, 0, 0, 0, 0, 0, 0})); }
  bool serve(const Raw& raw) {
    std::uint8_t bytes[sizeof raw];
    std::memcpy(bytes, &raw, sizeof raw);
    told = {};
    return served.serve(bytes, told);
  }
  int error() const {
    std::int32_t value = -1;
    if (told.bytes.size() == 8) std::memcpy(&value, told.bytes.data(), sizeof value);
    return value;
  }
  OneClient driver;
  Window window{4096};
  ServedFiles served{driver, window.bytes()};
  agent::Told told;
};

TEST_F(Served, WhatHasNoFormIsRefused) {
  ASSERT_TRUE(serve({2, kFile, kClient, 0, 0, 0, 0}));
  for (const Raw& raw : std::vector<Raw>{
           {0, 0, 0, 0, 0, 0, 0},
           {4, kFile, kClient, kDebugger, kMemory, 16, 0},
           {1, 1, 0, 0, 0, 0, 0},
           {1, 0, 1, 0, 0, 0, 0},
           {1, 0, 0, 0, 0, 0, 1},
           {2, -1, kClient, 0, 0, 0, 0},
           {2, kFile, kClient, 1, 0, 0, 0},
           {3, kFile, kClient, kDebugger, kMemory, 0, 0},
           {3, kFile, kClient, kDebugger, kMemory, 4097, 0},
           {3, kFile, kClient, kDebugger, kMemory, ~0u, 0},
           {3, kFile, kClient, kDebugger, kMemory, 16, ServedFiles::kOffsetMax + 1},
           {3, kFile, kClient, kDebugger, kMemory, 16, ~0ull},
       })
    EXPECT_FALSE(serve(raw)) << raw.what << " " << raw.bytes << " " << raw.offset;
  std::uint8_t bytes[64] = {1};
  for (const std::size_t size : {0u, 1u, 31u, 33u, 64u}) EXPECT_FALSE(served.serve({bytes, size}, told)) << size;
  EXPECT_EQ(driver.readings, 0);
  EXPECT_TRUE(serve({3, kFile, kClient, kDebugger, kMemory, 4096, ServedFiles::kOffsetMax}));
  EXPECT_EQ(driver.readings, 1);
}

TEST_F(Served, OnlyThroughAFileThatAnsweredForTheClient) {
  ASSERT_TRUE(serve({3, kFile, kClient, kDebugger, kMemory, 16, 0}));
  EXPECT_EQ(error(), EPERM);
  ASSERT_TRUE(serve({2, kFile, kClient, 0, 0, 0, 0}));
  EXPECT_EQ(error(), 0);
  for (const Raw& raw : std::vector<Raw>{{3, 3, kClient, kDebugger, kMemory, 16, 0},
                                         {3, -1, kClient, kDebugger, kMemory, 16, 0},
                                         {3, kFile, kClient + 1, kDebugger, kMemory, 16, 0}}) {
    ASSERT_TRUE(serve(raw));
    EXPECT_EQ(error(), EPERM);
  }
  EXPECT_EQ(driver.readings, 0);
  ASSERT_TRUE(serve({3, kFile, kClient, kDebugger, kMemory, 16, 0}));
  EXPECT_EQ(error(), 0);
  EXPECT_EQ(driver.readings, 1);
}

TEST_F(Served, OnlyFilesThatWereListed) {
  ASSERT_TRUE(serve({2, 4, kClient, 0, 0, 0, 0}));
  EXPECT_EQ(error(), EBADF);
  EXPECT_EQ(driver.questions, 0);
  // It may have another file under that number by now.
  ASSERT_TRUE(serve({2, kFile, kClient, 0, 0, 0, 0}));
  EXPECT_EQ(driver.questions, 1);
  driver.files = {3};
  ASSERT_TRUE(serve({1, 0, 0, 0, 0, 0, 0}));
  ASSERT_TRUE(serve({2, kFile, kClient, 0, 0, 0, 0}));
  EXPECT_EQ(error(), EBADF);
  ASSERT_TRUE(serve({3, kFile, kClient, kDebugger, kMemory, 16, 0}));
  EXPECT_EQ(error(), EPERM);
}

TEST_F(Served, AnyNumberOfFilesFitsWhatIsTold) {
  driver.files.assign(1 << 16, 5);
  ASSERT_TRUE(serve({1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(told.bytes.size(), agent::kToldMax);
}

}  // namespace
}  // namespace gpuwatch::probe::outside
