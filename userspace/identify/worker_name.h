// SPDX-License-Identifier: Apache-2.0
// What a worker and its parent agree on before they talk.
#pragma once

namespace gpuwatch::identify {

inline constexpr char kWorkerName[] = "gpuwatch-hash-worker";
inline constexpr int kWorkerFd = 3;
inline constexpr int kWorkerNoMemory = 70;
inline constexpr int kWorkerNoSandbox = 71;

}  // namespace gpuwatch::identify
