// SPDX-License-Identifier: Apache-2.0
// What is learnt of a process from the records of its calls: in every committed
// recording of a CUDA program, from a file that is still being written, and what
// hostile records may claim.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "decode/decoder.h"
#include "probe/code.h"
#include "probe/outside/access.h"
#include "probe/outside/outside.h"
#include "recorded.h"
#include "source/gwcap.h"
#include "unit/decode/calls.h"

namespace gpuwatch::probe::outside {
namespace {

using model::Field;
using model::Tag;
using test::Argument;
using test::escape_call;
using test::head_on;
using test::parsed;
using test::uvm_call;

constexpr Handle kClient = 0xC1D00024;

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(GOLDEN_DIR "/580.159.04"))
    if (entry.path().extension() == ".gwcap") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

void check_contexts(const std::vector<Device>& devices, const std::string& file) {
  for (const Device& device : devices) {
    EXPECT_EQ(sms_of(device.compute_class), std::vector<std::uint32_t>{90}) << file;
    EXPECT_NE(device.uuid, Uuid{}) << file;
    const std::vector<Span> heap = heap_of(device);
    ASSERT_FALSE(heap.empty()) << file;
    for (const MappedMemory& one : device.memory) {
      EXPECT_TRUE(one.held) << file;
      EXPECT_EQ(one.offset, 0U) << file;
      EXPECT_TRUE(one.span.address != heap.front().address || one.flags == agent::kHeapFlags) << file;
    }
  }
}

// Most programs end without giving back what they have: their files do that, and
// a recording of one that lives has no end of files.
TEST(OutsideFacts, EveryRecordedContextHasADebuggerAndItsCodeHeap) {
  int files = 0, contexts = 0;
  for (const auto& path : recordings()) {
    auto reader = source::GwcapReader::open(path);
    ASSERT_TRUE(reader.ok());
    const decode::Decoder decoder(model::parse_driver_version(reader->header().driver_version).value());
    std::map<test::RecordedProcess, DriverFacts> facts;
    std::size_t made = 0, seen = 0;
    const auto look = [&](const std::vector<Device>& devices) {
      check_contexts(devices, path.filename());
      for (const Device& device : devices) seen += device.debuggers.size();
    };
    for (;;) {
      auto record = reader->next();
      ASSERT_TRUE(record.ok());
      if (!record->has_value()) break;
      const model::Call call = decoder.decode(**record);
      DriverFacts& mine = facts[{call.record.head.tgid, call.record.head.start_ns}];
      if (call.tag == Tag::kFree)
        if (const std::vector<Device> devices = mine.devices(); test::ends_context(call, devices)) look(devices);
      made += call.category == model::Category::kDebugger && call.tag == Tag::kAlloc && !call.failed;
      mine.call(call);
      EXPECT_FALSE(mine.cut());
    }
    for (const auto& [process, mine] : facts) look(mine.devices());
    EXPECT_EQ(made, seen) << path << ": debugger objects";
    files += made > 0;
    contexts += static_cast<int>(seen);
  }
  EXPECT_GE(files, 15);
  EXPECT_GE(contexts, files);
}

Failure read_records(const std::string& path, const Identity& process, Records& out) {
  RecordFiles files;
  if (Failure failure = open_records(path, files)) return failure;
  return read_records(files, process, out);
}

class OutsideRecords : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = "/tmp/gw-outside-" + std::to_string(::getpid()) + ".gwcap";
    const auto records = test::unfinished(GOLDEN_DIR "/580.159.04/runtime-api.gwcap", process_);
    ASSERT_FALSE(records.empty());
    test::write_gwcap(records, path_);
  }
  void TearDown() override { ::unlink(path_.c_str()); }
  std::string path_;
  Identity process_;
};

TEST_F(OutsideRecords, AFileThatIsStillBeingWritten) {
  Records records;
  ASSERT_EQ(read_records(path_, process_, records).text, "");
  EXPECT_GT(records.calls, 100U);
  EXPECT_EQ(records.lost, 0U);
  ASSERT_EQ(records.facts.devices().size(), 1U);
  EXPECT_FALSE(heap_of(records.facts.devices().front()).empty());
}

TEST_F(OutsideRecords, ACutFileGivesWhatIsWhole) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
  Records records;
  EXPECT_EQ(read_records(path_, process_, records).outcome, Outcome::kTrouble);
  EXPECT_NE(records.end, "") << "its only block is cut";
}

