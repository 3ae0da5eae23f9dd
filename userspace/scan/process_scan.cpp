// SPDX-License-Identifier: Apache-2.0
#include "scan/process_scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/io.h"

namespace gpuwatch::scan {

using base::Code;
using base::Error;
using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kWindow = 1 << 20;
constexpr std::size_t kMapsMax = 64 << 20;
constexpr std::size_t kFilesMax = 1 << 20;
constexpr std::string_view kDeleted = " (deleted)";

std::string directory_of(const std::string& proc, std::uint32_t pid) {
  return proc + "/" + std::to_string(pid);
}

// Field 22 of stat, counted from the last ')': comm may hold anything.
Result<std::uint64_t> start_of(const std::string& directory) {
  auto text = base::read_text_file(directory + "/stat");
  if (!text) return std::move(text.error());
  std::size_t at = text->rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text->find(' ', at + 1);
  std::uint64_t value = 0;
  if (at == std::string::npos ||
      std::from_chars(text->data() + at + 1, text->data() + text->size(), value).ec != std::errc())
    return Error(Code::kBadInput, directory + "/stat: has no start time");
  return value;
}

std::uint32_t device_of(const struct stat& info) {
  return static_cast<std::uint32_t>(gnu_dev_major(info.st_dev) << 20 | (gnu_dev_minor(info.st_dev) & 0xfffff));
}

// Memory of no file that may hold images. Kernel pages are none; memory of
// device files belongs to the device.
bool worth_looking(const Mapping& mapping) {
  if (!mapping.readable) return false;
  if (mapping.inode != 0) return false;
  return mapping.path.empty() || mapping.path == "[heap]" || mapping.path.starts_with("[stack") ||
         mapping.path.starts_with("[anon");
}

}  // namespace

