// SPDX-License-Identifier: Apache-2.0
// All modules of a file through the probe, in batches. It prints nothing.
#pragma once

#include "probe/batch.h"

namespace gpuwatch::probe {

// How much goes into one batch. A batch costs some tenths of a second whatever
// is in it; its text is held on the host about six times (expected bytes, images,
// and the heap before and after), so that 64 MiB stay below half a GiB. The
// largest library seen has 330 MB in 1,597 modules: seven batches either way.
struct BatchLimits {
  std::uint64_t text_bytes = 64ull << 20;  // the module that passes it is the last
  std::size_t modules = 256;
};

class RunSink {
 public:
  virtual ~RunSink() = default;
  virtual void module(const std::string& label, const ModuleVerdict& verdict) = 0;
  // The file's image could not be taken or loaded; the run goes on.
  virtual void not_probed(const std::string& label, const Failure& failure) = 0;
  virtual void batch(const BatchFigures& figures) = 0;
};

// A fault ends it; so does lack of GPU memory for one module alone: with more of
// them it goes on in smaller batches.
Failure run_images(Session& session, const NonceSource& nonces, const ImageList& images, const std::string& kernel,
                   BatchLimits limits, RunSink& sink);

}  // namespace gpuwatch::probe
