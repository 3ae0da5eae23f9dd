// SPDX-License-Identifier: Apache-2.0
// Unit tests of what people read of events, alerts and losses, and of the short
// line that the kernel relays: its end, the reason, must not be cut off.
#include "daemon/items.h"

#include <gtest/gtest.h>
#include <linux/gpuwatch_genl.h>

#include <array>
#include <cstring>

#include "daemon/netlink_sink.h"

namespace gpuwatch::daemon {
namespace {

const std::string kWhy = "neither its bytes nor its kernels are in a baseline";

class ItemsTest : public ::testing::Test {
 protected:
  ItemsTest() {
    event_.kind = model::StoryKind::kModuleLoad;
    event_.head.tgid = 246;
    std::memcpy(event_.head.comm, "unknown.0\n", 10);
    module_[0].r.fill(0xa2);
    module_[0].sm = 90;
    module_[0].kernels = 1;
    model::ModuleBody body;
    body.loader = "cuModuleLoadData";
    body.image_kind = "fatbin";
    body.name = "_Z2k1Pf";
    body.source = "/demo/unknown.fatbin";
    body.place = model::ImagePlace::kFile;
    body.modules = module_;
    body.judged = true;
    body.verdict = model::Verdict::kUnknown;
    body.why = kWhy;
    event_.body = body;
    actor_.container_id = std::string(64, 'a');
    rule_.name = "unknown-code";
    rule_.message = "GPU code that no baseline knows";
    rule_.severity = sink::Severity::kError;
    rule_.attack = {"T1204", "T1610"};
  }

  Items items_{"host", 0};
  model::StoryEvent event_;
  model::Actor actor_;
  std::array<model::ModuleLine, 2> module_{};
  Rule rule_;
};

TEST_F(ItemsTest, WordsOfAnEventBeginBehindTheColumns) {
  const sink::ItemPtr item = items_.event(event_, actor_);
  EXPECT_TRUE(item->text.substr(item->words_at).starts_with("module loaded: _Z2k1Pf")) << item->text;
  EXPECT_EQ(item->process, "unknown.0\\x0a");
  EXPECT_EQ(item->title, "");
  const std::string text = relayed_text(*item);
  EXPECT_TRUE(text.starts_with("unknown.0\\x0a: module loaded: ")) << text;
  EXPECT_TRUE(text.ends_with(kWhy)) << text;
}

TEST_F(ItemsTest, AnAlertThatIsRelayedKeepsItsReason) {
  const sink::ItemPtr alert = items_.alert(*items_.event(event_, actor_), 1, {&rule_, 0}, "a00000001");
  EXPECT_TRUE(
      alert->text.starts_with("ALERT error a00000001 GPU code that no baseline knows [unknown-code T1204 T1610]"));
  EXPECT_TRUE(alert->text.substr(alert->words_at).starts_with("module loaded: ")) << alert->text;
  const std::string text = relayed_text(*alert);
  EXPECT_TRUE(text.starts_with("GPU code that no baseline knows: unknown.0\\x0a: module loaded: _Z2k1Pf")) << text;
  EXPECT_TRUE(text.ends_with(kWhy)) << text;
  EXPECT_LT(text.size(), static_cast<std::size_t>(GPUWATCH_GENL_TEXT_MAX)) << text;
}

TEST_F(ItemsTest, AnAlertOfALossHasNoProcess) {
  const sink::ItemPtr loss = items_.loss({"ring", "ring_full", 7, 9, 0, {}, {}}, 1);
  rule_.message = "records\nlost";
  const sink::ItemPtr alert = items_.alert(*loss, 1, {&rule_, 0}, "a00000002");
  EXPECT_EQ(relayed_text(*alert), "records\\x0alost: LOST 7 records (ring: ring_full)");
}

}  // namespace
}  // namespace gpuwatch::daemon
