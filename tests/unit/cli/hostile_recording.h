// SPDX-License-Identifier: Apache-2.0
// A recording whose every name, path and id means no good: escape codes for a
// terminal, quotes for JSON, broken UTF-8. Each holds the word SECRET, so that
// a test can look for what must not come out; the user's id is 54321.
#pragma once

#include <string>
#include <vector>

#include "source/gwcap.h"
#include "unit/support.h"

namespace gpuwatch::test {

inline constexpr std::uint32_t kSecretUser = 54321;

inline void append_text(Blob& payload, const std::string& text) {
  for (const char c : text) payload.push_back(static_cast<std::byte>(c));
  pad8(payload);
}

inline Blob hostile_task(gpuwatch_rec head, const std::string& exe) {
  Blob payload;
  gpuwatch_rec_task fixed{};
  fixed.ns_tgid = 1;
  fixed.ns_level = 1;
  fixed.parent_tgid = 6;
  fixed.exe_ino = 987654321;
  fixed.path_len = static_cast<__u32>(exe.size());
  append_struct(payload, fixed);
  append_text(payload, exe);
  gpuwatch_task_more more{};
  more.nr_ancestors = 1;
  more.nr_ns = 2;
  append_struct(payload, more);
  gpuwatch_ancestor parent{};
  parent.tgid = 6;
  std::memcpy(parent.comm, "SECRETsh\x1b[7m\"", 13);
  append_struct(payload, parent);
  append_struct(payload, std::uint32_t{7});
  append_struct(payload, std::uint32_t{1});
  head.type = GPUWATCH_REC_TASK;
  return finish_record(head, payload);
}

inline Blob hostile_cgroup(gpuwatch_rec head, const std::string& path) {
  Blob payload;
  gpuwatch_rec_cgroup fixed{};
  fixed.version = 2;
  fixed.path_len = static_cast<__u32>(path.size());
  append_struct(payload, fixed);
  append_text(payload, path);
  head.type = GPUWATCH_REC_CGROUP;
  return finish_record(head, payload);
}

inline std::vector<Blob> hostile_records() {
  const std::string id(64, 'd');
  const std::vector<std::string> paths = {
      "/user.slice/user-54321.slice/session-SECRET.scope/lxc.payload.SECRETbox",
      "/system.slice/SECRET@a.service/x\x1b]0;owned\x07",
      "/docker/" + id + "/SECRET\n\r\t\x1b[2J\xff\xc0\xaf",
      "/machine.slice/machine-SECRET\\x2dvm.scope/payload",
      std::string("/SECRET\0/x", 10),
      "/SECRET\"},{\"pid\":0,\"\\u001b\xe2\x80\xae",
      "/kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-" + std::string(64, 'e') +
          ".scope/SECRET",
  };
  std::vector<Blob> records;
  std::uint64_t time = 1000;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    gpuwatch_rec head = make_head(GPUWATCH_REC_OPEN);
    head.uid = kSecretUser;
    head.cgroup_id = 100 + i;
    head.tgid = head.tid = 700 + static_cast<std::uint32_t>(i);
    head.start_ns = 5;
    std::memset(head.comm, 0, sizeof head.comm);
    std::memcpy(head.comm, i % 2 == 0 ? "SECRET\x1b[31m\x07" : "SECRET\"\\\xff\n\x9b", i % 2 == 0 ? 12 : 11);
    head.time_ns = time++;
    records.push_back(hostile_cgroup(head, paths[i]));
    head.time_ns = time++;
    records.push_back(
        hostile_task(head, "/home/SECRET/\x1b[1A\x1b]8;;http://x\x07" + std::to_string(i) + "\n\xed\xa0\x80"));
    for (const std::uint32_t minor : {255U, 0U, 1U}) {
      head.rdev = (195U << 20) | minor;
      head.node_kind = minor == 255 ? GPUWATCH_NODE_CTL : GPUWATCH_NODE_GPU;
      head.file_id = 10 * i + minor;
      head.time_ns = time++;
      records.push_back(open_record(head, minor == 1 ? -13 : 0));
    }
    head.rdev = (195U << 20) | 255;
    head.node_kind = GPUWATCH_NODE_CTL;
    head.time_ns = time++;
    records.push_back(ioctl_record(head, 0xc020462a, -1));
    head.type = 200;  // of a later version
    head.time_ns = time++;
    Blob later;
    append_text(later, "SECRET payload");
    records.push_back(finish_record(head, later));
  }
  return records;
}

inline bool write_hostile_recording(const std::string& path) {
  source::GwcapHeader header;
  header.source = "synth";
  header.driver_version = "580.159.04";
  header.boottime_minus_monotonic_ns = 1;
  source::GwcapOptions options;
  options.force = true;
  auto writer = source::GwcapWriter::create(path, header, options);
  if (!writer) return false;
  for (const Blob& record : hostile_records())
    if (!writer->append(record).ok()) return false;
  return writer->finish({}).ok();
}

}  // namespace gpuwatch::test
