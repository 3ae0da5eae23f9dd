// SPDX-License-Identifier: Apache-2.0
#include "source/image_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/io.h"
#include "source/elf_functions.h"
#include "source/loaders.h"
#include "source/proc_maps.h"

namespace gpuwatch::source {

using base::Error;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kMapsMax = 64 << 20;
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::seconds kForgetEvery{30};

// Where drivers put the host's libcuda, which containers get by bind mount: so
// that even the first load of the first program is seen.
constexpr const char* kUsualPlaces[] = {
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/home/kubernetes/bin/nvidia/lib64/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
};

bool is_named_libcuda(const std::string& path) {
  return path.find("libcuda.so") != std::string::npos;
}

// An attached file is kept, so its inode number is not given to another one.
// Changes whenever a file does; empty: not to be had.
std::string stamp_of(const std::string& path) {
  struct stat st {};
  if (::stat(path.c_str(), &st) != 0) return {};
  std::string stamp;
  for (const auto number : {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec, st.st_ctim.tv_nsec})
    stamp += "/" + std::to_string(number);
  return stamp;
}

std::string key_of(const ExecMapping& file) {
  return file.device + ':' + std::to_string(file.inode);
}

}  // namespace

Result<std::unique_ptr<ImageWatch>> ImageWatch::start(KmodDevice device, const ImageWatchOptions& options) {
  std::unique_ptr<ImageWatch> watch(new ImageWatch(options));
  KmodOptions kmod;
  // Opens are few, and images are looked at by another consumer.
  kmod.ring_bytes = 64 << 10;
  kmod.watermark_bytes = 1;
  kmod.filter = options.filter;
  // Another consumer may be there first, and its probe captures what ours would.
  kmod.hold_images = options.keep;
  // Images in it make this consumer their holder.
  kmod.filter.class_mask = GPUWATCH_CLASS(GPUWATCH_REC_OPEN) | GPUWATCH_CLASS(GPUWATCH_REC_IMAGE);
  kmod.filter.node_mask = 0;
  auto source = KmodSource::start(std::move(device), kmod);
  if (!source) return std::move(source.error());
  watch->source_ = std::move(*source);
  // Nothing can be captured where a probe can't be set: found out now.
  gpuwatch_probe nowhere{};
  nowhere.fd = -1;
  nowhere.kind = GPUWATCH_PROBE_CALL;
  nowhere.symbol[0] = '?';
  if (auto id = watch->source_->device().add_probe(nowhere); !id && id.error().sys_errno() != EBADF)
    return std::move(id.error());
  for (const char* path : kUsualPlaces) {
    const base::Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) continue;
    // As /proc/PID/maps spells them.
    char key[64];
    std::snprintf(key, sizeof key, "%02x:%02x:%llu", static_cast<unsigned>(info.st_dev >> 8 & 0xfff),
                  static_cast<unsigned>(info.st_dev & 0xff), static_cast<unsigned long long>(info.st_ino));
    watch->examine(fd.get(), key, path, 0);
  }
  watch->scan_running();
  watch->thread_ = std::thread([raw = watch.get()] { raw->run(); });
  return watch;
}

ImageWatch::~ImageWatch() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void ImageWatch::run() {
  std::vector<model::RawRecord> batch;
  auto forget_at = std::chrono::steady_clock::now() + kForgetEvery;
  while (!stop_) {
    Status status = source_->next_batch(batch);
    if (!status.ok()) {
      note(status.error().message());
      return;
    }
    for (const model::RawRecord& record : batch) {
      if (record.head.type == GPUWATCH_REC_IMAGE) {
        const auto image = model::read_at<gpuwatch_rec_image>(record.payload, 0);
        // Another consumer that reads slowly may have given it up by age.
        if (image && image->id != 0 && !options_.keep) (void)source_->device().drop_image(image->id).ok();
        continue;
      }
      if (record.head.type != GPUWATCH_REC_OPEN) continue;
      // Libraries come one after the other: a few more looks at the same process.
      const std::uint64_t process = record.head.start_ns ^ (std::uint64_t{record.head.tgid} << 40);
      if (scans_of_process_.size() > kExaminedMax) scans_of_process_.clear();
      if (++scans_of_process_[process] <= kScansPerProcess) scan(record.head.tgid);
    }
    if (!batch.empty()) continue;
    if (std::chrono::steady_clock::now() >= forget_at) {
      forget_unused();
      forget_at = std::chrono::steady_clock::now() + kForgetEvery;
    }
    if (!source_->wait(kPause).ok()) return;
  }
}

