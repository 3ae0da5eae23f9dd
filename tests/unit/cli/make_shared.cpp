// SPDX-License-Identifier: Apache-2.0
// make-shared GOLDEN IMAGES FILE: puts recordings of real programs, made one at
// a time on an H200, beside each other on a machine with two GPUs, each in a
// container of its own and still running at the end, with loads of GPU code from
// IMAGES. Containers, users, times and the second GPU are made up; calls are not.
// Made tests/screens/shared.gwcap, which the screens of the manual are taken of.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "preload/shard_format.h"
#include "source/gwcap.h"
#include "unit/support.h"

namespace gpuwatch::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

struct Load {
  std::uint64_t at_ns;  // after the program's first record
  const char* image;
  gpuwatch_image_kind kind;
  const char* file;  // that it lay in; empty: memory of no file
};

struct Part {
  const char* recording;
  const char* cgroup;
  std::uint64_t cgroup_id;
  std::uint32_t pid;
  std::uint32_t uid;
  std::uint32_t minor;
  std::uint64_t begin_ns;
  std::uint64_t until_ns;  // of its own time: what came later is left out
  std::vector<Load> loads;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> kParts = {
      {"train-loop",
       "/system.slice/docker-4f7bf4a02c0446d2a1f25cf92c6fb1b9d6ac1b6d3a7f0a8e1f4b2c3d4e5f6071.scope",
       4711,
       21560,
       1000,
       0,
       0,
       20 * kSecond,
       {{3 * kSecond, "abi_13_80.cubin", GPUWATCH_IMAGE_ELF, "/opt/app/libtrain.so"},
        {3 * kSecond, "d_90a.fatbin", GPUWATCH_IMAGE_FATBIN, "/opt/app/libtrain.so"}}},
      {"torch-step",
       "/kubepods.slice/kubepods-burstable.slice/"
       "kubepods-burstable-pod6f1c2d34_5a7b_4c8d_9e0f_1a2b3c4d5e6f.slice/"
       "cri-containerd-d12be365711c7e4f80912a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f.scope",
       4720,
       23084,
       1001,
       0,
       8 * kSecond,
       7 * kSecond,
       {{2 * kSecond, "abi_13_80.cubin", GPUWATCH_IMAGE_ELF, "/opt/app/libtrain.so"},
        {4 * kSecond, "add.ptx", GPUWATCH_IMAGE_TEXT, ""}}},
      {"driver-api",
       "/machine.slice/libpod-b5a5f078b297cc0de1f2031425364758697a8b9cadbecfd0e1f2031425364758.scope",
       4733,
       24091,
       1002,
       1,
       14 * kSecond,
       380'000'000,
       {{340'000'000, "abi_12_90a.cubin", GPUWATCH_IMAGE_ELF, "/tmp/.cache/worker"}}},
      {"nvidia-smi-loop", "/system.slice/ssh.service", 4744, 24553, 0, 0, 17 * kSecond, 3 * kSecond, {}},
  };
  return kParts;
}

struct Made {
  std::uint64_t time_ns;
  Blob record;
  std::string image;  // bytes that go before it
  std::uint64_t id = 0;
};

Blob cgroup_record(const gpuwatch_rec& head, const std::string& path) {
  Blob payload;
  gpuwatch_rec_cgroup fixed{};
  fixed.version = 2;
  fixed.path_len = static_cast<__u32>(path.size());
  append_struct(payload, fixed);
  for (const char c : path) payload.push_back(static_cast<std::byte>(c));
  pad8(payload);
  return finish_record(head, payload);
}

Blob image_record(gpuwatch_rec head, const Load& load, const std::string& bytes, std::uint64_t id) {
  head.type = GPUWATCH_REC_IMAGE;
  head.file_id = 0;
  head.rdev = 0;
  head.node_kind = 0;
  Blob payload;
  gpuwatch_rec_image fixed{};
  fixed.id = id;
  fixed.address = fixed.image_address = 0x7f0000000000;
  fixed.bytes = fixed.copied_bytes = bytes.size();
  fixed.kind = static_cast<__u16>(load.kind);
  fixed.nr_parts = 1;
  fixed.head_len = static_cast<__u16>(std::min<std::size_t>(bytes.size(), GPUWATCH_IMAGE_HEAD));
  std::snprintf(fixed.symbol, sizeof fixed.symbol, "cuModuleLoadData");
  append_struct(payload, fixed);
  for (std::size_t i = 0; i < fixed.head_len; ++i) payload.push_back(static_cast<std::byte>(bytes[i]));
  pad8(payload);
  const std::string path = load.file;
  gw_image_file file{};
  file.ino = path.empty() ? 0 : 77;
  file.path_len = static_cast<std::uint32_t>(path.size());
  append_struct(payload, file);
  for (const char c : path) payload.push_back(static_cast<std::byte>(c));
  pad8(payload);
  return finish_record(head, payload);
}

