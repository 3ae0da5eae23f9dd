// SPDX-License-Identifier: Apache-2.0
// Reads a .gwcap into processes, threads and steps. Offsets of nested pointers
// are not in records: they come from the capture plan that made them.
#include "recording.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "../../simdrv/gwsim.h"
#include "decode/capture_plan.h"
#include "source/gwcap.h"

namespace gpuwatch::replay {

namespace {

static_assert(GWSIM_NODE_CTL == GPUWATCH_NODE_CTL && GWSIM_NODE_GPU == GPUWATCH_NODE_GPU &&
              GWSIM_NODE_UVM == GPUWATCH_NODE_UVM && GWSIM_NODE_UVM_TOOLS == GPUWATCH_NODE_UVM_TOOLS &&
              GWSIM_NODE_MODESET == GPUWATCH_NODE_MODESET && GWSIM_NODE_CAPS == GPUWATCH_NODE_CAPS &&
              GWSIM_NODE_IMEX == GPUWATCH_NODE_IMEX && GWSIM_NODE_NVSWITCH == GPUWATCH_NODE_NVSWITCH &&
              GWSIM_NODE_NVLINK == GPUWATCH_NODE_NVLINK && GWSIM_NODE_MAX == GPUWATCH_NODE_MAX);

constexpr std::uint32_t kMinorMask = (1U << 20) - 1;
constexpr std::uint32_t kPartMax = GWSIM_PART_MAX;
constexpr std::size_t kRecordsMax = 4'000'000;
constexpr std::size_t kVisiting = std::numeric_limits<std::size_t>::max();

using ProcessKey = std::pair<std::uint32_t, std::uint64_t>;  // tgid, start

std::vector<std::byte> copy_of(const model::Capture* capture) {
  if (capture == nullptr) return {};
  return {capture->bytes.begin(), capture->bytes.end()};
}

// What the call left behind. Where the place is absurd the bytes are dropped.
void set_out(Part& part, const model::Capture* capture) {
  if (capture == nullptr || capture->head.offset > kPartMax) return;
  part.out_offset = capture->head.offset;
  part.out = copy_of(capture);
}

std::uint32_t room_of(const model::Capture* before, const model::Capture* after, std::uint32_t at_least) {
  std::uint32_t room = at_least;
  for (const model::Capture* capture : {before, after})
    if (capture != nullptr) room = std::max({room, capture->head.want, capture->head.len});
  return std::min(room, kPartMax);
}

class Loader {
 public:
  Loader(const LoadOptions& options, decode::CapturePlan plan) : options_(options), plan_(std::move(plan)) {}

  void add(const model::RawRecord& record);
  Recording finish();

 private:
  struct Pending {
    ProcessKey process;
    std::uint32_t tid;
    std::uint64_t file_id;
    Step step;
  };

  void add_ioctl(const model::RawRecord& record, Step& step);
  const gpuwatch_plan_entry* plan_entry(const Step& step) const;
  std::optional<ProcessKey> ancestor_with_calls(const ProcessKey& key) const;
  std::size_t process_index(const ProcessKey& key);
  std::size_t file_index(const Pending& pending, std::size_t process);
  void place(Pending& pending);
  Thread& thread_of(std::size_t process, std::uint32_t tid);

