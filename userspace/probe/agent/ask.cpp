// SPDX-License-Identifier: Apache-2.0
#include "probe/agent/ask.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "base/escape.h"
#include "base/io.h"
#include "base/scope_exit.h"
#include "probe/agent/names.h"

namespace gpuwatch::probe::agent {

namespace {

using Clock = std::chrono::steady_clock;

std::string of_process(int pid, const char* what) {
  return "/proc/" + std::to_string(pid) + what;
}

Failure not_allowed(int pid) {
  return {Outcome::kDenied, "process " + std::to_string(pid) +
                                ": permission denied; root and the user that it runs as may ask its agent"};
}

Failure gone(int pid) {
  return {Outcome::kNoProcess, "there is no process " + std::to_string(pid)};
}

// Ended, and perhaps not yet waited for: then /proc has it without files and networks.
bool ended(int pid) {
  const base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd entry{process.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

// In the process's own file system: no link in there leads out of it.
int open_in_root(int root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT;
  return static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
}

bool same_link(const std::string& a, const std::string& b) {
  char one[128];
  char other[128];
  const ssize_t first = ::readlink(a.c_str(), one, sizeof one);
  const ssize_t second = ::readlink(b.c_str(), other, sizeof other);
  return first > 0 && first == second && std::equal(one, one + first, other);
}

// Waits until `fd` is ready or the process has ended; false: time is over.
bool wait_for(int fd, short events, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  if (left <= 0) return false;
  pollfd entry{fd, events, 0};
  (void)::poll(&entry, 1, static_cast<int>(left));
  return true;
}

}  // namespace

std::string socket_of(std::string_view table, const std::vector<std::uint64_t>& inodes) {
  while (!table.empty()) {
    std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(table.size(), line.size() + 1));
    // Num RefCount Protocol Flags Type St Inode Path
    std::uint64_t inode = 0;
    for (int field = 0; field < 7; ++field) {
      const std::size_t begin = line.find_first_not_of(' ');
      line.remove_prefix(begin == std::string_view::npos ? line.size() : begin);
      const std::string_view word = line.substr(0, line.find(' '));
      if (field == 6) std::from_chars(word.data(), word.data() + word.size(), inode);
      line.remove_prefix(word.size());
    }
    if (!line.empty()) line.remove_prefix(1);
    if (line.empty() || line.front() != '/') continue;
    if (!line.substr(line.rfind('/') + 1).starts_with(kSocketPrefix)) continue;
    if (std::find(inodes.begin(), inodes.end(), inode) != inodes.end()) return std::string(line);
  }
  return {};
}

Failure find_agent(int pid, std::string& path) {
  const std::string folder = of_process(pid, "/fd");
  DIR* const raw = ::opendir(folder.c_str());
  if (raw == nullptr) return errno == ENOENT || ended(pid) ? gone(pid) : not_allowed(pid);
  const base::ScopeExit close([&] { ::closedir(raw); });
  std::vector<std::uint64_t> inodes;
  while (const dirent* entry = ::readdir(raw)) {
    char target[64];
    const ssize_t length = ::readlinkat(::dirfd(raw), entry->d_name, target, sizeof target);
    const std::string_view text(target, length > 0 ? static_cast<std::size_t>(length) : 0);
    constexpr std::string_view kSocket = "socket:[";
    if (!text.starts_with(kSocket)) continue;
    std::uint64_t inode = 0;
    std::from_chars(text.data() + kSocket.size(), text.data() + text.size(), inode);
    inodes.push_back(inode);
  }
  auto table = base::read_text_file(of_process(pid, "/net/unix"), 64u << 20);
  if (!table.ok()) return ended(pid) ? gone(pid) : Failure{Outcome::kTrouble, table.error().message()};
  path = socket_of(*table, inodes);
  if (path.empty() && ended(pid)) return gone(pid);
  if (path.empty())
    return {Outcome::kNoAgent,
            "process " + std::to_string(pid) +
                " has no agent: start it with CUDA_INJECTION64_PATH=libgpuwatch-agent.so, by its full path; it comes "
                "to life when the process sets up CUDA. Without one it is read from outside, with --records FILE of "
                "its driver "
                "calls since its start, as gpuwatch record writes them"};
  return {};
}

Failure connect_agent(int pid, base::Fd& fd, bool& full) {
  std::string path;
  if (Failure failure = find_agent(pid, path)) return failure;
  const base::Fd root(::open(of_process(pid, "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return errno == ENOENT ? gone(pid) : not_allowed(pid);
  const base::Fd place(open_in_root(root.get(), path));
  const std::string shown = base::escaped(path);
  if (!place.valid())
    return {Outcome::kNoAgent, "the agent's socket " + shown + " cannot be reached: " + std::strerror(errno)};
  fd = base::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return {Outcome::kTrouble, "a socket: " + std::string(std::strerror(errno))};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d", place.get());
  // In a user namespace of its own the process does not know our root: it is
  // asked as the user that it runs as.
  const uid_t self = ::geteuid();
  struct stat owner {};
  if (::stat(of_process(pid, "").c_str(), &owner) != 0) return gone(pid);
  const bool other_users = !same_link("/proc/self/ns/user", of_process(pid, "/ns/user"));
  if (self == 0 && other_users && ::seteuid(owner.st_uid) != 0) return not_allowed(pid);
  const int result = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  if (self == 0 && other_users && ::seteuid(self) != 0) return {Outcome::kTrouble, "root again"};
  if (result != 0) {
    if (error == EACCES || error == EPERM) return not_allowed(pid);
    full = error == EAGAIN;
    if (full) return {Outcome::kNoAnswer, "many ask the agent of this process at once; try again"};
    return {Outcome::kNoAgent, "the agent's socket " + shown + ": " + std::strerror(error)};
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != pid)
    return {Outcome::kNoAgent, "the socket " + shown + " is not listened on by process " + std::to_string(pid)};
  return {};
}

Failure Connection::connect() {
  process_ = base::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!process_.valid() && errno == ESRCH) return gone(pid_);
  return connect_ ? connect_(fd_, full_) : connect_agent(pid_, fd_, full_);
}

Failure Connection::broken(const std::string& what) {
  // The end of its descriptors comes a moment before the end of a process.
  pollfd entry{process_.get(), POLLIN, 0};
  if (process_.valid() && ::poll(&entry, 1, 10000) > 0)
    return {Outcome::kNoProcess, "process " + std::to_string(pid_) + " ended while it was asked"};
  return {Outcome::kNoAnswer, what};
}

Failure Connection::transfer(const Frame& request, Head& head, std::vector<std::uint8_t>& payload) {
  const Clock::time_point deadline = Clock::now() + times_.answer;
  const Failure late{Outcome::kNoAnswer, "the agent of process " + std::to_string(pid_) +
                                             " does not answer: it waits " +
                                             "for the driver or for the GPU, or the process is stopped"};
  for (std::size_t sent = 0; sent < request.size();) {
    const ssize_t put = ::send(fd_.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (put > 0) {
      sent += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!wait_for(fd_.get(), POLLOUT, deadline)) return late;
    } else {
      break;  // it closed; what it said before that is still there
    }
  }
  const auto take = [&](std::span<std::uint8_t> out) -> Failure {
    for (std::size_t have = 0; have < out.size();) {
      const ssize_t got = ::recv(fd_.get(), out.data() + have, out.size() - have, 0);
      if (got > 0) {
        have += static_cast<std::size_t>(got);
      } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        if (!wait_for(fd_.get(), POLLIN, deadline)) return late;
      } else {
        return broken("the agent ended the connection without an answer");
      }
    }
    return {};
  };
  std::uint8_t raw[kHeadBytes];
  if (Failure failure = take(raw)) return failure;
  const auto parsed = parse_head(raw, kAnswerMax);
  if (!parsed) return {Outcome::kNoAnswer, "what answers there is no agent of gpuwatch"};
  head = *parsed;
  payload.resize(head.bytes);
  return take(payload);
}

Failure Connection::ask(const Frame& request, Type want, std::vector<std::uint8_t>& payload, Refusal& refusal) {
  refusal = {};
  Head head;
  if (Failure failure = transfer(request, head, payload)) return failure;
  const auto refused =
      static_cast<Type>(head.type) == Type::kRefused ? parse_refusal(payload) : std::optional<Refusal>();
  if (head.version != kVersion)
    return {Outcome::kNoAnswer, "the agent speaks version " + std::to_string(head.version) + ", this program " +
                                    std::to_string(kVersion) + ": use the agent and gpuwatch of one release"};
  if (static_cast<Type>(head.type) == want) return {};
  if (!refused) return {Outcome::kNoAnswer, "the agent's answer has no form that this program knows"};
  const std::string text = base::escaped(refused->text);
  switch (refused->reason) {
    case Reason::kDenied:
      return not_allowed(pid_);
    case Reason::kVersion:
      return {Outcome::kNoAnswer,
              text + ", this program " + std::to_string(kVersion) + ": use the agent and gpuwatch of one release"};
    case Reason::kMalformed:
      return {Outcome::kNoAnswer, "the agent: " + text};
    case Reason::kNoDriver:
      return {Outcome::kNoGpu, text};
    default:
      refusal = {refused->reason, text};
      return {};
  }
}

Failure Connection::open(Facts& facts) {
  const Clock::time_point deadline = Clock::now() + times_.busy;
  for (;;) {
    full_ = false;
    Refusal refusal;
    std::vector<std::uint8_t> payload;
    if (Failure failure = connect()) {
      if (!full_) return failure;
      refusal = {Reason::kBusy, failure.text};
    } else if (failure = ask(ask_facts(), Type::kFacts, payload, refusal); failure) {
      return failure;
    }
    if (refusal.text.empty()) {
      auto parsed = parse_facts(payload);
      if (!parsed) return {Outcome::kNoAnswer, "the agent's answer has no form that this program knows"};
      facts = std::move(*parsed);
      return {};
    }
    if (refusal.reason != Reason::kBusy || Clock::now() >= deadline) return {Outcome::kNoAnswer, refusal.text};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

Failure Connection::read(std::uint32_t device, const Span& span, std::vector<std::uint8_t>& out, Refusal& refusal) {
  if (Failure failure = ask(make(AskRead{device, span}), Type::kData, out, refusal)) return failure;
  if (refusal.text.empty() && out.size() != span.bytes)
    return {Outcome::kNoAnswer, "the agent gave another number of bytes than were asked for"};
  return {};
}

Failure Connection::survey(const AskSurvey& ask_for, std::vector<SpanCount>& counts, Refusal& refusal) {
  std::vector<std::uint8_t> payload;
  if (Failure failure = ask(make(ask_for), Type::kSurvey, payload, refusal)) return failure;
  if (!refusal.text.empty()) return {};
  auto parsed = parse_survey(payload);
  if (!parsed || parsed->size() != ask_for.spans.size())
    return {Outcome::kNoAnswer, "the agent gave another number of counts than were asked for"};
  counts = std::move(*parsed);
  return {};
}

Failure Connection::hash(const AskHash& ask_for, std::vector<identify::Digest>& roots, Refusal& refusal) {
  std::vector<std::uint8_t> payload;
  if (Failure failure = ask(make(ask_for), Type::kRoots, payload, refusal)) return failure;
  if (!refusal.text.empty()) return {};
  auto parsed = parse_roots(payload);
  if (!parsed || parsed->size() != ask_for.spans.size())
    return {Outcome::kNoAnswer, "the agent gave another number of digests than were asked for"};
  roots = std::move(*parsed);
  return {};
}

}  // namespace gpuwatch::probe::agent