bool add(const Part& part, std::size_t number, const std::string& golden, const std::string& images,
         std::vector<Made>& out) {
  auto reader = source::GwcapReader::open(golden + "/" + part.recording + ".gwcap");
  if (!reader) return false;
  const std::uint64_t begin_ns = 1000 * kSecond + part.begin_ns;
  std::uint64_t first_ns = 0;
  std::uint32_t first_pid = 0;
  std::size_t next_load = 0;
  for (;;) {
    auto got = reader->next();
    if (!got) return false;
    if (!*got) break;
    const model::RawRecord& record = **got;
    gpuwatch_rec head = record.head;
    if (first_ns == 0) {
      first_ns = head.time_ns;
      first_pid = head.tgid;
    }
    const std::uint64_t after_ns = head.time_ns - first_ns;
    if (after_ns > part.until_ns) break;
    head.time_ns = begin_ns + after_ns;
    const std::uint32_t own_tid = head.tid - head.tgid;
    head.tgid = part.pid + (head.tgid - first_pid);
    head.tid = head.tgid + own_tid;
    head.start_ns = begin_ns;
    head.uid = part.uid;
    head.cgroup_id = part.cgroup_id;
    if (head.file_id != 0) head.file_id += 1'000'000 * (number + 1);
    if (head.node_kind == GPUWATCH_NODE_GPU) head.rdev = (head.rdev & ~0xfffffU) | part.minor;
    while (next_load < part.loads.size() && part.loads[next_load].at_ns <= after_ns) {
      const Load& load = part.loads[next_load++];
      const std::string bytes = slurp(images + "/" + load.image);
      if (bytes.empty()) return false;
      const std::uint64_t id = 100 * (number + 1) + next_load;
      out.push_back({head.time_ns, image_record(head, load, bytes, id), bytes, id});
    }
    if (head.type == GPUWATCH_REC_CGROUP) {
      out.push_back({head.time_ns, cgroup_record(head, part.cgroup), {}, 0});
      continue;
    }
    const Blob payload(record.payload.begin(), record.payload.end());
    out.push_back({head.time_ns, finish_record(head, payload), {}, 0});
  }
  return next_load == part.loads.size();
}

bool write(const std::string& golden, const std::string& images, const std::string& path) {
  std::vector<Made> made;
  for (std::size_t i = 0; i < parts().size(); ++i)
    if (!add(parts()[i], i, golden, images, made)) {
      std::fprintf(stderr, "make-shared: %s cannot be used\n", parts()[i].recording);
      return false;
    }
  std::stable_sort(made.begin(), made.end(), [](const Made& a, const Made& b) { return a.time_ns < b.time_ns; });
  source::GwcapHeader header;
  header.source = "synth";
  header.driver_version = "580.159.04";
  header.realtime_minus_monotonic_ns = static_cast<std::int64_t>(1'767'225'600 * kSecond);
  header.gpus = {{0, "0000:18:00.0", "NVIDIA H200", "GPU-6f0c2a51-0000-4b4e-9f10-1d0f7c5a0001"},
                 {1, "0000:2a:00.0", "NVIDIA H200", "GPU-6f0c2a51-0000-4b4e-9f10-1d0f7c5a0002"}};
  source::GwcapOptions options;
  options.force = true;
  options.level = 19;
  auto writer = source::GwcapWriter::create(path, header, options);
  if (!writer) return false;
  std::uint64_t seq = 0;
  for (Made& each : made) {
    if (!each.image.empty()) {
      const auto* bytes = reinterpret_cast<const std::byte*>(each.image.data());
      auto kept = writer->append_image(each.id, {bytes, each.image.size()});
      if (!kept || !*kept) return false;
    }
    gpuwatch_rec head;
    std::memcpy(&head, each.record.data(), sizeof head);
    head.cpu = 0;
    head.seq = seq++;
    std::memcpy(each.record.data(), &head, sizeof head);
    if (!writer->append(model::Bytes(each.record)).ok()) return false;
  }
  return writer->finish({}).ok();
}

}  // namespace
}  // namespace gpuwatch::test

int main(int argc, char** argv) {
  if (argc != 4 || !gpuwatch::test::write(argv[1], argv[2], argv[3])) {
    std::fprintf(stderr, "usage: make-shared GOLDEN IMAGES FILE\n");
    return 2;
  }
  return 0;
}
