// SPDX-License-Identifier: Apache-2.0
// gw-check: runs a command under observation and compares what /dev/gpuwatch
// gave with the log of the simulated driver, call by call: every call there,
// in order per thread, the same result, the same bytes. One JSON line; exit 0
// when all agrees (losses agree when counted), 1 when not.
#include <getopt.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "../../simdrv/gwsim.h"
#include "ring_reader.h"

namespace {

using gpuwatch::check::die;
using gpuwatch::check::RingReader;

struct Digest {
  std::uint32_t len = 0;
  std::uint64_t hash = 0;
  bool there = false;
};

struct Seen {
  std::uint64_t time_ns;
  std::uint32_t tgid, tid, cmd;
  std::uint8_t kind, op;
  bool xfer;
  std::int64_t ret;
  Digest arg_in, arg_out, nested_in, nested_out;
};

struct Options {
  RingReader::Setup setup;
  bool stopped_reader = false;  // nobody reads while the command runs
  bool want_loss = false;       // a run without loss fails
  char** command = nullptr;
};

struct Verdict {
  std::uint64_t seen = 0, witness = 0, lost = 0, missing = 0, extra = 0, order = 0, bytes = 0, partial = 0;
  std::uint64_t ops[GWSIM_OP_MAX] = {};
};

Digest digest(std::span<const std::byte> bytes) {
  const auto len = static_cast<std::uint32_t>(bytes.size());
  return {len, gwsim_hash(reinterpret_cast<const __u8*>(bytes.data()), len), true};
}

void read_captures(std::span<const std::byte> payload, Seen& seen) {
  gpuwatch_rec_ioctl fixed;
  if (payload.size() < sizeof fixed) return;
  std::memcpy(&fixed, payload.data(), sizeof fixed);
  seen.cmd = seen.xfer ? fixed.inner_cmd : fixed.cmd;
  seen.ret = fixed.ret;
  payload = payload.subspan(sizeof fixed);
  for (std::uint32_t i = 0; i < fixed.nr_captures; ++i) {
    gpuwatch_capture capture;
    if (payload.size() < sizeof capture) return;
    std::memcpy(&capture, payload.data(), sizeof capture);
    payload = payload.subspan(sizeof capture);
    const std::size_t padded = (std::size_t{capture.len} + 7) & ~std::size_t{7};
    if (padded > payload.size()) return;
    const Digest d = capture.flags & GPUWATCH_CAPF_FAULT ? Digest{} : digest(payload.first(capture.len));
    payload = payload.subspan(padded);
    if (capture.what == GPUWATCH_CAP_ARG_IN) seen.arg_in = d;
    if (capture.what == GPUWATCH_CAP_ARG_OUT) seen.arg_out = d;
    if (capture.what == GPUWATCH_CAP_NESTED0_IN) seen.nested_in = d;
    if (capture.what == GPUWATCH_CAP_NESTED0_OUT) seen.nested_out = d;
  }
}

// Same file, same place in the log's terms; false for records that are no call.
bool to_seen(const gpuwatch_rec& head, std::span<const std::byte> payload, Seen& seen) {
  seen = {};
  seen.time_ns = head.time_ns;
  seen.tgid = head.tgid;
  seen.tid = head.tid;
  seen.kind = head.node_kind;
  seen.xfer = (head.flags & GPUWATCH_F_XFER) != 0;
  switch (head.type) {
    case GPUWATCH_REC_OPEN:
      seen.op = GWSIM_OP_OPEN;
      return true;
    case GPUWATCH_REC_MMAP:
      seen.op = GWSIM_OP_MMAP;
      return true;
    case GPUWATCH_REC_RELEASE:
      seen.op = GWSIM_OP_RELEASE;
      return true;
    case GPUWATCH_REC_IOCTL:
      seen.op = head.flags & GPUWATCH_F_COMPAT ? GWSIM_OP_COMPAT_IOCTL : GWSIM_OP_IOCTL;
      read_captures(payload, seen);
      return true;
    default:
      return false;
  }
}

// True when they differ; a capture that is shorter by plan says nothing.
bool differs(const Digest& seen, std::uint32_t len, std::uint64_t hash, Verdict& verdict) {
  if (len == 0) return false;  // the driver did not get that far
  if (!seen.there || seen.len < len) {
    ++verdict.partial;
    return false;
  }
  return seen.len == len && seen.hash != hash;
}

bool same_call(const Seen& s, const gwsim_log_entry& w) {
  return s.cmd == w.cmd && s.kind == w.kind && s.op == w.op && s.xfer == (w.xfer != 0) && s.ret == w.ret;
}

void compare_bytes(const Seen& s, const gwsim_log_entry& w, Verdict& verdict) {
  if (differs(s.arg_in, w.in_len, w.in_hash, verdict) || differs(s.arg_out, w.out_len, w.out_hash, verdict) ||
      differs(s.nested_in, w.nested_in_len, w.nested_in_hash, verdict) ||
      differs(s.nested_out, w.nested_out_len, w.nested_out_hash, verdict)) {
    if (verdict.bytes++ < 5)
      std::fprintf(stderr, "gw-check: thread %u, command 0x%x: bytes are not the driver's\n", s.tid, s.cmd);
  }
}

// Per thread, both lists are in order of the calls. Without loss they pair one
// to one; with loss a record may be missing, never two swapped.
void compare_thread(const std::vector<const Seen*>& seen, const std::vector<const gwsim_log_entry*>& witness,
                    Verdict& verdict) {
  std::size_t w = 0;
  for (const Seen* s : seen) {
    std::size_t at = w;
    while (at < witness.size() && !same_call(*s, *witness[at])) ++at;
    // Calls that look alike are told apart by their bytes.
    while (at < witness.size() && s->arg_in.there && witness[at]->in_len == s->arg_in.len &&
           witness[at]->in_hash != s->arg_in.hash) {
      ++at;
      while (at < witness.size() && !same_call(*s, *witness[at])) ++at;
    }
    if (at == witness.size()) {
      if (verdict.order++ < 5)
        std::fprintf(stderr, "gw-check: thread %u: command 0x%x, result %lld: not in the driver's order\n", s->tid, s->cmd,
                     static_cast<long long>(s->ret));
      continue;
    }
    verdict.missing += at - w;
    compare_bytes(*s, *witness[at], verdict);
    w = at + 1;
  }
  verdict.missing += witness.size() - w;
}

std::vector<gwsim_log_entry> read_log(int control) {
  std::vector<gwsim_log_entry> log;
  gwsim_totals totals{};
  if (::ioctl(control, GWSIM_IOC_TOTALS, &totals) != 0) die("totals of /dev/gwsim");
  if (totals.log_dropped != 0) {
    std::fprintf(stderr, "gw-check: the driver's log is too small: load gwsim.ko with more log_entries\n");
    std::exit(2);
  }
  log.resize(totals.log_used);
  gwsim_log request{};
  request.entries = reinterpret_cast<std::uintptr_t>(log.data());
  request.room = static_cast<std::uint32_t>(log.size());
  if (::ioctl(control, GWSIM_IOC_LOG, &request) != 0) die("log of /dev/gwsim");
  log.resize(request.count);
  return log;
}

Verdict compare(std::vector<Seen>& seen, int control) {
  Verdict verdict;
  std::stable_sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) { return a.time_ns < b.time_ns; });
  const auto log = read_log(control);
  gwsim_totals totals{};
  if (::ioctl(control, GWSIM_IOC_TOTALS, &totals) != 0) die("totals of /dev/gwsim");
  std::map<std::uint32_t, std::vector<const Seen*>> seen_by_thread;
  std::map<std::uint32_t, std::vector<const gwsim_log_entry*>> witness_by_thread;
  for (const Seen& s : seen) {
    ++verdict.ops[s.op];
    if (s.op == GWSIM_OP_IOCTL || s.op == GWSIM_OP_COMPAT_IOCTL) seen_by_thread[s.tid].push_back(&s);
  }
  for (const gwsim_log_entry& w : log) witness_by_thread[w.tid].push_back(&w);
  for (const auto& [tid, list] : witness_by_thread) compare_thread(seen_by_thread[tid], list, verdict);
  for (const auto& [tid, list] : seen_by_thread)
    if (!witness_by_thread.contains(tid)) verdict.extra += list.size();
  for (int op = 0; op < GWSIM_OP_MAX; ++op) {
    std::uint64_t counted = 0;
    for (const auto& kind : totals.counts.n) counted += kind[op];
    verdict.witness += counted;
    if (op == GWSIM_OP_IOCTL || op == GWSIM_OP_COMPAT_IOCTL) continue;
    if (counted > verdict.ops[op]) verdict.missing += counted - verdict.ops[op];
    if (counted < verdict.ops[op]) verdict.extra += verdict.ops[op] - counted;
  }
  verdict.seen = seen.size();
  return verdict;
}

