// SPDX-License-Identifier: Apache-2.0
#include "identify/canon.h"

#include <gtest/gtest.h>

namespace gpuwatch::identify {
namespace {

TEST(Canon, PathHashesBecomeZeros) {
  EXPECT_EQ(canonical_name("_ZN33_GLOBAL__N__0d0dc871_4_e_cu_ccoef4anonEPi"),
            "_ZN33_GLOBAL__N__00000000_4_e_cu_ccoef4anonEPi");
  EXPECT_EQ(canonical_name("_ZN41_INTERNAL_0d0dc871_4_e_cu_x4anonEPi"), "_ZN41_INTERNAL_00000000_4_e_cu_x4anonEPi");
  EXPECT_EQ(canonical_name("__nv_static_22__c56318a2_4_e_cu_ccoef__Z2stPi"),
            "__nv_static_22__00000000_4_e_cu_ccoef__Z2stPi");
  EXPECT_EQ(canonical_name("__nv_static_22__c56318a2_4_e__ZN33_GLOBAL__N__c56318a2_4_eE"),
            "__nv_static_22__00000000_4_e__ZN33_GLOBAL__N__00000000_4_eE");
}

TEST(Canon, OtherNamesStay) {
  for (const char* name : {"plain", "", "_GLOBAL__N__0d0dc87_x", "_GLOBAL__N__0d0dc871", "_GLOBAL__N__0d0dc87g_x",
                           "__nv_static_22_c56318a2_4", "__nv_static___c56318a2_4", "_INTERNAL_0d0dc8711_"})
    EXPECT_EQ(canonical_name(name), name);
}

std::string symbol(std::string_view name, std::string_view self) {
  std::string out;
  append_symbol(out, name, self);
  return out;
}
std::string section(std::string_view name, std::string_view self) {
  std::string out;
  append_section(out, name, self);
  return out;
}

TEST(Canon, AFunctionSeesItselfAsAt) {
  EXPECT_EQ(symbol("k", "k"), "N:@");
  EXPECT_EQ(symbol("$k$x", "k"), "N:$@$x");
  EXPECT_EQ(section(".nv.constant0.k", "k"), "S:.nv.constant0.@");
  for (const char* other : {"kk", "$kk$x", "$k", "", "$"}) EXPECT_EQ(symbol(other, "k"), std::string("N:") + other);
  EXPECT_EQ(section(".k", "k"), "S:.k");
  for (const char* other : {".text.kk", "k", "", "k."}) EXPECT_EQ(section(other, "k"), std::string("S:") + other);
  for (const char* name : {"", "k", "$$x"}) {
    EXPECT_EQ(symbol(name, ""), std::string("N:") + name);
    EXPECT_EQ(section(name, ""), std::string("S:") + name);
  }
}

TEST(Canon, NamesThatStayAreNotCopied) {
  CanonicalNames names;
  const std::string plain = "_ZN8cusparse_k";
  EXPECT_EQ(names.get(plain).data(), plain.data());
  EXPECT_EQ(names.get("_ZN33_GLOBAL__N__0d0dc871_4_e"), "_ZN33_GLOBAL__N__00000000_4_e");
  EXPECT_FALSE(holds_path_hash("_INTERNAL"));
}

TEST(Canon, Items) {
  std::string out;
  append_int(out, 5);
  append_text(out, "ab");
  append_bytes(out, as_bytes(std::string_view("\0", 1)));
  EXPECT_EQ(out, std::string("\x09\0\0\0\0\0\0\0i\x05\0\0\0\0\0\0\0"
                             "\x03\0\0\0\0\0\0\0sab"
                             "\x02\0\0\0\0\0\0\0b\0",
                             17 + 11 + 10));
}

}  // namespace
}  // namespace gpuwatch::identify
