// SPDX-License-Identifier: Apache-2.0
// Unit tests of Events: the same events as the stages give by hand, each with
// the actor of its own process, and nothing from damaged records.
#include "pipeline/events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/support.h"

namespace gpuwatch::pipeline {
namespace {

using test::Blob;

struct Seen {
  model::StoryKind kind;
  std::uint32_t tgid;
  std::string exe;
};

Blob task_record(std::uint32_t tgid, const std::string& path) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_TASK);
  head.tgid = tgid;
  gpuwatch_rec_task task{};
  task.path_len = static_cast<__u32>(path.size());
  Blob payload;
  test::append_struct(payload, task);
  for (const char c : path) payload.push_back(static_cast<std::byte>(c));
  test::pad8(payload);
  return test::finish_record(head, payload);
}

Blob open_gpu(std::uint32_t tgid, std::int64_t ret) {
  gpuwatch_rec head = test::make_head(GPUWATCH_REC_OPEN);
  head.tgid = tgid;
  head.node_kind = GPUWATCH_NODE_GPU;
  head.rdev = 195u << 20;
  return test::open_record(head, ret);
}

TEST(Events, EachHasItsOwnActor) {
  std::vector<Seen> seen;
  Events events({}, [&](const model::StoryEvent& event, const model::Actor& actor) {
    seen.push_back({event.kind, actor.tgid, std::string(actor.exe)});
  });
  for (const Blob& blob :
       {task_record(7, "/bin/seven"), task_record(8, "/bin/eight"), open_gpu(7, -13), open_gpu(8, -13)})
    events.observe(*model::parse_record(blob));
  events.finish();
  ASSERT_EQ(seen.size(), 2u);
  for (const Seen& one : seen) EXPECT_EQ(one.kind, model::StoryKind::kOpenFailed);
  EXPECT_EQ(seen[0].exe, "/bin/seven");
  EXPECT_EQ(seen[1].exe, "/bin/eight");
  EXPECT_EQ(seen[1].tgid, 8u);
}

TEST(Events, DamagedRecordsGiveNothingAndAreCounted) {
  std::size_t seen = 0;
  Events events({}, [&](const model::StoryEvent&, const model::Actor&) { ++seen; });
  for (unsigned type = 0; type < 12; ++type) {
    gpuwatch_rec head = test::make_head(static_cast<gpuwatch_rec_type>(type));
    events.observe(*model::parse_record(test::finish_record(head, {})));
  }
  events.settle(1);
  events.finish();
  EXPECT_EQ(events.decoder().stats().records, 12u);
  EXPECT_GT(events.decoder().stats().malformed, 0u);
}

}  // namespace
}  // namespace gpuwatch::pipeline
