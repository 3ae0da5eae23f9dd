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

// The same source for two threads: one reads, the other takes images.
class SharedSource final : public source::Source {
 public:
  explicit SharedSource(source::Source& inner) : inner_(inner) {}

  base::Status next_batch(std::vector<model::RawRecord>& batch) override {
    const std::lock_guard hold(lock_);
    return inner_.next_batch(batch);
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
    const std::lock_guard hold(lock_);
    return inner_.lost();
  }
  base::Result<source::ImageBytes> take_image(const gpuwatch_rec_image& image) override {
    const std::lock_guard hold(lock_);
    return inner_.take_image(image);
  }
  const source::GwcapHeader& header() const override { return inner_.header(); }

 private:
  source::Source& inner_;
  mutable std::mutex lock_;
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
