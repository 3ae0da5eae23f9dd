// SPDX-License-Identifier: Apache-2.0
#include "attribute/device_program.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/fd.h"

namespace gpuwatch::attribute {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr std::uint64_t kContext = ~std::uint64_t{0};  // what register 1 holds: no number, only the context

struct Machine {
  std::array<std::uint64_t, 11> value{};
  std::array<bool, 11> known{};    // was written
  std::array<bool, 11> context{};  // points to the context
  bpf_cgroup_dev_ctx device{};

  bool number(unsigned reg) const { return reg < value.size() && known[reg] && !context[reg]; }
  void set(unsigned reg, std::uint64_t to) {
    value[reg] = to;
    known[reg] = true;
    context[reg] = false;
  }
};

std::optional<std::uint64_t> arithmetic(unsigned op, std::uint64_t a, std::uint64_t b, unsigned bits) {
  switch (op) {
    case BPF_ADD:
      return a + b;
    case BPF_SUB:
      return a - b;
    case BPF_MUL:
      return a * b;
    case BPF_OR:
      return a | b;
    case BPF_AND:
      return a & b;
    case BPF_XOR:
      return a ^ b;
    case BPF_LSH:
      return a << (b & (bits - 1));
    case BPF_RSH:
      return (bits == 32 ? a & 0xffffffffu : a) >> (b & (bits - 1));
    case BPF_MOV:
      return b;
    default:
      return std::nullopt;
  }
}

std::optional<bool> compare(unsigned op, std::uint64_t a, std::uint64_t b, bool is32) {
  const auto signed_of = [is32](std::uint64_t x) {
    return is32 ? static_cast<std::int64_t>(static_cast<std::int32_t>(x)) : static_cast<std::int64_t>(x);
  };
  switch (op) {
    case BPF_JEQ:
      return a == b;
    case BPF_JNE:
      return a != b;
    case BPF_JGT:
      return a > b;
    case BPF_JGE:
      return a >= b;
    case BPF_JLT:
      return a < b;
    case BPF_JLE:
      return a <= b;
    case BPF_JSET:
      return (a & b) != 0;
    case BPF_JSGT:
      return signed_of(a) > signed_of(b);
    case BPF_JSGE:
      return signed_of(a) >= signed_of(b);
    case BPF_JSLT:
      return signed_of(a) < signed_of(b);
    case BPF_JSLE:
      return signed_of(a) <= signed_of(b);
    default:
      return std::nullopt;
  }
}

// The other operand: a register's number or the constant, sign-extended.
std::optional<std::uint64_t> operand(const Machine& machine, const bpf_insn& insn) {
  if (BPF_SRC(insn.code) == BPF_K) return static_cast<std::uint64_t>(static_cast<std::int64_t>(insn.imm));
  if (!machine.number(insn.src_reg)) return std::nullopt;
  return machine.value[insn.src_reg];
}

bool calculate(Machine& machine, const bpf_insn& insn, bool is32) {
  const unsigned op = BPF_OP(insn.code);
  if (insn.dst_reg >= 10 || insn.off != 0) return false;  // another offset: a form newer than this
  if (op == BPF_MOV && BPF_SRC(insn.code) == BPF_X && !is32 && insn.src_reg < 10 && machine.context[insn.src_reg]) {
    machine.set(insn.dst_reg, kContext);
    machine.context[insn.dst_reg] = true;
    return true;
  }
  const auto right = operand(machine, insn);
  if (!right || (op != BPF_MOV && !machine.number(insn.dst_reg))) return false;
  const auto result = arithmetic(op, machine.value[insn.dst_reg], *right, is32 ? 32 : 64);
  if (!result) return false;
  machine.set(insn.dst_reg, is32 ? *result & 0xffffffffu : *result);
  return true;
}

// From the context only.
bool load(Machine& machine, const bpf_insn& insn) {
  if (BPF_MODE(insn.code) != BPF_MEM || insn.dst_reg >= 10 || insn.src_reg >= 10) return false;
  if (!machine.context[insn.src_reg]) return false;
  std::size_t size = 0;
  if (BPF_SIZE(insn.code) == BPF_W) size = 4;
  if (BPF_SIZE(insn.code) == BPF_H) size = 2;
  if (BPF_SIZE(insn.code) == BPF_B) size = 1;
  const auto offset = static_cast<std::size_t>(insn.off);
  if (size == 0 || insn.off < 0 || offset + size > sizeof machine.device) return false;
  std::uint32_t value = 0;
  std::memcpy(&value, reinterpret_cast<const unsigned char*>(&machine.device) + offset, size);
  machine.set(insn.dst_reg, value);
  return true;
}

int call(bpf_cmd command, bpf_attr& attr) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attr, sizeof attr));
}

