// SPDX-License-Identifier: Apache-2.0
// Unit tests of the filter language: what holds for a made-up call, and the
// column and words of every kind of mistake.
#include "cli/filter.h"

#include <gtest/gtest.h>

#include "unit/support.h"

namespace gpuwatch::cli {
namespace {

model::Call sample_call() {
  model::Call call;
  call.record.head = test::make_head(GPUWATCH_REC_IOCTL);
  call.record.head.tgid = 12;
  call.record.head.tid = 13;
  call.record.head.node_kind = GPUWATCH_NODE_GPU;
  call.record.head.cgroup_id = ~0ull;
  call.kind = model::CallKind::kIoctl;
  call.name = "NV_ESC_RM_ALLOC";
  call.detail = "KEPLER_CHANNEL_GROUP_A";
  call.status_name = "NV_ERR_INSUFFICIENT_PERMISSIONS";
  call.failed = true;
  call.ret = -22;
  call.duration_ns = 1'500'000;
  call.minor = 3;
  call.set(model::Field::kClient, 0xc1d00024);
  return call;
}

model::Actor sample_actor() {
  model::Actor actor;
  actor.exe = "/usr/bin/python3.11";
  actor.runtime = "docker";
  actor.container_id = "0123456789abcdef";
  actor.cgroup_path = "/system.slice/docker-0123.scope";
  return actor;
}

bool holds(const std::string& text) {
  auto filter = Filter::compile(text);
  EXPECT_TRUE(filter.ok()) << text << ": " << (filter.ok() ? "" : filter.error().message());
  return filter.ok() && filter->matches(sample_call(), sample_actor());
}

std::string error_of(const std::string& text) {
  auto filter = Filter::compile(text);
  EXPECT_FALSE(filter.ok()) << text;
  return filter.ok() ? "" : filter.error().message();
}

TEST(Filter, Comparisons) {
  EXPECT_TRUE(holds("node==gpu"));
  EXPECT_FALSE(holds("node == ctl"));
  EXPECT_TRUE(holds("node!=ctl"));
  EXPECT_TRUE(holds("class==ioctl"));
  EXPECT_TRUE(holds("name~RM_ALLOC"));
  EXPECT_TRUE(holds("name~rm_alloc"));
  EXPECT_FALSE(holds("name!~rm_alloc"));
  EXPECT_FALSE(holds("name==RM_ALLOC"));
  EXPECT_TRUE(holds("pid==12"));
  EXPECT_TRUE(holds("pid==0xc"));
  EXPECT_TRUE(holds("tid>12 && tid<=13 && tid>=13 && tid<14"));
  EXPECT_TRUE(holds("ret==-22"));
  EXPECT_TRUE(holds("ret<0"));
  EXPECT_TRUE(holds("client==0xc1d00024"));
  EXPECT_TRUE(holds("cgroup_id==18446744073709551615"));
  EXPECT_TRUE(holds("comm==worker"));
  EXPECT_TRUE(holds("exe=='/usr/bin/python3.11'"));
  EXPECT_TRUE(holds("exe==/usr/bin/python3.11"));
  EXPECT_TRUE(holds("container~0123 && runtime==docker && cgroup~docker-"));
  EXPECT_TRUE(holds("minor==3"));
}

TEST(Filter, DurationsHaveUnits) {
  EXPECT_TRUE(holds("duration>=1ms"));
  EXPECT_TRUE(holds("duration==1500us"));
  EXPECT_TRUE(holds("duration==1500000"));
  EXPECT_TRUE(holds("duration<1s"));
  EXPECT_FALSE(holds("duration>2ms"));
}

TEST(Filter, YesNoFieldsStandAlone) {
  EXPECT_TRUE(holds("failed"));
  EXPECT_FALSE(holds("!failed"));
  EXPECT_TRUE(holds("!!failed"));
  EXPECT_FALSE(holds("compat || xfer || truncated || named"));
}

TEST(Filter, AndBindsCloserThanOr) {
  EXPECT_TRUE(holds("failed || pid==1 && pid==2"));
  EXPECT_FALSE(holds("(failed || pid==1) && pid==2"));
  EXPECT_TRUE(holds("node==gpu && name~RM_ALLOC && pid==12 || failed"));
  EXPECT_TRUE(holds("!(pid==1) && !pid==1"));
}

TEST(Filter, MistakesNameTheColumn) {
  EXPECT_EQ(error_of(""), "column 1: expected a field, found the end");
  EXPECT_EQ(error_of("pid==12 &&"), "column 11: expected a field, found the end");
  EXPECT_EQ(error_of("pid=12"), "column 4: expected an operator after 'pid', found '=12'");
  EXPECT_EQ(error_of("pid==x"), "column 6: 'x' is not a number");
  EXPECT_EQ(error_of("pid==12x"), "column 6: '12x' is not a number");
  EXPECT_EQ(error_of("pid==99999999999999999999"), "column 6: '99999999999999999999' is not a number");
  EXPECT_EQ(error_of("pid~1"), "column 4: 'pid' is a number; compare it with == != < <= > >=");
  EXPECT_EQ(error_of("name<x"), "column 5: 'name' is text; compare it with == != ~ !~");
  EXPECT_EQ(error_of("failed==1"), "column 7: 'failed' is yes or no and stands alone; its opposite is !failed");
  EXPECT_EQ(error_of("(failed"), "column 8: expected ) for the ( at column 1, found the end");
  EXPECT_EQ(error_of("failed)"), "column 7: expected && or || or the end, found ')'");
  EXPECT_EQ(error_of("failed failed"), "column 8: expected && or || or the end, found 'failed'");
  EXPECT_EQ(error_of("comm=='x"), "column 7: quote is not closed");
  EXPECT_EQ(error_of("comm=="), "column 7: expected a value, found the end");
  EXPECT_EQ(error_of("node==gpx").substr(0, 45), "column 7: unknown kind of node 'gpx'; kinds a");
  EXPECT_EQ(error_of("class==x").substr(0, 29), "column 8: unknown class 'x'; ");
  EXPECT_EQ(error_of("nme==x").substr(0, 42), "column 1: unknown field 'nme'; fields are:");
  EXPECT_EQ(error_of("comm==\x1b[31m"), "column 7: expected a value, found '\\x1b[31m'");
  EXPECT_EQ(error_of("pid>1 && duration<99999999999999999s"), "column 19: '99999999999999999s' is not a number");
}

TEST(Filter, BoundsHold) {
  EXPECT_NE(error_of(std::string(5000, '!')).find("longer than"), std::string::npos);
  EXPECT_NE(error_of(std::string(1000, '(')).find("nested deeper"), std::string::npos);
  EXPECT_NE(error_of(std::string(1000, '!') + "failed").find("nested deeper"), std::string::npos);
  std::string chain = "pid==1";
  for (int i = 0; i < 400; ++i) chain += "||pid==1";
  EXPECT_FALSE(holds(chain));
  EXPECT_TRUE(holds(chain + "||pid==12"));
}

TEST(Filter, NoCutOfAnExpressionCrashes) {
  const std::string text = "!(node==gpu && name!~'RM' || duration>=1ms) && pid==0xff";
  for (std::size_t n = 0; n <= text.size(); ++n) (void)Filter::compile(text.substr(0, n)).ok();
}

TEST(Filter, EveryFieldIsInTheManual) {
  const std::string page = test::slurp(GPUWATCH_MAN_PAGE);
  ASSERT_FALSE(page.empty());
  for (const FilterField& field : filter_fields())
    EXPECT_NE(page.find("\\fB" + std::string(field.name) + "\\fR ("), std::string::npos) << field.name;
}

}  // namespace
}  // namespace gpuwatch::cli
