// SPDX-License-Identifier: Apache-2.0
// What of a living process's memory is read, and when: each reading costs the
// process's own work. The memory here is four blocks in this one.
#include "probe/agent/resident.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "identify/bytes.h"
#include "kernels/agent.h"

namespace gpuwatch::probe::agent {
namespace {

constexpr std::uint64_t kBlock = 2 << 20;
constexpr std::uint64_t kFirst = 0x7f00'0000'0000;

std::vector<std::uint8_t> file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class Memory : public CodeAccess {
 public:
  std::vector<Span> ranges() const {
    std::vector<Span> out;
    for (const auto& [address, bytes] : blocks) out.push_back({address, bytes.size()});
    return out;
  }
  Failure read(const Span& span, std::vector<std::uint8_t>& out, std::string& refused) override {
    refused.clear();
    const identify::Bytes there = at(span);
    out.assign(there.begin(), there.end());
    // By blocks, in however many pieces.
    const std::uint64_t block = std::prev(blocks.upper_bound(span.address))->first;
    if (reads.empty() || reads.back() != block) reads.push_back(block);
    return {};
  }
  Failure survey(const std::vector<Span>& spans, std::vector<SpanCount>& counts, std::string& refused) override {
    refused.clear();
    counts.assign(spans.size(), {});
    for (std::size_t i = 0; i < spans.size(); ++i)
      for (std::size_t unit = 0; unit < spans[i].bytes; unit += 16) {
        const identify::Bytes bytes = at({spans[i].address + unit, 16});
        counts[i].units += std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte != 0; });
        counts[i].ends += kernels::is_end(identify::load<std::uint64_t>(bytes, 0));
      }
    return {};
  }
  Failure hash(const std::vector<Span>& spans, const Nonce& nonce, bool refresh, std::vector<identify::Digest>& roots,
               std::string& refused) override {
    refused.clear();
    refreshes.push_back(refresh);
    for (const Span& span : spans) {
      if (span.address == refuses) refused = "refused";
      roots.push_back(host_root(at(span), Form::kTree, nonce));
    }
    if (!refused.empty()) roots.clear();
    return {};
  }
  void put(std::uint64_t address, identify::Bytes bytes) {
    auto block = std::prev(blocks.upper_bound(address));
    std::copy(bytes.begin(), bytes.end(), block->second.begin() + static_cast<std::ptrdiff_t>(address - block->first));
  }

  std::map<std::uint64_t, std::vector<std::uint8_t>> blocks;
  std::vector<std::uint64_t> reads;
  std::vector<bool> refreshes;
  std::uint64_t refuses = 0;

 private:
  identify::Bytes at(const Span& span) const {
    const auto block = std::prev(blocks.upper_bound(span.address));
    return identify::Bytes(block->second).subspan(span.address - block->first, span.bytes);
  }
};

// The first block has code, the second nothing, the third data, the fourth data and is larger.
class Resident : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t i = 0; i < 3; ++i) memory.blocks[kFirst + i * 2 * kBlock].assign(kBlock, 0);
    memory.blocks[kFirst + 6 * kBlock].assign(2 * kBlock, 7);
    memory.put(kFirst + 4 * kBlock + 0x300, std::vector<std::uint8_t>(48, 9));
    use(AGENT_CUBIN);
  }
  void use(const char* cubin) {
    module = {};
    module.label = "m";
    const std::vector<std::uint8_t> bytes = file_bytes(cubin);
    ASSERT_EQ(read_code(bytes, module.code), "");
    ASSERT_EQ(read_banks(bytes, module.banks), "");
    memory.blocks[kFirst].assign(kBlock, 0);
    places.clear();
    std::uint64_t address = kFirst + 0x1000;
    for (const Function& function : module.code.functions) {
      memory.put(address, function.text);
      places.push_back(address);
      address = (address + function.text.size() + 0x880 + 255) / 256 * 256;
    }
  }
  std::map<std::string, int> look() {
    memory.reads.clear();
    memory.refreshes.clear();
    std::uint8_t count = 0;
    code.emplace(memory, [count]() mutable { return Nonce{++count}; });
    verdicts.clear();
    EXPECT_FALSE(code->read(memory.ranges(), 1 << 30));
    EXPECT_FALSE(code->find_whole({module}, verdicts));
    EXPECT_FALSE(code->find_changed({module}, verdicts));
    std::map<std::string, int> out;
    for (const LiveVerdict& one : verdicts)
      ++out[one.function.verdict == Verdict::kMatchRelocated ? "match" : to_string(one.function.verdict)];
    return out;
  }

  Memory memory;
  LiveModule module;
  std::vector<std::uint64_t> places;
  std::optional<ResidentCode> code;
  std::vector<LiveVerdict> verdicts;
};

using Reads = std::vector<std::uint64_t>;
constexpr std::uint64_t kData = kFirst + 4 * kBlock;

