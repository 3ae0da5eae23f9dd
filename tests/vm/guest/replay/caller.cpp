// SPDX-License-Identifier: Apache-2.0
// Issues single calls and checks their results. Recorded pointers of nested
// buffers are replaced by live ones; every other byte goes as recorded.
#include "caller.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "../../simdrv/gwsim.h"
#include "base/fd.h"

namespace gpuwatch::replay {

namespace {

constexpr std::size_t kMapMax = std::size_t{64} << 30;  // the simulated pages cost nothing
constexpr std::size_t kRoomMin = 64;
constexpr std::uint64_t kPlainValueMax = 4096;  // an argument below is no address
constexpr std::uint64_t kReportsMax = 10;

struct Xfer {
  std::uint32_t cmd;
  std::uint32_t size;
  std::uint64_t ptr;
};

// A copy of another process's descriptor, as SCM_RIGHTS would give it.
int copy_of(pid_t pid, int fd) {
  const base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return -1;
  return static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), fd, 0));
}

}  // namespace

int Descriptors::get(std::size_t file) {
  {
    const std::lock_guard lock(lock_);
    const auto known = held_.find(file);
    if (known != held_.end()) return known->second.fd;
  }
  const Shared::Holder holder = shared_.wait_open(file);
  if (holder.fd < 0) return -1;
  const std::lock_guard lock(lock_);
  const auto known = held_.find(file);  // a thread beside this one may have been faster
  if (known != held_.end()) return known->second.fd;
  if (holder.pid == ::getpid()) return -1;  // used after its release: no recorder writes that
  const int fd = copy_of(holder.pid, holder.fd);
  if (fd >= 0) held_[file].fd = fd;
  return fd;
}

void Descriptors::opened(std::size_t file, int fd) {
  if (fd >= 0) {
    const std::lock_guard lock(lock_);
    held_[file].fd = fd;
  }
  shared_.opened(file, fd);
}

void Descriptors::mapped(std::size_t file, void* address, std::size_t length) {
  const std::lock_guard lock(lock_);
  held_[file].mappings.emplace_back(address, length);
}

void Descriptors::drop(std::size_t file, Held& held) {
  for (const auto& [address, length] : held.mappings) ::munmap(address, length);
  if (held.fd >= 0) ::close(held.fd);
  // Copies in other processes are references to the same file, not releases.
  if (recording_.files[file].open_process == process_) shared_.counts().releases.fetch_add(1);
}

void Descriptors::release(std::size_t file) {
  if (get(file) < 0) return;
  shared_.wait_uses(file, recording_.files[file].uses);
  const std::lock_guard lock(lock_);
  const auto held = held_.find(file);
  if (held == held_.end()) return;
  drop(file, held->second);
  held_.erase(held);
}

void Descriptors::release_all() {
  const std::lock_guard lock(lock_);
  for (auto& [file, held] : held_) {
    shared_.wait_uses(file, recording_.files[file].uses);
    drop(file, held);
  }
  held_.clear();
}

void Caller::mismatch(const Step& step, const char* what, long got, long expected) {
  if (shared_.counts().mismatches.fetch_add(1) >= kReportsMax) return;
  std::fprintf(stderr, "gw-replay: %s: %s is %ld (0x%lx), recorded was %ld (0x%lx); call 0x%08x\n",
               node_path(step.kind, step.rdev)->c_str(), what, got, static_cast<unsigned long>(got), expected,
               static_cast<unsigned long>(expected), step.cmd);
}

void Caller::make(const Step& step) {
  switch (step.op) {
    case Op::kOpen:
      return open(step);
    case Op::kIoctl:
      return ioctl(step);
    case Op::kMmap:
      return mmap(step);
    case Op::kRelease:
      return descriptors_.release(step.file);
  }
}

void Caller::open(const Step& step) {
  const std::string path = *node_path(step.kind, step.rdev);
  const int flags = static_cast<int>(step.f_flags & (O_ACCMODE | O_NONBLOCK)) | O_CLOEXEC;
  const int fd = ::open(path.c_str(), flags);
  const long ret = fd < 0 ? -errno : 0;
  if (ret == -ENOENT || ret == -ENXIO) {
    std::fprintf(stderr, "gw-replay: %s: %s: make the node (mknodes)\n", path.c_str(),
                 std::strerror(static_cast<int>(-ret)));
    shared_.counts().errors.fetch_add(1);
  } else {
    shared_.counts().opens.fetch_add(1);
  }
  if (ret != step.ret) mismatch(step, "result of open", ret, step.ret);
  if (step.ret >= 0)
    descriptors_.opened(step.file, fd);
  else if (fd >= 0)
    ::close(fd);
}

