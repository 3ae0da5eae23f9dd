// SPDX-License-Identifier: Apache-2.0
// Names of loaders, and the text of /proc/PID/maps.
#include "source/loaders.h"

#include <gtest/gtest.h>

#include "source/proc_maps.h"

namespace gpuwatch::source {
namespace {

TEST(Loaders, AllVersionsAndPerThreadVariants) {
  for (const char* name : {"cuModuleLoadData", "cuModuleLoadData_v2", "cuModuleLoadDataEx", "cuLibraryLoadData_ptsz",
                           "cuModuleLoadFatBinary_v3_ptds"}) {
    const auto loader = loader_of(name);
    ASSERT_TRUE(loader) << name;
    EXPECT_EQ(loader->kind, GPUWATCH_PROBE_IMAGE) << name;
    EXPECT_EQ(loader->argument, 1) << name;
  }
  for (const char* name : {"cuLinkAddData", "cuLinkAddData_v2"}) {
    const auto loader = loader_of(name);
    ASSERT_TRUE(loader) << name;
    EXPECT_EQ(loader->kind, GPUWATCH_PROBE_SIZED);
    EXPECT_EQ(loader->argument, 2);
    EXPECT_EQ(loader->size_argument, 3);
  }
  EXPECT_EQ(loader_of("cuModuleLoad")->kind, GPUWATCH_PROBE_PATH);
  EXPECT_EQ(loader_of("cuLibraryLoadFromFile")->argument, 1);
  EXPECT_EQ(loader_of("cuLinkAddFile_v2")->argument, 2);
  EXPECT_EQ(loader_of("cuLinkComplete")->kind, GPUWATCH_PROBE_CALL);
}

TEST(Loaders, NothingElse) {
  for (const char* name : {"", "cu", "cuModuleUnload", "cuModuleLoadDataX", "cuModuleLoad_v", "cuModuleLoad_v1",
                           "cuModuleLoad_v22", "xcuModuleLoad", "cudaLibraryLoadData", "cuModuleGetFunction", "_v2",
                           "cu_ptsz", "cuModuleLoadData_v2_v2_v2_v2_v2_v2_v2_v2"})
    EXPECT_FALSE(loader_of(name)) << name;
}

TEST(ProcMaps, ExecutableFilesOnce) {
  const auto files = executable_files(
      "7f0000000000-7f0000001000 r--p 00000000 fd:01 77   /usr/lib/libcuda.so.1\n"
      "7f0000001000-7f0000002000 r-xp 00001000 fd:01 77   /usr/lib/libcuda.so.1\n"
      "7f0000002000-7f0000003000 r-xp 00002000 fd:01 77   /usr/lib/libcuda.so.1\n"
      "7f0000003000-7f0000004000 r-xp 00000000 00:01 5 /memfd:a b (deleted)\n"
      "7f0000005000-7f0000006000 r-xp 00000000 fd:02 77\n"
      "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0 [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]");
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].range, "7f0000001000-7f0000002000");
  EXPECT_EQ(files[0].device, "fd:01");
  EXPECT_EQ(files[0].inode, 77u);
  EXPECT_EQ(files[0].path, "/usr/lib/libcuda.so.1");
  EXPECT_EQ(files[1].path, "/memfd:a b (deleted)");
  EXPECT_EQ(files[2].path, "");
}

TEST(ProcMaps, NonsenseIsLeftOut) {
  for (const char* text :
       {"", "\n\n\n", "r-xp", "../../etc-passwd r-xp 0 fd:01 77 /x", "1-2 r-xp 0 fd:01", "1-2 r-xp 0 fd:01 x7 /x",
        "1-2 r-xp 0 fd:01 99999999999999999999999 /x", "12 r-xp 0 fd:01 7 /x", "1-2-3 r-xp 0 fd:01 7 /x",
        "-2 r-xp 0 fd:01 7 /x", "1- r-xp 0 fd:01 7 /x", "1-2 x 0 fd:01 7 /x"})
    EXPECT_TRUE(executable_files(text).empty()) << text;
}

}  // namespace
}  // namespace gpuwatch::source
