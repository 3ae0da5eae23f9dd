// SPDX-License-Identifier: Apache-2.0
// Fuzz target: records to events and tree. The input is records back to back,
// as in seeds/story, which are parts of real recordings. Whatever they say, the
// tree's books must balance, within its limits, and ending every file must
// leave no object of theirs behind.
#include <cstdlib>
#include <vector>

#include "decode/decoder.h"
#include "decode/story.h"
#include "unit/decode/tree_check.h"

using namespace gpuwatch;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size lets the address sanitizer see any overrun.
  const std::vector<std::uint8_t> copy(data, data + size);
  model::Bytes bytes = std::as_bytes(std::span(copy));
  constexpr decode::TreeLimits kLimits{6, 300, 200, 100};
  decode::StoryBuilder story(kLimits);
  const decode::Decoder decoder({580, 159, 4});
  std::vector<model::StoryEvent> events;
  unsigned count = 0;
  while (const auto record = model::parse_record(bytes)) {
    story.observe(decoder.decode(*record), events);
    events.clear();
    bytes = bytes.subspan(record->head.len);
    const decode::TreeStats stats = story.tree().stats();
    if (stats.objects > kLimits.objects || stats.processes > kLimits.processes || stats.files > kLimits.files)
      std::abort();
    if (++count % 64 == 0) test::check_books(story.tree());
  }
  story.finish(events);
  test::check_books(story.tree());
  return 0;
}
