// SPDX-License-Identifier: Apache-2.0
// Reading a process from outside, with a driver that answers from memory: what
// is read where, what it refuses, and that changed code is told. The real way to
// a process's files is tried on a child with files of another device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>

#include "probe/agent/resident.h"
#include "probe/agent/wire.h"
#include "probe/code.h"
#include "probe/outside/access.h"
#include "programs.h"

namespace gpuwatch::probe::outside {
namespace {

constexpr Handle kClient = 0xC1D00001, kDebugger = 0x5C000089, kMemory = 0x5C000096;
constexpr std::uint64_t kHeap = 0x7F0000000000;
constexpr std::uint64_t kHeapBytes = 4 << 20;
constexpr int kFile = 10;

class FakeDriver : public TargetFiles {
 public:
  std::map<Handle, std::vector<std::uint8_t>> memory{{kMemory, std::vector<std::uint8_t>(kHeapBytes)}};
  std::vector<int> files{3, kFile};
  Answer refuses{};             // every reading
  Handle debugger = kDebugger;  // the one that answers
  bool gone = false;
  std::size_t largest = 0;
  int readings = 0;

  Failure control_files(std::vector<int>& out) override {
    out = files;
    return ended();
  }
  Failure knows(int file, Handle client, Answer& answer) override {
    answer = file == kFile && client == kClient ? Answer{} : Answer{0, 0x23};
    return ended();
  }
  Failure read(int file, Handle client, Handle by, Handle handle, std::uint64_t offset, std::span<std::uint8_t> out,
               Answer& answer) override {
    ++readings;
    largest = std::max(largest, out.size());
    const auto at = memory.find(handle);
    if (refuses.error != 0 || refuses.status != 0) {
      answer = refuses;
    } else if (file != kFile || client != kClient) {
      answer = {0, 0x23};
    } else if (by != debugger) {
      answer = {0, 0x36};
    } else if (at == memory.end()) {
      answer = {0, 0x1b};
    } else if (out.empty() || !identify::fits(offset, out.size(), at->second.size())) {
      answer = {0, 0x1f};
    } else {
      std::copy_n(at->second.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
      answer = {};
    }
    return ended();
  }

 private:
  Failure ended() const { return gone ? Failure{Outcome::kNoProcess, "gone"} : Failure{}; }
};

Device device_of() {
  Device device;
  device.client = kClient;
  device.object = 2;
  device.debuggers = {kDebugger};
  device.compute_class = 0xcbc0;
  device.memory = {{{kHeap, kHeapBytes}, kClient, kMemory, 0, kClassVideoMemory, agent::kHeapFlags, true}};
  return device;
}

class Outside : public ::testing::Test {
 protected:
  std::vector<std::uint8_t> read(std::uint64_t address, std::uint64_t bytes) {
    std::vector<std::uint8_t> out;
    const Failure failure = OutsideAccess(driver, kFile, device).read({address, bytes}, out, refused);
    outcome = failure.outcome;
    return out;
  }
  FakeDriver driver;
  Device device = device_of();
  std::string refused;
  Outcome outcome = Outcome::kOk;
};

TEST_F(Outside, BytesOfAnyPlaceInBoundedReadings) {
  std::vector<std::uint8_t>& heap = driver.memory[kMemory];
  for (std::size_t i = 0; i < heap.size(); ++i) heap[i] = static_cast<std::uint8_t>(i * 7 + i / 4096);
  for (const auto& [offset, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, 16}, {4080, 32}, {5000, 3'000'000}, {kHeapBytes - 16, 16}, {0, kHeapBytes}}) {
    const auto got = read(kHeap + offset, bytes);
    ASSERT_EQ(refused, "");
    ASSERT_EQ(got.size(), bytes);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), heap.begin() + static_cast<std::ptrdiff_t>(offset))) << offset;
  }
  EXPECT_LE(driver.largest, agent::kReadMax);
}