bool is_process(const std::string& proc, std::uint32_t pid, std::uint64_t start_ns) {
  auto ticks = start_of(directory_of(proc, pid));
  const long hertz = ::sysconf(_SC_CLK_TCK);
  if (!ticks || hertz <= 0) return false;
  const std::uint64_t ours = start_ns / (1'000'000'000u / static_cast<std::uint64_t>(hertz));
  return *ticks + 1 >= ours && *ticks <= ours + 1;
}

// Opens what is mapped, never what merely has the same name. A device is told
// by stat and left alone: opening it could do something.
void ProcessScan::give_file(std::uint32_t pid, const Mapping& mapping, ScanSink& sink) {
  const std::string directory = directory_of(options_.proc, pid);
  MappedFile file;
  struct stat info {};
  std::string name = directory + "/map_files/" + range_name(mapping);
  if (::stat(name.c_str(), &info) != 0) {
    // Without CAP_SYS_ADMIN: by path, in the process's own root, if it is the
    // same file still. Overlay file systems show another device here.
    name = directory + "/root" + mapping.path;
    if (!mapping.path.starts_with('/') || ::stat(name.c_str(), &info) != 0 || info.st_ino != mapping.inode ||
        device_of(info) != mapping.device) {
      ++counts_.refused;
      return;
    }
    file.by_path = true;
  }
  if (!S_ISREG(info.st_mode)) return;
  const FileKey key{device_of(info), info.st_ino, static_cast<std::uint64_t>(info.st_size),
                    info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
  if (files_.contains(key)) return;
  // By a path the process may have put a device there meanwhile.
  auto fd = base::open_plain(name);
  struct stat opened {};
  if (!fd.ok() || ::fstat(fd->get(), &opened) != 0 || opened.st_ino != info.st_ino || opened.st_dev != info.st_dev) {
    ++counts_.refused;
    return;
  }
  file.fd = std::move(*fd);
  if (files_.size() >= kFilesMax) files_.clear();
  files_.insert(key);
  file.path = mapping.path;
  file.deleted = file.path.ends_with(kDeleted);
  if (file.deleted) file.path.resize(file.path.size() - kDeleted.size());
  file.memfd = file.deleted && file.path.starts_with("/memfd:");
  file.device = device_of(info);
  file.inode = info.st_ino;
  file.size = static_cast<std::uint64_t>(opened.st_size);
  ++counts_.files;
  sink.file(std::move(file));
}

Status ProcessScan::list(std::uint32_t pid, Process& process, ScanSink& sink) {
  const std::string directory = directory_of(options_.proc, pid);
  auto text = base::read_text_file(directory + "/maps", kMapsMax);
  if (!text) return std::move(text.error());
  std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> now;
  std::set<std::pair<std::uint32_t, std::uint64_t>> given;
  for (Mapping& mapping : parse_maps(*text)) {
    const std::tuple key(mapping.begin, mapping.end, mapping.inode);
    now.insert(key);
    if (process.done.contains(key)) continue;
    if (mapping.inode != 0) {
      if (given.insert({mapping.device, mapping.inode}).second) give_file(pid, mapping, sink);
    } else if (worth_looking(mapping)) {
      process.todo.push_back(std::move(mapping));
    }
  }
  // What is unmapped may come back with other contents.
  process.done = std::move(now);
  return {};
}

void ProcessScan::look(int memory, Process& process, std::uint64_t budget, ScanSink& sink) {
  const ReadMemory read = [&](std::uint64_t address, std::span<std::byte> out) -> std::size_t {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(memory, out.data() + done, out.size() - done, static_cast<off_t>(address + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  };
  std::vector<std::byte> window(kWindow);
  std::uint64_t left = budget;
  while (!process.todo.empty() && left > 0 && process.looked_bytes < options_.memory_bytes) {
    const Mapping& mapping = process.todo.front();
    const std::uint64_t at = std::max(process.at, mapping.begin);
    const std::uint64_t want = std::min<std::uint64_t>(kWindow, mapping.end - at);
    const std::size_t got = read(at, std::span(window).first(static_cast<std::size_t>(want)));
    if (got == 0) ++counts_.refused;
    for (const Find& find : find_code(std::span(window).first(got), at, mapping.end, read, options_.image_bytes)) {
      if (find.address < process.skip_to) continue;
      process.skip_to = find.address + find.bytes;
      if (find.bytes > options_.found_bytes - std::min(options_.found_bytes, process.found_bytes)) {
        ++counts_.over_limit;
        continue;
      }
      MemoryImage image{find.kind, find.address, mapping.path.empty() ? "[anon]" : mapping.path, {}};
      image.bytes.resize(static_cast<std::size_t>(find.bytes));
      image.bytes.resize(read(find.address, image.bytes));
      process.found_bytes += image.bytes.size();
      ++counts_.images;
      sink.memory(std::move(image));
    }
    counts_.bytes += got;
    process.looked_bytes += got;
    left -= std::min<std::uint64_t>(left, std::max<std::size_t>(got, 4096));
    if (got < want || at + got >= mapping.end) {
      process.todo.erase(process.todo.begin());
      process.at = 0;
    } else {
      process.at = at + got - kOverlap;
    }
  }
  if (process.looked_bytes >= options_.memory_bytes && !process.todo.empty()) {
    process.todo.clear();
    ++counts_.over_limit;
  }
}

Result<bool> ProcessScan::step(std::uint32_t pid, std::uint64_t budget, ScanSink& sink) {
  const std::string directory = directory_of(options_.proc, pid);
  auto start = start_of(directory);
  if (!start) {
    processes_.erase(pid);
    return std::move(start.error());
  }
  if (processes_.size() >= options_.processes && !processes_.contains(pid)) processes_.clear();
  Process& process = processes_[pid];
  if (process.start != *start) {
    process = Process();
    process.start = *start;
  }
  if (process.todo.empty())
    if (Status status = list(pid, process, sink); !status.ok()) return std::move(status.error());
  if (process.todo.empty()) return true;
  const Fd memory(::open((directory + "/mem").c_str(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid()) return Error::from_errno(directory + "/mem");
  look(memory.get(), process, budget, sink);
  return process.todo.empty();
}

}  // namespace gpuwatch::scan
