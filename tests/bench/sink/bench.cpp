// SPDX-License-Identifier: Apache-2.0
// A million items through all sinks that end in a file, with one more that
// never returns; beside it, in the same run, the same lines by plain write(2).
//   bench-sink SCRATCH OUT.json ITEMS, with SCRATCH/lines
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/io.h"
#include "sink/file_sink.h"
#include "sink/queue.h"
#include "sink/tally.h"

namespace {

using namespace gpuwatch;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double cpu_seconds() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

long peak_kib() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

struct Row {
  std::string name;
  double seconds = 0;
  double cpu = 0;
  std::size_t items = 0;
  std::uint64_t bytes = 0;
  std::uint64_t dropped = 0;
};

// Holds the first batch until it is let go.
class Stalled : public sink::Sink {
 public:
  explicit Stalled(std::shared_ptr<std::mutex> gate) : gate_(std::move(gate)) {}
  std::string_view name() const override { return "stalled"; }
  sink::Outcome write(std::span<const sink::ItemPtr>) override {
    const std::unique_lock lock(*gate_);
    return sink::Outcome::all();
  }

 private:
  std::shared_ptr<std::mutex> gate_;
};

std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The peer: nothing but the writes, `batch` lines in each.
Row plain(const std::vector<std::string>& lines, std::size_t items, const std::string& path, std::size_t batch) {
  Row row{"write(2), " + std::to_string(batch) + (batch == 1 ? " line" : " lines") + " each", 0, 0, items, 0, 0};
  base::Fd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  std::string buffer;
  const double cpu = cpu_seconds();
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < items;) {
    buffer.clear();
    for (std::size_t n = 0; n < batch && i < items; ++n, ++i) {
      buffer += lines[i % lines.size()];
      buffer += '\n';
    }
    row.bytes += buffer.size();
    if (!base::write_all(out.get(), buffer).ok()) std::abort();
  }
  row.seconds = seconds_since(begin);
  row.cpu = cpu_seconds() - cpu;
  ::unlink(path.c_str());
  return row;
}

sink::ItemPtr make_item(const std::string& line) {
  auto item = std::make_shared<sink::Item>();
  item->json = line;
  item->text = line.substr(0, 120);
  item->event = "memory.allocated";
  item->gpu_minor = 0;
  return item;
}

std::vector<std::unique_ptr<sink::SinkQueue>> open_sinks(const std::string& scratch, int null_fd) {
  std::vector<std::unique_ptr<sink::SinkQueue>> queues;
  const auto add = [&](std::unique_ptr<sink::Sink> made) {
    queues.push_back(std::make_unique<sink::SinkQueue>(std::move(made)));
  };
  const auto file = [&](sink::FileOptions options) {
    auto opened = sink::FileSink::open(options);
    if (!opened.ok()) std::abort();
    add(std::move(*opened));
  };
  file({.path = scratch + "/json"});
  file({.path = scratch + "/text", .form = sink::LineForm::kText});
  file({.path = scratch + "/rotated", .rotate_bytes = 64U << 20, .keep = 2});
  add(sink::FileSink::on_descriptor(null_fd, sink::LineForm::kJson));
  return queues;
}