// An output byte of a pointer's place is not compared: it is ours.
bool Caller::is_pointer(const Step& step, std::size_t offset) const {
  return std::any_of(step.parts.begin() + 1, step.parts.end(), [offset](const Part& part) {
    return offset >= part.ptr_offset && offset - part.ptr_offset < sizeof(std::uint64_t);
  });
}

void Caller::compare(const Step& step) {
  for (std::size_t p = 0; p < step.parts.size(); ++p) {
    const Part& part = step.parts[p];
    for (std::size_t i = 0; i < part.out.size(); ++i) {
      const std::size_t at = part.out_offset + i;
      if (buffers_[p][at] == part.out[i] || (p == 0 && is_pointer(step, at))) continue;
      mismatch(step, p == 0 ? "a byte of the argument" : "a byte of a nested buffer",
               std::to_integer<long>(buffers_[p][at]), std::to_integer<long>(part.out[i]));
      return;
    }
  }
}

void Caller::ioctl(const Step& step) {
  const int fd = descriptors_.get(step.file);
  if (fd < 0) {
    std::fprintf(stderr, "gw-replay: no descriptor for call 0x%08x: %s\n", step.cmd, std::strerror(errno));
    shared_.counts().errors.fetch_add(1);
    shared_.used(step.file);
    return;
  }
  buffers_.resize(std::max({buffers_.size(), step.parts.size(), std::size_t{1}}));
  buffers_[0].assign(kRoomMin, std::byte{0});
  for (std::size_t p = 0; p < step.parts.size(); ++p) {
    const Part& part = step.parts[p];
    buffers_[p].assign(std::max({std::size_t{part.room}, part.in.size(), part.out_offset + part.out.size(), kRoomMin}),
                       std::byte{0});
    std::copy(part.in.begin(), part.in.end(), buffers_[p].begin());
    if (p == 0) continue;
    const auto live = reinterpret_cast<std::uintptr_t>(buffers_[p].data());
    std::memcpy(buffers_[0].data() + part.ptr_offset, &live, sizeof live);
  }
  Xfer xfer{step.inner_cmd, step.inner_size, reinterpret_cast<std::uintptr_t>(buffers_[0].data())};
  auto arg = step.arg < kPlainValueMax ? static_cast<std::uintptr_t>(step.arg)
                                       : reinterpret_cast<std::uintptr_t>(buffers_[0].data());
  if (step.xfer) arg = reinterpret_cast<std::uintptr_t>(&xfer);

  const std::uint64_t number = shared_.counts().ioctls.fetch_add(1) + 1;
  if (number == spoil_) buffers_[0][0] ^= std::byte{1};
  long ret = ::ioctl(fd, step.cmd, arg);
  if (ret < 0) ret = -errno;
  shared_.used(step.file);
  if (ret != step.ret)
    mismatch(step, "result of ioctl", ret, step.ret);
  else
    compare(step);
}

void Caller::mmap(const Step& step) {
  const int fd = descriptors_.get(step.file);
  const std::size_t length = std::clamp<std::size_t>(step.length, 1, kMapMax);
  void* address = MAP_FAILED;
  long ret = -EBADF;
  if (fd >= 0) {
    address = ::mmap(nullptr, length, static_cast<int>(step.prot & 7),
                     (step.shared ? MAP_SHARED : MAP_PRIVATE) | MAP_NORESERVE, fd, static_cast<off_t>(step.offset));
    ret = address == MAP_FAILED ? -errno : 0;
    shared_.counts().mmaps.fetch_add(1);
  }
  if (address != MAP_FAILED) descriptors_.mapped(step.file, address, length);
  shared_.used(step.file);
  if (ret != step.ret) mismatch(step, "result of mmap", ret, step.ret);
}

}  // namespace gpuwatch::replay
