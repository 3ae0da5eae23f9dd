// SPDX-License-Identifier: Apache-2.0
// Device programs: those of crun and runc say what their rules said; whatever
// else a program does is not readable, and no bytes do harm.
#include "attribute/device_program.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

namespace gpuwatch::attribute {
namespace {

DeviceProgram recorded(const std::string& name) {
  std::ifstream file(DEVICE_PROGRAMS + ("/" + name), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  DeviceProgram program(bytes.size() / sizeof(bpf_insn));
  std::memcpy(program.data(), bytes.data(), program.size() * sizeof(bpf_insn));
  return program;
}

DeviceAccess open_of(std::uint32_t major, std::uint32_t minor) {
  DeviceAccess device;
  device.major = major;
  device.minor = minor;
  return device;
}

bpf_insn insn(unsigned code, unsigned dst, unsigned src, int off, int imm) {
  bpf_insn out{};
  out.code = static_cast<__u8>(code);
  out.dst_reg = dst & 15;
  out.src_reg = src & 15;
  out.off = static_cast<__s16>(off);
  out.imm = imm;
  return out;
}

const bpf_insn kExit = insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
bpf_insn mov(unsigned dst, int imm) {
  return insn(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

TEST(DeviceProgram, OfCrunAndRunc) {
  for (const std::string runtime : {"crun", "runc"}) {
    const DeviceProgram one = recorded(runtime + "-gpu0.bpf"), all = recorded(runtime + "-all.bpf");
    ASSERT_GT(one.size(), 50U) << runtime;
    for (std::uint32_t minor = 0; minor < 300; ++minor) {
      EXPECT_EQ(run_device_program(one, open_of(195, minor)), minor == 0 || minor == 255) << runtime << minor;
      EXPECT_EQ(run_device_program(all, open_of(195, minor)), true) << runtime << minor;
      EXPECT_EQ(run_device_program(one, open_of(194, minor)), false) << runtime << minor;
    }
    EXPECT_EQ(run_device_program(one, open_of(1, 3)), true) << runtime;  // null
    EXPECT_EQ(run_device_program(one, open_of(8, 0)), false) << runtime;
    DeviceAccess mknod = open_of(195, 1);
    mknod.access = BPF_DEVCG_ACC_MKNOD;  // any node may be made, not opened
    EXPECT_EQ(run_device_program(one, mknod), true) << runtime;
    DeviceAccess block = open_of(195, 0);
    block.type = BPF_DEVCG_DEV_BLOCK;
    EXPECT_EQ(run_device_program(one, block), false) << runtime;
  }
}

TEST(DeviceProgram, LoadsOfEverySize) {
  for (const unsigned size : {BPF_W, BPF_H, BPF_B}) {
    const DeviceProgram program = {insn(BPF_LDX | BPF_MEM | size, 2, 1, 4, 0), mov(0, 1),
                                   insn(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1, 195), mov(0, 0), kExit};
    EXPECT_EQ(run_device_program(program, open_of(195, 0)), true) << size;
    EXPECT_EQ(run_device_program(program, open_of(196, 0)), false) << size;
  }
}

TEST(DeviceProgram, WhatIsNotKnownIsNotGuessed) {
  const bpf_insn map_load = insn(BPF_LD | BPF_IMM | BPF_DW, 2, 1, 0, 7);
  const std::vector<DeviceProgram> programs = {
      {},
      {kExit},                                                            // r0 was never set
      {mov(0, 1)},                                                        // runs off its end
      {insn(BPF_JMP | BPF_CALL, 0, 0, 0, 1), kExit},                      // a helper
      {map_load, insn(0, 0, 0, 0, 0), mov(0, 1), kExit},                  // a map
      {insn(BPF_STX | BPF_MEM | BPF_W, 10, 1, -4, 0), mov(0, 1), kExit},  // the stack
      {insn(BPF_LDX | BPF_MEM | BPF_DW, 2, 1, 0, 0), mov(0, 1), kExit},   // wider than the context has
      {insn(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 12, 0), mov(0, 1), kExit},   // behind it
      {insn(BPF_LDX | BPF_MEM | BPF_W, 2, 1, -4, 0), mov(0, 1), kExit},   // before it
      {insn(BPF_LDX | BPF_MEM | BPF_W, 2, 3, 0, 0), mov(0, 1), kExit},    // through no pointer
      {insn(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 4), mov(0, 1), kExit},  // pointer arithmetic
      {insn(BPF_ALU64 | BPF_MOV | BPF_X, 0, 1, 0, 0), kExit},             // a pointer for an answer
      {insn(BPF_JMP | BPF_JEQ | BPF_X, 1, 1, 0, 0), mov(0, 1), kExit},    // compares pointers
      {mov(12, 1), mov(0, 1), kExit},                                     // no such register
      {insn(BPF_JMP | BPF_JA, 0, 0, -1, 0)},                              // for ever
      {insn(BPF_JMP | BPF_JA, 0, 0, 32767, 0)},
      {insn(BPF_JMP | BPF_JA, 0, 0, -32768, 0)},
      DeviceProgram(kDeviceProgramMax + 1, mov(0, 1)),
  };
  for (std::size_t i = 0; i < programs.size(); ++i)
    EXPECT_EQ(run_device_program(programs[i], open_of(195, 0)), std::nullopt) << i;
}

TEST(DeviceProgram, DamagedOnesEndToo) {
  std::mt19937 random(7);
  for (const char* name : {"crun-gpu0.bpf", "runc-gpu0.bpf"}) {
    const DeviceProgram good = recorded(name);
    for (int round = 0; round < 2000; ++round) {
      DeviceProgram bad = good;
      for (int i = 0; i < 3; ++i) {
        auto* bytes = reinterpret_cast<unsigned char*>(bad.data());
        bytes[random() % (bad.size() * sizeof(bpf_insn))] = static_cast<unsigned char>(random());
      }
      (void)run_device_program(bad, open_of(195, static_cast<std::uint32_t>(random() % 4)));
    }
  }
}

TEST(DeviceProgram, NoCgroupIsAnError) {
  EXPECT_FALSE(read_device_programs("/nonexistent").ok());
  EXPECT_FALSE(read_device_programs("/proc").ok());  // a directory, but no cgroup
}

}  // namespace
}  // namespace gpuwatch::attribute
