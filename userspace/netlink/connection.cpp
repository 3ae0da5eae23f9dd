// SPDX-License-Identifier: Apache-2.0
// Requests and their acknowledgements. Errors come with the kernel's own text
// where it gives one (extended acknowledgement).
#include "netlink/connection.h"

#include <linux/genetlink.h>
#include <linux/gpuwatch_genl.h>
#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

namespace gpuwatch::netlink {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

// What the callbacks of one request fill in.
struct Exchange {
  const Connection::Answer* answer = nullptr;
  unsigned sequence = 0;
  bool acknowledged = false;
  bool answered = false;
  int error = 0;  // a positive errno
  std::string kernel_says;
};

int on_valid(nl_msg* message, void* data) {
  auto* exchange = static_cast<Exchange*>(data);
  nlmsghdr* header = nlmsg_hdr(message);
  if (header->nlmsg_seq == exchange->sequence && *exchange->answer) exchange->answered |= (*exchange->answer)(header);
  return NL_OK;
}

int on_acknowledge(nl_msg* message, void* data) {
  auto* exchange = static_cast<Exchange*>(data);
  if (nlmsg_hdr(message)->nlmsg_seq == exchange->sequence) exchange->acknowledged = true;
  return NL_OK;
}

// The text of an extended acknowledgement lies behind the error.
std::string text_behind(const nlmsghdr* header, const nlmsgerr* error) {
  if ((header->nlmsg_flags & NLM_F_ACK_TLVS) == 0 || (header->nlmsg_flags & NLM_F_CAPPED) == 0) return {};
  const auto* end = reinterpret_cast<const char*>(header) + header->nlmsg_len;
  auto* first = reinterpret_cast<nlattr*>(const_cast<nlmsgerr*>(error) + 1);
  const auto left = end - reinterpret_cast<const char*>(first);
  if (left <= 0) return {};
  nlattr* text = nla_find(first, static_cast<int>(left), NLMSGERR_ATTR_MSG);
  if (text == nullptr) return {};
  const auto* bytes = static_cast<const char*>(nla_data(text));
  return {bytes, strnlen(bytes, static_cast<std::size_t>(std::max(nla_len(text), 0)))};
}

int on_error(sockaddr_nl*, nlmsgerr* error, void* data) {
  auto* exchange = static_cast<Exchange*>(data);
  const auto* header = reinterpret_cast<const nlmsghdr*>(reinterpret_cast<const char*>(error) - NLMSG_HDRLEN);
  if (header->nlmsg_seq != exchange->sequence) return NL_SKIP;
  exchange->error = error->error == 0 ? EPROTO : -error->error;
  exchange->kernel_says = text_behind(header, error);
  return NL_STOP;
}

Error refused(const Exchange& exchange, const std::string& what) {
  std::string message = what;
  if (!exchange.kernel_says.empty()) message += ": " + exchange.kernel_says;
  message += std::string(": ") + std::strerror(exchange.error);
  if (exchange.error == EPERM) message += "; it needs CAP_NET_ADMIN or CAP_SYS_ADMIN, outside of containers";
  return {exchange.error == EPERM ? Code::kPermission : Code::kIo, message, exchange.error};
}

}  // namespace

Error no_family() {
  return {Code::kNotFound, "the kernel has no generic netlink family " GPUWATCH_GENL_NAME
                           " here: the module is not loaded (remedy: modprobe gpuwatch), is older than this program, "
                           "or this is another network "
                           "namespace than the host's"};
}

Error error_of(int libnl_error, const std::string& what) {
  const int number = libnl_error < 0 ? -libnl_error : libnl_error;
  const Code code = number == NLE_PERM || number == NLE_NOACCESS ? Code::kPermission
                    : number == NLE_OBJ_NOTFOUND                 ? Code::kNotFound
                                                                 : Code::kIo;
  std::string message = what + ": " + nl_geterror(libnl_error);
  if (code == Code::kPermission) message += "; it needs CAP_NET_ADMIN, outside of containers";
  return {code, message, code == Code::kPermission ? EPERM : 0};
}

