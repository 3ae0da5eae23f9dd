// SPDX-License-Identifier: Apache-2.0
#include "identify/sections.h"

#include <algorithm>

#include "identify/elf.h"

namespace gpuwatch::identify {

namespace {

constexpr std::size_t kSectionsMax = 4096;  // host files have some forty
constexpr std::size_t kStringsMax = 1 << 20;

struct Place {
  std::uint64_t offset;
  std::uint64_t size;
  std::uint32_t name;
};

}  // namespace

void name_sections(const ByteSource& source, std::vector<Container>& containers) {
  std::uint8_t head[kElfHeader];
  if (containers.empty() || source.read(0, head) < sizeof head || std::memcmp(head, "\177ELF\2\1", 6) != 0) return;
  const auto shoff = load<std::uint64_t>(head, 40);
  const std::size_t count = load<std::uint16_t>(head, 60);
  const std::size_t strings = load<std::uint16_t>(head, 62);
  if (load<std::uint16_t>(head, 58) != 64 || count > kSectionsMax || strings >= count ||
      !fits(shoff, count * 64, source.size()))
    return;
  std::vector<std::uint8_t> table(count * 64);
  if (source.read(shoff, table) < table.size()) return;
  std::vector<Place> places;
  for (std::size_t i = 0; i < count; ++i) {
    const Bytes header = Bytes(table).subspan(i * 64, 64);
    if (load<std::uint32_t>(header, 4) == 8) continue;  // NOBITS
    places.push_back(
        {load<std::uint64_t>(header, 24), load<std::uint64_t>(header, 32), load<std::uint32_t>(header, 0)});
  }
  const Bytes header = Bytes(table).subspan(strings * 64, 64);
  std::vector<std::uint8_t> names(std::min<std::uint64_t>(load<std::uint64_t>(header, 32), kStringsMax));
  names.resize(source.read(load<std::uint64_t>(header, 24), names));
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.offset < b.offset; });
  for (Container& container : containers) {
    auto it = std::upper_bound(places.begin(), places.end(), container.offset,
                               [](std::uint64_t offset, const Place& place) { return offset < place.offset; });
    while (it != places.begin()) {
      --it;
      if (it->size == 0) continue;
      if (container.offset - it->offset < it->size && it->name < names.size()) {
        const auto* text = reinterpret_cast<const char*>(names.data() + it->name);
        container.section.assign(text, ::strnlen(text, std::min<std::size_t>(names.size() - it->name, 256)));
      }
      break;
    }
  }
}

}  // namespace gpuwatch::identify
