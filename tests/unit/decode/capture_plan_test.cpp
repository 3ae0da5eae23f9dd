// SPDX-License-Identifier: Apache-2.0
// The plan keeps every limit the kernel checks, and copies no more of a
// caller's memory than the tables justify.
#include "decode/capture_plan.h"

#include <gtest/gtest.h>

#include "decode/tables.h"

namespace gpuwatch::decode {
namespace {

const gpuwatch_plan_entry* entry_for(const CapturePlan& plan, std::uint32_t cmd, gpuwatch_node_kind node) {
  for (const gpuwatch_plan_entry& entry : plan.entries)
    if (((entry.node_mask >> node) & 1) != 0 && (cmd & entry.cmd_mask) == entry.cmd) return &entry;
  return nullptr;
}

class PlanOfBranch : public testing::TestWithParam<std::uint32_t> {
 protected:
  CapturePlan plan = make_capture_plan({GetParam(), 1, 1});
};

TEST_P(PlanOfBranch, KeepsTheKernelsLimits) {
  EXPECT_LE(plan.entries.size(), std::size_t{GPUWATCH_PLAN_ENTRIES});
  EXPECT_GE(plan.entries.size(), 200U);
  EXPECT_LE(plan.sizes.size(), std::size_t{GPUWATCH_PLAN_SIZES});
  EXPECT_LE(plan.default_bytes, std::uint32_t{GPUWATCH_PLAN_CAP_MAX});
  for (const gpuwatch_plan_entry& entry : plan.entries) {
    EXPECT_EQ(entry.cmd_mask & 0xFF, 0xFFU);
    EXPECT_EQ(entry.cmd & ~entry.cmd_mask, 0U);
    EXPECT_NE(entry.node_mask, 0U);
    EXPECT_EQ(entry.node_mask >> GPUWATCH_NODE_MAX, 0U);
    EXPECT_LE(entry.out_offset, std::uint32_t{GPUWATCH_PLAN_CAP_MAX});
    EXPECT_EQ(entry.out_offset % 8, 0U);
    EXPECT_LE(entry.in_bytes, GPUWATCH_PLAN_CAP_MAX);
    EXPECT_LE(entry.out_bytes, GPUWATCH_PLAN_CAP_MAX);
    EXPECT_EQ(entry.flags & ~std::uint32_t{GPUWATCH_PLAN_XFER}, 0U);
    for (const gpuwatch_plan_nested& nested : entry.nested) {
      if (nested.len_kind == GPUWATCH_LEN_NONE) {
        EXPECT_EQ(nested.cap, 0);
        continue;
      }
      EXPECT_LE(nested.cap, GPUWATCH_PLAN_CAP_MAX);
      EXPECT_GE(nested.directions, 1);
      EXPECT_LE(nested.directions, 3);
      EXPECT_LE(nested.ptr_offset + 8, entry.in_bytes) << "the pointer must be among the copied bytes";
      if (nested.len_kind != GPUWATCH_LEN_FIXED) {
        EXPECT_LE(nested.len_value + 4, entry.in_bytes);
      }
      if (nested.len_kind == GPUWATCH_LEN_BY_KEY) {
        EXPECT_LE(nested.key_offset + 4, entry.in_bytes);
      }
    }
  }
  for (std::size_t i = 1; i < plan.sizes.size(); ++i) EXPECT_LT(plan.sizes[i - 1].key, plan.sizes[i].key);
}

TEST_P(PlanOfBranch, FollowsParametersOfAllocAndControl) {
  const gpuwatch_plan_entry* newer = entry_for(plan, 0xC030462B, GPUWATCH_NODE_CTL);
  ASSERT_NE(newer, nullptr);
  EXPECT_EQ(newer->in_bytes, 48);
  EXPECT_EQ(newer->nested[0].len_kind, GPUWATCH_LEN_BY_KEY);
  EXPECT_EQ(newer->nested[0].ptr_offset, 16);
  EXPECT_EQ(newer->nested[0].key_offset, 12);
  EXPECT_EQ(newer->nested[0].len_value, 32);
  const gpuwatch_plan_entry* older = entry_for(plan, 0xC020462B, GPUWATCH_NODE_GPU);
  ASSERT_NE(older, nullptr);
  EXPECT_EQ(older->in_bytes, 32);
  EXPECT_EQ(older->nested[0].len_value, 24);
  const gpuwatch_plan_entry* odd = entry_for(plan, 0xC018462B, GPUWATCH_NODE_CTL);
  ASSERT_NE(odd, nullptr);
  EXPECT_EQ(odd->nested[0].len_kind, GPUWATCH_LEN_NONE);
  const gpuwatch_plan_entry* control = entry_for(plan, 0xC020462A, GPUWATCH_NODE_CTL);
  ASSERT_NE(control, nullptr);
  EXPECT_EQ(control->nested[0].len_kind, GPUWATCH_LEN_AT);
  EXPECT_EQ(control->nested[0].ptr_offset, 16);
  EXPECT_EQ(control->nested[0].len_value, 24);
  const gpuwatch_plan_entry* xfer = entry_for(plan, 0xC01046D3, GPUWATCH_NODE_CTL);
  ASSERT_NE(xfer, nullptr);
  EXPECT_EQ(xfer->flags, std::uint32_t{GPUWATCH_PLAN_XFER});
}

TEST_P(PlanOfBranch, UvmTakesExactlyTheStruct) {
  const gpuwatch_plan_entry* init = entry_for(plan, 0x30000001, GPUWATCH_NODE_UVM);
  ASSERT_NE(init, nullptr);
  EXPECT_EQ(init->in_bytes, 16);
  const gpuwatch_plan_entry* deinit = entry_for(plan, 0x30000002, GPUWATCH_NODE_UVM);
  ASSERT_NE(deinit, nullptr) << "its request word encodes a size, which would be copied by default";
  EXPECT_EQ(deinit->in_bytes, 0);
  const gpuwatch_plan_entry* map = entry_for(plan, 33, GPUWATCH_NODE_UVM);
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(map->out_offset + map->out_bytes, GetParam() == 535 ? 1200U : 9264U);
}

TEST_P(PlanOfBranch, OfLargeArgumentsOnlyTheEnds) {
  const gpuwatch_plan_entry* map = entry_for(plan, 33, GPUWATCH_NODE_UVM);
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(map->in_bytes, 256);
  EXPECT_EQ(map->out_bytes, 32);
  const gpuwatch_plan_entry* pool = entry_for(plan, 68, GPUWATCH_NODE_UVM);
  ASSERT_NE(pool, nullptr);
  EXPECT_EQ(pool->in_bytes, 256);
  EXPECT_LE(pool->out_bytes, 40);
  // An older or newer driver's struct may be larger, so there is room for more.
  const gpuwatch_plan_entry* dma_buf = entry_for(plan, 0xC00046D9 | (2600 << 16), GPUWATCH_NODE_CTL);
  ASSERT_NE(dma_buf, nullptr);
  EXPECT_LE(dma_buf->in_bytes, 256);
  EXPECT_LE(dma_buf->out_bytes, 32 + 64 + 8);
  EXPECT_GT(dma_buf->out_offset, 2500U);
}

// No plan may hide from the decoder what it reads.
TEST_P(PlanOfBranch, EveryFieldOfUvmIsCopied) {
  const unsigned branch = tables::choose_branch({GetParam(), 1, 1}).index;
  for (const tables::Entry& command : tables::all(tables::uvm)) {
    const tables::StructInfo* info = tables::struct_info(command.struct_id, branch);
    if (((command.branches >> branch) & 1) == 0 || info == nullptr) continue;
    const gpuwatch_plan_entry* entry = entry_for(plan, command.key, GPUWATCH_NODE_UVM);
    ASSERT_NE(entry, nullptr) << command.name;
    for (const tables::FieldSpec& spec : tables::fields_of(*info)) {
      const std::uint32_t end = std::uint32_t{spec.offset} + spec.width;
      const bool after = spec.offset >= entry->out_offset && end <= entry->out_offset + entry->out_bytes;
      const bool before = spec.source != 1 && end <= entry->in_bytes;
      // Larger than a plan can reach: none of these is part of a story.
      if (end > GPUWATCH_PLAN_CAP_MAX) continue;
      EXPECT_TRUE(before || after) << command.name << " at " << spec.offset;
    }
  }
}

TEST_P(PlanOfBranch, InlineDriverLogsAreCut) {
  const gpuwatch_plan_entry* log = entry_for(plan, 0xFC34465F, GPUWATCH_NODE_CTL);
  ASSERT_NE(log, nullptr);
  EXPECT_LE(log->out_bytes, 64);
}

TEST_P(PlanOfBranch, EveryNamedUvmCommandHasAnEntry) {
  const unsigned branch = tables::choose_branch({GetParam(), 1, 1}).index;
  for (const tables::Entry& command : tables::all(tables::uvm)) {
    if (((command.branches >> branch) & 1) == 0) continue;
    EXPECT_NE(entry_for(plan, command.key, GPUWATCH_NODE_UVM), nullptr) << command.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, PlanOfBranch, testing::Values(535U, 550U, 570U, 580U, 590U, 595U));

TEST(CapturePlan, CapsAndOffSwitches) {
  PlanOptions options;
  options.argument_cap = 64;
  options.params_cap = 0;
  options.nvkms_cap = 0;
  options.unknown_bytes = 1 << 20;
  const CapturePlan plan = make_capture_plan({580, 1, 1}, options);
  EXPECT_EQ(plan.default_bytes, 64U);
  for (const gpuwatch_plan_entry& entry : plan.entries) {
    EXPECT_LE(entry.in_bytes, 64);
    EXPECT_EQ(entry.nested[0].len_kind, GPUWATCH_LEN_NONE);
  }
}

}  // namespace
}  // namespace gpuwatch::decode