Result<std::unique_ptr<Connection>> Connection::open() {
  std::unique_ptr<Connection> made(new Connection());
  made->socket_.reset(nl_socket_alloc());
  if (!made->socket_) return Error(Code::kLimit, "generic netlink: no memory for a socket");
  nl_sock* socket = made->socket_.get();
  if (const int err = genl_connect(socket); err < 0) return error_of(err, "generic netlink: connect");
  // Texts of refusals; a kernel without them says less.
  const int on = 1;
  (void)setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  (void)setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  if (Status status = made->resolve(); !status.ok()) return std::move(status.error());
  return made;
}

Status Connection::resolve() {
  family_ = genl_ctrl_resolve(socket_.get(), GPUWATCH_GENL_NAME);
  if (family_ == -NLE_OBJ_NOTFOUND) return no_family();
  if (family_ < 0) return error_of(family_, "generic netlink: looking up " GPUWATCH_GENL_NAME);
  return {};
}

Status Connection::request(std::uint8_t command, const std::string& what, const Fill& fill, const Answer& answer,
                           int wait_ms) {
  if (family_ >= 0) {
    Status status = send_once(command, what, fill, answer, wait_ms);
    // ENOENT: no such family any more. Our own commands never say so.
    if (status.ok() || status.error().sys_errno() != ENOENT) return status;
  }
  if (Status status = resolve(); !status.ok()) return status;
  return send_once(command, what, fill, answer, wait_ms);
}

Status Connection::send_once(std::uint8_t command, const std::string& what, const Fill& fill, const Answer& answer,
                             int wait_ms) {
  nl_sock* socket = socket_.get();
  OwnedMessage message(nlmsg_alloc());
  if (!message || genlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, family_, 0, NLM_F_REQUEST | NLM_F_ACK, command,
                              GPUWATCH_GENL_VERSION) == nullptr)
    return Error(Code::kLimit, what + ": no memory for a message");
  if (const int err = fill ? fill(message.get()) : 0; err < 0) return error_of(err, what);

  Exchange exchange;
  exchange.answer = &answer;
  const std::unique_ptr<nl_cb, void (*)(nl_cb*)> callbacks(nl_cb_alloc(NL_CB_DEFAULT), nl_cb_put);
  if (!callbacks) return Error(Code::kLimit, what + ": no memory");
  nl_cb_set(callbacks.get(), NL_CB_VALID, NL_CB_CUSTOM, on_valid, &exchange);
  nl_cb_set(callbacks.get(), NL_CB_ACK, NL_CB_CUSTOM, on_acknowledge, &exchange);
  // An answer may come after its acknowledgement, and late ones of earlier requests.
  nl_cb_set(
      callbacks.get(), NL_CB_SEQ_CHECK, NL_CB_CUSTOM, [](nl_msg*, void*) { return int{NL_OK}; }, nullptr);
  nl_cb_err(callbacks.get(), NL_CB_CUSTOM, on_error, &exchange);

  if (const int err = nl_send_auto(socket, message.get()); err < 0) return error_of(err, what);
  exchange.sequence = nlmsg_hdr(message.get())->nlmsg_seq;

  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
  while (exchange.error == 0 && (!exchange.acknowledged || (answer && !exchange.answered))) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{nl_socket_get_fd(socket), POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&waiting, 1, static_cast<int>(left) + 1);
    if (ready < 0 && errno != EINTR) return Error::from_errno(what + ": waiting for the answer");
    if (ready == 0) return Error(Code::kIo, what + ": no answer within " + std::to_string(wait_ms) + " ms", ETIMEDOUT);
    if (ready < 0) continue;
    if (const int err = nl_recvmsgs(socket, callbacks.get()); err < 0 && exchange.error == 0)
      return error_of(err, what);
  }
  if (exchange.error != 0) return refused(exchange, what);
  return {};
}

}  // namespace gpuwatch::netlink
