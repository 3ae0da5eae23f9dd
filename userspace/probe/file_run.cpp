// SPDX-License-Identifier: Apache-2.0
#include "probe/file_run.h"

#include <algorithm>

namespace gpuwatch::probe {

namespace {

// What is told at once, and of one image only.
bool is_of_one_image(const Failure& failure) {
  return failure.outcome != Outcome::kFault && failure.outcome != Outcome::kOutOfMemory;
}

class Run {
 public:
  Run(Session& session, const NonceSource& nonces, const ImageList& images, const std::string& kernel,
      BatchLimits limits, RunSink& sink)
      : session_(session), nonces_(nonces), images_(images), kernel_(kernel), limits_(limits), sink_(sink) {}

  Failure all() {
    while (next_ < images_.size())
      if (Failure failure = one_batch()) return failure;
    return {};
  }

 private:
  Failure one_batch() {
    Batch batch(session_, nonces_);
    const std::size_t begin = next_;
    if (Failure failure = fill(batch)) return failure;
    const std::size_t batch_size = batch.size();
    if (batch_size == 0) return {};
    std::vector<ModuleVerdict> verdicts;
    if (Failure failure = batch.check(kernel_, verdicts)) {
      if (failure.outcome != Outcome::kOutOfMemory || batch_size == 1) return failure;
      if (failure = batch.unload(); failure) return failure;
      limits_.modules = std::min(limits_.modules, (batch_size + 1) / 2);
      next_ = begin;
      return {};
    }
    for (std::size_t i = 0; i < verdicts.size(); ++i) sink_.module(labels_[i], verdicts[i]);
    Failure failure = batch.unload();
    if (!failure) sink_.batch(batch.figures());
    return failure;
  }

  Failure fill(Batch& batch) {
    labels_.clear();
    while (next_ < images_.size() && batch.size() < limits_.modules && batch.text_bytes() < limits_.text_bytes) {
      const LoadableImage image = images_.take(next_);
      Failure failure = image.error.empty() ? batch.add(image) : Failure{Outcome::kWrongImage, image.error};
      if (!failure) {
        labels_.push_back(image.label);
      } else if (is_of_one_image(failure)) {
        if (next_ >= told_) sink_.not_probed(image.label, failure);
      } else if (failure.outcome == Outcome::kOutOfMemory && batch.size() != 0) {
        // First those that are there; this one again with more room.
        limits_.modules = std::min(limits_.modules, batch.size());
        return {};
      } else {
        return failure;
      }
      told_ = std::max(told_, ++next_);
    }
    return {};
  }

  Session& session_;
  const NonceSource& nonces_;
  const ImageList& images_;
  const std::string& kernel_;
  BatchLimits limits_;
  RunSink& sink_;
  std::size_t next_ = 0;  // image
  std::size_t told_ = 0;  // images before this one were tried once
  std::vector<std::string> labels_;
};

}  // namespace

Failure run_images(Session& session, const NonceSource& nonces, const ImageList& images, const std::string& kernel,
                   BatchLimits limits, RunSink& sink) {
  return Run(session, nonces, images, kernel, limits, sink).all();
}

}  // namespace gpuwatch::probe
