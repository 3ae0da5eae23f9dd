// SPDX-License-Identifier: Apache-2.0
// One socket per group, so that an overrun is known to be that group's, and one
// for what nlctrl tells of families. Only the kernel's own messages count.
#include "netlink/subscriber.h"

#include <linux/genetlink.h>
#include <linux/gpuwatch_genl.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include "base/clock.h"
#include "netlink/connection.h"
#include "netlink/control.h"
#include "netlink/group_stream.h"

namespace gpuwatch::netlink {

using base::Code;
using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kDatagramMax = 64 << 10;
constexpr int kDatagramsAtOnce = 256;

// Without a heartbeat for so long something is wrong: look at the family again.
constexpr std::uint64_t kSilenceMinNs = 5'000'000'000;

enum class Use { kReceive, kAsk };

Result<OwnedSocket> connected(std::size_t buffer_bytes, Use use) {
  OwnedSocket socket(nl_socket_alloc());
  if (!socket) return Error(Code::kLimit, "generic netlink: no memory for a socket");
  if (const int err = genl_connect(socket.get()); err < 0) return error_of(err, "generic netlink: connect");
  const int fd = nl_socket_get_fd(socket.get());
  const int bytes = static_cast<int>(std::min<std::size_t>(buffer_bytes, 1 << 30));
  // Beyond net.core.rmem_max with CAP_NET_ADMIN, which joining needs anyway.
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  // genl_ctrl_resolve() waits for its answer.
  if (use == Use::kReceive) (void)nl_socket_set_nonblocking(socket.get());
  return socket;
}

struct Joined {
  Group group;
  OwnedSocket socket;
  GroupStream stream;
  bool member = false;
  std::uint64_t heard_ns = 0;
};

}  // namespace

class Subscriber::Impl {
 public:
  Status open(const SubscriberOptions& options);
  Status poll(std::chrono::milliseconds timeout, const std::function<bool(const Item&)>& see);
  Totals totals() const;

 private:
  Status resolve();
  Status join(Joined& joined);
  void start_numbers();
  Status rejoin();
  void gone();
  Status take(Joined& joined);
  Status take_control();
  Status look_again();
  bool hand_over(const std::function<bool(const Item&)>& see);

  OwnedSocket control_;  // of nlctrl, and for looking things up
  OwnedSocket notify_;
  std::vector<Joined> joined_;
  int family_ = -1;
  std::vector<Item> fresh_;
  std::deque<Item> waiting_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kDatagramMax);
};

Status Subscriber::Impl::resolve() {
  family_ = genl_ctrl_resolve(control_.get(), GPUWATCH_GENL_NAME);
  if (family_ == -NLE_OBJ_NOTFOUND) return no_family();
  if (family_ < 0) return error_of(family_, "generic netlink: looking up " GPUWATCH_GENL_NAME);
  return {};
}

Status Subscriber::Impl::join(Joined& joined) {
  const std::string name(group_name(joined.group));
  const int id = genl_ctrl_resolve_grp(control_.get(), GPUWATCH_GENL_NAME, name.c_str());
  if (id == -NLE_OBJ_NOTFOUND) return no_family();
  if (id < 0) return error_of(id, "generic netlink: looking up group " + name);
  if (const int err = nl_socket_add_membership(joined.socket.get(), id); err < 0)
    return error_of(err, "joining group " + name);
  joined.member = true;
  joined.heard_ns = base::monotonic_ns();
  return {};
}

// What the numbers stand at, now that all groups are joined. Without an answer
// the first message tells. The question also has opens and closes looked at.
void Subscriber::Impl::start_numbers() {
  auto control = Control::open();
  if (!control) return;
  auto state = control->state();
  if (!state) return;
  for (Joined& joined : joined_)
    for (const StreamState& stream : state->streams)
      if (stream.group == joined.group) joined.stream.start(state->instance, stream.seq);
}

