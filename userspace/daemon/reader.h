// SPDX-License-Identifier: Apache-2.0
// Reader: the thread that takes records out of a source and puts them into the
// intake. Of the kernel's rings it gives space back when all is worked off, or
// when room gets short: what a killed daemon had not worked off is then still
// there. It looks into no record.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/intake.h"
#include "daemon/progress.h"
#include "source/kmod_source.h"
#include "source/source.h"

namespace gpuwatch::daemon {

// The same source for several threads: one reads, others take images and ask
// for losses. None of them waits for a reader that waits for a pipe, and the
// reader waits for nobody who copies a large image.
class SharedSource final : public source::Source {
 public:
  // `live`: its next_batch() never waits; it counts losses as it goes.
  SharedSource(source::Source& inner, bool live) : inner_(inner), live_(live) {}

  base::Status next_batch(std::vector<model::RawRecord>& batch) override {
    const std::lock_guard hold(lock_);
    base::Status status = inner_.next_batch(batch);
    if (!live_ && inner_.ended()) {
      const std::lock_guard hold_lost(lost_lock_);
      lost_ = inner_.lost();
    }
    return status;
  }
  bool ended() const override {
    const std::lock_guard hold(lock_);
    return inner_.ended();
  }
  base::Status wait(std::chrono::milliseconds timeout) override { return inner_.wait(timeout); }
  base::Status stop() override {
    const std::lock_guard hold(lock_);
    return inner_.stop();
  }
  model::LossCounts lost() override {
    if (live_) {
      const std::lock_guard hold(lock_);
      return inner_.lost();
    }
    const std::lock_guard hold(lost_lock_);
    return lost_;
  }
  // Sources keep images apart from records: one taker beside the reader is fine.
  base::Result<source::ImageBytes> take_image(const gpuwatch_rec_image& image) override {
    return inner_.take_image(image);
  }
  const source::GwcapHeader& header() const override { return inner_.header(); }

 private:
  source::Source& inner_;
  const bool live_;
  mutable std::mutex lock_;
  std::mutex lost_lock_;
  model::LossCounts lost_;  // of a recording: in its footer
};

class Reader {
 public:
  // `rings`: the same source where it is the kernel's; else nothing, and the
  // source waits for the worker.
  Reader(SharedSource& source, source::KmodSource* rings, Intake& intake, Progress* progress)
      : source_(source), rings_(rings), intake_(intake), progress_(progress) {}
  ~Reader() { join(); }

  void start();
  // No new records; those there are still come.
  void stop() { stop_ = true; }
  void join();

  bool ended() const { return ended_; }
  std::uint64_t records() const { return records_; }
  std::uint64_t missed() const { return missed_; }  // see Progress
  // Why it ended before its time; empty: it did not.
  std::string trouble() const;

 private:
  void run();
  base::Status step(std::vector<model::RawRecord>& batch);

  SharedSource& source_;
  source::KmodSource* rings_;
  Intake& intake_;
  Progress* progress_;
  std::atomic<bool> stop_{false}, ended_{false};
  std::atomic<std::uint64_t> records_{0}, missed_{0};
  mutable std::mutex lock_;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace gpuwatch::daemon
