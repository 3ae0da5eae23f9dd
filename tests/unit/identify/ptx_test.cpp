// SPDX-License-Identifier: Apache-2.0
#include "identify/ptx.h"

#include <gtest/gtest.h>

namespace gpuwatch::identify {
namespace {

TEST(Ptx, Header) {
  const auto header = ptx_header(as_bytes(".version 8.4\n.target sm_90a, texmode\n"));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->sm, 90u);
  EXPECT_EQ(header->suffix, 'a');
  EXPECT_EQ(ptx_header(as_bytes(".version 7.8\n// x\n.target compute_120\n"))->sm, 120u);
  for (const char* text :
       {"", ".version", ".version 8\n.target sm_90", ".version 8.4 .target sm_", ".version 8.4\n.target gfx90",
        ".version x.4\n.target sm_90", ".version 800.4\n.target sm_90", ".version 8.4"})
    EXPECT_FALSE(ptx_header(as_bytes(text))) << text;
  EXPECT_FALSE(ptx_header(as_bytes(".version 8.4\n" + std::string(64, ' ') + ".target sm_90")));
}

TEST(Ptx, ATargetBehindTheEndOfTheTextIsNotItsOwn) {
  using namespace std::string_literals;
  EXPECT_FALSE(ptx_header(as_bytes(".version 8.0\n\0.version 9.0\n.target sm_90\n"s)));
}

TEST(Ptx, NormalForm) {
  const std::string text =
      "// made by a tool\n\n.version 8.0\r\n  .target sm_80 // why\n.file 1 \"x\"\n.loc 1 2 3\n"
      ".section .debug_str\n{\n.b8 1\n}\n\tret;\n";
  EXPECT_EQ(ptx_normal_form(as_bytes(text)), ".version 8.0\n.target sm_80\nret;");
  EXPECT_EQ(ptx_normal_form(as_bytes(std::string("a\0\n\0b\0", 6))), "a\nb");
  EXPECT_EQ(ptx_normal_form({}), "");
}

TEST(Ptx, NulsAtTheEndAreNoText) {
  EXPECT_EQ(as_text(ptx_text(as_bytes(std::string("a\0b\0\0", 5)))), std::string("a\0b", 3));
  EXPECT_TRUE(ptx_text(as_bytes(std::string(3, '\0'))).empty());
}

TEST(Ptx, CommentsBeforeTheMarkBelongToIt) {
  EXPECT_EQ(ptx_lead(as_bytes("//\n// x\n")), 8u);
  EXPECT_EQ(ptx_lead(as_bytes(std::string("abc\0//\n", 7))), 3u);
  EXPECT_EQ(ptx_lead(as_bytes(std::string("abc\0what is this", 16))), 0u);
  EXPECT_EQ(ptx_lead({}), 0u);
}

}  // namespace
}  // namespace gpuwatch::identify