  LoadOptions options_;
  decode::CapturePlan plan_;
  std::vector<Pending> pending_;
  std::map<ProcessKey, ProcessKey> parents_;
  std::set<ProcessKey> callers_;
  std::map<ProcessKey, std::size_t> process_of_;
  std::map<std::uint64_t, std::size_t> open_files_;
  Recording result_;
};

void Loader::add(const model::RawRecord& record) {
  const gpuwatch_rec& head = record.head;
  const ProcessKey key{head.tgid, head.start_ns};
  if (options_.only_tgid && head.tgid != *options_.only_tgid) return;
  Pending pending{key, options_.merge_threads ? head.tgid : head.tid, head.file_id, {}};
  Step& step = pending.step;
  step.kind = head.node_kind;
  step.rdev = head.rdev;
  step.time_ns = head.time_ns;
  step.comm.assign(head.comm, strnlen(head.comm, sizeof head.comm));
  switch (head.type) {
    case GPUWATCH_REC_OPEN: {
      const auto open = model::read_at<gpuwatch_rec_open>(record.payload, 0);
      if (!open) return;
      step.op = Op::kOpen;
      step.ret = open->ret;
      step.f_flags = open->f_flags;
      break;
    }
    case GPUWATCH_REC_IOCTL:
      step.op = Op::kIoctl;
      add_ioctl(record, step);
      break;
    case GPUWATCH_REC_MMAP: {
      const auto mapped = model::read_at<gpuwatch_rec_mmap>(record.payload, 0);
      if (!mapped) return;
      step.op = Op::kMmap;
      step.ret = mapped->ret;
      step.length = mapped->length;
      step.offset = mapped->offset;
      step.prot = mapped->prot;
      step.shared = mapped->shared != 0;
      break;
    }
    case GPUWATCH_REC_RELEASE:
      step.op = Op::kRelease;
      break;
    case GPUWATCH_REC_TASK:
      if (const auto task = model::read_at<gpuwatch_rec_task>(record.payload, 0))
        parents_[key] = {task->parent_tgid, task->parent_start_ns};
      return;
    default:
      return;
  }
  pending_.push_back(std::move(pending));
}

const gpuwatch_plan_entry* Loader::plan_entry(const Step& step) const {
  const std::uint32_t cmd = step.xfer ? (step.inner_size << 16 | (step.inner_cmd & 0xff)) : step.cmd;
  for (const gpuwatch_plan_entry& entry : plan_.entries)
    if ((cmd & entry.cmd_mask) == entry.cmd && ((entry.node_mask >> step.kind) & 1U) != 0 &&
        (entry.flags & GPUWATCH_PLAN_XFER) == 0)
      return &entry;
  return nullptr;
}

void Loader::add_ioctl(const model::RawRecord& record, Step& step) {
  const auto view = model::parse_ioctl(record);
  if (!view) return;
  step.cmd = view->fixed.cmd;
  step.ret = view->fixed.ret;
  step.arg = view->fixed.arg;
  step.xfer = (record.head.flags & GPUWATCH_F_XFER) != 0;
  step.inner_cmd = view->fixed.inner_cmd;
  step.inner_size = view->fixed.inner_size;

  const model::Capture* before = view->find(GPUWATCH_CAP_ARG_IN);
  const model::Capture* after = view->find(GPUWATCH_CAP_ARG_OUT);
  if (before == nullptr && after == nullptr) return;
  const std::uint32_t declared = step.xfer ? step.inner_size : (step.cmd >> 16) & 0x3fff;
  Part argument;
  argument.ptr_offset = GWSIM_PART_ARG;
  argument.room = room_of(before, after, declared);
  argument.in = copy_of(before);
  set_out(argument, after);
  const std::size_t in_bytes = argument.in.size();
  step.parts.push_back(std::move(argument));

  const gpuwatch_plan_entry* entry = plan_entry(step);
  if (entry == nullptr) return;
  constexpr std::pair<gpuwatch_capture_what, gpuwatch_capture_what> kNested[] = {
      {GPUWATCH_CAP_NESTED0_IN, GPUWATCH_CAP_NESTED0_OUT}, {GPUWATCH_CAP_NESTED1_IN, GPUWATCH_CAP_NESTED1_OUT}};
  for (std::size_t i = 0; i < 2; ++i) {
    before = view->find(kNested[i].first);
    after = view->find(kNested[i].second);
    const std::uint32_t offset = entry->nested[i].ptr_offset;
    if ((before == nullptr && after == nullptr) || offset + std::size_t{8} > in_bytes) continue;
    Part nested{offset, room_of(before, after, 0), copy_of(before), {}, 0};
    set_out(nested, after);
    step.parts.push_back(std::move(nested));
  }
}

// A parent that made no call of its own is passed over: its parent counts. The
// bound also ends chains that a damaged recording closes to a ring.
std::optional<ProcessKey> Loader::ancestor_with_calls(const ProcessKey& key) const {
  ProcessKey up = key;
  for (int depth = 0; depth < 64; ++depth) {
    const auto next = parents_.find(up);
    if (next == parents_.end() || next->second == key) return std::nullopt;
    up = next->second;
    if (callers_.contains(up)) return up;
  }
  return std::nullopt;
}

// Parents get their index before their children.
std::size_t Loader::process_index(const ProcessKey& key) {
  const auto [place, fresh] = process_of_.try_emplace(key, kVisiting);
  if (!fresh) return place->second;
  Process process;
  process.tgid = key.first;
  process.start_ns = key.second;
  if (const auto parent = ancestor_with_calls(key)) {
    const std::size_t index = process_index(*parent);
    if (index != kVisiting) process.parent = index;
  }
  result_.processes.push_back(std::move(process));
  return process_of_[key] = result_.processes.size() - 1;
}

Thread& Loader::thread_of(std::size_t process, std::uint32_t tid) {
  auto& threads = result_.processes[process].threads;
  for (Thread& thread : threads)
    if (thread.tid == tid) return thread;
  threads.push_back({tid, {}});
  return threads.back();
}

// The file a step is about. One that was open before the recording began gets
// an open in front of its first use.
std::size_t Loader::file_index(const Pending& pending, std::size_t process) {
  if (pending.step.op != Op::kOpen) {
    const auto known = open_files_.find(pending.file_id);
    if (known != open_files_.end()) return known->second;
  }
  File file;
  file.open_process = process;
  result_.files.push_back(file);
  const std::size_t index = result_.files.size() - 1;
  open_files_[pending.file_id] = index;
  if (pending.step.op == Op::kOpen) return index;
  Step open;
  open.op = Op::kOpen;
  open.kind = pending.step.kind;
  open.rdev = pending.step.rdev;
  open.file = index;
  open.time_ns = pending.step.time_ns;
  open.comm = pending.step.comm;
  open.f_flags = 2;  // O_RDWR
  thread_of(process, pending.tid).steps.push_back(std::move(open));
  return index;
}

void Loader::place(Pending& pending) {
  Step& step = pending.step;
  if (!node_path(step.kind, step.rdev)) {
    ++result_.skipped;
    return;
  }
  const std::size_t process = process_index(pending.process);
  if (step.op == Op::kOpen && step.ret < 0) {
    // No such node: the recorder saw the failure, no driver did.
    if (step.ret == -ENOENT || step.ret == -ENOTDIR)
      ++result_.skipped;
    else
      thread_of(process, pending.tid).steps.push_back(std::move(step));
    return;
  }
  step.file = file_index(pending, process);
  File& file = result_.files[step.file];
  if (step.op == Op::kIoctl || step.op == Op::kMmap) ++file.uses;
  if (step.op == Op::kRelease) {
    file.released = true;
    open_files_.erase(pending.file_id);
  }
  thread_of(process, pending.tid).steps.push_back(std::move(step));
}

Recording Loader::finish() {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Pending& a, const Pending& b) { return a.step.time_ns < b.step.time_ns; });
  for (const Pending& pending : pending_) callers_.insert(pending.process);
  for (Pending& pending : pending_) place(pending);
  if (!pending_.empty()) result_.first_ns = pending_.front().step.time_ns;
  return std::move(result_);
}

}  // namespace

