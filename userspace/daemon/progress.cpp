// SPDX-License-Identifier: Apache-2.0
#include "daemon/progress.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

namespace gpuwatch::daemon {

using base::Code;
using base::Error;
using base::Result;

namespace {

constexpr std::uint64_t kMagic = 0x315247505257'4747;

}  // namespace

struct Progress::Shared {
  std::uint64_t magic;
  std::uint64_t calls;
  std::uint64_t told[GPUWATCH_LOSS_MAX];
  std::uint64_t next[kCpusMax];  // 0: nothing of that CPU was worked off
};

Progress::Progress(base::Fd fd, Shared* shared) : fd_(std::move(fd)), shared_(shared) {}

Progress::Progress(Progress&& other) noexcept
    : fd_(std::move(other.fd_)),
      shared_(std::exchange(other.shared_, nullptr)),
      resume_at_(std::move(other.resume_at_)),
      seen_(std::move(other.seen_)),
      missed_(other.missed_) {}

Progress::~Progress() {
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

Result<Progress> Progress::create() {
  base::Fd fd(::memfd_create("gpuwatchd-progress", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ::ftruncate(fd.get(), sizeof(Shared)) != 0) return Error::from_errno("memory for the progress");
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return Error::from_errno("mapping the progress");
  auto* shared = static_cast<Shared*>(memory);
  shared->magic = kMagic;
  return Progress(std::move(fd), shared);
}

Result<Progress> Progress::adopt(base::Fd fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Error::from_errno("the earlier progress");
  if (info.st_size != static_cast<off_t>(sizeof(Shared)))
    return Error(Code::kBadInput, "the earlier progress has another size: of another release");
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return Error::from_errno("mapping the earlier progress");
  Progress progress(std::move(fd), static_cast<Shared*>(memory));
  if (progress.shared_->magic != kMagic)
    return Error(Code::kBadInput, "the earlier progress has another form: of another release");
  progress.resume_at_.assign(progress.shared_->next, progress.shared_->next + kCpusMax);
  progress.seen_.assign(kCpusMax, false);
  return progress;
}

bool Progress::wanted(const gpuwatch_rec& head) {
  if (resume_at_.empty() || head.cpu >= kCpusMax) return true;
  const std::uint64_t next = resume_at_[head.cpu];
  if (head.seq < next) return false;
  if (!seen_[head.cpu]) {
    seen_[head.cpu] = true;
    missed_ += head.seq - next;
  }
  return true;
}

void Progress::done(const gpuwatch_rec& head) {
  if (head.cpu < kCpusMax) __atomic_store_n(&shared_->next[head.cpu], head.seq + 1, __ATOMIC_RELAXED);
  if (head.type >= GPUWATCH_REC_OPEN && head.type <= GPUWATCH_REC_RELEASE)
    __atomic_store_n(&shared_->calls, shared_->calls + 1, __ATOMIC_RELAXED);
}

std::uint64_t Progress::calls() const {
  return __atomic_load_n(&shared_->calls, __ATOMIC_RELAXED);
}

model::LossCounts Progress::told() const {
  model::LossCounts told;
  for (std::size_t i = 0; i < told.by_reason.size(); ++i) told.by_reason[i] = shared_->told[i];
  return told;
}

void Progress::set_told(const model::LossCounts& told) {
  for (std::size_t i = 0; i < told.by_reason.size(); ++i) shared_->told[i] = told.by_reason[i];
}

}  // namespace gpuwatch::daemon
