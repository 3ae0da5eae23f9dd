// SPDX-License-Identifier: Apache-2.0
#include "identify/nvinfo.h"

namespace gpuwatch::identify {

bool read_attributes(Bytes section, std::vector<Attribute>& out) {
  std::size_t at = 0;
  while (at < section.size()) {
    if (section.size() - at < 4) return false;
    Attribute attribute;
    attribute.format = section[at];
    attribute.id = section[at + 1];
    if (attribute.format == 4) {
      const auto length = load<std::uint16_t>(section, at + 2);
      if (!fits(at + 4, length, section.size())) return false;
      attribute.value = section.subspan(at + 4, length);
      at += 4 + length;
    } else if (attribute.format >= 1 && attribute.format <= 3) {
      attribute.value = section.subspan(at + 2, 2);
      at += 4;
    } else {
      return false;
    }
    out.push_back(attribute);
  }
  return true;
}

}  // namespace gpuwatch::identify
