// SPDX-License-Identifier: Apache-2.0
// Helpers of several unit tests: records made from nothing, scratch files.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "model/raw_record.h"

namespace gpuwatch::test {

using Blob = std::vector<std::byte>;

template <typename T>
void append_struct(Blob& out, const T& value) {
  const auto* p = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), p, p + sizeof value);
}

inline void pad8(Blob& out) {
  while (out.size() % 8 != 0) out.push_back(std::byte{0});
}

// Header values most tests do not care about.
inline gpuwatch_rec make_head(gpuwatch_rec_type type, std::uint64_t time_ns = 1000, std::uint32_t tid = 7) {
  gpuwatch_rec head{};
  head.type = static_cast<__u16>(type);
  head.time_ns = time_ns;
  head.tgid = 7;
  head.tid = tid;
  head.uid = 1000;
  head.cgroup_id = 42;
  head.file_id = 5;
  head.rdev = (195u << 20) | 255;
  head.node_kind = GPUWATCH_NODE_CTL;
  std::memcpy(head.comm, "worker", 6);
  return head;
}

inline Blob finish_record(gpuwatch_rec head, const Blob& payload) {
  Blob out;
  head.len = static_cast<__u32>(sizeof head + payload.size());
  append_struct(out, head);
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

struct CaptureSpec {
  gpuwatch_capture_what what;
  std::string bytes;
  std::uint32_t offset = 0;  // of `bytes` in the argument
  std::uint32_t want = 0;    // what the call declared; 0: the end of `bytes`
};

inline Blob ioctl_record(gpuwatch_rec head, std::uint32_t cmd, std::int64_t ret,
                         const std::vector<CaptureSpec>& captures = {}) {
  Blob payload;
  gpuwatch_rec_ioctl fixed{};
  fixed.cmd = cmd;
  fixed.ret = ret;
  fixed.duration_ns = 500;
  fixed.nr_captures = static_cast<__u16>(captures.size());
  append_struct(payload, fixed);
  for (const CaptureSpec& spec : captures) {
    gpuwatch_capture capture{};
    capture.what = static_cast<__u16>(spec.what);
    capture.len = static_cast<__u32>(spec.bytes.size());
    capture.offset = spec.offset;
    capture.want = spec.want != 0 ? spec.want : spec.offset + capture.len;
    if (capture.len < capture.want) capture.flags = GPUWATCH_CAPF_CAPPED;
    append_struct(payload, capture);
    for (char c : spec.bytes) payload.push_back(static_cast<std::byte>(c));
    pad8(payload);
  }
  return finish_record(head, payload);
}

inline Blob open_record(gpuwatch_rec head, std::int64_t ret = 0) {
  Blob payload;
  gpuwatch_rec_open fixed{};
  fixed.ret = ret;
  fixed.duration_ns = 100;
  append_struct(payload, fixed);
  head.type = GPUWATCH_REC_OPEN;
  return finish_record(head, payload);
}

class ScratchDir {
 public:
  ScratchDir() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/gpuwatch-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  ~ScratchDir() {
    const std::string command = "rm -rf '" + path_ + "'";
    if (std::system(command.c_str()) != 0) std::perror(path_.c_str());
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace gpuwatch::test