Status Subscriber::Impl::open(const SubscriberOptions& options) {
  auto control = connected(1 << 16, Use::kAsk);
  if (!control) return std::move(control.error());
  control_ = std::move(*control);
  auto notify = connected(1 << 20, Use::kReceive);
  if (!notify) return std::move(notify.error());
  notify_ = std::move(*notify);
  // First of all: whatever happens to the family from here on is told.
  const int id = genl_ctrl_resolve_grp(control_.get(), "nlctrl", "notify");
  if (id < 0) return error_of(id, "generic netlink: looking up nlctrl");
  if (const int err = nl_socket_add_membership(notify_.get(), id); err < 0)
    return error_of(err, "generic netlink: listening to nlctrl");
  if (Status status = resolve(); !status.ok()) return status;
  for (const Group group : options.groups) {
    auto socket = connected(options.buffer_bytes, Use::kReceive);
    if (!socket) return std::move(socket.error());
    joined_.push_back({group, std::move(*socket), GroupStream(group)});
    if (Status status = join(joined_.back()); !status.ok()) return status;
  }
  start_numbers();
  return {};
}

void Subscriber::Impl::gone() {
  family_ = -1;
  for (Joined& joined : joined_) {
    if (!joined.member) continue;
    joined.member = false;
    joined.stream.membership(false, fresh_);
  }
}

Status Subscriber::Impl::rejoin() {
  Status status = resolve();
  for (Joined& joined : joined_) {
    if (!status.ok()) break;
    const bool was_member = joined.member;
    status = join(joined);
    if (status.ok() && !was_member) joined.stream.membership(true, fresh_);
  }
  // It went again while we looked: nlctrl tells when it is back.
  if (!status.ok() && status.error().code() == Code::kNotFound) {
    gone();
    return {};
  }
  if (!status.ok()) return status;
  // Has opens and closes looked at; the numbers themselves began with 1.
  auto control = Control::open();
  if (control) (void)control->state().ok();
  return {};
}

// One socket's datagrams, as many as are there, within reason.
Status Subscriber::Impl::take(Joined& joined) {
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    sockaddr_nl from{};
    iovec piece{buffer_.data(), buffer_.size()};
    msghdr head{};
    head.msg_name = &from;
    head.msg_namelen = sizeof from;
    head.msg_iov = &piece;
    head.msg_iovlen = 1;
    const ssize_t got = recvmsg(nl_socket_get_fd(joined.socket.get()), &head, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (got < 0 && errno == ENOBUFS) {
      joined.stream.overrun(fresh_);
      continue;
    }
    if (got < 0) return Error::from_errno("generic netlink: reading group " + std::string(group_name(joined.group)));
    if (from.nl_pid != 0) continue;  // not the kernel's
    joined.heard_ns = base::monotonic_ns();
    if ((head.msg_flags & MSG_TRUNC) != 0)
      joined.stream.damaged(fresh_);
    else
      joined.stream.datagram(std::span(buffer_).first(static_cast<std::size_t>(got)), family_, fresh_);
  }
  return {};
}

namespace {

// What nlctrl says of our family: its command, or 0.
int about_family(std::span<std::byte> bytes) {
  auto* header = reinterpret_cast<nlmsghdr*>(bytes.data());
  if (nlmsg_ok(header, static_cast<int>(bytes.size())) == 0 || header->nlmsg_type != GENL_ID_CTRL ||
      genlmsg_valid_hdr(header, 0) == 0)
    return 0;
  auto* genl = static_cast<genlmsghdr*>(nlmsg_data(header));
  nlattr* name = nla_find(genlmsg_attrdata(genl, 0), genlmsg_attrlen(genl, 0), CTRL_ATTR_FAMILY_NAME);
  if (name == nullptr) return 0;
  const std::string_view text(
      static_cast<const char*>(nla_data(name)),
      strnlen(static_cast<const char*>(nla_data(name)), static_cast<std::size_t>(std::max(nla_len(name), 0))));
  return text == GPUWATCH_GENL_NAME ? genl->cmd : 0;
}

}  // namespace

