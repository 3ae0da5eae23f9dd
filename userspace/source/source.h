// SPDX-License-Identifier: Apache-2.0
// Source: where records come from, the kernel module or a file. All that
// follows it works on either. A source gives records as they are; it neither
// decodes nor judges them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/loss.h"
#include "model/raw_record.h"
#include "source/gwcap_format.h"
#include "source/image_bytes.h"

namespace gpuwatch::source {

class Source {
 public:
  virtual ~Source() = default;

  // Replaces `batch` by the next records. Every thread's records come in the
  // order of its calls. Payloads are valid until the call that follows. An
  // empty batch means: nothing more now, wait() or see ended().
  virtual base::Status next_batch(std::vector<model::RawRecord>& batch) = 0;

  // No record will ever follow.
  virtual bool ended() const = 0;

  // Sleeps until a batch is worth reading, the time is over or a signal came.
  virtual base::Status wait(std::chrono::milliseconds timeout) = 0;

  // No new records from now on; those already made can still be read.
  virtual base::Status stop() = 0;

  virtual model::LossCounts lost() = 0;

  // The bytes of the module image that a record of the batch at hand tells of:
  // copied_bytes of them. Once for each record, which must have an id.
  // kNotFound: they are not to be had (any more); the message says why.
  virtual base::Result<ImageBytes> take_image(const gpuwatch_rec_image& image) {
    return base::Error(base::Code::kNotFound, "image " + std::to_string(image.id) + ": this source keeps no images");
  }

  // Under which conditions the records were made.
  virtual const GwcapHeader& header() const = 0;
};

}  // namespace gpuwatch::source
