// SPDX-License-Identifier: Apache-2.0
// ReplaySource: the records of a .gwcap file or pipe, as fast as they are asked
// for and there. Damage is an error after all that precedes it was given.
#pragma once

#include <memory>

#include "base/fd.h"
#include "source/gwcap.h"
#include "source/source.h"

namespace gpuwatch::source {

class ReplaySource final : public Source {
 public:
  static base::Result<std::unique_ptr<ReplaySource>> open(const std::string& path);
  explicit ReplaySource(GwcapReader reader) : reader_(std::move(reader)) {}

  base::Status next_batch(std::vector<model::RawRecord>& batch) override;
  bool ended() const override { return ended_; }
  base::Status wait(std::chrono::milliseconds) override { return {}; }
  base::Status stop() override;
  model::LossCounts lost() override;
  const GwcapHeader& header() const override { return reader_.header(); }
  // See GwcapReader.
  void keep_images() { reader_.keep_images(); }
  base::Result<ImageBytes> take_image(const gpuwatch_rec_image& image) override;
  const std::optional<GwcapFooter>& footer() const { return reader_.footer(); }

  // From now on interrupt() ends it, from any thread, also while it waits for
  // more of a pipe.
  base::Status make_interruptible();
  void interrupt();

 private:
  base::Fd end_;  // before the reader, which looks at it
  GwcapReader reader_;
  bool ended_ = false;
};

}  // namespace gpuwatch::source
