// SPDX-License-Identifier: Apache-2.0
// bench-identify SCRATCH JSON LIBRARY...: speed of hashing GPU code in real
// libraries, with its lower bounds measured in the same run: what it takes to
// read, inflate and hash each image once, and SHA-256 alone. Prints a table and
// writes the same as JSON; exit status 1 when a bound is missed.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "identify/identify.h"
#include "passes.h"

namespace gpuwatch::bench {
namespace {

class Table {
 public:
  // `most`: the value, or the ratio where there is a peer, may not exceed it;
  // `least`: nor fall below. 0: no bound.
  void add(const std::string& name, double value, const std::string& unit, double peer, const std::string& peer_name,
           double most = 0, double least = 0) {
    const double judged = peer != 0 ? value / peer : value;
    const bool good = (most == 0 || judged <= most) && (least == 0 || judged >= least);
    std::printf("%-58s %10.3f %-6s", name.c_str(), value, unit.c_str());
    if (peer != 0) std::printf(" %6.2f x %s", judged, peer_name.c_str());
    if (most != 0) std::printf(", wanted at most %g: %s", most, good ? "ok" : "MISSED");
    if (least != 0) std::printf(", wanted at least %g: %s", least, good ? "ok" : "MISSED");
    std::printf("\n");
    std::fflush(stdout);
    nlohmann::json row{{"name", name}, {"value", value}, {"unit", unit}, {"ratio_to", nullptr}, {"good", good}};
    if (peer != 0) row["ratio_to"] = {{"name", peer_name}, {"ratio", judged}};
    rows_.push_back(std::move(row));
    good_ = good_ && good;
  }
  void skip(const std::string& name, const std::string& why) {
    std::printf("%-58s skipped: %s\n", name.c_str(), why.c_str());
    rows_.push_back({{"name", name}, {"skipped", why}});
  }
  bool good() const { return good_; }
  void save(const std::string& path) const { std::ofstream(path) << rows_.dump(1) << "\n"; }

 private:
  nlohmann::json rows_ = nlohmann::json::array();
  bool good_ = true;
};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
}

// The best of a few rounds in turn, so that other load meets all alike.
constexpr int kRounds = 3;

struct Sums {
  double plain = 0;
  double ours = 0;
  double one = 0;  // wall
  double two = 0;
};

void measure_library(Table& table, const std::string& path, Sums& sums) {
  const std::string name = base_name(path) + ": ";
  const Library library(path);
  double plain = 1e9, ours = 1e9, sha = 1e9, stored = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    plain = std::min(plain, library.plain());
    ours = std::min(ours, library.first_pass());
    sha = std::min(sha, library.plain_stored());
    stored = std::min(stored, library.stored_pass());
  }
  table.add(name + "inflated", static_cast<double>(library.inflated_bytes()) / 1e6, "MB", 0, "");
  table.add(name + "peer: inflate and SHA-256 of each image", plain, "s", 0, "");
  table.add(name + "first pass, one core", ours, "s", plain, "peer", 1.3);
  table.add(name + "stored payloads, speed", 1 / stored, "1/s", 1 / sha, "SHA-256 by OpenSSL", 0, 0.9);
  Whole one, two;
  for (int round = 0; round < kRounds; ++round) {
    one.keep_best(run_whole(path, 1));
    two.keep_best(run_whole(path, 2));
  }
  table.add(name + "in sandboxed workers: processor time", one.cpu_s, "s", plain, "peer");
  table.add(name + "peak memory, one worker and parent", static_cast<double>(one.peak_bytes) / 1e6, "MB",
            static_cast<double>(library.largest_bytes()) / 1e6, "largest image",
            // Below that, what a program needs anyway decides.
            library.largest_bytes() > 64 << 20 ? 2.0 : 0);
  table.add(name + "two workers, speed", 1 / two.wall_s, "1/s", 1 / one.wall_s, "one worker");
  sums.plain += plain;
  sums.ours += ours;
  sums.one += one.wall_s;
  sums.two += two.wall_s;
  if (const auto seconds = cuobjdump_seconds(path))
    table.add(name + "cuobjdump -all -xelf all", *seconds, "s", two.wall_s, "both cores", 0, 10);
  else
    table.skip(name + "cuobjdump -all -xelf all", "cuobjdump is not installed");
}

int run(const std::string& scratch, const std::string& json, const std::vector<std::string>& libraries) {
  Table table;
  Sums sums;
  for (const std::string& path : libraries) measure_library(table, path, sums);
  table.add("all: first pass, one core", sums.ours, "s", sums.plain, "peer", 1.3);
  table.add("all: two workers, speed", 1 / sums.two, "1/s", 1 / sums.one, "one worker", 0, 1.7);
  const Lookup lookup = measure_lookup(scratch + "/cache.sqlite", libraries.back());
  table.add("module from the cache", lookup.microseconds, "us", 0, "", 20);
  table.save(json);
  return table.good() ? 0 : 1;
}

}  // namespace
}  // namespace gpuwatch::bench

int main(int argc, char** argv) {
  if (gpuwatch::identify::is_worker(argc, argv)) return gpuwatch::identify::worker_main();
  if (argc == 4 && std::strcmp(argv[1], "--whole") == 0) return gpuwatch::bench::whole_main(argv[2], argv[3]);
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench-identify SCRATCH JSON LIBRARY...\n");
    return 2;
  }
  return gpuwatch::bench::run(argv[1], argv[2], {argv + 3, argv + argc});
}