TEST_F(Outside, AMappingOfPartOfAMemory) {
  driver.memory[kMemory][0x3000] = 0x5a;
  device.memory[0].offset = 0x2000;
  device.memory[0].span.bytes = 0x3000;
  EXPECT_EQ(read(kHeap + 0x1000, 16).at(0), 0x5a);
  (void)read(kHeap + 0x2fff, 2);
  EXPECT_NE(refused, "") << "beyond the mapping, though not beyond the memory";
}

TEST_F(Outside, NothingThatTheRecordsDoNotProve) {
  for (const auto& [address, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {kHeap - 16, 32}, {kHeap + kHeapBytes - 16, 32}, {0, 16}, {kHeap, 0}, {kHeap, ~0ull}, {~0ull - 15, 16}}) {
    EXPECT_TRUE(read(address, bytes).empty());
    EXPECT_NE(refused, "") << address;
    EXPECT_EQ(outcome, Outcome::kOk);
  }
  EXPECT_EQ(driver.readings, 0);
}

TEST_F(Outside, AHandleThatWasGivenBackIsNotNamed) {
  device.memory[0].held = false;
  EXPECT_TRUE(read(kHeap, 16).empty());
  EXPECT_NE(refused.find("gave its handle"), std::string::npos);
  EXPECT_EQ(driver.readings, 0);
}

TEST_F(Outside, RefusalsByName) {
  driver.refuses = {0, 0x1b};
  EXPECT_TRUE(read(kHeap, 16).empty());
  EXPECT_NE(refused.find("NV_ERR_INSUFFICIENT_PERMISSIONS (0x1b) for memory 0x5c000096"), std::string::npos) << refused;
  driver.refuses = {EIO, 0};
  EXPECT_TRUE(read(kHeap, 16).empty());
  EXPECT_NE(refused.find("Input/output error"), std::string::npos) << refused;
  driver.refuses = {0, 0xdead};
  (void)read(kHeap, 16);
  EXPECT_NE(refused.find("0xdead"), std::string::npos);
  driver.refuses = {};
  device.memory[0].client = 1;
  (void)read(kHeap, 16);
  EXPECT_NE(refused.find("NV_ERR_INVALID_CLIENT"), std::string::npos);
  EXPECT_EQ(outcome, Outcome::kOk) << "the one request is refused, the work goes on";
}

TEST_F(Outside, AnyOfItsDebuggersWillDo) {
  device.debuggers = {1, 2, kDebugger};
  OutsideAccess access(driver, kFile, device);
  std::vector<std::uint8_t> out;
  ASSERT_FALSE(access.read({kHeap, 16}, out, refused));
  EXPECT_EQ(refused, "");
  EXPECT_EQ(driver.readings, 3);
  ASSERT_FALSE(access.read({kHeap, 16}, out, refused));
  EXPECT_EQ(driver.readings, 4) << "the one that answered is asked first";
  device.debuggers.clear();
  (void)read(kHeap, 16);
  EXPECT_NE(refused, "");
}

TEST_F(Outside, TheEndOfTheProcessEndsTheWork) {
  driver.gone = true;
  (void)read(kHeap, 16);
  EXPECT_EQ(outcome, Outcome::kNoProcess);
  int file = 0;
  std::string why;
  EXPECT_EQ(file_of(driver, kClient, file, why).outcome, Outcome::kNoProcess);
}

TEST_F(Outside, TheFileOfTheClient) {
  int file = 0;
  std::string why;
  ASSERT_FALSE(file_of(driver, kClient, file, why));
  EXPECT_EQ(file, kFile);
  EXPECT_EQ(why, "");
  ASSERT_FALSE(file_of(driver, kClient + 1, file, why));
  EXPECT_EQ(file, -1);
  EXPECT_NE(why.find("NV_ERR_INVALID_CLIENT"), std::string::npos);
  driver.files.clear();
  ASSERT_FALSE(file_of(driver, kClient, file, why));
  EXPECT_EQ(file, -1);
  EXPECT_NE(why.find("/dev/nvidiactl"), std::string::npos);
}

