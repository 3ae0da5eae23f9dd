// SPDX-License-Identifier: Apache-2.0
// Requests: texts cut to what the kernel takes, and what is built is what is read.
#include "netlink/build.h"

#include <gtest/gtest.h>
#include <linux/gpuwatch_genl.h>
#include <netlink/attr.h>
#include <netlink/genl/genl.h>

#include "netlink/connection.h"

namespace gpuwatch::netlink {
namespace {

TEST(CutText, AtBordersOfCharacters) {
  EXPECT_EQ(cut_text("short", 64), "short");
  EXPECT_EQ(cut_text("abcdef", 3), "abc");
  EXPECT_EQ(cut_text("ab\xc3\xa4", 3), "ab");  // a two-byte character would be halved
  EXPECT_EQ(cut_text("ab\xc3\xa4", 4), "ab\xc3\xa4");
  EXPECT_EQ(cut_text(std::string_view("a\0b", 3), 64), "a");
  EXPECT_EQ(cut_text(std::string(100, '\x80'), 10).size(), 10U);  // no UTF-8 at all
  EXPECT_EQ(cut_text("", 5), "");
}

OwnedMessage built(const VerdictMessage& verdict) {
  OwnedMessage message(nlmsg_alloc());
  EXPECT_NE(genlmsg_put(message.get(), 0, 0, 0x21, 0, 0, GPUWATCH_CMD_VERDICT, 1), nullptr);
  EXPECT_EQ(put_verdict(message.get(), verdict), 0);
  return message;
}

nlattr* found(const OwnedMessage& message, int type) {
  auto* header = static_cast<genlmsghdr*>(nlmsg_data(nlmsg_hdr(message.get())));
  return nla_find(genlmsg_attrdata(header, 0), genlmsg_attrlen(header, 0), type);
}

TEST(PutVerdict, All) {
  VerdictMessage verdict;
  verdict.verdict = VerdictKind::kTampered;
  verdict.severity = Severity::kCritical;
  verdict.rule = std::string(500, 'r');
  verdict.text = "one\ntwo";
  verdict.container = "c";
  verdict.pid = 1;
  verdict.start_ns = 2;
  verdict.cgroup_id = 3;
  verdict.gpu_minor = 0;
  verdict.digest.emplace();
  const OwnedMessage message = built(verdict);
  EXPECT_EQ(nla_get_u32(found(message, GPUWATCH_A_VERDICT)), GPUWATCH_VERDICT_TAMPERED);
  EXPECT_EQ(nla_get_u32(found(message, GPUWATCH_A_SEVERITY)), GPUWATCH_SEVERITY_CRITICAL);
  EXPECT_EQ(nla_len(found(message, GPUWATCH_A_RULE)), GPUWATCH_GENL_RULE_MAX + 1);
  EXPECT_STREQ(nla_get_string(found(message, GPUWATCH_A_TEXT)), "one\ntwo");
  EXPECT_EQ(nla_get_u64(found(message, GPUWATCH_A_START_NS)), 2U);
  EXPECT_EQ(nla_get_u32(found(message, GPUWATCH_A_GPU_MINOR)), 0U);
  EXPECT_EQ(nla_len(found(message, GPUWATCH_A_DIGEST)), 32);
}

TEST(PutVerdict, WhatIsNotKnownIsNotThere) {
  const OwnedMessage message = built({});
  for (const int type : {GPUWATCH_A_RULE, GPUWATCH_A_TEXT, GPUWATCH_A_CONTAINER, GPUWATCH_A_PID, GPUWATCH_A_START_NS,
                         GPUWATCH_A_CGROUP_ID, GPUWATCH_A_GPU_MINOR, GPUWATCH_A_DIGEST})
    EXPECT_EQ(found(message, type), nullptr) << type;
}

}  // namespace
}  // namespace gpuwatch::netlink
