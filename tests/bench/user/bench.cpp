// SPDX-License-Identifier: Apache-2.0
// bench-user SCRATCH JSON RECORDING...: speed of the path from a .gwcap file
// to decoded calls, on one core, with its lower bounds measured in the same
// run: reading, checksum and zstd alone, and copying and parsing alone. Prints
// a table and writes the same as JSON.
#include <fcntl.h>
#include <time.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "attribution.h"
#include "base/crc32c.h"
#include "base/fd.h"
#include "base/io.h"
#include "cli/view.h"
#include "source/record_delta.h"
#include "workload.h"

namespace gpuwatch::bench {
namespace {

constexpr std::uint64_t kRecords = 100'000;

std::uint64_t sink;  // keeps results alive

// CPU time of this process: other load on the machine must not count.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Best of many short rounds: on a busy machine the caches are another's most of
// the time, and a long round has no chance to be undisturbed.
double best_seconds(const std::function<void()>& work) {
  const double start = cpu_seconds();
  double best = 1e9;
  for (int round = 0; round < 5 || (round < 100 && cpu_seconds() - start < 2.0); ++round) {
    const double begin = cpu_seconds();
    work();
    best = std::min(best, cpu_seconds() - begin);
  }
  return best;
}

struct Row {
  std::string name;
  double value;
  std::string unit;
  std::string ratio_to;  // name of the peer, empty for none
  double ratio = 0;
};

class Table {
 public:
  void add(const std::string& name, double value, const std::string& unit, const std::string& ratio_to = "") {
    Row row{name, value, unit, ratio_to, 0};
    for (const Row& peer : rows_)
      if (peer.name == ratio_to) row.ratio = value / peer.value;
    std::printf("%-44s %10.2f %-12s", name.c_str(), value, unit.c_str());
    if (!ratio_to.empty()) std::printf(" %6.2f x %s", row.ratio, ratio_to.c_str());
    std::printf("\n");
    std::fflush(stdout);
    rows_.push_back(row);
  }

