// SPDX-License-Identifier: Apache-2.0
// What is proven to be mapped, and the gate between reading and unmapping.
#include "probe/agent/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace gpuwatch::probe::agent {
namespace {

using Node = RangeRecord::Node;
const Uuid kOne{1};
const Uuid kOther{2};

void put(std::vector<std::uint8_t>& out, std::size_t at, std::uint64_t value, std::size_t bytes) {
  std::memcpy(out.data() + at, &value, bytes);
}

void map(MappedMemory& memory, std::uint64_t address, std::uint64_t bytes, std::uint32_t memory_class,
         const std::vector<Uuid>& gpus) {
  std::vector<std::uint8_t> allocate(48), call(9264), parameters(12);
  put(allocate, 8, 5, 4);
  put(allocate, 12, memory_class, 4);
  memory.call(Node::kControl, 0xc030462b, allocate, parameters);
  put(call, 0, address, 8);
  put(call, 8, bytes, 8);
  for (std::size_t i = 0; i < gpus.size(); ++i) std::memcpy(call.data() + 24 + 36 * i, gpus[i].data(), 16);
  put(call, 9240, gpus.size(), 8);
  put(call, 9256, 5, 4);
  memory.call(Node::kUvm, 33, call, {});
  std::vector<std::uint8_t> free(16);
  put(free, 8, 5, 4);
  memory.call(Node::kControl, 0xc0104629, free, {});
}

void unmap(MappedMemory& memory, std::uint64_t address, std::uint64_t bytes) {
  std::vector<std::uint8_t> call(24);
  put(call, 0, address, 8);
  put(call, 8, bytes, 8);
  memory.call(Node::kUvm, 34, call, {});
}

TEST(AgentMemory, ProvenIsVideoMemoryOfThatGpuWithoutGaps) {
  MappedMemory memory;
  EXPECT_FALSE(memory.while_mapped({{0x200000, 16}}, nullptr, [] { FAIL(); }));
  map(memory, 0x200000, 0x200000, kClassVideoMemory, {kOne});
  map(memory, 0x400000, 0x200000, kClassVideoMemory, {kOne, kOther});
  map(memory, 0x600000, 0x200000, kClassSystemMemory, {kOne});
  map(memory, 0xa00000, 0x200000, kClassVideoMemory, {kOther});
  const auto proves = [&](std::uint64_t address, std::uint64_t bytes, const Uuid* gpu) {
    return proven(memory.ranges(), {address, bytes}, gpu);
  };
  EXPECT_TRUE(proves(0x200000, 0x400000, &kOne));
  EXPECT_TRUE(proves(0x3ffff0, 32, nullptr));
  EXPECT_FALSE(proves(0x1ffff0, 32, nullptr)) << "begins before it";
  EXPECT_FALSE(proves(0x3ffff0, 32, &kOther)) << "half of it is the other GPU's";
  EXPECT_FALSE(proves(0x5ffff0, 32, nullptr)) << "runs into system memory";
  EXPECT_FALSE(proves(0xa00000, 16, &kOne));
  EXPECT_TRUE(proves(0xa00000, 16, &kOther));
  EXPECT_FALSE(proves(0xbffff0, 32, nullptr)) << "runs over the end";
  EXPECT_FALSE(proves(~std::uint64_t{0} - 7, 16, nullptr));
  unmap(memory, 0x300000, 0x1000);
  EXPECT_FALSE(proves(0x2ffff0, 32, nullptr));
  EXPECT_TRUE(proves(0x301000, 16, &kOne)) << "what is left of a range keeps its GPU";
  std::vector<std::uint8_t> unregister(20);
  std::memcpy(unregister.data(), kOne.data(), kOne.size());
  memory.call(Node::kUvm, 26, unregister, {});
  EXPECT_FALSE(proves(0x200000, 16, nullptr));
  EXPECT_TRUE(proves(0xa00000, 16, nullptr)) << "the other GPU's stay";
}

TEST(AgentMemory, UnmappingWaitsForTheReading) {
  MappedMemory memory;
  map(memory, 0x200000, 0x200000, kClassVideoMemory, {kOne});
  std::atomic<bool> begun{false}, gone{false};
  std::thread other;
  EXPECT_TRUE(memory.while_mapped({{0x200000, 4096}}, &kOne, [&] {
    other = std::thread([&] {
      begun = true;
      unmap(memory, 0x200000, 0x200000);
      gone = true;
    });
    while (!begun) std::this_thread::yield();
    EXPECT_FALSE(gone);
  }));
  other.join();
  EXPECT_TRUE(gone);
  EXPECT_FALSE(memory.while_mapped({{0x200000, 4096}}, &kOne, [] { FAIL(); }));
}

TEST(AgentMemory, HandlesThatWereFreedNameNothing) {
  MappedMemory memory;
  map(memory, 0x200000, 0x200000, kClassVideoMemory, {});  // and frees its handle
  std::vector<std::uint8_t> call(9264);
  put(call, 0, 0x800000, 8);
  put(call, 8, 0x200000, 8);
  put(call, 9256, 5, 4);
  memory.call(Node::kUvm, 33, call, {});
  EXPECT_TRUE(proven(memory.ranges(), {0x200000, 16}, nullptr)) << "the mapping outlives the handle";
  EXPECT_FALSE(proven(memory.ranges(), {0x800000, 16}, nullptr)) << "of no known memory";
}

}  // namespace
}  // namespace gpuwatch::probe::agent
