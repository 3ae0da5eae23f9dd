// SPDX-License-Identifier: Apache-2.0
#include "scan/maps.h"

#include <gtest/gtest.h>

namespace gpuwatch::scan {
namespace {

TEST(Maps, Lines) {
  const auto maps = parse_maps(
      "7f00-7f10 r--p 00001000 fd:0a 1234                       /lib/a b.so (deleted)\n"
      "8000-9000 rw-p 00000000 00:00 0 \n"
      "a000-b000 rw-p 00000000 00:00 0                          [heap]\n"
      "c000-d000 ---p 00000000 00:00 0\n"
      "not a line\n"
      "f000-e000 r--p 00000000 00:00 0\n"
      "7f20-7f30 r--p 0000x000 fd:0a 1 /x\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]");
  ASSERT_EQ(maps.size(), 5u);
  EXPECT_EQ(maps[0].path, "/lib/a b.so (deleted)");
  EXPECT_EQ(maps[0].device, 0xfdu << 20 | 0xa);
  EXPECT_EQ(maps[0].inode, 1234u);
  EXPECT_EQ(maps[0].offset, 0x1000u);
  EXPECT_FALSE(maps[0].writable);
  EXPECT_EQ(range_name(maps[0]), "7f00-7f10");
  EXPECT_TRUE(maps[1].path.empty());
  EXPECT_EQ(maps[2].path, "[heap]");
  EXPECT_FALSE(maps[3].readable);
  EXPECT_EQ(maps[4].bytes(), 0x1000u);
}

}  // namespace
}  // namespace gpuwatch::scan
