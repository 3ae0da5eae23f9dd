// SPDX-License-Identifier: Apache-2.0
#include "daemon/reader.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace gpuwatch::daemon {

using base::Status;

namespace {

constexpr std::chrono::milliseconds kPause{100};
// Held records make the ring look worth reading all the time: while the worker
// is at them, the look is repeated so often.
constexpr std::chrono::milliseconds kHeldPause{2};
constexpr int kNice = -10;

}  // namespace

void Reader::start() {
  thread_ = std::thread([this] { run(); });
}

void Reader::join() {
  if (thread_.joinable()) thread_.join();
}

std::string Reader::trouble() const {
  const std::lock_guard hold(lock_);
  return trouble_;
}

Status Reader::step(std::vector<model::RawRecord>& batch) {
  if (stop_)
    if (Status status = source_.stop(); !status.ok()) return status;
  if (Status status = source_.next_batch(batch); !status.ok()) return status;
  if (batch.empty()) {
    if (source_.ended()) {
      ended_ = true;
      return {};
    }
    if (rings_ == nullptr) return source_.wait(kPause);
    if (intake_.idle()) {
      rings_->release_read();
      return source_.wait(kPause);
    }
    std::this_thread::sleep_for(kHeldPause);
    if (rings_->pressed()) rings_->release_read();
    return {};
  }
  if (progress_ != nullptr) {
    batch.erase(std::remove_if(batch.begin(), batch.end(),
                               [this](const model::RawRecord& record) { return !progress_->wanted(record.head); }),
                batch.end());
    missed_ = progress_->missed();
  }
  records_ += batch.size();
  intake_.push(batch);
  if (rings_ == nullptr)
    while (!stop_ && !intake_.wait_for_room()) {
    }
  else if (rings_->pressed() || intake_.idle())
    rings_->release_read();
  return {};
}

void Reader::run() {
  // Whoever floods the ring may have all processors busy. Refused where the
  // limit (LimitNICE= of the unit) does not allow it; it works without, too.
  if (rings_ != nullptr) (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  std::vector<model::RawRecord> batch;
  while (!ended_) {
    if (Status status = step(batch); !status.ok()) {
      if (status.error().sys_errno() == EINTR) continue;
      const std::lock_guard hold(lock_);
      trouble_ = status.error().message();
      ended_ = true;
    }
  }
  intake_.close();
}

}  // namespace gpuwatch::daemon
