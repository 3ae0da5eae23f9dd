// SPDX-License-Identifier: Apache-2.0
// What parent and worker say to each other over a stream socket: frames of a
// 32-bit length and a body. A request's body starts with its operation, a
// reply's with its state. Descriptors travel with a request's first byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwatch::identify {

enum class Operation : std::uint8_t {
  kScan = 1,         // file, its size -> Scan
  kStored = 2,       // file, its size, images -> digests
  kModules = 3,      // file, its size, images -> modules
  kArchiveOpen = 4,  // file, its size -> nothing
  kArchiveNext = 5,  // spool to write to -> member, or none
  kDemangle = 6,     // names -> names, empty where there is none
};

enum class ReplyState : std::uint8_t {
  kProgress = 0,  // bytes done; more replies follow
  kResult = 1,
  kError = 2,  // text
};

inline constexpr std::size_t kRequestMax = 64 << 20;
inline constexpr std::size_t kReplyMax = 256 << 20;

}  // namespace gpuwatch::identify
