// SPDX-License-Identifier: Apache-2.0
// What rebuilding must not change, and what each edit must: by kept cubins,
// and anew with nvcc where it is installed.
#include <gtest/gtest.h>

#include <map>

#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

struct Hashes {
  Digest r{};
  Digest m{};
  Digest d{};
  std::map<std::string, Digest> k;  // by name without what a path makes of it
};

Hashes hashes_of(const std::string& cubin) {
  const test::Found found = test::identify_here(cubin);
  Hashes out;
  EXPECT_EQ(found.modules.size(), 1u);
  if (found.modules.size() != 1) return out;
  const Module& module = found.modules[0];
  EXPECT_TRUE(module.errors.empty());
  out.r = module.r;
  out.m = module.m;
  out.d = module.d;
  for (const Kernel& kernel : module.kernels) {
    std::string name = kernel.name;
    // The test's own way to see past the eight digits.
    for (std::size_t i = 0; i + 8 < name.size(); ++i)
      if (name[i + 8] == '_' && name.find_first_not_of("0123456789abcdef", i) == i + 8) name.replace(i, 8, "--------");
    out.k[name] = kernel.k;
  }
  return out;
}

// Names of kernels in `a` whose K differs in `b`, or that `b` lacks.
std::vector<std::string> differing(const Hashes& a, const Hashes& b) {
  std::vector<std::string> out;
  for (const auto& [name, k] : a.k) {
    const auto it = b.k.find(name);
    if (it == b.k.end() || it->second != k) out.push_back(name);
  }
  return out;
}

void expect_rebuilt(const Hashes& a, const Hashes& b, const std::string& what) {
  EXPECT_EQ(differing(a, b), std::vector<std::string>{}) << what;
  EXPECT_EQ(a.k.size(), b.k.size()) << what;
  EXPECT_EQ(a.d, b.d) << what;
  EXPECT_EQ(a.m, b.m) << what;
}

using Names = std::vector<std::string>;

struct Edit {
  const char* what;
  Names kernels;  // whose K changes
  bool data;      // D changes
};
const Edit kEdits[] = {{"lb", {"_Z2k1Pi"}, false}, {"mul", {"_Z2k1Pi"}, false}, {"cval", {}, true}};

void expect_edited(const Hashes& base, const Hashes& edited, const Edit& edit) {
  EXPECT_EQ(differing(base, edited), edit.kernels) << edit.what;
  EXPECT_EQ(base.d != edited.d, edit.data) << edit.what;
  EXPECT_NE(base.m, edited.m) << edit.what;
  EXPECT_NE(base.r, edited.r) << edit.what;
}

TEST(Rebuild, KeptCubins) {
  const auto kept = [](const std::string& name) { return hashes_of(test::sample(name + ".cubin")); };
  expect_rebuilt(kept("rep_a_90"), kept("rep_c_90"), "another directory");
  expect_rebuilt(kept("rep_a_90"), kept("rep_l_90"), "-lineinfo");
  expect_rebuilt(kept("rep_g_90"), kept("rep_g2_90"), "-G twice");
  expect_rebuilt(kept("rep_r_90"), kept("rep_r2_90"), "-rdc in two directories");
  expect_rebuilt(kept("chg_base_80"), kept("chg_li_80"), "-lineinfo");
  EXPECT_NE(kept("rep_a_90").m, kept("rep_g_90").m) << "-G";
  EXPECT_NE(kept("rep_a_90").m, kept("rep_r_90").m) << "-rdc";
}

TEST(Rebuild, KeptEdits) {
  for (const std::string sm : {"80", "120"})
    for (const Edit& edit : kEdits) {
      const std::string name = std::string("chg_") + edit.what + "_" + sm + ".cubin";
      if (!std::filesystem::exists(test::data_path(name))) continue;
      expect_edited(hashes_of(test::sample("chg_base_" + sm + ".cubin")), hashes_of(test::sample(name)), edit);
    }
  const Hashes base = hashes_of(test::sample("chg_base_80.cubin"));
  const Hashes added = hashes_of(test::sample("chg_addk_80.cubin"));
  EXPECT_EQ(added.k.size(), base.k.size() + 1);
  EXPECT_NE(added.d, base.d);
  EXPECT_NE(added.m, base.m);
}

// The same with the compiler at hand.
class Nvcc : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v nvcc >/dev/null 2>&1 || test -x /usr/local/cuda/bin/nvcc") != 0)
      GTEST_SKIP() << "nvcc is not installed";
  }

  Hashes build(const std::string& directory, const std::string& file, const std::string& options) {
    const std::string out = dir_.file("out" + std::to_string(++count_) + ".cubin");
    const std::string command = "mkdir -p '" + dir_.file(directory) + "' && cp '" + test::data_path("src/" + file) +
                                "' '" + dir_.file(directory) + "/' && cd '" + dir_.file(directory) +
                                "' && PATH=$PATH:/usr/local/cuda/bin nvcc -cubin " + options + " -o '" + out + "' " +
                                file + " >/dev/null 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return hashes_of(test::slurp(out));
  }

  test::ScratchDir dir_;
  int count_ = 0;
};

TEST_F(Nvcc, RebuildingChangesNothing) {
  for (const std::string arch : {"-arch=sm_80", "-arch=sm_90", "-arch=sm_120"}) {
    const Hashes base = build("one", "e.cu", arch);
    ASSERT_EQ(base.k.size(), 3u);
    EXPECT_EQ(base.r, build("one", "e.cu", arch).r) << arch;
    expect_rebuilt(base, build("two", "e.cu", arch), arch + " another directory");
    expect_rebuilt(base, build("one", "e.cu", arch + " -lineinfo"), arch + " -lineinfo");
    expect_rebuilt(base, build("three", "e.cu", arch + " -lineinfo"), arch + " another directory and -lineinfo");
    expect_rebuilt(build("one", "e.cu", arch + " -G"), build("one", "e.cu", arch + " -G"), arch + " -G twice");
    expect_rebuilt(build("one", "e.cu", arch + " -rdc=true"), build("two", "e.cu", arch + " -rdc=true"),
                   arch + " -rdc in another directory");
  }
}

TEST_F(Nvcc, EachEditShows) {
  const std::string base_options = "-arch=sm_80 -DLB=128 -DMUL=3";
  const Hashes base = build("one", "base.cu", base_options);
  expect_edited(base, build("one", "base.cu", "-arch=sm_80 -DLB=256 -DMUL=3"), {"launch bounds", {"_Z2k1Pi"}, false});
  expect_edited(base, build("one", "base.cu", "-arch=sm_80 -DLB=128 -DMUL=5"), {"a constant", {"_Z2k1Pi"}, false});
}

}  // namespace
}  // namespace gpuwatch::identify
