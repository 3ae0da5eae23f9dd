// SPDX-License-Identifier: Apache-2.0
// The attribute lists of .nv.info sections: type, length, value. Values are not
// interpreted here.
#pragma once

#include <vector>

#include "identify/bytes.h"

namespace gpuwatch::identify {

struct Attribute {
  std::uint8_t format = 0;
  std::uint8_t id = 0;
  Bytes value;  // two bytes for the short formats
};

namespace attr {
inline constexpr std::uint8_t kParamCbank = 0x0a;
inline constexpr std::uint8_t kExterns = 0x0f;
inline constexpr std::uint8_t kFrameSize = 0x11;
inline constexpr std::uint8_t kMinStackSize = 0x12;
inline constexpr std::uint8_t kMaxStackSize = 0x23;
inline constexpr std::uint8_t kRegisterCount = 0x2f;
inline constexpr std::uint8_t kCudaApiVersion = 0x37;
inline constexpr std::uint8_t kBarriers = 0x4c;
inline constexpr std::uint8_t kMercOptions = 0x5a;
}  // namespace attr

// False when the list ends inside an attribute or has an unknown format; what
// came before is in `out`.
bool read_attributes(Bytes section, std::vector<Attribute>& out);

}  // namespace gpuwatch::identify