  void save(const std::string& path) const {
    nlohmann::json list = nlohmann::json::array();
    for (const Row& row : rows_) {
      nlohmann::json peer;  // null
      if (!row.ratio_to.empty()) peer = {{"name", row.ratio_to}, {"ratio", row.ratio}};
      list.push_back({{"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"ratio_to", peer}});
    }
    std::ofstream(path) << list.dump(1) << "\n";
  }

 private:
  std::vector<Row> rows_;
};

void fail(const std::string& what) {
  std::fprintf(stderr, "bench-user: %s\n", what.c_str());
  std::exit(2);
}

template <typename Each>
void read_file(const std::string& path, Each each) {
  auto reader = source::GwcapReader::open(path);
  if (!reader) fail(reader.error().message());
  std::vector<model::RawRecord> block;
  do {
    if (base::Status status = reader->next_batch(block); !status.ok()) fail(status.error().message());
    for (const model::RawRecord& record : block) each(record);
  } while (!block.empty());
}

void parse_all(model::Bytes raw) {
  for (std::size_t at = 0; at < raw.size();) {
    const auto record = model::parse_record(raw.subspan(at));
    sink += record->head.time_ns + record->payload.size();
    at += record->head.len;
  }
}

// One allocation of GPU memory, as a record.
void make_memory(const decode::Decoder& decoder, decode::StoryBuilder& story, std::vector<model::StoryEvent>& events,
                 std::uint32_t pid, std::uint32_t client, std::uint32_t handle) {
  struct {
    gpuwatch_rec head{};
    gpuwatch_rec_ioctl call{};
    gpuwatch_capture in{};
    std::uint32_t in_words[12]{};
    gpuwatch_capture out{};
    std::uint32_t out_words[12]{};
    gpuwatch_capture nested{};
    std::uint64_t params[16]{};
  } record;
  record.head.len = sizeof record;
  record.head.type = GPUWATCH_REC_IOCTL;
  record.head.node_kind = GPUWATCH_NODE_CTL;
  record.head.tgid = pid;
  record.head.file_id = pid;
  record.call.cmd = 0xC030462B;
  record.call.nr_captures = 3;
  record.in.what = GPUWATCH_CAP_ARG_IN;
  record.out.what = GPUWATCH_CAP_ARG_OUT;
  record.in.len = record.in.want = record.out.len = record.out.want = sizeof record.in_words;
  record.in_words[0] = record.out_words[0] = client;
  record.in_words[2] = record.out_words[2] = handle;
  record.in_words[3] = record.out_words[3] = 0x40;
  record.nested.what = GPUWATCH_CAP_NESTED0_OUT;
  record.nested.len = record.nested.want = sizeof record.params;
  record.params[8] = 2 << 20;
  const auto* bytes = reinterpret_cast<const std::byte*>(&record);
  const auto parsed = model::parse_record({bytes, sizeof record});
  if (!parsed) fail("a record of the bench's own is none");
  story.observe(decoder.decode(*parsed), events);
}

double view_seconds(const std::string& path, bool raw, bool json, const char* filter_text) {
  return best_seconds([&] {
    const cli::Selection selection;
    cli::ViewOptions options;
    options.raw = raw;
    options.json = json;
    std::optional<cli::Filter> filter;
    if (*filter_text != '\0') filter = std::move(*cli::Filter::compile(filter_text));
    cli::View view(options, {580, 159, 4}, std::move(filter), selection);
    std::string out;
    read_file(path, [&](const model::RawRecord& record) {
      view.observe(record, out);
      if (out.size() > (64 << 10)) {
        sink += out.size();
        out.clear();
      }
    });
  });
}

// Why level 1 and 1 MiB: what each choice costs and gives.
void compare_choices(Table& table, const Workload& workload, const std::string& path) {
  for (const auto& [level, kib] : {std::pair{1, 64}, {1, 256}, {1, 1024}, {1, 4096}, {3, 1024}, {6, 1024}}) {
    source::GwcapOptions options;
    options.force = true;
    options.level = level;
    options.block_bytes = static_cast<std::uint32_t>(kib) << 10;
    const double write_s = best_seconds([&] {
      if (base::Status status = write_file(workload, path, options); !status.ok()) fail(status.error().message());
    });
    std::size_t stored = 0;
    for (const Frame& frame : frames_of(path)) stored += frame.stored.size();
    const double read_s =
        best_seconds([&] { read_file(path, [](const model::RawRecord& record) { sink += record.head.len; }); });
    const std::string name = "level " + std::to_string(level) + ", " + std::to_string(kib) + " KiB blocks: ";
    const auto records = static_cast<double>(workload.records);
    table.add(name + "write", records / write_s / 1e6, "M records/s");
    table.add(name + "read", records / read_s / 1e6, "M records/s");
    table.add(name + "stored", static_cast<double>(stored) / records, "bytes/record");
  }
}

int run(const std::string& scratch, const std::string& json_path, const std::vector<std::string>& recordings) {
  auto workload = make_workload(recordings, kRecords);
  if (!workload) fail(workload.error().message());
  const auto records = static_cast<double>(workload->records);
  const std::string path = scratch + "/bench.gwcap";
  source::GwcapOptions options;
  options.force = true;
  const double write_s = best_seconds([&] {
    if (base::Status status = write_file(*workload, path, options); !status.ok()) fail(status.error().message());
  });
  const std::vector<Frame> frames = frames_of(path);
  std::size_t stored = 0;
  for (const Frame& frame : frames) stored += frame.stored.size();

  Table table;
  const auto rate = [&](double seconds) { return records / seconds / 1e6; };
  const std::string unit = "M records/s";
  table.add("bytes of a record, raw", static_cast<double>(workload->raw.size()) / records, "bytes/record");
  table.add("bytes of a record, stored", static_cast<double>(stored) / records, "bytes/record",
            "bytes of a record, raw");

  // What others would do with the same records, and the parts of our own way.
  std::vector<Frame> plain;
  for (std::size_t at = 0; at < workload->raw.size(); at += options.block_bytes) {
    const std::size_t n = std::min<std::size_t>(options.block_bytes, workload->raw.size() - at);
    std::vector<std::byte> frame(ZSTD_compressBound(n));
    frame.resize(ZSTD_compress(frame.data(), frame.size(), workload->raw.data() + at, n, options.level));
    plain.push_back({std::move(frame), 0});
  }
  std::size_t plain_stored = 0;
  for (const Frame& frame : plain) plain_stored += frame.stored.size();
  table.add("bytes of a record, zstd as they are", static_cast<double>(plain_stored) / records, "bytes/record",
            "bytes of a record, raw");
  const auto decompress = [](const std::vector<Frame>& all) {
    ZSTD_DCtx* context = ZSTD_createDCtx();
    std::vector<std::byte> raw(source::delta_bound(source::kGwcapRawMax));
    for (const Frame& frame : all)
      sink += ZSTD_decompressDCtx(context, raw.data(), raw.size(), frame.stored.data(), frame.stored.size());
    ZSTD_freeDCtx(context);
  };
  table.add("peer: zstd library, records as they are", rate(best_seconds([&] { decompress(plain); })), unit);
  table.add("part: zstd library, records as deltas", rate(best_seconds([&] { decompress(frames); })), unit);
  const double read_s = best_seconds([&] {
    const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::vector<std::byte> chunk(64 << 10);
    for (;;) {
      auto got = base::read_full(fd.get(), chunk);
      if (!got || *got == 0) break;
      sink += *got;
    }
  });
  table.add("part: read(2) of the file", rate(read_s), unit);
  const double crc_s = best_seconds([&] {
    for (const Frame& frame : frames) sink += base::crc32c(frame.stored);
  });
  table.add("part: checksum", rate(crc_s), unit);
  // In pieces that stay in the cache, as a reader would have them.
  const double parse_s = best_seconds([&] {
    std::vector<std::byte> copy(options.block_bytes + GPUWATCH_REC_MAX);
    for (std::size_t at = 0; at < workload->raw.size();) {
      std::size_t n = 0;
      while (n < options.block_bytes && at + n < workload->raw.size())
        n += model::parse_record(model::Bytes(workload->raw).subspan(at + n))->head.len;
      std::memcpy(copy.data(), workload->raw.data() + at, n);
      parse_all(model::Bytes(copy).first(n));
      at += n;
    }
  });
  table.add("peer: memcpy and parse, no compression", rate(parse_s), unit);

  const std::string zstd_peer = "peer: zstd library, records as they are";
  const double records_s =
      best_seconds([&] { read_file(path, [](const model::RawRecord& record) { sink += record.head.time_ns; }); });
  table.add("file to raw records", rate(records_s), unit, zstd_peer);
  const double event_s = best_seconds([&] {
    read_file(path, [](const model::RawRecord& record) {
      if (const auto view = model::parse_ioctl(record)) sink += view->fixed.cmd + view->count;
    });
  });
  table.add("file to raw events, captures found", rate(event_s), unit, zstd_peer);
  const double decode_s = best_seconds([&] {
    decode::Decoder decoder({580, 159, 4});
    read_file(path, [&](const model::RawRecord& record) { sink += decoder.decode(record).number; });
  });
  table.add("file to decoded calls", rate(decode_s), unit, zstd_peer);
  // The story, of records in memory: without the file, and with the tree of a
  // machine at work around it.
  const auto story_seconds = [&](std::uint32_t standing) {
    decode::Decoder decoder({580, 159, 4});
    decode::StoryBuilder story;
    std::vector<model::StoryEvent> events;
    for (std::uint32_t process = 0; process * 5000 < standing; ++process)
      for (std::uint32_t i = 0; i < 5000; ++i) {
        make_memory(decoder, story, events, 900'000 + process, 0xC2000000 + process, 0x5C000010 + i);
        events.clear();
      }
    const double seconds = best_seconds([&] {
      const model::Bytes raw(workload->raw);
      for (std::size_t at = 0; at < raw.size();) {
        const auto record = model::parse_record(raw.subspan(at));
        story.observe(decoder.decode(*record), events);
        sink += events.size();
        events.clear();
        at += record->head.len;
      }
    });
    return std::pair(seconds, story.tree().stats());
  };
  const double plain_s = best_seconds([&] {
    decode::Decoder decoder({580, 159, 4});
    const model::Bytes raw(workload->raw);
    for (std::size_t at = 0; at < raw.size();) {
      const auto record = model::parse_record(raw.subspan(at));
      sink += decoder.decode(*record).number;
      at += record->head.len;
    }
  });
  table.add("records to decoded calls", rate(plain_s), unit);
  const auto [story_s, small] = story_seconds(0);
  table.add("records to story events", rate(story_s), unit, "records to decoded calls");
  const auto [busy_s, large] = story_seconds(100'000);
  table.add("records to story events, 100,000 live objects", rate(busy_s), unit, "records to decoded calls");
  table.add("tree: bytes of 10,000 live objects",
            static_cast<double>(large.bytes - small.bytes) / static_cast<double>(large.objects - small.objects) * 1e4,
            "bytes");
  table.add("file to raw lines", rate(view_seconds(path, true, false, "")), unit, "file to decoded calls");
  table.add("file to raw JSON lines", rate(view_seconds(path, true, true, "")), unit, "file to decoded calls");
  table.add("file to events in words", rate(view_seconds(path, false, false, "")), unit, "file to decoded calls");
  table.add("file to filtered raw lines, 1 % pass", rate(view_seconds(path, true, false, "class==open && node==gpu")),
            unit, "file to decoded calls");
  table.add("records to file", rate(write_s), unit);
  const AttributionCost attribution = measure_attribution();
  sink += attribution.sum;
  const std::string proc_peer = "peer: a process's stat, cgroup, exe from /proc";
  table.add(proc_peer, attribution.proc_ns, "ns");
  table.add("process and cgroup of an event, known", attribution.known_ns, "ns", proc_peer);
  table.add("definition of a process learned", attribution.definition_ns, "ns", proc_peer);
  std::printf("\nChoice of compression level and block size:\n");
  compare_choices(table, *workload, path);
  table.save(json_path);
  const bool events_good = rate(event_s) >= 5.0;
  std::printf("\nfile to raw events: %.2f M records/s on one core, wanted 5: %s\n", rate(event_s),
              events_good ? "ok" : "MISSED");
  const bool story_good = rate(busy_s) >= 2.0;
  std::printf("records to story events, 100,000 live objects: %.2f M records/s on one core, wanted 2: %s\n",
              rate(busy_s), story_good ? "ok" : "MISSED");
  const bool attribution_good = attribution.known_ns < 200.0;
  std::printf("attribution of an event: %.0f ns, wanted below 200: %s\n", attribution.known_ns,
              attribution_good ? "ok" : "MISSED");
  const bool good = events_good && story_good && attribution_good;
  return good && sink != 0 ? 0 : 1;
}

}  // namespace
}  // namespace gpuwatch::bench

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench-user SCRATCH JSON RECORDING...\n");
    return 2;
  }
  return gpuwatch::bench::run(argv[1], argv[2], {argv + 3, argv + argc});
}