TEST_F(Resident, BlocksWithoutEndsOfFunctionsAreNotReadWhenAllIsFound) {
  const int functions = static_cast<int>(module.code.functions.size());
  EXPECT_EQ(look(), (std::map<std::string, int>{{"match", functions}}));
  EXPECT_EQ(memory.reads, Reads{kFirst});
  EXPECT_EQ(code->read_bytes(), kBlock);
  EXPECT_EQ(code->surveyed_bytes(), 4 * kBlock);
}

TEST_F(Resident, WhatIsMissedIsLookedForInAllThatIsNotEmpty) {
  module.code.functions.front().text[5] ^= 0x10;
  for (std::size_t i = 16; i < 32 * 16 && i < module.code.functions.front().text.size(); ++i)
    module.code.functions.front().text[i] ^= 0x55;
  EXPECT_EQ(look()["not-resident"], 1);
  EXPECT_EQ(memory.reads, (Reads{kFirst, kData}));
  EXPECT_EQ(code->read_bytes(), 2 * kBlock);
  EXPECT_EQ(code->surveyed_bytes(), 3 * kBlock);
}

// Alone in its block, and all that tells the end of a function in it overwritten.
TEST_F(Resident, FunctionWhoseEndsWereChangedIsFound) {
  const Function& function = module.code.functions.front();
  memory.put(places.front(), std::vector<std::uint8_t>(function.text.size(), 0));
  std::vector<std::uint8_t> text = function.text;
  int ends = 0;
  for (std::size_t at = 0; at < text.size(); at += 16)
    if (kernels::is_end(identify::load<std::uint64_t>(identify::Bytes(text), at))) {
      text[at] ^= 1;
      ++ends;
    }
  ASSERT_GE(ends, 2);
  memory.put(kData + 0x2000, text);
  auto counts = look();
  EXPECT_EQ(counts["differ"], 1);
  EXPECT_EQ(counts["match"], static_cast<int>(module.code.functions.size()) - 1);
  EXPECT_EQ(memory.reads.at(1), kData);
  for (const LiveVerdict& one : verdicts)
    if (one.function.verdict == Verdict::kDiffer) {
      EXPECT_EQ(one.function.name, function.name);
      EXPECT_EQ(one.function.address, kData + 0x2000);
    }
}

TEST_F(Resident, ConstantBanksAreReadWhenAModuleHasThem) {
  use(BANK_CUBIN);
  const auto bank =
      std::find_if(module.banks.begin(), module.banks.end(), [](const Bank& one) { return one.number == 2; });
  ASSERT_NE(bank, module.banks.end());
  memory.put(kData + 0x4000, bank->bytes);
  look();
  EXPECT_EQ(memory.reads, Reads{kFirst});
  std::vector<LiveVerdict> banks;
  EXPECT_FALSE(code->find_banks({module}, banks));
  EXPECT_EQ(memory.reads, (Reads{kFirst, kData}));
  ASSERT_EQ(banks.size(), 1u);
  EXPECT_EQ(banks.front().function.address, kData + 0x4000);
}

// A refresh lets the process's work on the GPU drain.
TEST_F(Resident, CachesAreRefreshedOnceForEachReading) {
  // More than one request takes.
  Function one = module.code.functions.front();
  const std::size_t copies = kHashSpansMax + 5;
  module.code.functions.clear();
  for (std::size_t i = 0; i < copies; ++i) {
    const std::uint64_t at = 0x20000 + i * ((one.text.size() + 255) / 256 * 256);
    ASSERT_LT(at + one.text.size(), kBlock);
    memory.put(kFirst + at, one.text);
    one.name = "f" + std::to_string(i);
    module.code.functions.push_back(one);
  }
  EXPECT_EQ(look()["match"], static_cast<int>(copies) + 1) << "and the one that was there before";
  // Both readings of all, then both of the one that was found beside its twins.
  EXPECT_EQ(memory.refreshes, (std::vector<bool>{true, false, true, false, true, true}));
}

TEST_F(Resident, ARefusalConcernsItsFunctionAlone) {
  memory.refuses = places.back();
  auto counts = look();
  EXPECT_EQ(counts["not-probed"], 1);
  EXPECT_EQ(counts["match"], static_cast<int>(module.code.functions.size()) - 1);
  std::uint64_t bytes = 0;
  for (const LiveVerdict& one : verdicts) bytes += one.function.verdict == Verdict::kNotProbed ? 0 : one.function.bytes;
  EXPECT_EQ(code->hashed_bytes(), bytes);
}

// What the survey goes by, of compilers of CUDA 11 to 13.
TEST(Ends, EachFunctionHasOne) {
  int functions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FATBINS)) {
    Code code;
    if (entry.path().extension() != ".cubin" || !read_code(file_bytes(entry.path()), code).empty()) continue;
    for (const Function& function : code.functions) {
      ++functions;
      int last = 0;
      for (std::size_t at = 0; at + 16 <= function.text.size(); at += 16)
        last += kernels::is_last_branch(identify::load<std::uint64_t>(identify::Bytes(function.text), at));
      EXPECT_EQ(last, 1) << entry.path() << " " << function.name;
    }
  }
  EXPECT_GT(functions, 20);
}

}  // namespace
}  // namespace gpuwatch::probe::agent
