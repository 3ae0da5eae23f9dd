// SPDX-License-Identifier: Apache-2.0
// All kinds of trouble at once: what one sink suffers, the others never feel,
// and each item is accounted for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "sink/exec_sink.h"
#include "sink/file_sink.h"
#include "sink/queue.h"
#include "sink/webhook_sink.h"
#include "unit/sink/items.h"
#include "unit/support.h"

namespace gpuwatch::sink {
namespace {

using gpuwatch::test::ScratchDir;
using gpuwatch::test::slurp;
using gpuwatch::test::spill;
using namespace std::chrono_literals;

class Throwing : public Sink {
 public:
  std::string_view name() const override { return "throwing"; }
  Outcome write(std::span<const ItemPtr>) override { throw "neither here nor there"; }
};

// 2,000 alerts fit into the first queue; the others have room for 100.
TEST(Sinks, TroubleStaysWhereItIs) {
  const ScratchDir dir;
  test::Server silent({""});
  test::Server fine({"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"});
  spill(dir.file("hangs"), "#!/bin/sh\nsleep 1000\n");
  ::chmod(dir.file("hangs").c_str(), 0755);
  base::Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));

  std::map<std::string, std::unique_ptr<SinkQueue>> queues;
  const auto add = [&](const char* name, base::Result<std::unique_ptr<Sink>> sink, QueueLimits limits) {
    ASSERT_TRUE(sink.ok()) << sink.error().message();
    queues[name] = std::make_unique<SinkQueue>(std::move(*sink), limits);
  };
  const QueueLimits small{.items = 100, .retry_first = 1ms, .retries = 2};
  add("file", FileSink::open({.path = dir.file("log")}), {});
  add("full disk", FileSink::on_descriptor(full.get(), LineForm::kJson), small);
  add("dead webhook", WebhookSink::open({.url = silent.url(), .limit = 1h}), small);
  add("webhook", WebhookSink::open({.url = fine.url(), .rate = {1e6, 1e6}}), {.items = 4000});
  ExecOptions exec;
  exec.command = {dir.file("hangs")};
  exec.limit = 1h;
  add("program that hangs", ExecSink::open(std::move(exec)), small);
  add("throwing", std::unique_ptr<Sink>(std::make_unique<Throwing>()), small);

  constexpr std::size_t kItems = 2000;
  std::string expected;
  for (std::size_t i = 0; i < kItems; ++i) {
    const std::string line = "{\"schema\":2,\"n\":" + std::to_string(i) + "}";
    expected += line + "\n";
    const ItemPtr item = test::item_of(line);
    for (const auto& [name, queue] : queues) queue->push(item);
  }
  EXPECT_TRUE(queues["file"]->flush(30s));
  EXPECT_EQ(slurp(dir.file("log")), expected);
  EXPECT_TRUE(queues["webhook"]->flush(60s));
  EXPECT_EQ(queues["webhook"]->counts().sent, kItems);
  EXPECT_EQ(fine.requests().size(), kItems);

  for (const auto& [name, queue] : queues) {
    queue->stop(20ms);
    const QueueCounts counts = queue->counts();
    EXPECT_EQ(counts.accepted + counts.dropped_full, kItems) << name;
    EXPECT_EQ(counts.accepted, counts.sent + counts.dropped_failed + counts.dropped_closed) << name;
    EXPECT_FALSE(counts.abandoned) << name;  // each came back when it was cancelled
    EXPECT_EQ(counts.sent, name == "file" || name == "webhook" ? kItems : 0) << name;
  }
  EXPECT_GT(queues["program that hangs"]->counts().dropped_full, 1000U);
  EXPECT_NE(queues["full disk"]->counts().last_error.find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace gpuwatch::sink