void ImageWatch::scan(std::uint32_t tgid) {
  const std::string directory = options_.proc + "/" + std::to_string(tgid);
  // A process that is gone has no mappings: its loads, if any, are past.
  auto maps = base::read_text_file(directory + "/maps", kMapsMax);
  if (!maps) return;
  {
    const std::lock_guard guard(lock_);
    ++counts_.scans;
  }
  auto files = executable_files(*maps);
  // Those that say so first: a load may follow at once.
  std::stable_partition(files.begin(), files.end(),
                        [](const ExecMapping& file) { return is_named_libcuda(file.path); });
  for (const ExecMapping& file : files) {
    std::string key = key_of(file);
    auto found = libraries_.find(key);
    // On an overlay a file keeps its number when it is copied up, and is another.
    if (found != libraries_.end() && !found->second.stamp.empty()) {
      const std::string stamp = stamp_of(directory + "/map_files/" + file.range);
      if (!stamp.empty() && stamp != found->second.stamp) found = libraries_.find(key += stamp);
    }
    if (found != libraries_.end()) {
      found->second.users.insert(tgid);
      continue;
    }
    // One that is not may come again as another file: its path goes with it.
    if (examined_.contains(key + file.path)) continue;
    // Works for deleted files, memfds and other mount namespaces.
    const base::Fd fd(::open((directory + "/map_files/" + file.range).c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.valid()) examine(fd.get(), key, file.path, tgid);
  }
}

void ImageWatch::scan_running() {
  DIR* directory = ::opendir(options_.proc.c_str());
  if (directory == nullptr) return;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.find_first_not_of("0123456789") != std::string_view::npos || name.size() > 9) continue;
    // Most processes have nothing to do with a GPU.
    auto maps = base::read_text_file(options_.proc + "/" + std::string(name) + "/maps", kMapsMax);
    if (maps && (maps->find("/dev/nvidia") != std::string::npos || maps->find("libcuda") != std::string::npos))
      scan(static_cast<std::uint32_t>(std::stoul(std::string(name))));
  }
  ::closedir(directory);
}

// Is that file a libcuda? Then it is attached.
void ImageWatch::examine(int fd, const std::string& key, const std::string& path, std::uint32_t user) {
  {
    const std::lock_guard guard(lock_);
    ++counts_.examined;
  }
  Library library;
  library.path = path;
  library.stamp = stamp_of("/proc/self/fd/" + std::to_string(fd));
  library.standing = user == 0;
  if (user != 0) library.users.insert(user);
  if (attach(fd, path, library)) {
    libraries_.emplace(key, std::move(library));
    return;
  }
  if (examined_.size() >= kExaminedMax) examined_.clear();
  examined_.insert(key + path);
}

bool ImageWatch::attach(int fd, const std::string& path, Library& library) {
  auto search = find_functions(
      fd, [](std::string_view name) { return loader_of(name).has_value(); }, kLibcudaMark);
  if (!search || !search->marked || search->functions.empty()) return false;
  if (libraries_.size() >= kLibrariesMax) forget_unused();
  if (libraries_.size() >= kLibrariesMax) {
    const std::lock_guard guard(lock_);
    ++counts_.over_limit;
    return false;
  }
  std::uint64_t refused = search->ifuncs + search->misplaced;
  for (const FunctionPlace& function : search->functions) {
    const Loader loader = *loader_of(function.name);
    gpuwatch_probe probe{};
    probe.fd = fd;
    probe.offset = function.offset;
    probe.kind = loader.kind;
    probe.argument = loader.argument;
    probe.size_argument = loader.size_argument;
    std::memcpy(probe.symbol, function.name.data(), std::min(function.name.size(), sizeof probe.symbol - 1));
    auto id = source_->device().add_probe(probe);
    if (id) {
      library.probes.push_back(*id);
    } else if (id.error().sys_errno() != EEXIST) {  // by another name of the file
      ++refused;
      note(path + ": " + function.name + ": " + id.error().message());
    }
  }
  const std::lock_guard guard(lock_);
  counts_.refused += refused;
  counts_.probes += library.probes.size();
  ++counts_.libraries;
  return true;
}

// A probe keeps the file, and with it a container's file system.
void ImageWatch::forget_unused() {
  bool removed = false;
  for (auto it = libraries_.begin(); it != libraries_.end();) {
    Library& library = it->second;
    std::erase_if(library.users, [&](std::uint32_t tgid) {
      return ::access((options_.proc + "/" + std::to_string(tgid)).c_str(), F_OK) != 0;
    });
    if (library.standing || !library.users.empty()) {
      ++it;
      continue;
    }
    for (const std::uint32_t id : library.probes) (void)source_->device().remove_probe(id).ok();
    const std::lock_guard guard(lock_);
    counts_.probes -= library.probes.size();
    --counts_.libraries;
    removed |= !library.probes.empty();
    it = libraries_.erase(it);
  }
  if (!removed) return;
  // The same file by another device number: it lived on the probes of the first.
  const std::lock_guard guard(lock_);
  counts_.libraries -= std::erase_if(libraries_, [](const auto& entry) { return entry.second.probes.empty(); });
}

void ImageWatch::note(const std::string& trouble) {
  const std::lock_guard guard(lock_);
  trouble_ = trouble;
}

Result<ImageBytes> ImageWatch::take(std::uint64_t id) {
  return source_->device().take_image(id);
}

Result<gpuwatch_image_status> ImageWatch::status() const {
  return source_->device().image_status();
}

ImageWatchCounts ImageWatch::counts() const {
  const std::lock_guard guard(lock_);
  return counts_;
}

std::string ImageWatch::last_trouble() const {
  const std::lock_guard guard(lock_);
  return trouble_;
}

}  // namespace gpuwatch::source
