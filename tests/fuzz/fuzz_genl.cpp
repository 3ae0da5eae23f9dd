// SPDX-License-Identifier: Apache-2.0
// Fuzz target: datagrams of generic netlink to items, lines of text and JSON.
// Whatever the bytes, the lines must be well formed, and the books must balance.
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "netlink/group_stream.h"
#include "netlink/print.h"

namespace {

using namespace gpuwatch::netlink;

void must(bool good) {
  if (!good) std::abort();
}

void check(const Item& item) {
  std::string json, text;
  append_json(json, item);
  must(nlohmann::json::parse(json, nullptr, false).is_object());
  append_text(text, item);
  must(!text.empty() && text.back() == '\n');
  text.pop_back();
  for (const char c : text) must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::byte> copy(reinterpret_cast<const std::byte*>(data),
                                    reinterpret_cast<const std::byte*>(data) + size);
  // Whatever family the first header names is ours.
  std::uint16_t family = 0;
  if (size >= 6) std::memcpy(&family, data + 4, sizeof family);
  for (const Group group : {Group::kEvents, Group::kVerdicts}) {
    GroupStream stream(group);
    std::vector<Item> items;
    stream.datagram(copy, family, items);
    std::uint64_t told = 0;
    for (const Item& item : items) {
      check(item);
      if (const auto* loss = std::get_if<Loss>(&item); loss != nullptr && loss->reason != LossReason::kDamaged)
        told += loss->count.value_or(0);
    }
    must(told == stream.totals().lost);
  }
  (void)parse_state(copy).ok();
  (void)parse_set_answer(copy).ok();
  return 0;
}
