// SPDX-License-Identifier: Apache-2.0
// Writes steps as struct gwsim_call and hands them to /dev/gwsim.
#include "script.h"

#include <sys/ioctl.h>

#include <cstring>

namespace gpuwatch::replay {

namespace {

template <typename T>
void put(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void put_padded(std::vector<std::byte>& out, const std::vector<std::byte>& bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.resize((out.size() + 7) & ~std::size_t{7});
}

std::uint16_t op_of(Op op) {
  switch (op) {
    case Op::kOpen:
      return GWSIM_OP_OPEN;
    case Op::kMmap:
      return GWSIM_OP_MMAP;
    default:
      return GWSIM_OP_IOCTL;
  }
}

}  // namespace

std::vector<std::byte> make_script(const Thread& thread, std::uint32_t delay_us) {
  std::vector<std::byte> script;
  for (const Step& step : thread.steps) {
    if (step.op == Op::kRelease) continue;
    const std::size_t start = script.size();
    gwsim_call call{};
    call.op = op_of(step.op);
    call.kind = step.kind;
    call.cmd = step.cmd;
    call.inner_cmd = step.inner_cmd;
    call.inner_size = step.inner_size;
    call.flags = step.xfer ? GWSIM_CALL_XFER : 0;
    call.delay_us = step.op == Op::kIoctl ? delay_us : 0;
    call.nr_parts = static_cast<std::uint32_t>(step.parts.size());
    call.ret = step.ret;
    put(script, call);
    for (const Part& part : step.parts) {
      put(script, gwsim_part{part.ptr_offset, static_cast<std::uint32_t>(part.in.size()),
                             static_cast<std::uint32_t>(part.out.size()), part.out_offset});
      put_padded(script, part.in);
      put_padded(script, part.out);
    }
    call.len = static_cast<std::uint32_t>(script.size() - start);
    std::memcpy(script.data() + start, &call, sizeof call);
  }
  return script;
}

base::Result<Session> Session::bind(int control, const std::vector<std::byte>& script) {
  gwsim_bind bind{};
  bind.script = reinterpret_cast<std::uintptr_t>(script.data());
  bind.bytes = script.size();
  bind.thread = 1;
  if (::ioctl(control, GWSIM_IOC_BIND, &bind) != 0)
    return base::Error::from_errno("/dev/gwsim: bind a script of " + std::to_string(script.size()) + " bytes");
  return Session(control);
}

Session::~Session() {
  gwsim_session_stat stat{};
  if (control_ >= 0) ::ioctl(control_, GWSIM_IOC_UNBIND, &stat);
}

base::Result<gwsim_session_stat> Session::unbind() {
  gwsim_session_stat stat{};
  if (::ioctl(control_, GWSIM_IOC_UNBIND, &stat) != 0) return base::Error::from_errno("/dev/gwsim: unbind");
  control_ = -1;
  return stat;
}

}  // namespace gpuwatch::replay
