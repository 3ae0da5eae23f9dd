// SPDX-License-Identifier: Apache-2.0
#include "probe/options.h"

#include <getopt.h>

#include <cerrno>
#include <cstdlib>

namespace gpuwatch::probe {

namespace {

bool number_of(const char* text, long least, long most, int& out) {
  char* end = nullptr;
  errno = 0;
  const long value = std::strtol(text, &end, 10);
  if (*text == 0 || *end != 0 || errno != 0 || value < least || value > most) return false;
  out = static_cast<int>(value);
  return true;
}

constexpr option kLong[] = {{"json", no_argument, nullptr, 'j'},
                            {"selftest", no_argument, nullptr, 's'},
                            {"no-ptx", no_argument, nullptr, 'n'},
                            {"with-text", no_argument, nullptr, 't'},
                            {"image", required_argument, nullptr, 'i'},
                            {"kernel", required_argument, nullptr, 'k'},
                            {"gpu", required_argument, nullptr, 'g'},
                            {"pid", required_argument, nullptr, 'p'},
                            {"library", required_argument, nullptr, 'l'},
                            {"timeout", required_argument, nullptr, 'w'},
                            {"gave-up-fd", required_argument, nullptr, 'f'},
                            {"records", required_argument, nullptr, 'r'},
                            {"outside", no_argument, nullptr, 'o'},
                            {"every", required_argument, nullptr, 'e'},
                            {"times", required_argument, nullptr, 'm'},
                            {nullptr, 0, nullptr, 0}};

// Those with a number: its bounds, and what is said of another.
std::string take_number(int choice, Options& out) {
  switch (choice) {
    case 'g':
      return number_of(optarg, 0, 1023, out.gpu) ? "" : "--gpu: a number from 0 is meant";
    case 'p':
      return number_of(optarg, 1, 1 << 22, out.pid) ? "" : "--pid: the number of a process is meant";
    case 'w':
      return number_of(optarg, 1, 86'400, out.timeout_s) ? "" : "--timeout: seconds from 1 to 86400 are meant";
    case 'f':
      return number_of(optarg, 3, 1 << 20, out.gave_up_fd) ? "" : "--gave-up-fd: a descriptor is meant";
    case 'e':
      return number_of(optarg, 1, 86'400, out.every_s) ? "" : "--every: seconds from 1 to 86400 are meant";
    case 'm':
      return number_of(optarg, 1, 1'000'000'000, out.times) ? "" : "--times: a number of rounds from 1 is meant";
    default:
      return "see gpuwatch probe --help";
  }
}

}  // namespace

std::string parse_options(int argc, char** argv, Options& out) {
  for (int choice; (choice = ::getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
    switch (choice) {
      case 'j':
        out.json = true;
        break;
      case 't':
        out.json = out.with_text = true;
        break;
      case 's':
        out.selftest = true;
        break;
      case 'n':
        out.no_ptx = true;
        break;
      case 'i':
        out.image = optarg;
        break;
      case 'k':
        out.kernel = optarg;
        break;
      case 'l':
        out.library = optarg;
        break;
      case 'r':
        out.records = optarg;
        break;
      case 'o':
        out.outside = true;
        break;
      default:
        if (std::string wrong = take_number(choice, out); !wrong.empty()) return wrong;
    }
  }
  if (out.pid != 0 && out.selftest) return "--selftest is not for a process that works: leave --pid out";
  if (out.pid == 0 && (out.outside || !out.records.empty())) return "--records and --outside are for --pid";
  if (out.times != 0 && out.every_s == 0) return "--times wants --every";
  return {};
}

}  // namespace gpuwatch::probe
