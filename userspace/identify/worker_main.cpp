// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "base/io.h"
#include "identify/archive.h"
#include "identify/hash_images.h"
#include "identify/sandbox.h"
#include "identify/scan.h"
#include "identify/wire.h"
#include "identify/worker.h"
#include "identify/worker_name.h"

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kFdsMax = 4;
constexpr std::size_t kMangledMax = 4096;
constexpr std::size_t kDemangledMax = 64 << 10;
// Two images of the largest size allowed, as stored and inflated, and a margin.
constexpr unsigned long kAddressSpace = 3ul << 30;

struct Request {
  std::string body;
  base::Fd fds[kFdsMax];
};

// False: the parent is gone.
bool receive(Request& request) {
  std::string bytes;
  std::size_t want = 4;
  std::size_t fds = 0;
  bool have_size = false;
  while (bytes.size() < want) {
    char piece[64 << 10];
    iovec part{piece, std::min(sizeof piece, want - bytes.size())};
    alignas(cmsghdr) char control[CMSG_SPACE(kFdsMax * sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(kWorkerFd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t i = 0; i < (head->cmsg_len - CMSG_LEN(0)) / sizeof(int) && fds < kFdsMax; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof fd);
        request.fds[fds++] = base::Fd(fd);
      }
    }
    bytes.append(piece, static_cast<std::size_t>(got));
    if (!have_size && bytes.size() == 4) {
      std::uint32_t size = 0;
      std::memcpy(&size, bytes.data(), sizeof size);
      if (size > kRequestMax) return false;
      want = 4 + size;
      have_size = true;
    }
  }
  request.body = bytes.substr(4);
  return true;
}

bool reply(ReplyState state, std::string_view body) {
  char head[5];
  const auto size = static_cast<std::uint32_t>(body.size() + 1);
  std::memcpy(head, &size, sizeof size);
  head[4] = static_cast<char>(state);
  return base::write_all(kWorkerFd, std::string_view(head, sizeof head)).ok() && base::write_all(kWorkerFd, body).ok();
}

std::string demangled(const std::string& name) {
  // A C++ name begins so; anything else the library would take for a type.
  if (name.size() > kMangledMax || !name.starts_with("_Z")) return {};
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         std::free);
  if (status != 0 || !text || std::strlen(text.get()) > kDemangledMax) return {};
  return text.get();
}

class Server {
 public:
  explicit Server(const WorkerHooks& hooks) : hooks_(hooks), hasher_(limits_) {}

  int run() {
    for (;;) {
      Request request;
      if (!receive(request)) return 0;
      const auto body = as_bytes(request.body);
      if (body.empty()) return 1;
      if (hooks_.before) hooks_.before(static_cast<Operation>(body[0]), body.subspan(1));
      WireReader in(body.subspan(1));
      WireWriter out;
      const base::Status status = serve(static_cast<Operation>(body[0]), in, request, out);
      if (!(status.ok() ? reply(ReplyState::kResult, out.str()) : reply(ReplyState::kError, status.error().message())))
        return 0;
    }
  }

 private:
  base::Status serve(Operation operation, WireReader& in, Request& request, WireWriter& out) {
    switch (operation) {
      case Operation::kScan: {
        const FileSource source(request.fds[0].get(), in.number());
        std::uint64_t told = 0;
        write(out, scan(source, limits_, [&](std::uint64_t at) {
                constexpr std::uint64_t kStep = 32 << 20;
                if (at - told < kStep) return;
                told = at;
                WireWriter progress;
                progress.number(at);
                (void)reply(ReplyState::kProgress, progress.str());
              }));
        return {};
      }
      case Operation::kStored:
      case Operation::kModules: {
        const FileSource source(request.fds[0].get(), in.number());
        std::vector<Image> images(in.count(18));
        for (Image& image : images) read(in, image);
        if (!in.done()) return base::Error(base::Code::kBadInput, "bad request");
        if (operation == Operation::kStored) {
          for (const Digest& digest : hasher_.stored(source, images)) out.digest(digest);
          return {};
        }
        for (const Module& module : hasher_.modules(source, images)) write(out, module);
        if (out.str().size() > kReplyMax - 16) return base::Error(base::Code::kLimit, "result too large");
        return {};
      }
      case Operation::kArchiveOpen: {
        archive_fd_ = std::move(request.fds[0]);
        auto opened = ArchiveReader::open(archive_fd_.get(), in.number(), limits_);
        if (!opened) return std::move(opened.error());
        archive_.emplace(std::move(*opened));
        return {};
      }
      case Operation::kArchiveNext: {
        if (!archive_) return base::Error(base::Code::kBadInput, "no archive is open");
        auto member = archive_->next(request.fds[0].get());
        if (!member) return std::move(member.error());
        out.byte(member->last ? 1 : 0);
        out.number(member->size);
        out.text(member->name);
        out.text(member->error);
        return {};
      }
      case Operation::kDemangle:
        for (const std::string& name : in.texts(1 << 20)) out.text(demangled(name));
        return {};
    }
    return base::Error(base::Code::kUnsupported, "unknown operation");
  }

  const WorkerHooks& hooks_;
  Limits limits_;
  ImageHasher hasher_;
  base::Fd archive_fd_;
  std::optional<ArchiveReader> archive_;
};

bool asked = false;

}  // namespace

bool is_worker_asked() {
  return asked;
}

bool is_worker(int argc, char** argv) {
  asked = true;
  return argc == 1 && std::strcmp(argv[0], kWorkerName) == 0;
}

int worker_main(const WorkerHooks& hooks) {
  // What loads lazily must load before files can no longer be opened.
  (void)sha256({});
  if (const base::Status status = enter_sandbox(kAddressSanitizer ? 0 : kAddressSpace); !status.ok()) {
    std::fprintf(stderr, "gpuwatch: hash worker: sandbox: %s\n", status.error().message().c_str());
    ::_exit(kWorkerNoSandbox);
  }
  try {
    Server server(hooks);
    ::_exit(server.run());
  } catch (const std::bad_alloc&) {
    ::_exit(kWorkerNoMemory);
  } catch (const std::exception&) {
    ::_exit(1);
  }
}

}  // namespace gpuwatch::identify
