// SPDX-License-Identifier: Apache-2.0
// ImageWatch: has every module image that passes a libcuda captured. It follows
// opens of device nodes, on a consumer of its own that is woken at once, looks
// which libcuda the opening process has mapped, whatever its path, and sets
// probes on its loaders, once for each file. It never looks into an image.
//
// What it can't see: a load that comes before the probes are set (the first of
// a copy of libcuda nobody used before), and programs without libcuda.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "source/image_bytes.h"
#include "source/kmod_source.h"

namespace gpuwatch::source {

struct ImageWatchOptions {
  gpuwatch_filter filter{};    // whose processes; cgroup_fd -1 where none is meant
  bool keep = true;            // false: nobody will take images, they are given up at once
  std::string proc = "/proc";  // replaced in tests
};

struct ImageWatchCounts {
  std::uint64_t libraries = 0;   // attached now
  std::uint64_t probes = 0;      // set now
  std::uint64_t scans = 0;       // looks at the mappings of a process
  std::uint64_t examined = 0;    // files looked into
  std::uint64_t refused = 0;     // functions found that could not be probed
  std::uint64_t over_limit = 0;  // libraries left out: too many at a time
};

class ImageWatch {
 public:
  static constexpr std::size_t kLibrariesMax = 64;
  static constexpr std::size_t kExaminedMax = 65536;
  static constexpr unsigned kScansPerProcess = 16;

  // Attaches to the libraries of running processes and follows new ones, in a
  // thread of its own until the object goes.
  static base::Result<std::unique_ptr<ImageWatch>> start(KmodDevice device, const ImageWatchOptions& options);
  ~ImageWatch();

  // Any thread. See Source::take_image().
  base::Result<ImageBytes> take(std::uint64_t id);

  base::Result<gpuwatch_image_status> status() const;
  ImageWatchCounts counts() const;
  std::string last_trouble() const;  // empty when there was none

 private:
  struct Library {
    std::string path;
    std::string stamp;  // size and times when it was attached
    std::vector<std::uint32_t> probes;
    std::set<std::uint32_t> users;  // processes seen with it
    bool standing = false;          // the host's own: stays without users
  };

  explicit ImageWatch(const ImageWatchOptions& options) : options_(options) {}
  void run();
  void scan(std::uint32_t tgid);
  void scan_running();
  void examine(int fd, const std::string& key, const std::string& path, std::uint32_t user);
  bool attach(int fd, const std::string& path, Library& library);
  void forget_unused();
  void note(const std::string& trouble);

  ImageWatchOptions options_;
  std::unique_ptr<KmodSource> source_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  std::map<std::string, Library> libraries_;            // by device and inode
  std::set<std::string> examined_;                      // those that are no libcuda
  std::map<std::uint64_t, unsigned> scans_of_process_;  // by start time and id
  mutable std::mutex lock_;                             // what follows
  ImageWatchCounts counts_;
  std::string trouble_;
};

}  // namespace gpuwatch::source
