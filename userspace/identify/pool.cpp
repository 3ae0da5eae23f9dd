// SPDX-License-Identifier: Apache-2.0
#include "identify/pool.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "identify/wire.h"

namespace gpuwatch::identify {

namespace {

constexpr int kTickMs = 100;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void Pool::begin(Slot& slot) {
  slot.job = std::move(queue_.front());
  queue_.pop_front();
  if (!slot.process.running()) {
    auto started = WorkerProcess::start();
    if (!started) {
      slot.job.failed(started.error().message());
      return;
    }
    slot.process = std::move(*started);
  }
  slot.busy = true;
  in_use_ += slot.job.cost;
  slot.deadline_ms = now_ms() + timeout_ms_;
  const int fd = slot.job.fd;
  if (!slot.process.send(slot.job.request, &fd, fd >= 0 ? 1 : 0)) fail(slot, false);
}

void Pool::fail(Slot& slot, bool timed_out) {
  const std::string reason = slot.process.end(timed_out);
  ++restarts_;
  slot.busy = false;
  in_use_ -= slot.job.cost;
  const Job job = std::move(slot.job);
  job.failed(reason);
}

void Pool::take(Slot& slot) {
  std::string body;
  for (;;) {
    switch (slot.process.receive(body)) {
      case WorkerProcess::Got::kNothing:
        return;
      case WorkerProcess::Got::kGone:
        fail(slot, false);
        return;
      case WorkerProcess::Got::kReply:
        break;
    }
    const Bytes bytes = as_bytes(body);
    const auto state = bytes.empty() ? ReplyState::kError : static_cast<ReplyState>(bytes[0]);
    if (state == ReplyState::kProgress) {
      WireReader in(bytes.subspan(1));
      slot.deadline_ms = now_ms() + timeout_ms_;
      if (slot.job.progress) slot.job.progress(in.number());
      continue;
    }
    slot.busy = false;
    in_use_ -= slot.job.cost;
    const Job job = std::move(slot.job);
    if (state == ReplyState::kResult)
      job.done(bytes.subspan(1));
    else
      job.failed(bytes.empty() ? "worker sent nothing" : std::string(as_text(bytes.subspan(1))));
    return;
  }
}

void Pool::run(const std::function<bool()>& tick) {
  for (;;) {
    if (tick && !tick()) queue_.clear();
    for (Slot& slot : workers_) {
      if (slot.busy || queue_.empty()) continue;
      const std::uint64_t cost = queue_.front().cost;
      if (in_use_ != 0 && (cost > memory_ || in_use_ > memory_ - cost)) break;
      begin(slot);
    }
    std::vector<pollfd> waits;
    std::vector<Slot*> slots;
    std::int64_t next = now_ms() + kTickMs;
    for (Slot& slot : workers_) {
      if (!slot.busy) continue;
      waits.push_back({slot.process.fd(), POLLIN, 0});
      slots.push_back(&slot);
      next = std::min(next, slot.deadline_ms);
    }
    if (waits.empty()) {
      if (queue_.empty()) return;
      continue;
    }
    const int ready =
        ::poll(waits.data(), waits.size(), static_cast<int>(std::clamp<std::int64_t>(next - now_ms(), 0, kTickMs)));
    if (ready < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (ready > 0 && waits[i].revents != 0)
        take(*slots[i]);
      else if (slots[i]->busy && now_ms() >= slots[i]->deadline_ms)
        fail(*slots[i], true);
    }
  }
}

}  // namespace gpuwatch::identify
