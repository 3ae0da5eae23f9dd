// SPDX-License-Identifier: Apache-2.0
// Random and damaged records: decode and story must stay within bounds and
// finish. Meant to run under the sanitizers too.
#include <gtest/gtest.h>

#include <random>

#include "decode/decoder.h"
#include "decode/story.h"
#include "unit/decode/calls.h"

namespace gpuwatch::decode {
namespace {

TEST(Hostile, RandomRecords) {
  std::mt19937 random(20261129);
  const Decoder decoder({580, 159, 4});
  StoryBuilder story({8, 500, 200});
  std::vector<model::StoryEvent> events;
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random()) % n; };
  for (int round = 0; round < 100000; ++round) {
    gpuwatch_rec head = test::head_on(static_cast<gpuwatch_node_kind>(below(GPUWATCH_NODE_MAX + 2)), below(3));
    head.type = static_cast<__u16>(below(10));
    head.tgid = below(12);
    head.file_id = below(20);
    head.flags = static_cast<__u16>(below(64));
    test::Blob payload(8 * below(40));
    for (auto& byte : payload) byte = static_cast<std::byte>(below(4) == 0 ? random() : 0);
    const test::Blob blob = test::finish_record(head, payload);
    story.observe(decoder.decode(test::parsed(blob)), events);
    events.clear();
  }
  EXPECT_EQ(decoder.stats().records, 100000U);
  EXPECT_GT(decoder.stats().malformed, 0U);
}

// A process that allocates and frees a few handles in every order, with
// successes and failures: the object tree must stay a tree.
TEST(Hostile, RandomObjectTrees) {
  std::mt19937 random(7);
  const Decoder decoder({580, 159, 4});
  StoryBuilder story({8, 100, 60});
  std::vector<model::StoryEvent> events;
  const std::uint32_t classes[] = {0x0, 0x41, 0x80, 0x2080, 0xA06C, 0xC86F, 0xCBC0, 0x40, 0x3E, 0x83DE};
  for (int round = 0; round < 200000; ++round) {
    const std::uint32_t client = static_cast<std::uint32_t>(random()) % 2;
    const std::uint32_t parent = static_cast<std::uint32_t>(random()) % 12;
    const std::uint32_t object = static_cast<std::uint32_t>(random()) % 12;
    test::Blob blob;
    if (random() % 3 == 0) {
      const test::Argument argument = test::Argument(16).u32(0, client).u32(4, parent).u32(8, object);
      blob = test::escape_call(test::head_on(GPUWATCH_NODE_CTL), 41, argument, argument);
    } else {
      const test::Argument argument =
          test::Argument(48).u32(0, client).u32(4, parent).u32(8, object).u32(12, classes[random() % 10]);
      blob = test::escape_call(test::head_on(GPUWATCH_NODE_CTL), 43, argument, argument,
                               {{GPUWATCH_CAP_NESTED0_OUT, test::Argument(128).u64(64, 65536).bytes()}});
    }
    story.observe(decoder.decode(test::parsed(blob)), events);
    for (const model::StoryEvent& event : events)
      if (const auto* memory = std::get_if<model::MemoryBody>(&event.body)) {
        ASSERT_LE(memory->live_bytes, 65536U * 12 * 12);
      }
    events.clear();
  }
}

}  // namespace
}  // namespace gpuwatch::decode
