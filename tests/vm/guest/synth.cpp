// SPDX-License-Identifier: Apache-2.0
// gw-synth: writes a made-up .gwcap with all that a replay has to cope with:
// a tree of processes, threads that share files, files used by another process,
// wrapped calls, nested buffers, refused calls and opens, mappings, files never
// closed. The values mean nothing. Same arguments, same bytes.
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "source/gwcap.h"

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kRmControl = 0xc020462a;
constexpr std::uint32_t kRmAlloc = 0xc030462b;
constexpr std::uint32_t kXfer = 0xc01046d3;
constexpr std::uint32_t kUvmInitialize = 0x30000001;
constexpr std::uint32_t kUvmMapExternal = 0x21;
constexpr std::uint32_t kTail = 64;  // of larger arguments only so much is kept after the call
constexpr std::uint64_t kStart = 1'000'000'000;

template <typename T>
void put(Bytes& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void pad8(Bytes& out) {
  out.resize((out.size() + 7) & ~std::size_t{7});
}

struct Who {
  std::uint32_t tgid;
  std::uint32_t tid;
  std::uint64_t start_ns;
  const char* comm;
};

struct Node {
  std::uint64_t file_id;
  std::uint8_t kind;
  std::uint32_t rdev;
};

class Synth {
 public:
  explicit Synth(gpuwatch::source::GwcapWriter& writer) : writer_(writer) {}

  void task(const Who& who, const Who* parent) {
    Bytes payload;
    gpuwatch_rec_task task{};
    if (parent != nullptr) {
      task.parent_tgid = parent->tgid;
      task.parent_start_ns = parent->start_ns;
    }
    task.ns_tgid = who.tgid;
    put(payload, task);
    record(GPUWATCH_REC_TASK, who, {}, payload);
  }

  void open(const Who& who, const Node& node, std::int64_t ret) {
    Bytes payload;
    put(payload, gpuwatch_rec_open{ret, 900, 0x8002, 0});
    record(GPUWATCH_REC_OPEN, who, node, payload);
  }

  void release(const Who& who, const Node& node) {
    Bytes payload;
    put(payload, gpuwatch_rec_release{700});
    record(GPUWATCH_REC_RELEASE, who, node, payload);
  }

  void mmap(const Who& who, const Node& node, std::uint64_t length) {
    Bytes payload;
    put(payload, gpuwatch_rec_mmap{0, 800, 0x7f0000000000, length, 0x200000000, 3, 1});
    record(GPUWATCH_REC_MMAP, who, node, payload);
  }

  // A call with `bytes` of argument, and of nested parameters behind the
  // pointer at offset 16 where `params` is not 0.
  void ioctl(const Who& who, const Node& node, std::uint32_t cmd, std::uint32_t bytes, std::uint32_t params,
             std::int64_t ret = 0, bool xfer = false) {
    gpuwatch_rec_ioctl fixed{};
    fixed.cmd = xfer ? kXfer : cmd;
    fixed.inner_cmd = xfer ? cmd & 0xff : 0;
    fixed.inner_size = xfer ? bytes : 0;
    fixed.ret = ret;
    fixed.duration_ns = 1500;
    fixed.arg = 0x7fff12340000;
    Bytes captures;
    if (xfer) {
      Bytes wrapper;
      put(wrapper, cmd & 0xff);
      put(wrapper, bytes);
      put(wrapper, std::uint64_t{0x7fff12341000});
      capture(captures, fixed, GPUWATCH_CAP_XFER_IN, wrapper);
    }
    capture(captures, fixed, GPUWATCH_CAP_ARG_IN, argument(bytes, params, 0));
    if (ret == 0 && bytes > kTail)
      capture(captures, fixed, GPUWATCH_CAP_ARG_OUT, some_bytes(kTail), bytes - kTail);
    else if (ret == 0)
      capture(captures, fixed, GPUWATCH_CAP_ARG_OUT, argument(bytes, params, 1));
    if (params != 0) {
      capture(captures, fixed, GPUWATCH_CAP_NESTED0_IN, some_bytes(params));
      if (ret == 0) capture(captures, fixed, GPUWATCH_CAP_NESTED0_OUT, some_bytes(params));
    }
    Bytes payload;
    put(payload, fixed);
    payload.insert(payload.end(), captures.begin(), captures.end());
    record(GPUWATCH_REC_IOCTL, who, node, payload, xfer ? GPUWATCH_F_XFER : 0);
  }

  const gpuwatch::base::Status& status() const { return status_; }

 private:
  Bytes some_bytes(std::uint32_t count) {
    Bytes bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>((state_ = state_ * 6364136223846793005ULL + 1) >> 56);
    return bytes;
  }

  // RM_CONTROL's layout where there are parameters: pointer at 16, size at 24.
  Bytes argument(std::uint32_t bytes, std::uint32_t params, std::uint32_t salt) {
    Bytes out = some_bytes(bytes);
    if (params == 0 || bytes < 32) return out;
    const std::uint64_t pointer = 0x7fff12342000;
    const std::uint32_t status = 0;
    std::memcpy(out.data() + 16, &pointer, sizeof pointer);
    std::memcpy(out.data() + (bytes == 48 ? 32 : 24), &params, sizeof params);
    if (salt != 0) std::memcpy(out.data() + (bytes == 48 ? 40 : 28), &status, sizeof status);
    return out;
  }

  static void capture(Bytes& out, gpuwatch_rec_ioctl& fixed, gpuwatch_capture_what what, const Bytes& bytes,
                      std::uint32_t offset = 0) {
    const auto count = static_cast<std::uint32_t>(bytes.size());
    put(out, gpuwatch_capture{static_cast<std::uint16_t>(what), 0, offset + count, count, offset});
    out.insert(out.end(), bytes.begin(), bytes.end());
    pad8(out);
    ++fixed.nr_captures;
  }

  void record(gpuwatch_rec_type type, const Who& who, const Node& node, const Bytes& payload, int flags = 0) {
    gpuwatch_rec head{};
    head.len = static_cast<std::uint32_t>(sizeof head + payload.size());
    head.type = static_cast<std::uint16_t>(type);
    head.flags = static_cast<std::uint16_t>(flags);
    head.seq = seq_++;
    head.time_ns = kStart + head.seq * 10'000;
    head.tgid = who.tgid;
    head.tid = who.tid;
    head.start_ns = who.start_ns;
    head.cgroup_id = 1;
    head.file_id = node.file_id;
    head.rdev = node.rdev;
    head.node_kind = node.kind;
    std::strncpy(head.comm, who.comm, sizeof head.comm - 1);
    Bytes whole;
    put(whole, head);
    whole.insert(whole.end(), payload.begin(), payload.end());
    if (status_.ok()) status_ = writer_.append(whole);
  }

  gpuwatch::source::GwcapWriter& writer_;
  gpuwatch::base::Status status_;
  std::uint64_t seq_ = 0;
  std::uint64_t state_ = 1;
};

// One process with two threads that share its files.
void process(Synth& synth, const Who& main, const Who* parent, const Node* inherited, std::uint64_t files,
             unsigned calls) {
  const Who second{main.tgid, main.tid + 1, main.start_ns, "worker"};
  const Node ctl{files, GPUWATCH_NODE_CTL, 195U << 20 | 255};
  const Node gpu{files + 1, GPUWATCH_NODE_GPU, 195U << 20};
  const Node uvm{files + 2, GPUWATCH_NODE_UVM, 240U << 20};
  synth.task(main, parent);
  synth.open(main, ctl, 0);
  synth.open(main, Node{0, GPUWATCH_NODE_GPU, 195U << 20 | 1}, -EIO);
  synth.open(second, gpu, 0);
  synth.open(main, uvm, 0);
  synth.ioctl(main, uvm, kUvmInitialize, 16, 0);
  synth.ioctl(main, uvm, kUvmMapExternal, 9264, 0);
  for (unsigned i = 0; i < calls; ++i) {
    const Who& caller = i % 3 == 2 ? second : main;
    synth.ioctl(caller, ctl, kRmControl, 32, 40 + i % 64);
    if (i % 5 == 0) synth.ioctl(caller, ctl, kRmAlloc, 48, 56);
    if (i % 7 == 0) synth.ioctl(caller, gpu, kRmControl, 32, 2048, 0, true);
    if (i % 11 == 0) synth.ioctl(caller, gpu, kRmControl, 32, 16, -EINVAL);
    if (i % 13 == 0) synth.mmap(caller, gpu, 1 << 21);
    if (inherited != nullptr && i % 4 == 0) synth.ioctl(caller, *inherited, kRmControl, 32, 24);
  }
  synth.release(second, ctl);
  synth.release(main, gpu);  // uvm stays open to the end of the process
}

}  // namespace