std::vector<Row> through_sinks(const std::vector<std::string>& lines, std::size_t items, const std::string& scratch,
                               bool with_stalled) {
  base::Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  auto gate = std::make_shared<std::mutex>();
  std::unique_lock<std::mutex> shut(*gate);
  auto queues = open_sinks(scratch, null.get());
  const std::size_t live = queues.size();
  if (with_stalled) queues.push_back(std::make_unique<sink::SinkQueue>(std::make_unique<Stalled>(gate)));
  sink::Tally tally;
  Row all{with_stalled ? "4 sinks, a fifth stalled" : "4 sinks", 0, 0, items, 0, 0};
  const double cpu = cpu_seconds();
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < items; ++i) {
    // Faster than a disk the maker would only measure drops: it waits for room.
    if (i % 256 == 0)
      for (std::size_t n = 0; n < live; ++n)
        while (queues[n]->counts().items > queues[n]->limits().items / 2)
          std::this_thread::sleep_for(std::chrono::microseconds(200));
    const sink::ItemPtr item = make_item(lines[i % lines.size()]);
    tally.count(*item);
    for (const auto& queue : queues) queue->push(item);
  }
  for (std::size_t n = 0; n < live; ++n)
    if (!queues[n]->stop(std::chrono::seconds(60))) std::abort();
  all.seconds = seconds_since(begin);
  all.cpu = cpu_seconds() - cpu;
  for (std::size_t n = 0; n < live; ++n) {
    if (queues[n]->counts().sent != items) std::abort();
    all.dropped += queues[n]->counts().dropped();
  }
  std::vector<Row> rows = {all};
  if (with_stalled) {
    Row stalled{"the stalled one", all.seconds, 0, items, 0, queues.back()->counts().dropped()};
    rows.push_back(stalled);
    shut.unlock();
  }
  for (const char* name : {"json", "text", "rotated", "rotated.1", "rotated.2"})
    ::unlink((scratch + "/" + name).c_str());
  return rows;
}

// What a push costs the maker: the queue is never full, its sink does nothing.
Row push_alone(const std::vector<std::string>& lines, std::size_t items) {
  base::Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  sink::SinkQueue queue(sink::FileSink::on_descriptor(null.get(), sink::LineForm::kJson),
                        {.items = items + 1, .bytes = ~std::size_t{0}});
  const sink::ItemPtr item = make_item(lines[0]);
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < items; ++i) queue.push(item);
  Row row{"push to one queue", seconds_since(begin), 0, items, 0, 0};
  queue.stop(std::chrono::seconds(60));
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench-sink SCRATCH OUT.json ITEMS\n");
    return 2;
  }
  const std::string scratch = argv[1];
  const std::size_t items = std::strtoull(argv[3], nullptr, 10);
  const std::vector<std::string> lines = read_lines(scratch + "/lines");
  if (lines.empty() || items == 0) {
    std::fprintf(stderr, "bench-sink: no lines in %s/lines\n", scratch.c_str());
    return 2;
  }
  std::vector<Row> rows;
  rows.push_back(plain(lines, items, scratch + "/plain", 1));
  rows.push_back(plain(lines, items, scratch + "/plain", 512));
  const long before = peak_kib();
  for (const bool stalled : {false, true})
    for (Row& row : through_sinks(lines, items, scratch, stalled)) rows.push_back(row);
  const long peak = peak_kib();
  rows.push_back(push_alone(lines, items));
  std::FILE* out = std::fopen(argv[2], "w");
  if (out == nullptr) return 2;
  std::fprintf(out, "{\"items\":%zu,\"lines\":%zu,\"peak_kib\":%ld,\"peak_kib_before\":%ld,\"rows\":[", items,
               lines.size(), peak, before);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::printf("%-26s %9.0f items/s  %6.2f s  %6.2f s CPU  %8llu dropped\n", row.name.c_str(),
                static_cast<double>(row.items) / row.seconds, row.seconds, row.cpu,
                static_cast<unsigned long long>(row.dropped));
    std::fprintf(out,
                 "%s{\"name\":\"%s\",\"seconds\":%.4f,\"cpu_seconds\":%.4f,\"items_per_second\":%.0f,\"dropped\":%llu}",
                 i == 0 ? "" : ",", row.name.c_str(), row.seconds, row.cpu,
                 static_cast<double>(row.items) / row.seconds, static_cast<unsigned long long>(row.dropped));
  }
  std::printf("peak memory %ld MiB, %ld MiB of it before the first sink\n", peak / 1024, before / 1024);
  std::fprintf(out, "]}\n");
  std::fclose(out);
  return 0;
}
