// SPDX-License-Identifier: Apache-2.0
// Loads one module and says for each of its functions whether the bytes in the
// code heap are the ones that file and relocations call for: hashed in place on
// the GPU, twice, with a refresh of instruction caches around and between. A
// batch of one, for those who run what they have loaded.
#pragma once

#include "probe/batch.h"

namespace gpuwatch::probe {

class ImageProbe {
 public:
  ImageProbe(Session& session, NonceSource nonces) : batch_(session, std::move(nonces)) {}

  // PTX is compiled by the driver first; what it makes of it is what is expected.
  Failure load(const LoadableImage& image) { return batch_.add(image); }
  // Only the function `kernel`, if not empty. As often as wanted.
  Failure check(const std::string& kernel, ModuleVerdict& out) {
    std::vector<ModuleVerdict> all;
    Failure failure = batch_.check(kernel, all);
    if (!failure && !all.empty()) out = std::move(all.front());
    return failure;
  }
  // Overwrites the code that check() found, so that it can't be taken for code of
  // a later module, and unloads. The module is not to be run any more.
  Failure unload() { return batch_.unload(); }

  // Both after load() has succeeded.
  CuModule module() const { return batch_.module(0).module; }
  const Code& code() const { return batch_.module(0).code; }
  const BatchFigures& figures() const { return batch_.figures(); }

 private:
  Batch batch_;
};

}  // namespace gpuwatch::probe
