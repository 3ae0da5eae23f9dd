// SPDX-License-Identifier: Apache-2.0
// Every sample hashes to what an independent parser says of it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "identify/ptx.h"
#include "unit/identify/support.h"

namespace gpuwatch::identify {
namespace {

using nlohmann::json;
using test::Found;

std::vector<std::string> sample_names() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(FATBIN_DATA)) {
    const std::string name = file.path().filename();
    if (name.ends_with(".json") && std::filesystem::exists(test::data_path(name.substr(0, name.size() - 5))))
      names.push_back(name.substr(0, name.size() - 5));
  }
  std::sort(names.begin(), names.end());
  return names;
}

void expect_module(const Module& module, const json& want, const std::string& where) {
  EXPECT_TRUE(module.errors.empty()) << where << ": " << module.errors.front();
  EXPECT_EQ(module.sm, want["arch"]) << where;
  EXPECT_EQ(module.abi, want["abi"]) << where;
  EXPECT_EQ(module.relocatable, want["etype"] == 1) << where;
  EXPECT_EQ(to_hex(module.r), want["raw_sha256"]) << where << ": R";
  EXPECT_EQ(to_hex(module.d), want["data_sha256"]) << where << ": D";
  std::map<std::string, Kernel> kernels;
  for (const Kernel& kernel : module.kernels) kernels[kernel.name] = kernel;
  EXPECT_EQ(kernels.size(), want["funcs"].size()) << where;
  for (const json& function : want["funcs"]) {
    const std::string name = function["name"];
    ASSERT_TRUE(kernels.count(name)) << where << ": " << name;
    const Kernel& kernel = kernels[name];
    EXPECT_EQ(to_hex(kernel.t), function["text_sha256"]) << where << ": T of " << name;
    EXPECT_EQ(kernel.entry, function["entry"]) << where << ": " << name;
    EXPECT_EQ(kernel.code_bytes, function["code"]) << where << ": " << name;
    EXPECT_EQ(kernel.registers, function["regs"]) << where << ": " << name;
    EXPECT_EQ(kernel.barriers, function["barriers"]) << where << ": " << name;
    EXPECT_EQ(kernel.shared_bytes, function["shared"]) << where << ": " << name;
  }
}

void expect_entry(const Image& image, const Module& module, const Digest& stored, const json& want,
                  const std::set<std::string>& oracle, const std::string& where) {
  EXPECT_EQ(to_string(image.kind), want["kind"]) << where;
  EXPECT_EQ(image.sm, want["arch"]) << where;
  EXPECT_EQ(image.flags, want["flags"]) << where;
  EXPECT_EQ(image.version_major, want["major"]) << where;
  EXPECT_EQ(image.version_minor, want["minor"]) << where;
  EXPECT_EQ(image.stored_bytes, want["payload"]) << where;
  EXPECT_EQ(image.identifier, want["name"]) << where;
  if (want.contains("cubin")) expect_module(module, want["cubin"], where);
  if (want.contains("stored_sha256")) {
    // Scrambled: nothing but the stored bytes can be said.
    EXPECT_TRUE(image.opaque) << where;
    EXPECT_EQ(to_hex(stored), want["stored_sha256"]) << where;
    EXPECT_EQ(to_hex(module.r), want["stored_sha256"]) << where;
    return;
  }
  EXPECT_EQ(module.bytes, want["bytes"]) << where;
  if (want["kind"] == "ptx") {
    EXPECT_TRUE(oracle.count(to_hex(module.r))) << where << ": R";
    ASSERT_TRUE(module.p) << where;
    EXPECT_EQ(to_hex(*module.p), want["ptx_norm_sha256"]) << where << ": P";
  }
}

class EngineSamples : public ::testing::TestWithParam<HashBatch::Engine> {};

