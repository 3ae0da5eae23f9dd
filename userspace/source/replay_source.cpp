// SPDX-License-Identifier: Apache-2.0
#include "source/replay_source.h"

namespace gpuwatch::source {

base::Result<std::unique_ptr<ReplaySource>> ReplaySource::open(const std::string& path) {
  auto reader = GwcapReader::open(path);
  if (!reader) return std::move(reader.error());
  return std::make_unique<ReplaySource>(std::move(*reader));
}

base::Status ReplaySource::next_batch(std::vector<model::RawRecord>& batch) {
  batch.clear();
  if (ended_) return {};
  base::Status status = reader_.next_batch(batch);
  if (!status.ok() || batch.empty()) ended_ = true;
  return status;
}

base::Status ReplaySource::stop() {
  ended_ = true;
  return {};
}

base::Result<ImageBytes> ReplaySource::take_image(const gpuwatch_rec_image& image) {
  auto bytes = reader_.take_image(image.id);
  if (!bytes) return std::move(bytes.error());
  return ImageBytes(std::move(*bytes));
}

model::LossCounts ReplaySource::lost() {
  return reader_.footer() ? reader_.footer()->lost : model::LossCounts{};
}

}  // namespace gpuwatch::source
