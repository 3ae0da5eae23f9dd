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

TEST(Canon, AFunctionSeesItselfAsAt) {
  EXPECT_EQ(seen_from("N:k", "k"), "N:@");
  EXPECT_EQ(seen_from("N:$k$x", "k"), "N:$@$x");
  EXPECT_EQ(seen_from("S:.nv.constant0.k", "k"), "S:.nv.constant0.@");
  for (const char* other : {"N:kk", "N:$kk$x", "N:$k", "S:.text.kk", "S:k", "?7", ""})
    EXPECT_EQ(seen_from(other, "k"), other);
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