// Whoever writes it is always two blocks ahead of who reads.
TEST_F(OutsideRecords, AFileThatGrowsAsItIsReadHasAnEnd) {
  test::write_gwcap({}, path_ + ".empty");
  const auto head = std::filesystem::file_size(path_ + ".empty");
  ::unlink((path_ + ".empty").c_str());
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string block = whole.substr(head);
  RecordFiles files;
  ASSERT_EQ(open_records(path_, files).text, "");
  std::atomic<bool> done{false};
  constexpr std::uint64_t kBlocksMax = 400;
  std::jthread writer([&, fd = files.files.at(0).fd.get()] {
    std::ofstream out(path_, std::ios::binary | std::ios::app);
    for (std::uint64_t blocks = 1; !done && blocks < kBlocksMax;) {
      // The place in the file is shared.
      const auto place = static_cast<std::uint64_t>(::lseek(fd, 0, SEEK_CUR));
      if (place + 2 * block.size() <= head + blocks * block.size()) {
        std::this_thread::yield();
        continue;
      }
      out.write(block.data(), static_cast<std::streamsize>(block.size())).flush();
      ++blocks;
    }
  });
  Records once, records;
  EXPECT_EQ(read_records(files, process_, once).text, "");
  EXPECT_EQ(read_records(files, process_, records).text, "");
  done = true;
  EXPECT_LT(records.calls, 700U * 20);
  EXPECT_NE(records.end, "");
}

TEST_F(OutsideRecords, OfAnotherProcess) {
  Records records;
  Identity later = process_;
  ++later.start_ticks;
  Failure failure = read_records(path_, later, records);
  EXPECT_NE(failure.text.find("an earlier process of that number"), std::string::npos) << failure.text;
  const Identity other{{1}, process_.start_ticks};
  failure = read_records(path_, other, records);
  EXPECT_NE(failure.text.find("no call of this process"), std::string::npos) << failure.text;
}

TEST_F(OutsideRecords, WhatIsNoRecording) {
  Records records;
  EXPECT_NE(read_records("/no/such/file", process_, records).text, "");
  EXPECT_NE(read_records("/dev/null", process_, records).text, "");
  EXPECT_NE(read_records("/proc/self/exe", process_, records).text, "");
  EXPECT_NE(read_records("/tmp", process_, records).text.find("no call of this process"), std::string::npos);
}

// The recorded process, whose memory holds what is put there.
class RecordedMemory : public TargetFiles {
 public:
  explicit RecordedMemory(Device device) : device_(std::move(device)) {}
  std::map<Handle, std::vector<std::uint8_t>> memory;
  Handle client = 0;  // of which the process has the file
  int readings = 0;

  Failure control_files(std::vector<int>& out) override {
    out = {10};
    return {};
  }
  Failure knows(int, Handle asked, Answer& answer) override {
    answer = {0, asked == client ? 0u : 0x23u};
    return {};
  }
  Failure read(int, Handle asked, Handle debugger, Handle handle, std::uint64_t offset, std::span<std::uint8_t> out,
               Answer& answer) override {
    ++readings;
    answer = {0, asked == client && debugger == device_.debuggers.front() ? 0u : 0x23u};
    std::memset(out.data(), 0, out.size());
    const auto at = memory.find(handle);
    if (at != memory.end() && offset < at->second.size())
      std::copy_n(at->second.begin() + static_cast<std::ptrdiff_t>(offset),
                  std::min(out.size(), static_cast<std::size_t>(at->second.size() - offset)), out.begin());
    return {};
  }

 private:
  Device device_;
};

