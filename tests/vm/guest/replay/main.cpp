// SPDX-License-Identifier: Apache-2.0
// gw-replay: issues the calls of a recording for real against the simulated
// driver, which answers them as recorded, and counts what it issued. Exit 0
// when every answer was as recorded, 1 when not, 2 for trouble.
#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "recording.h"
#include "runner.h"
#include "shared.h"

namespace {

using namespace gpuwatch::replay;

struct Options {
  std::string file;
  LoadOptions load;
  RunOptions run;
  unsigned loops = 1;
  bool json = false;
};

constexpr const char* kUsage =
    "usage: gw-replay FILE.gwcap [options]\n"
    "  --loop N         replays it N times, one after the other\n"
    "  --pid-filter P   only the process that was P when recorded\n"
    "  --no-threads     all calls of a process in one thread\n"
    "  --pace X         X times as fast as recorded; without it, as fast as possible\n"
    "  --delay-us N     the driver takes so long for every ioctl\n"
    "  --spoil N        flips a bit of the N-th ioctl's argument: must be noticed\n"
    "  --json           counts as one JSON object\n";

template <typename T>
T number(const char* text, T low, T high) {
  T value{};
  const char* end = text + std::strlen(text);
  const auto [next, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || next != end || value < low || value > high) {
    std::fprintf(stderr, "gw-replay: '%s' is not a number in range\n%s", text, kUsage);
    std::exit(2);
  }
  return value;
}

Options parse(int argc, char** argv) {
  static const option kNames[] = {{"loop", 1, nullptr, 'l'},    {"pid-filter", 1, nullptr, 'p'},
                                  {"threads", 0, nullptr, 't'}, {"no-threads", 0, nullptr, 'T'},
                                  {"pace", 1, nullptr, 'a'},    {"delay-us", 1, nullptr, 'd'},
                                  {"spoil", 1, nullptr, 's'},   {"json", 0, nullptr, 'j'},
                                  {"help", 0, nullptr, 'h'},    {nullptr, 0, nullptr, 0}};
  Options options;
  for (int c = 0; (c = getopt_long(argc, argv, "", kNames, nullptr)) != -1;) {
    switch (c) {
      case 'l':
        options.loops = number(optarg, 1U, 1'000'000U);
        break;
      case 'p':
        options.load.only_tgid = number(optarg, 0U, ~0U);
        break;
      case 't':
        options.load.merge_threads = false;
        break;
      case 'T':
        options.load.merge_threads = true;
        break;
      case 'a':
        options.run.pace = number(optarg, 0.001, 1e6);
        break;
      case 'd':
        options.run.delay_us = number(optarg, 0U, 10'000'000U);
        break;
      case 's':
        options.run.spoil = number(optarg, std::uint64_t{1}, ~std::uint64_t{0});
        break;
      case 'j':
        options.json = true;
        break;
      case 'h':
        std::fputs(kUsage, stdout);
        std::exit(0);
      default:
        std::fputs(kUsage, stderr);
        std::exit(2);
    }
  }
  if (optind + 1 != argc) {
    std::fputs(kUsage, stderr);
    std::exit(2);
  }
  options.file = argv[optind];
  return options;
}

void print(const Options& options, Counts& counts) {
  const auto value = [](const std::atomic<std::uint64_t>& counter) {
    return static_cast<unsigned long long>(counter.load());
  };
  const char* format = options.json
                           ? "{\"opens\":%llu,\"ioctls\":%llu,\"mmaps\":%llu,\"releases\":%llu,"
                             "\"mismatches\":%llu,\"errors\":%llu}\n"
                           : "issued opens=%llu ioctls=%llu mmaps=%llu releases=%llu mismatches=%llu errors=%llu\n";
  std::printf(format, value(counts.opens), value(counts.ioctls), value(counts.mmaps), value(counts.releases),
              value(counts.mismatches), value(counts.errors));
}

// The counts of one round go into those of all rounds.
void add(Counts& sum, Counts& round) {
  sum.opens += round.opens;
  sum.ioctls += round.ioctls;
  sum.mmaps += round.mmaps;
  sum.releases += round.releases;
  sum.mismatches += round.mismatches;
  sum.errors += round.errors;
}

int fail(const gpuwatch::base::Error& error) {
  std::fprintf(stderr, "gw-replay: %s\n", error.message().c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const auto recording = load(options.file, options.load);
  if (!recording) return fail(recording.error());
  if (!recording.value().cut.empty())
    std::fprintf(stderr, "gw-replay: %s; replaying what precedes it\n", recording.value().cut.c_str());
  Counts sum{};
  for (unsigned i = 0; i < options.loops; ++i) {
    auto shared = Shared::create(recording.value().files.size());
    if (!shared) return fail(shared.error());
    const auto status = run(recording.value(), **shared, options.run);
    add(sum, (*shared)->counts());
    Shared::destroy(*shared, recording.value().files.size());
    if (!status) return fail(status.error());
  }
  print(options, sum);
  if (sum.errors != 0) return 2;
  return sum.mismatches != 0 ? 1 : 0;
}