Options parse(int argc, char** argv) {
  static const option kNames[] = {{"ring-bytes", 1, nullptr, 'r'}, {"watermark", 1, nullptr, 'w'},
                                  {"read", 0, nullptr, 'R'},       {"stopped-reader", 0, nullptr, 's'},
                                  {"want-loss", 0, nullptr, 'l'},  {nullptr, 0, nullptr, 0}};
  Options options;
  for (int c = 0; (c = getopt_long(argc, argv, "+", kNames, nullptr)) != -1;) {
    if (c == 'r')
      options.setup.ring_bytes = std::strtoull(optarg, nullptr, 0);
    else if (c == 'w')
      options.setup.watermark_bytes = static_cast<std::uint32_t>(std::strtoul(optarg, nullptr, 0));
    else if (c == 'R')
      options.setup.by_read = true;
    else if (c == 's')
      options.stopped_reader = true;
    else if (c == 'l')
      options.want_loss = true;
    else
      std::exit(2);
  }
  if (optind == argc) {
    std::fputs("usage: gw-check [--ring-bytes N] [--watermark N] [--read] [--stopped-reader] [--want-loss] -- COMMAND...\n",
               stderr);
    std::exit(2);
  }
  options.command = argv + optind;
  return options;
}

// Drains while the command runs, unless the reader shall stand still.
int run(const Options& options, RingReader& reader, const gpuwatch::check::OnRecord& on_record) {
  const pid_t pid = ::fork();
  if (pid < 0) die("fork");
  if (pid == 0) {
    ::execvp(options.command[0], options.command);
    ::_exit(127);
  }
  int status = 0;
  for (;;) {
    const pid_t done = ::waitpid(pid, &status, options.stopped_reader ? 0 : WNOHANG);
    if (done == pid) break;
    pollfd wait{reader.fd(), POLLIN, 0};
    ::poll(&wait, 1, 20);
    reader.drain(on_record);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const int control = ::open("/dev/gwsim", O_RDWR | O_CLOEXEC);
  if (control < 0) die("/dev/gwsim");
  RingReader reader(options.setup);
  if (::ioctl(control, GWSIM_IOC_RESET) != 0) die("reset of /dev/gwsim");
  std::vector<Seen> seen;
  std::uint64_t backwards = 0;
  std::map<std::uint32_t, std::uint64_t> next_seq;
  const auto on_record = [&](const gpuwatch_rec& head, std::span<const std::byte> payload) {
    // A ring's numbers have gaps where records were lost, and never go back.
    std::uint64_t& next = next_seq[head.cpu];
    if (head.seq < next) ++backwards;
    next = head.seq + 1;
    Seen s;
    if (to_seen(head, payload, s)) seen.push_back(s);
  };
  const int status = run(options, reader, on_record);
  reader.disable();
  while (reader.drain(on_record) != 0) {
  }
  const auto lost = reader.lost();
  std::uint64_t lost_sum = 0;
  for (const std::uint64_t n : lost) lost_sum += n;
  Verdict verdict = compare(seen, control);
  const bool loss_agrees = options.setup.by_read || reader.unaccounted() == 0;
  std::printf(
      "{\"command_status\":%d,\"witness\":%llu,\"seen\":%llu,\"open\":%llu,\"ioctl\":%llu,\"compat_ioctl\":%llu,\"mmap\":%llu,"
      "\"release\":%llu,\"lost\":%llu,\"lost_full\":%llu,\"lost_too_big\":%llu,\"missing\":%llu,\"extra\":%llu,"
      "\"out_of_order\":%llu,\"wrong_bytes\":%llu,\"partial_captures\":%llu,\"bad_records\":%llu,\"unaccounted\":%lld}\n",
      status, (unsigned long long)verdict.witness, (unsigned long long)verdict.seen, (unsigned long long)verdict.ops[0],
      (unsigned long long)verdict.ops[1], (unsigned long long)verdict.ops[2], (unsigned long long)verdict.ops[3],
      (unsigned long long)verdict.ops[4], (unsigned long long)lost_sum, (unsigned long long)lost[GPUWATCH_LOSS_RING_FULL],
      (unsigned long long)lost[GPUWATCH_LOSS_TOO_BIG], (unsigned long long)verdict.missing, (unsigned long long)verdict.extra,
      (unsigned long long)verdict.order, (unsigned long long)verdict.bytes, (unsigned long long)verdict.partial,
      (unsigned long long)(reader.bad_records() + backwards), (long long)reader.unaccounted());
  // Definition records may be among the lost ones: missing calls are at most
  // what was counted, and without counted loss none may be missing.
  const bool fine = status == 0 && verdict.extra == 0 && verdict.order == 0 && verdict.bytes == 0 &&
                    reader.bad_records() + backwards == 0 && loss_agrees && verdict.missing <= lost_sum &&
                    (lost_sum != 0 || verdict.missing == 0) && (lost_sum != 0) == options.want_loss;
  return fine ? 0 : 1;
}
