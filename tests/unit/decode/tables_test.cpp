// SPDX-License-Identifier: Apache-2.0
// The generated tables: every entry is found in every branch it holds for, and
// the branch chosen for a version is its nearest ancestor.
#include "decode/tables.h"

#include <gtest/gtest.h>

namespace gpuwatch::decode::tables {
namespace {

void expect_all_found(const Table& table, const char* what) {
  for (const Entry& entry : all(table)) {
    EXPECT_NE(entry.branches, 0) << what << ' ' << entry.name;
    for (unsigned i = 0; i < branch_count(); ++i) {
      if (((entry.branches >> i) & 1) == 0) continue;
      EXPECT_EQ(table.find(entry.key, i), &entry) << what << ' ' << entry.name << " in branch " << branch(i).name;
    }
  }
}

TEST(Tables, EveryEntryIsFound) {
  expect_all_found(escapes, "escape");
  expect_all_found(uvm, "uvm");
  expect_all_found(classes, "class");
  expect_all_found(controls, "control");
  expect_all_found(interfaces, "interface");
  expect_all_found(statuses, "status");
  expect_all_found(nvkms, "nvkms");
}

TEST(Tables, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(escapes.find(0, 0), nullptr);
  EXPECT_EQ(uvm.find(0x7FFFFFFF, 0), nullptr);
  EXPECT_EQ(classes.find(0xFFFFFFFF, 0), nullptr);
  EXPECT_EQ(controls.find(0xDEADBEEF, 0), nullptr);
}

TEST(Tables, VersionTakesItsNearestAncestor) {
  const auto chosen = [](std::uint32_t major) {
    const BranchChoice choice = choose_branch({major, 1, 0});
    return std::pair{branch(choice.index).name, choice.inherited};
  };
  EXPECT_EQ(chosen(535), std::pair(std::string_view("535"), false));
  EXPECT_EQ(chosen(560), std::pair(std::string_view("550"), true));
  EXPECT_EQ(chosen(580), std::pair(std::string_view("580"), false));
  EXPECT_EQ(chosen(700), std::pair(std::string_view("595"), true));
  EXPECT_EQ(chosen(470), std::pair(std::string_view("535"), true));
  EXPECT_EQ(branch(choose_branch({}).index).name, "595");
  EXPECT_TRUE(choose_branch({}).inherited);
}

TEST(Tables, NumbersThatMeanAnotherThingInAnotherBranch) {
  const auto name = [](const Table& table, std::uint32_t key, std::uint32_t major) {
    const Entry* entry = table.find(key, choose_branch({major, 0, 0}).index);
    return entry == nullptr ? std::string_view{} : entry->name;
  };
  EXPECT_EQ(name(escapes, 95, 535), "NV_ESC_RM_NVLOG_CTRL");
  EXPECT_EQ(name(escapes, 95, 550), "NV_ESC_RM_LOCKLESS_DIAGNOSTIC");
  EXPECT_EQ(name(controls, 0x00730108, 550), "NV0073_CTRL_CMD_SYSTEM_GET_SCANLINE");
  EXPECT_EQ(name(controls, 0x00730108, 570), "NV0073_CTRL_CMD_SYSTEM_GET_CONNECT_STATE");
  EXPECT_EQ(name(statuses, 129, 535), "");
  EXPECT_EQ(name(statuses, 129, 550), "NV_ERR_NVSWITCH_FABRIC_NOT_READY");
  EXPECT_EQ(name(statuses, 129, 570), "NV_ERR_NVLINK_FABRIC_NOT_READY");
  EXPECT_EQ(name(nvkms, 14, 550), "NVKMS_IOCTL_FLIP");
  EXPECT_EQ(name(nvkms, 14, 570), "NVKMS_IOCTL_IDLE_BASE_CHANNEL");
  EXPECT_EQ(name(uvm, 311, 580), "UVM_TEST_VA_BLOCK_DISCARD_CHECK_PMM_STATE");
  EXPECT_EQ(name(uvm, 311, 590), "UVM_TEST_PMM_GET_ALLOC_LIST");
}

TEST(Tables, StructsGrowWithTheDriver) {
  const auto bytes = [](const Table& table, std::uint32_t key, std::uint32_t major) {
    const unsigned index = choose_branch({major, 0, 0}).index;
    const Entry* entry = table.find(key, index);
    const StructInfo* info = entry == nullptr ? nullptr : struct_info(entry->struct_id, index);
    return info == nullptr ? 0U : info->bytes;
  };
  EXPECT_EQ(bytes(escapes, 87, 570), 56U);
  EXPECT_EQ(bytes(escapes, 87, 580), 64U);
  EXPECT_EQ(bytes(uvm, 33, 535), 1200U);
  EXPECT_EQ(bytes(uvm, 33, 550), 9264U);
  EXPECT_EQ(bytes(classes, 0x40, 535), 120U);
  EXPECT_EQ(bytes(classes, 0x40, 595), 128U);
}

}  // namespace
}  // namespace gpuwatch::decode::tables
