// SPDX-License-Identifier: Apache-2.0
// What is mapped, from calls as the driver's library makes them.
#include "probe/ranges.h"

#include <gtest/gtest.h>

namespace gpuwatch::probe {
namespace {

using Buffer = std::vector<std::uint8_t>;

template <typename T>
void put(Buffer& out, std::size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

void allocate(RangeRecord& record, std::uint32_t object, std::uint32_t memory_class, std::uint32_t status = 0) {
  Buffer call(48);
  put<std::uint32_t>(call, 0, 0xc1d00001);
  put<std::uint32_t>(call, 8, object);
  put<std::uint32_t>(call, 12, memory_class);
  put<std::uint32_t>(call, 40, status);
  Buffer parameters(12);
  put<std::uint32_t>(parameters, 8, 0x1c101);
  record.call(RangeRecord::Node::kControl, 0xc030462b, call, parameters);
}

void map(RangeRecord& record, std::uint64_t address, std::uint64_t bytes, std::uint32_t object,
         std::uint32_t status = 0) {
  Buffer call(9264);
  put(call, 0, address);
  put(call, 8, bytes);
  put<std::uint32_t>(call, 9252, 0xc1d00001);
  put(call, 9256, object);
  put(call, 9260, status);
  record.call(RangeRecord::Node::kUvm, 33, call, {});
}

void unmap(RangeRecord& record, unsigned long request, std::uint64_t address, std::uint64_t bytes) {
  Buffer call(36);
  put(call, 0, address);
  put(call, 8, bytes);
  record.call(RangeRecord::Node::kUvm, request, call, {});
}

TEST(Ranges, MappedWithItsClass) {
  RangeRecord record;
  allocate(record, 5, kClassVideoMemory);
  map(record, 0x200000, 0x200000, 5);
  map(record, 0x800000, 0x1000, 6);
  const auto ranges = record.ranges();
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].memory_class, kClassVideoMemory);
  EXPECT_EQ(ranges[0].flags, 0x1c101u);
  EXPECT_EQ(ranges[1].memory_class, 0u);
}

// As calls of a process with two GPUs name them.
TEST(Ranges, OfOneGpuOfSeveral) {
  const auto map_on = [](RangeRecord& record, std::uint64_t address, const std::vector<std::uint8_t>& gpus) {
    Buffer call(9264);
    put(call, 0, address);
    put<std::uint64_t>(call, 8, 0x1000);
    for (std::size_t i = 0; i < gpus.size(); ++i) put(call, 24 + 36 * i, gpus[i]);
    put<std::uint64_t>(call, 9240, gpus.size());
    record.call(RangeRecord::Node::kUvm, 33, call, {});
  };
  RangeRecord record;
  map_on(record, 0x1000, {1});
  map_on(record, 0x2000, {2});
  map_on(record, 0x3000, {1, 2});
  map_on(record, 0x4000, {});
  const RangeRecord second = record.on(Uuid{2});
  EXPECT_FALSE(second.covers(0x1000, 1));
  EXPECT_TRUE(second.covers(0x2000, 0x3000));
  EXPECT_TRUE(record.covers(0x1000, 0x4000)) << "a copy was filtered";
}

TEST(Ranges, WhatFailedIsNotProven) {
  RangeRecord record;
  allocate(record, 5, kClassVideoMemory, 0x51);
  map(record, 0x200000, 0x200000, 5);
  map(record, 0x800000, 0x1000, 5, 0x1f);
  ASSERT_EQ(record.ranges().size(), 1u);
  EXPECT_EQ(record.ranges()[0].memory_class, 0u);
}

TEST(Ranges, UnmappingCutsHoles) {
  RangeRecord record;
  map(record, 0x1000, 0x4000, 5);
  unmap(record, 66, 0x2000, 0x1000);
  EXPECT_TRUE(record.covers(0x1000, 0x1000));
  EXPECT_FALSE(record.covers(0x1000, 0x1001));
  EXPECT_TRUE(record.covers(0x3000, 0x2000));
  EXPECT_FALSE(record.covers(0x3000, 0x2001));
  unmap(record, 34, 0, 0x10000);
  EXPECT_TRUE(record.ranges().empty());
}

TEST(Ranges, NeighboursCoverTogether) {
  RangeRecord record;
  map(record, 0x1000, 0x1000, 5);
  map(record, 0x2000, 0x1000, 6);
  EXPECT_TRUE(record.covers(0x1800, 0x1000));
  EXPECT_FALSE(record.covers(0xfff, 2));
  EXPECT_FALSE(record.covers(~std::uint64_t{0}, 2));
}

TEST(Ranges, OddCallsAreIgnored) {
  RangeRecord record;
  record.call(RangeRecord::Node::kUvm, 33, Buffer(100), {});
  map(record, ~std::uint64_t{0} - 10, 0x1000, 5);
  map(record, 0x1000, 0, 5);
  record.call(RangeRecord::Node::kControl, 0xc020462a, Buffer(32), {});
  EXPECT_TRUE(record.ranges().empty());
}

}  // namespace
}  // namespace gpuwatch::probe
