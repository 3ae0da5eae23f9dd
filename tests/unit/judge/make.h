// SPDX-License-Identifier: Apache-2.0
// Modules and baselines for tests, made from short words.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "judge/baseline.h"
#include "judge/sha256.h"

namespace gpuwatch::judge {

inline model::Digest digest(const std::string& word) {
  Sha256 hash;
  hash.add(word);
  return hash.finish();
}

inline model::KernelPrint kernel(const std::string& name, const std::string& code, bool entry = true) {
  model::KernelPrint out;
  out.name = name;
  out.entry = entry;
  out.k = digest("k" + code);
  out.t = digest("t" + code);
  out.code_bytes = 128 * code.size();
  out.registers = 16;
  return out;
}

// A cubin for sm_90 whose hashes follow from its name.
inline model::ModulePrint cubin(const std::string& name, std::vector<model::KernelPrint> kernels) {
  model::ModulePrint out;
  out.kind = model::CodeKind::kElf;
  out.sm = 90;
  out.bytes = 1000;
  out.r = digest("r" + name);
  out.m = digest("m" + name);
  out.d = digest("d" + name);
  out.kernels = std::move(kernels);
  return out;
}

inline model::ModulePrint ptx(const std::string& text) {
  model::ModulePrint out;
  out.kind = model::CodeKind::kPtx;
  out.sm = 90;
  out.bytes = text.size();
  out.r = digest("r" + text);
  out.p = digest("p" + text);
  return out;
}

inline Entry entry(model::ModulePrint module, const std::string& path = "/usr/lib/libx.so") {
  Source source;
  source.path = path;
  source.manager = "dpkg";
  source.package = "libx";
  source.version = "1.2-3";
  source.label = "prod";
  source.added_unix = 1700000000;
  source.container_offset = 4096;
  source.entry = 2;
  return {std::move(module), {source}, {}};
}

// As a probe found function "f" of it on sm_90.
inline Entry with_resident(Entry entry, const std::string& driver, const std::string& code) {
  Resident resident{"f", driver, 90, digest("f" + code), 128, {}, {}};
  if (entry.module.kind == model::CodeKind::kPtx) {
    resident.k = digest("k" + code);
    resident.t = digest("t" + code);
  }
  entry.residents.push_back(std::move(resident));
  return entry;
}

class WithBaselines : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "gpuwatch-judge-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override {
    std::filesystem::permissions(directory_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(directory_);
  }

  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  Baseline make(const std::string& name, std::vector<Entry> entries, Stance stance = Stance::kKnown) const {
    auto baseline = Baseline::open_or_make(file(name), {stance, name, 1700000000});
    EXPECT_TRUE(baseline.ok()) << (baseline.ok() ? "" : baseline.error().message());
    auto added = baseline->add(entries);
    EXPECT_TRUE(added.ok()) << (added.ok() ? "" : added.error().message());
    return std::move(*baseline);
  }

  std::string directory_;
};

}  // namespace gpuwatch::judge