TEST_F(OutsideRecords, FromRecordsToVerdicts) {
  Records records;
  ASSERT_EQ(read_records(path_, process_, records).text, "");
  const Device device = records.facts.devices().at(0);
  RecordedMemory files(device);
  files.client = device.client;
  Code code;
  std::ifstream file(AGENT_CUBIN, std::ios::binary);
  const std::vector<std::uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_EQ(read_code(bytes, code), "");
  const std::uint64_t heap = heap_of(device).front().address;
  Handle where = 0;
  for (const MappedMemory& one : device.memory) where = one.span.address == heap ? one.memory : where;
  std::vector<std::uint8_t>& held = files.memory[where];
  for (const Function& function : code.functions) {
    held.resize((held.size() + 0x880 + 255) / 256 * 256);
    held.insert(held.end(), function.text.begin(), function.text.end());
  }
  agent::LiveOptions options;
  options.pid = static_cast<int>(process_.numbers.front());
  options.records = path_;
  options.image = AGENT_CUBIN;
  const auto look = [&](bool& finding) {
    Report report(true);
    finding = false;
    ::testing::internal::CaptureStdout();
    const Failure failure = look_into(options, prepare(options), files, process_, report, finding);
    const std::string out = ::testing::internal::GetCapturedStdout();
    return failure ? failure.text : out;
  };
  bool finding = false;
  std::string out = look(finding);
  const std::string count = "\"match\":" + std::to_string(code.functions.size());
  EXPECT_NE(out.find("\"type\":\"process\""), std::string::npos) << out;
  EXPECT_NE(out.find("\"sm\":90"), std::string::npos) << out;
  EXPECT_NE(out.find(count), std::string::npos) << out;
  EXPECT_NE(out.find("\"read_by\":\"driver\""), std::string::npos) << out;
  EXPECT_EQ(out.find("\"read_by\":\"gpu\""), std::string::npos) << out;
  EXPECT_FALSE(finding);
  held[held.size() - 100] ^= 4;
  out = look(finding);
  EXPECT_NE(out.find("\"verdict\":\"differ\""), std::string::npos) << out;
  EXPECT_TRUE(finding);
  // Another client has the number of the file now: nothing is read.
  files.client = 1;
  files.readings = 0;
  EXPECT_NE(look(finding).find("not-probed: the driver: NV_ERR_INVALID_CLIENT"), std::string::npos);
  EXPECT_EQ(files.readings, 0);
  files.client = device.client;
  options.gpu = 1;
  EXPECT_NE(look(finding).find("no context on a GPU of that number"), std::string::npos);
}

class Facts : public ::testing::Test {
 protected:
  void feed(const test::Blob& blob) { facts.call(decoder.decode(parsed(blob))); }
  void alloc(Handle parent, Handle handle, std::uint32_t object_class, const std::string& parameters = {},
             std::uint32_t status = 0) {
    const Argument in = Argument(48).u32(0, kClient).u32(4, parent).u32(8, handle).u32(12, object_class);
    Argument out = in;
    out.u32(40, status);
    std::vector<test::CaptureSpec> more;
    if (!parameters.empty()) more = {{GPUWATCH_CAP_NESTED0_IN, parameters}};
    feed(escape_call(head_on(GPUWATCH_NODE_CTL, 255), 43, in, out, more));
  }
  void free_object(Handle handle) {
    const Argument argument = Argument(16).u32(0, kClient).u32(4, 2).u32(8, handle);
    feed(escape_call(head_on(GPUWATCH_NODE_CTL, 255), 41, argument, argument));
  }
  void memory(Handle handle) {
    alloc(2, handle, 0x40, Argument(128).u32(8, agent::kHeapFlags).u64(64, 2 << 20).bytes());
  }
  void map(std::uint64_t address, std::uint64_t bytes, Handle handle, std::uint64_t offset = 0) {
    // Both ends of it, as the capture plan has it.
    const Argument head = Argument(256).u64(0, address).u64(8, bytes).u64(16, offset).u32(24, 0x11223344);
    const Argument tail = Argument(32).u64(8, 1).u32(20, kClient).u32(24, handle);
    feed(
        test::ioctl_record(head_on(GPUWATCH_NODE_UVM), 33, 0,
                           {{GPUWATCH_CAP_ARG_IN, head.bytes(), 0, 9264}, {GPUWATCH_CAP_ARG_OUT, tail.bytes(), 9232}}));
  }
  void unmap(std::uint64_t address, std::uint64_t bytes) {
    feed(uvm_call(66, Argument(40).u64(0, address).u64(8, bytes)));
  }
  void context() {
    alloc(kClient, 2, 0x80, Argument(56).u32(0, 3).bytes());
    alloc(2, 4, 0xC86F);
    alloc(4, 5, 0xCBC0, Argument(16).bytes());
    alloc(2, 6, 0x83DE, Argument(12).u32(4, kClient).u32(8, 5).bytes());
  }
  Device device() {
    const auto all = facts.devices();
    return all.empty() ? Device{} : all.front();
  }
  decode::Decoder decoder{{580, 159, 4}};
  DriverFacts facts;
};

