// SPDX-License-Identifier: Apache-2.0
// Runs a scenario of the subject under the recorder and gives back what the
// shards say. Memory devices (major 1) count as NVIDIA GPU nodes here.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "preload/plan_file.h"
#include "preload/shard_format.h"
#include "preload/shards.h"

namespace gpuwatch::preload {

class Recorded : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "gpuwatch-preload-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::filesystem::create_directory(shards());
    std::ofstream(directory_ + "/majors") << "Character devices:\n  1 nvidia\n\nBlock devices:\n  1 nvidia-uvm\n";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string shards() const { return directory_ + "/shards"; }

  // Runs the subject and reads its shards; the wait status is left in status_.
  void run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), subject_);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      setenv("LD_PRELOAD", RECORDER, 1);
      setenv(GW_ENV_DIR, shards().c_str(), 1);
      setenv(GW_ENV_MAJORS, (directory_ + "/majors").c_str(), 1);
      for (const auto& [name, value] : environment_) setenv(name.c_str(), value.c_str(), 1);
      execv(argv[0], argv.data());
      _exit(127);
    }
    ASSERT_EQ(waitpid(pid, &status_, 0), pid);
    pid_ = static_cast<std::uint32_t>(pid);
    auto result = read_shards(shards());
    ASSERT_TRUE(result.ok()) << result.error().message();
    recording_ = std::move(*result);
    records_.clear();
    for (model::Bytes rest(recording_.bytes); !rest.empty();) {
      const auto record = model::parse_record(rest);
      ASSERT_TRUE(record.has_value());
      records_.push_back(*record);
      rest = rest.subspan(record->head.len);
    }
    check_stream();
  }

  void expect_success() const {
    EXPECT_TRUE(WIFEXITED(status_) && WEXITSTATUS(status_) == 0) << "wait status " << status_;
  }

  std::vector<model::RawRecord> of_type(std::uint16_t type) const {
    std::vector<model::RawRecord> found;
    for (const auto& record : records_)
      if (record.head.type == type) found.push_back(record);
    return found;
  }

  // hObject of every RM_CONTROL, in order of the stream.
  std::vector<std::uint32_t> values(std::uint32_t tid = 0) const {
    std::vector<std::uint32_t> found;
    for (const auto& record : records_) {
      const auto view = model::parse_ioctl(record);
      if (!view || (tid != 0 && record.head.tid != tid)) continue;
      const auto* in = view->find(GPUWATCH_CAP_ARG_IN);
      if (in == nullptr) continue;
      if (const auto value = model::read_at<std::uint32_t>(in->bytes, 4)) found.push_back(*value);
    }
    return found;
  }

  const std::string& directory() const { return directory_; }

  std::string subject_ = SUBJECT;
  std::string directory_;
  std::vector<std::pair<std::string, std::string>> environment_;
  int status_ = 0;
  std::uint32_t pid_ = 0;
  Recording recording_;
  std::vector<model::RawRecord> records_;

 private:
  // What every stream must satisfy.
  void check_stream() const {
    std::uint64_t last = 0;
    std::vector<std::uint64_t> next(4096, 0);
    for (const auto& record : records_) {
      ASSERT_GE(record.head.time_ns, last);
      last = record.head.time_ns;
      ASSERT_LT(record.head.cpu, next.size());
      ASSERT_EQ(record.head.seq, next[record.head.cpu]++);
      ASSERT_TRUE(record.head.flags & GPUWATCH_F_PRELOAD);
      ASSERT_NE(record.head.start_ns, 0u);
    }
    ASSERT_EQ(records_.size(), recording_.records);
    ASSERT_EQ(recording_.damaged_bytes, 0u);
  }
};

}  // namespace gpuwatch::preload