TEST_F(Outside, DigestsAreOfTheBytesUnderTheNonce) {
  std::vector<std::uint8_t>& heap = driver.memory[kMemory];
  for (std::size_t i = 0; i < heap.size(); ++i) heap[i] = static_cast<std::uint8_t>(i * 31);
  OutsideAccess access(driver, kFile, device);
  std::vector<identify::Digest> roots;
  const Nonce nonce{1, 2, 3};
  ASSERT_FALSE(access.hash({{kHeap + 32, 4096}, {kHeap, 16}}, nonce, true, roots, refused));
  ASSERT_EQ(roots.size(), 2U);
  EXPECT_EQ(roots[0], host_root({heap.data() + 32, 4096}, Form::kTree, nonce));
  EXPECT_EQ(roots[1], host_root({heap.data(), 16}, Form::kTree, nonce));
  ASSERT_FALSE(access.hash({{kHeap, 16}, {kHeap - 1, 16}}, nonce, true, roots, refused));
  EXPECT_NE(refused, "");
}

TEST_F(Outside, EndsOfFunctionsAreCountedInWhatWasRead) {
  std::vector<std::uint8_t>& heap = driver.memory[kMemory];
  heap[3 << 20] = 0x4d;
  heap[(3 << 20) + 1] = 0x78;
  OutsideAccess access(driver, kFile, device);
  std::vector<agent::SpanCount> counts;
  ASSERT_FALSE(access.survey({{kHeap, kHeapBytes}}, counts, refused));
  EXPECT_EQ(refused, "");
  EXPECT_EQ(counts, (std::vector<agent::SpanCount>{{1, 0}})) << "0x784d is no EXIT";
  heap[(3 << 20) + 1] = 0x79;
  ASSERT_FALSE(access.survey({{kHeap, kHeapBytes}}, counts, refused));
  EXPECT_EQ(counts, (std::vector<agent::SpanCount>{{1, 1}}));
  ASSERT_FALSE(access.survey({{kHeap - 16, kHeapBytes}}, counts, refused));
  EXPECT_NE(refused, "");
  // What is read as a whole is not counted first.
  ASSERT_FALSE(access.survey({{kHeap, 2 << 20}}, counts, refused));
  EXPECT_EQ(counts, (std::vector<agent::SpanCount>{{1, 1}}));
}

