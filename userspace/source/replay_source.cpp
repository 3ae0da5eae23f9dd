// SPDX-License-Identifier: Apache-2.0
#include "source/replay_source.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

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
  if (!status.ok() && end_.valid() && status.error().sys_errno() == ECANCELED) return {};
  return status;
}

base::Status ReplaySource::make_interruptible() {
  end_ = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!end_.valid()) return base::Error::from_errno("eventfd");
  reader_.end_when(end_.get());
  return {};
}

void ReplaySource::interrupt() {
  const std::uint64_t one = 1;
  if (end_.valid()) (void)!::write(end_.get(), &one, sizeof one);
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