Result<DeviceProgram> read_program(std::uint32_t id) {
  bpf_attr attr{};
  attr.prog_id = id;
  const base::Fd fd(call(BPF_PROG_GET_FD_BY_ID, attr));
  if (!fd.valid()) return Error::from_errno("device program " + std::to_string(id));
  DeviceProgram program(kDeviceProgramMax);
  bpf_prog_info info{};
  info.xlated_prog_len = static_cast<__u32>(program.size() * sizeof(bpf_insn));
  info.xlated_prog_insns = reinterpret_cast<std::uintptr_t>(program.data());
  attr = {};
  attr.info.bpf_fd = static_cast<__u32>(fd.get());
  attr.info.info_len = sizeof info;
  attr.info.info = reinterpret_cast<std::uintptr_t>(&info);
  if (call(BPF_OBJ_GET_INFO_BY_FD, attr) != 0) return Error::from_errno("device program " + std::to_string(id));
  const std::size_t have = info.xlated_prog_len / sizeof(bpf_insn);
  // The pointer is cleared where the kernel does not show programs.
  if (have == 0 || info.xlated_prog_insns == 0) return Error(Code::kUnsupported, "the kernel does not show it");
  if (have > program.size()) return Error(Code::kLimit, "it has " + std::to_string(have) + " instructions");
  program.resize(have);
  return program;
}

}  // namespace

std::optional<bool> run_device_program(std::span<const bpf_insn> program, const DeviceAccess& device) {
  if (program.empty() || program.size() > kDeviceProgramMax) return std::nullopt;
  Machine machine;
  machine.device = {device.access << 16 | device.type, device.major, device.minor};
  machine.set(1, kContext);
  machine.context[1] = true;
  std::size_t at = 0;
  for (std::size_t steps = 0; steps < kDeviceProgramSteps && at < program.size(); ++steps, ++at) {
    const bpf_insn& insn = program[at];
    const unsigned kind = BPF_CLASS(insn.code);
    if (kind == BPF_ALU || kind == BPF_ALU64) {
      if (!calculate(machine, insn, kind == BPF_ALU)) return std::nullopt;
    } else if (kind == BPF_LDX) {
      if (!load(machine, insn)) return std::nullopt;
    } else if (kind == BPF_JMP || kind == BPF_JMP32) {
      const unsigned op = BPF_OP(insn.code);
      if (kind == BPF_JMP && op == BPF_EXIT) {
        if (!machine.number(0)) return std::nullopt;
        return (machine.value[0] & 1) != 0;
      }
      bool taken = true;
      if (op != BPF_JA || kind == BPF_JMP32) {
        auto right = operand(machine, insn);
        if (!right || !machine.number(insn.dst_reg)) return std::nullopt;
        const std::uint64_t mask = kind == BPF_JMP32 ? 0xffffffffu : ~std::uint64_t{0};
        const auto holds = compare(op, machine.value[insn.dst_reg] & mask, *right & mask, kind == BPF_JMP32);
        if (!holds) return std::nullopt;
        taken = *holds;
      }
      // Out of bounds either way ends the loop; negative wraps to a big number.
      if (taken) at = static_cast<std::size_t>(static_cast<std::int64_t>(at) + insn.off);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Result<std::vector<DeviceProgram>> read_device_programs(const std::string& cgroup_directory) {
  const base::Fd fd(::open(cgroup_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Error::from_errno(cgroup_directory);
  std::array<std::uint32_t, kDeviceProgramsMax> ids{};
  bpf_attr query{};
  query.query.target_fd = static_cast<__u32>(fd.get());
  query.query.attach_type = BPF_CGROUP_DEVICE;
  query.query.query_flags = BPF_F_QUERY_EFFECTIVE;
  query.query.prog_ids = reinterpret_cast<std::uintptr_t>(ids.data());
  query.query.prog_cnt = ids.size();
  if (call(BPF_PROG_QUERY, query) != 0) return Error::from_errno(cgroup_directory + ": device programs");
  if (query.query.prog_cnt > ids.size()) return Error(Code::kLimit, "too many device programs");
  std::vector<DeviceProgram> programs;
  for (std::uint32_t i = 0; i < query.query.prog_cnt; ++i) {
    auto program = read_program(ids[i]);
    if (!program) return std::move(program.error());
    programs.push_back(std::move(*program));
  }
  return programs;
}

}  // namespace gpuwatch::attribute
