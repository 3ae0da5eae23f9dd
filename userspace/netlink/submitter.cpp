// SPDX-License-Identifier: Apache-2.0
// One verdict, one request. Texts are cut to what the kernel's policy takes, and
// a NUL ends them, since the kernel's strings end there.
#include "netlink/submitter.h"

#include <linux/gpuwatch_genl.h>
#include <netlink/attr.h>

#include "netlink/build.h"
#include "netlink/connection.h"

namespace gpuwatch::netlink {

using base::Result;
using base::Status;

std::string_view cut_text(std::string_view text, std::size_t max_bytes) {
  text = text.substr(0, text.find('\0'));
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  // Not inside of a character: bytes 10xxxxxx go on with one.
  while (end > 0 && max_bytes - end < 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  if ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) end = max_bytes;
  return text.substr(0, end);
}

namespace {

int put_text(nl_msg* message, int type, std::string_view text, std::size_t max_bytes) {
  if (text.empty()) return 0;
  return nla_put_string(message, type, std::string(cut_text(text, max_bytes)).c_str());
}

}  // namespace

int put_verdict(nl_msg* message, const VerdictMessage& verdict) {
  int err = nla_put_u32(message, GPUWATCH_A_VERDICT, static_cast<std::uint32_t>(verdict.verdict));
  if (err == 0) err = nla_put_u32(message, GPUWATCH_A_SEVERITY, static_cast<std::uint32_t>(verdict.severity));
  if (err == 0) err = put_text(message, GPUWATCH_A_RULE, verdict.rule, GPUWATCH_GENL_RULE_MAX);
  if (err == 0) err = put_text(message, GPUWATCH_A_TEXT, verdict.text, GPUWATCH_GENL_TEXT_MAX);
  if (err == 0) err = put_text(message, GPUWATCH_A_CONTAINER, verdict.container, GPUWATCH_GENL_CONTAINER_MAX);
  if (err == 0 && verdict.pid) err = nla_put_u32(message, GPUWATCH_A_PID, *verdict.pid);
  if (err == 0 && verdict.start_ns) err = nla_put_u64(message, GPUWATCH_A_START_NS, *verdict.start_ns);
  if (err == 0 && verdict.cgroup_id) err = nla_put_u64(message, GPUWATCH_A_CGROUP_ID, *verdict.cgroup_id);
  if (err == 0 && verdict.gpu_minor) err = nla_put_u32(message, GPUWATCH_A_GPU_MINOR, *verdict.gpu_minor);
  static_assert(sizeof(*verdict.digest) == GPUWATCH_GENL_DIGEST_LEN);
  if (err == 0 && verdict.digest)
    err = nla_put(message, GPUWATCH_A_DIGEST, static_cast<int>(verdict.digest->size()), verdict.digest->data());
  return err;
}

Submitter::Submitter(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Submitter::Submitter(Submitter&&) noexcept = default;
Submitter& Submitter::operator=(Submitter&&) noexcept = default;
Submitter::~Submitter() = default;

Result<Submitter> Submitter::open() {
  auto connection = Connection::open();
  if (!connection) return std::move(connection.error());
  return Submitter(std::move(*connection));
}

Status Submitter::submit(const VerdictMessage& message) {
  return connection_->request(GPUWATCH_CMD_VERDICT, "submitting a verdict",
                              [&](nl_msg* request) { return put_verdict(request, message); });
}

}  // namespace gpuwatch::netlink