int main(int argc, char** argv) {
  unsigned calls = 100;
  if (argc < 2 || argc > 3 ||
      (argc == 3 && std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), calls).ec != std::errc{})) {
    std::fputs("usage: gw-synth FILE.gwcap [CALLS per process]\n", stderr);
    return 2;
  }
  gpuwatch::source::GwcapHeader header;
  header.source = "synth";
  header.driver_version = "580.159.04";
  gpuwatch::source::GwcapOptions options;
  options.force = true;
  auto writer = gpuwatch::source::GwcapWriter::create(argv[1], header, options);
  if (!writer) {
    std::fprintf(stderr, "gw-synth: %s\n", writer.error().message().c_str());
    return 2;
  }
  Synth synth(*writer);
  const Who parent{1000, 1000, 50'000'000, "trainer"};
  const Who child{1010, 1010, 60'000'000, "loader"};
  const Node shared{100, GPUWATCH_NODE_CTL, 195U << 20 | 255};
  synth.task(parent, nullptr);
  synth.open(parent, shared, 0);
  process(synth, child, &parent, &shared, 200, calls);
  process(synth, parent, nullptr, &shared, 300, calls);
  auto status = synth.status().ok() ? writer->finish({}) : synth.status();
  if (!status) {
    std::fprintf(stderr, "gw-synth: %s\n", status.error().message().c_str());
    return 2;
  }
  return 0;
}