std::optional<std::string> node_path(std::uint8_t kind, std::uint32_t rdev) {
  const std::string minor = std::to_string(rdev & kMinorMask);
  switch (kind) {
    case GPUWATCH_NODE_CTL:
      return "/dev/nvidiactl";
    case GPUWATCH_NODE_GPU:
      return "/dev/nvidia" + minor;
    case GPUWATCH_NODE_UVM:
      return "/dev/nvidia-uvm";
    case GPUWATCH_NODE_UVM_TOOLS:
      return "/dev/nvidia-uvm-tools";
    case GPUWATCH_NODE_MODESET:
      return "/dev/nvidia-modeset";
    case GPUWATCH_NODE_CAPS:
      return "/dev/nvidia-caps/nvidia-cap" + minor;
    case GPUWATCH_NODE_IMEX:
      return "/dev/nvidia-caps-imex-channels/channel" + minor;
    case GPUWATCH_NODE_NVSWITCH:
      return minor == "255" ? "/dev/nvidia-nvswitchctl" : "/dev/nvidia-nvswitch" + minor;
    case GPUWATCH_NODE_NVLINK:
      return "/dev/nvidia-nvlink";
    default:
      return std::nullopt;
  }
}

base::Result<Recording> load(const std::string& path, const LoadOptions& options) {
  auto reader = source::GwcapReader::open(path);
  if (!reader) return std::move(reader.error());
  const auto version = model::parse_driver_version(reader->header().driver_version);
  Loader loader(options, decode::make_capture_plan(version.value_or(model::DriverVersion{})));
  std::string cut;
  for (std::size_t count = 0;; ++count) {
    if (count == kRecordsMax)
      return base::Error(base::Code::kLimit,
                         path + ": more records than " + std::to_string(kRecordsMax) + ": replay a shorter recording");
    auto record = reader->next();
    if (!record) {
      cut = record.error().message();
      break;
    }
    if (!record.value()) break;
    loader.add(*record.value());
  }
  Recording recording = loader.finish();
  recording.cut = std::move(cut);
  if (recording.processes.empty()) return base::Error(base::Code::kBadInput, path + ": holds no driver call to replay");
  return recording;
}

}  // namespace gpuwatch::replay
