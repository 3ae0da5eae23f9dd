// SPDX-License-Identifier: Apache-2.0
// The roots of many regions on the CPU, as host_root() gives them, by a SHA-256
// that does many chunks at a time.
#pragma once

#include "probe/plan.h"

namespace gpuwatch::probe {

std::vector<identify::Digest> host_roots(const std::vector<identify::Bytes>& regions, Form form, const Nonce& nonce);

}  // namespace gpuwatch::probe
