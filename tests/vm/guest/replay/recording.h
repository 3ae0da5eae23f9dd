// SPDX-License-Identifier: Apache-2.0
// A .gwcap as a plan of calls to make again: processes, their threads, each
// thread's steps in order, and the open files that steps share. It issues
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/raw_record.h"

namespace gpuwatch::replay {

// User memory of a call: what it held before and after.
struct Part {
  std::uint32_t ptr_offset = 0;  // in the argument; GWSIM_PART_ARG: the argument
  std::uint32_t room = 0;        // bytes the caller declared
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::uint32_t out_offset = 0;  // where `out` begins in the memory
};

enum class Op { kOpen, kIoctl, kMmap, kRelease };

struct Step {
  Op op = Op::kOpen;
  std::uint8_t kind = 0;
  std::uint32_t rdev = 0;
  std::size_t file = 0;  // index in Recording::files
  std::int64_t ret = 0;
  std::uint64_t time_ns = 0;
  std::string comm;
  // open
  std::uint32_t f_flags = 0;
  // ioctl
  std::uint32_t cmd = 0;
  bool xfer = false;
  std::uint32_t inner_cmd = 0;
  std::uint32_t inner_size = 0;
  std::uint64_t arg = 0;
  std::vector<Part> parts;  // the argument first
  // mmap
  std::uint64_t length = 0;
  std::uint64_t offset = 0;
  std::uint32_t prot = 0;
  bool shared = false;
};

// An open file between its open and its release.
struct File {
  std::uint32_t uses = 0;        // ioctls and mmaps on it
  std::size_t open_process = 0;  // who opens it in the replay
  bool released = false;         // the recording holds its release
};

struct Thread {
  std::uint32_t tid = 0;
  std::vector<Step> steps;
};

struct Process {
  std::uint32_t tgid = 0;
  std::uint64_t start_ns = 0;
  std::optional<std::size_t> parent;  // index; the replay's own root otherwise
  std::vector<Thread> threads;
};

struct Recording {
  std::vector<Process> processes;  // parents before children
  std::vector<File> files;
  std::uint64_t first_ns = 0;
  std::size_t skipped = 0;  // calls that never reached a driver
  std::string cut;          // why reading ended early, else empty
};

struct LoadOptions {
  std::optional<std::uint32_t> only_tgid;
  bool merge_threads = false;  // all of a process's calls in one thread
};

base::Result<Recording> load(const std::string& path, const LoadOptions& options);

// Path of the node in the guest; nothing for a family that has none.
std::optional<std::string> node_path(std::uint8_t kind, std::uint32_t rdev);

}  // namespace gpuwatch::replay