std::vector<std::uint8_t> file_bytes(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_F(Outside, CodeMatchesAndAChangeIsToldAtItsOffset) {
  agent::LiveModule module;
  module.label = "m";
  ASSERT_EQ(read_code(file_bytes(AGENT_CUBIN), module.code), "");
  std::vector<std::uint8_t>& heap = driver.memory[kMemory];
  std::size_t at = 0x1000;
  for (const Function& function : module.code.functions) {
    std::copy(function.text.begin(), function.text.end(), heap.begin() + static_cast<std::ptrdiff_t>(at));
    at = (at + function.text.size() + 0x880 + 255) / 256 * 256;
  }
  const auto verdicts = [&] {
    OutsideAccess access(driver, kFile, device);
    std::uint8_t count = 0;
    agent::ResidentCode code(access, [&] { return Nonce{++count}; });
    std::vector<agent::LiveVerdict> out;
    EXPECT_FALSE(code.read(heap_of(device), 1 << 30));
    EXPECT_FALSE(code.find_whole({module}, out));
    EXPECT_FALSE(code.find_changed({module}, out));
    return out;
  };
  for (const agent::LiveVerdict& one : verdicts())
    EXPECT_TRUE(one.function.verdict == Verdict::kMatch || one.function.verdict == Verdict::kMatchRelocated)
        << one.function.name;
  const std::string name = module.code.functions.front().name;
  heap[0x1000 + 34] ^= 1;
  int differ = 0;
  for (const agent::LiveVerdict& one : verdicts()) {
    if (one.function.verdict != Verdict::kDiffer) continue;
    ++differ;
    EXPECT_EQ(one.function.name, name);
    EXPECT_EQ(one.function.first_offset, 34U);
  }
  EXPECT_EQ(differ, 1);
  driver.refuses = {0, 0x40};
  for (const agent::LiveVerdict& one : verdicts()) {
    EXPECT_EQ(one.function.verdict, Verdict::kNotProbed);
    EXPECT_NE(one.function.reason.find("NV_ERR_INVALID_STATE"), std::string::npos) << one.function.reason;
  }
}

// A child that holds a file of /dev/null and one of /dev/zero until it is ended.
class Child : public test::Forked {
 public:
  Child()
      : Forked([] {
          (void)::open("/dev/zero", O_RDONLY);
          return ::dup2(::open("/dev/null", O_RDWR), 77) == 77;
        }) {}
};

TEST(OutsideProcess, ItsFilesOneCallAtATime) {
  Child child;
  ASSERT_TRUE(child.ready());
  ProcessFiles files(child.pid(), makedev(1, 3));
  Identity identity;
  ASSERT_EQ(files.open(identity).text, "");
  EXPECT_EQ(identity.numbers.front(), static_cast<std::uint32_t>(child.pid()));
  EXPECT_NE(identity.start_ticks, 0U);
  std::vector<int> numbers;
  ASSERT_EQ(files.control_files(numbers).text, "");
  EXPECT_NE(std::find(numbers.begin(), numbers.end(), 77), numbers.end());
  Answer answer;
  const Failure failure = files.knows(77, kClient, answer);
  if (failure.outcome == Outcome::kDenied) GTEST_SKIP() << "not allowed to trace a child here: " << failure.text;
  ASSERT_EQ(failure.text, "");
  EXPECT_EQ(answer.error, ENOTTY) << "/dev/null answers no such call";
  EXPECT_EQ(answer.text(), "Inappropriate ioctl for device");
  ASSERT_EQ(files.knows(78, kClient, answer).text, "");
  EXPECT_EQ(answer.error, EBADF) << "no such file";
  // Another device than the one that is meant: it is not asked.
  ProcessFiles zero(child.pid(), makedev(1, 5));
  ASSERT_EQ(zero.open(identity).text, "");
  ASSERT_EQ(zero.knows(77, kClient, answer).text, "");
  EXPECT_EQ(answer.error, EBADF);
  std::vector<std::uint8_t> bytes(16);
  ASSERT_EQ(files.read(77, kClient, kDebugger, kMemory, 0, bytes, answer).text, "");
  EXPECT_EQ(answer.error, ENOTTY);
  child.end();
  EXPECT_EQ(files.knows(77, kClient, answer).outcome, Outcome::kNoProcess);
  EXPECT_EQ(files.control_files(numbers).outcome, Outcome::kNoProcess);
}

TEST(OutsideProcess, OneThatIsNotThere) {
  ProcessFiles files(4194300);
  Identity identity;
  EXPECT_EQ(files.open(identity).outcome, Outcome::kNoProcess);
}

TEST(OutsideProcess, AnotherUsersWantsTheRightToTrace) {
  if (::geteuid() != 0) GTEST_SKIP() << "wants root, to become another user";
  Child child;
  ASSERT_TRUE(child.ready());
  const pid_t asks = ::fork();
  if (asks == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(98);
    ProcessFiles files(child.pid(), makedev(1, 3));
    Identity identity;
    Answer answer;
    if (files.open(identity)) ::_exit(97);
    const Failure failure = files.knows(77, kClient, answer);
    ::_exit(failure.outcome == Outcome::kDenied && failure.text.find("CAP_SYS_PTRACE") != std::string::npos ? 0 : 96);
  }
  int status = 0;
  ::waitpid(asks, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gpuwatch::probe::outside