TEST_P(EngineSamples, HashToWhatIsExpected) {
  std::size_t modules = 0;
  std::size_t kernels = 0;
  for (const std::string& name : sample_names()) {
    const json want = test::sample_json(name + ".json");
    const Found found = test::identify_here(test::sample(name), {}, GetParam());
    for (const Module& module : found.modules) kernels += module.kernels.size();
    modules += found.modules.size();
    EXPECT_TRUE(found.scan.errors.empty()) << name;
    if (want["type"] == "cubin") {
      ASSERT_EQ(found.modules.size(), 1u) << name;
      expect_module(found.modules[0], want["cubin"], name);
      continue;
    }
    if (want["type"] == "ptx") {
      ASSERT_EQ(found.modules.size(), 1u) << name;
      EXPECT_EQ(to_hex(found.modules[0].r), want["sha256"]) << name;
      EXPECT_EQ(to_hex(*found.modules[0].p), want["ptx_norm_sha256"]) << name;
      continue;
    }
    std::set<std::string> oracle;
    for (const json& image : want["oracle_cuobjdump_12_4"]) oracle.insert(image["sha256"].get<std::string>());
    ASSERT_EQ(found.scan.containers.size(), want["containers"].size()) << name;
    std::size_t next = 0;
    for (std::size_t c = 0; c < want["containers"].size(); ++c) {
      const json& container = want["containers"][c];
      EXPECT_EQ(found.scan.containers[c].offset, container["file_offset"]) << name;
      EXPECT_EQ(found.scan.containers[c].size, container["size"]) << name;
      EXPECT_TRUE(found.scan.containers[c].errors.empty()) << name;
      if (container["section"] != "raw") {
        EXPECT_EQ(found.scan.containers[c].section, container["section"]) << name;
      }
      for (const json& entry : container["entries"]) {
        ASSERT_LT(next, found.modules.size()) << name;
        expect_entry(found.scan.images[next], found.modules[next], found.stored[next], entry, oracle,
                     name + " container " + std::to_string(c) + " entry at " + entry["offset"].dump());
        ++next;
      }
    }
    EXPECT_EQ(next, found.modules.size()) << name;
  }
  EXPECT_GE(modules, 60u);
  EXPECT_GE(kernels, 130u);
}

// Every pair of a file's hash here and the independent parser's, K or M.
struct Pair {
  std::string ours;
  std::string theirs;
  std::string where;
};

void pair_hashes(const Module& module, const json& want, const std::string& where, std::vector<Pair>& kernels,
                 std::vector<Pair>& modules) {
  modules.push_back({to_hex(module.m), want["module_sha256"], where});
  for (const Kernel& kernel : module.kernels)
    for (const json& function : want["funcs"])
      if (function["name"] == kernel.name)
        kernels.push_back({to_hex(kernel.k), function["sha256"], where + " " + kernel.name});
}

// Returns how many pairs of entries are equal.
std::size_t expect_same_partition(const std::vector<Pair>& all) {
  std::size_t equal = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      equal += all[i].theirs == all[j].theirs;
      EXPECT_EQ(all[i].ours == all[j].ours, all[i].theirs == all[j].theirs) << all[i].where << " and " << all[j].where;
    }
  return equal;
}

// The independent parser writes K and M down in another form, so the values
// differ; what is the same kernel and what is not must not.
TEST(Samples, KernelsAndModulesAreTheSameWhereExpected) {
  std::vector<Pair> kernels;
  std::vector<Pair> modules;
  for (const std::string& name : sample_names()) {
    const json want = test::sample_json(name + ".json");
    const Found found = test::identify_here(test::sample(name));
    if (want.contains("cubin")) {
      ASSERT_EQ(found.modules.size(), 1u) << name;
      pair_hashes(found.modules[0], want["cubin"], name, kernels, modules);
    }
    if (!want.contains("containers")) continue;
    std::size_t next = 0;
    for (const json& container : want["containers"])
      for (const json& entry : container["entries"]) {
        ASSERT_LT(next, found.modules.size()) << name;
        if (entry.contains("cubin")) pair_hashes(found.modules[next], entry["cubin"], name, kernels, modules);
        ++next;
      }
  }
  EXPECT_GE(kernels.size(), 130u);
  EXPECT_GE(expect_same_partition(kernels), 100u);
  EXPECT_GE(expect_same_partition(modules), 10u);
}

// Baselines outlive a version: whoever changes the form of K or M must change
// its version string too, and these values with it.
TEST(Samples, FormsOfKAndMAreThePinnedOnes) {
  const json pinned = test::sample_json("forms.json");
  EXPECT_GE(pinned.size(), 35u);
  for (const auto& [name, want] : pinned.items()) {
    json found = json::array();
    for (const Module& module : test::identify_here(test::sample(name)).modules) {
      if (module.kind != Kind::kElf) continue;
      found.push_back(to_hex(module.m));
      for (const Kernel& kernel : module.kernels) found.push_back(to_hex(kernel.k));
    }
    EXPECT_EQ(found, want) << name << ": M, then K of its kernels, of each cubin";
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineSamples,
                         ::testing::Values(HashBatch::Engine::kBest, HashBatch::Engine::kPairs,
                                           HashBatch::Engine::kOpenSsl));

}  // namespace
}  // namespace gpuwatch::identify