Status Subscriber::Impl::take_control() {
  bool back = false;
  for (int i = 0; i < kDatagramsAtOnce; ++i) {
    sockaddr_nl from{};
    socklen_t from_bytes = sizeof from;
    const ssize_t got = recvfrom(nl_socket_get_fd(notify_.get()), buffer_.data(), buffer_.size(), MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&from), &from_bytes);
    if (got < 0 && errno == ENOBUFS) {
      back = true;  // whatever it was
      continue;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got < 0) return Error::from_errno("generic netlink: reading nlctrl");
    if (from.nl_pid != 0) continue;
    const int command = about_family(std::span(buffer_).first(static_cast<std::size_t>(got)));
    if (command == CTRL_CMD_DELFAMILY) {
      // What is still in the sockets came before that.
      for (Joined& joined : joined_)
        if (Status status = take(joined); !status.ok()) return status;
      gone();
      back = false;
    } else if (command == CTRL_CMD_NEWFAMILY) {
      back = true;
    }
  }
  return back ? rejoin() : Status();
}

// Members hear a heartbeat per period. Silence means that the family went, or
// came back under another number, and that nlctrl's word of it was lost.
Status Subscriber::Impl::look_again() {
  const std::uint64_t now = base::monotonic_ns();
  bool silent = false;
  for (Joined& joined : joined_) {
    const std::uint64_t patience = std::max<std::uint64_t>(kSilenceMinNs, 5'000'000ull * joined.stream.period_ms());
    silent |= joined.member && now - joined.heard_ns > patience;
  }
  return silent ? rejoin() : Status();
}

bool Subscriber::Impl::hand_over(const std::function<bool(const Item&)>& see) {
  for (Item& item : fresh_) waiting_.push_back(std::move(item));
  fresh_.clear();
  while (!waiting_.empty()) {
    const Item item = std::move(waiting_.front());
    waiting_.pop_front();
    if (!see(item)) return false;
  }
  return true;
}

Status Subscriber::Impl::poll(std::chrono::milliseconds timeout, const std::function<bool(const Item&)>& see) {
  if (!waiting_.empty()) {
    (void)hand_over(see);
    return {};
  }
  std::vector<pollfd> waiting;
  for (const Joined& joined : joined_) waiting.push_back({nl_socket_get_fd(joined.socket.get()), POLLIN, 0});
  waiting.push_back({nl_socket_get_fd(notify_.get()), POLLIN, 0});
  const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) return Error::from_errno("generic netlink: waiting");
  for (std::size_t i = 0; ready > 0 && i < joined_.size(); ++i)
    if (waiting[i].revents != 0)
      if (Status status = take(joined_[i]); !status.ok()) return status;
  if (ready > 0 && waiting.back().revents != 0)
    if (Status status = take_control(); !status.ok()) return status;
  if (Status status = look_again(); !status.ok()) return status;
  (void)hand_over(see);
  return {};
}

Subscriber::Totals Subscriber::Impl::totals() const {
  Totals sum;
  for (const Joined& joined : joined_) {
    const Totals& one = joined.stream.totals();
    sum.messages += one.messages;
    sum.lost += one.lost;
    sum.overruns += one.overruns;
    sum.damaged += one.damaged;
    sum.uncounted |= one.uncounted;
  }
  return sum;
}

Subscriber::Subscriber(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Subscriber::~Subscriber() = default;

Result<std::unique_ptr<Subscriber>> Subscriber::open(const SubscriberOptions& options) {
  auto impl = std::make_unique<Impl>();
  if (Status status = impl->open(options); !status.ok()) return std::move(status.error());
  return std::unique_ptr<Subscriber>(new Subscriber(std::move(impl)));
}

Status Subscriber::poll(std::chrono::milliseconds timeout, const std::function<bool(const Item&)>& see) {
  return impl_->poll(timeout, see);
}

Subscriber::Totals Subscriber::totals() const {
  return impl_->totals();
}

}  // namespace gpuwatch::netlink