TEST_F(Facts, AContextItsDebuggerAndItsMemory) {
  EXPECT_TRUE(facts.devices().empty());
  context();
  memory(7);
  map(0x7000'0000, 2 << 20, 7);
  const Device one = device();
  EXPECT_EQ(one.client, kClient);
  EXPECT_EQ(one.object, 2U);
  EXPECT_EQ(one.instance, 3);
  EXPECT_EQ(one.debuggers, std::vector<Handle>{6});
  EXPECT_EQ(one.compute_class, 0xCBC0U);
  ASSERT_EQ(one.memory.size(), 1U);
  EXPECT_EQ(one.memory[0].memory, 7U);
  EXPECT_EQ(one.memory[0].flags, agent::kHeapFlags);
  EXPECT_TRUE(one.memory[0].held);
  EXPECT_EQ(one.uuid[0], 0x44);
}

TEST_F(Facts, WhatWasRefusedWasNotMade) {
  context();
  alloc(2, 7, 0x40, Argument(128).bytes(), 0x51);
  map(0x7000'0000, 2 << 20, 7);
  EXPECT_TRUE(device().memory.empty()) << "memory of no object that is known";
}

TEST_F(Facts, APartThatIsUnmappedSplitsARange) {
  context();
  memory(7);
  map(0x10000, 0x10000, 7, 0x1000);
  unmap(0x14000, 0x1000);
  const Device one = device();
  ASSERT_EQ(one.memory.size(), 2U);
  EXPECT_EQ(one.memory[0].span.bytes, 0x4000U);
  EXPECT_EQ(one.memory[0].offset, 0x1000U);
  EXPECT_EQ(one.memory[1].span.address, 0x15000U);
  EXPECT_EQ(one.memory[1].span.bytes, 0xB000U);
  EXPECT_EQ(one.memory[1].offset, 0x6000U);
  map(0x10000, 0x10000, 7);
  EXPECT_EQ(device().memory.size(), 1U) << "a mapping takes the place of what was there";
  unmap(0, ~0ull);
  EXPECT_TRUE(device().memory.empty());
}

TEST_F(Facts, AHandleThatComesAgainIsOtherMemory) {
  context();
  memory(7);
  map(0x10000, 0x10000, 7);
  free_object(7);
  EXPECT_FALSE(device().memory.at(0).held);
  memory(7);
  EXPECT_FALSE(device().memory.at(0).held) << "the mapping is of the one before";
}

TEST_F(Facts, WhatIsAboveTakesAllBelow) {
  context();
  memory(7);
  map(0x10000, 0x10000, 7);
  free_object(6);
  EXPECT_TRUE(facts.devices().empty()) << "without a debugger object nothing can be read";
  context();
  memory(7);
  map(0x10000, 0x10000, 7);
  free_object(2);
  EXPECT_TRUE(facts.devices().empty());
  context();
  free_object(kClient);
  EXPECT_TRUE(facts.devices().empty());
}

TEST_F(Facts, HostileNumbers) {
  context();
  memory(7);
  map(~0ull - 5, 100, 7);
  map(0x10000, ~0ull, 7);
  map(0x10000, 0x1000, 7, ~0ull);
  map(0x10000, 0, 7);
  EXPECT_TRUE(device().memory.empty());
  for (std::uint64_t i = 0; i < DriverFacts::kRangesMax + 10; ++i) map((i + 1) << 16, 0x1000, 7);
  EXPECT_TRUE(facts.cut());
  EXPECT_EQ(facts.ranges(), DriverFacts::kRangesMax);
  // A chain as deep as there may be objects ends with its first link.
  for (Handle i = 0; i < 100'000; ++i) alloc(1000 + i, 1001 + i, 0x40);
  free_object(1000);
  memory(7);
  EXPECT_FALSE(device().memory.at(0).held);
}

// Each piece that is unmapped in the middle makes two ranges of one.
TEST_F(Facts, SplittingDoesNotPassTheLimit) {
  context();
  memory(7);
  map(1ull << 40, 1ull << 40, 7);
  for (std::uint64_t i = 1; i < DriverFacts::kRangesMax + 10; ++i) unmap((1ull << 40) + (i << 20), 4096);
  EXPECT_EQ(facts.ranges(), DriverFacts::kRangesMax);
  EXPECT_TRUE(facts.cut());
}

TEST_F(Facts, ContextsAreAskedForUpToALimit) {
  context();
  EXPECT_FALSE(facts.cut());
  for (Handle i = 0; i < DriverFacts::kDebuggersMax + 10; ++i)
    alloc(2, 1000 + i, 0x83DE, Argument(12).u32(4, kClient).u32(8, 5).bytes());
  EXPECT_EQ(device().debuggers.size(), DriverFacts::kDebuggersMax);
  EXPECT_TRUE(facts.cut());
  for (Handle i = 0; i < DriverFacts::kDebuggersMax + 10; ++i) free_object(1000 + i);
  EXPECT_EQ(device().debuggers.size(), 1U);
  EXPECT_FALSE(facts.cut());
}

}  // namespace
}  // namespace gpuwatch::probe::outside
