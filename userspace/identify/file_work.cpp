// SPDX-License-Identifier: Apache-2.0
#include "identify/file_work.h"

#include <algorithm>
#include <memory>

#include "identify/hash_images.h"
#include "identify/wire.h"

namespace gpuwatch::identify {

namespace {

// Of all workers: two of the longest images of the CUDA libraries, as stored and inflated. One larger image runs alone.
constexpr std::uint64_t kMemoryBytes = 320 << 20;
constexpr std::uint64_t kStoredGroupBytes = 32 << 20;

std::string request(Operation operation, std::uint64_t size, std::span<const Image> images) {
  WireWriter out;
  out.byte(static_cast<std::uint8_t>(operation));
  out.number(size);
  if (operation != Operation::kScan) {
    out.number(images.size());
    for (const Image& image : images) write(out, image);
  }
  return out.take();
}

bool same_reading(const Image& a, const Image& b) {
  return a.kind == b.kind && a.compression == b.compression && a.opaque == b.opaque && a.error == b.error &&
         a.sm == b.sm && a.compressed_bytes == b.compressed_bytes && a.bytes == b.bytes;
}

}  // namespace

FileWork::FileWork(const Options& options, Pool& pool, Cache* scans, Cache* modules, std::string name, int fd,
                   const struct stat& info, Sink& sink)
    : options_(options),
      pool_(pool),
      scans_(scans),
      modules_(modules),
      name_(std::move(name)),
      fd_(fd),
      key_(key_of(info)),
      sink_(sink) {}

bool FileWork::tick() {
  return !sink_.stop_wanted();
}

void FileWork::run() {
  pool_.set_memory(kMemoryBytes);
  if (!find_images()) return;
  for (const Container& container : scan_.containers)
    if (!container.errors.empty() || container.unparsed_bytes != 0) sink_.container(name_, container);
  for (const std::string& error : scan_.errors) sink_.error(name_, error);

  std::vector<std::size_t> first;
  std::vector<std::size_t> rest;
  for (std::size_t i = 0; i < slots_.size(); ++i)
    (!options_.sm || suits(slots_[i].entry.image, *options_.sm) ? first : rest).push_back(i);
  if (!options_.all && options_.sm) rest.clear();
  order_ = first;
  order_.insert(order_.end(), rest.begin(), rest.end());
  for (const std::size_t i : order_) bytes_total_ += working_bytes(slots_[i].entry.image);
  take_known();
  hash_modules(first);
  hash_modules(rest);
  pool_.run([&] { return tick(); });
  report_ready();
  sink_.end_of_file(name_, order_.size());
}

bool FileWork::find_images() {
  bool known = false;
  if (scans_ != nullptr) {
    if (auto cached = scans_->file(key_)) {
      scan_ = std::move(cached->scan);
      stored_ = std::move(cached->stored);
      known = true;
    }
  }
  if (!known) {
    bool done = false;
    Job job;
    job.request = request(Operation::kScan, key_.size, {});
    job.fd = fd_;
    job.done = [&](Bytes reply) {
      WireReader in(reply);
      read(in, scan_);
      done = in.done();
      if (!done) sink_.error(name_, "worker sent nonsense");
    };
    job.failed = [&](const std::string& reason) { sink_.error(name_, reason); };
    job.progress = [&](std::uint64_t at) { sink_.progress(name_, at, key_.size * 4); };
    pool_.add(std::move(job));
    pool_.run([&] { return tick(); });
    if (!done) return false;
    hash_stored();
    if (stored_.size() != scan_.images.size()) return false;
    if (scans_ != nullptr) scans_->store(key_, {scan_, stored_});
  }
  slots_.resize(scan_.images.size());
  std::size_t container = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Entry& entry = slots_[i].entry;
    entry.image = scan_.images[i];
    entry.stored = stored_[i];
    if (!entry.image.in_container) continue;
    while (container + 1 < scan_.containers.size() && scan_.containers[container].offset < entry.image.container_offset)
      ++container;
    if (container < scan_.containers.size()) entry.section = scan_.containers[container].section;
  }
  return true;
}

void FileWork::hash_stored() {
  const std::span<const Image> images = scan_.images;
  std::vector<Digest> digests(images.size());
  std::vector<bool> have(images.size(), false);
  for (std::size_t first = 0; first < images.size();) {
    std::size_t count = 0;
    for (std::uint64_t total = 0; first + count < images.size() && (count == 0 || total < kStoredGroupBytes); ++count)
      total += images[first + count].stored_bytes;
    Job job;
    job.request = request(Operation::kStored, key_.size, images.subspan(first, count));
    job.fd = fd_;
    job.done = [&, first, count](Bytes reply) {
      WireReader in(reply);
      for (std::size_t i = 0; i < count && in.ok(); ++i) {
        digests[first + i] = in.digest();
        have[first + i] = in.ok();
      }
    };
    job.failed = [&](const std::string& reason) { sink_.error(name_, reason); };
    pool_.add(std::move(job));
    first += count;
  }
  pool_.run([&] { return tick(); });
  if (std::all_of(have.begin(), have.end(), [](bool b) { return b; })) stored_ = std::move(digests);
}

void FileWork::take_known() {
  for (const std::size_t i : order_) {
    Slot& slot = slots_[i];
    if (modules_ != nullptr) {
      if (auto module = modules_->module(slot.entry.stored, slot.entry.image)) {
        slot.entry.from_cache = true;
        slot.entry.module = std::move(*module);
        slot.ready = true;
        bytes_done_ += working_bytes(slot.entry.image);
        continue;
      }
    }
    twins_[slot.entry.stored].push_back(i);
  }
  report_ready();
}

void FileWork::hash_modules(const std::vector<std::size_t>& wanted) {
  std::vector<std::size_t> group;
  std::uint64_t total = 0;
  for (const std::size_t i : wanted) {
    const Slot& slot = slots_[i];
    if (slot.ready) continue;
    const auto& twins = twins_[slot.entry.stored];
    if (twins.front() != i && same_reading(slots_[twins.front()].entry.image, slot.entry.image)) continue;
    const std::uint64_t cost = working_bytes(slot.entry.image);
    if (!group.empty() && (total + cost > kGroupBytes || group.size() >= kGroupImages)) {
      add_group(std::move(group));
      group.clear();
      total = 0;
    }
    group.push_back(i);
    total += cost;
  }
  if (!group.empty()) add_group(std::move(group));
}

void FileWork::add_group(std::vector<std::size_t> group) {
  std::vector<Image> images;
  Job job;
  for (const std::size_t i : group) {
    images.push_back(slots_[i].entry.image);
    job.cost += working_bytes(images.back());
  }
  job.request = request(Operation::kModules, key_.size, images);
  job.fd = fd_;
  job.done = [this, group](Bytes reply) {
    WireReader in(reply);
    for (const std::size_t i : group) {
      Module module;
      read(in, module);
      if (!in.ok()) {
        module = {};
        module.errors.push_back("worker sent nonsense");
      } else if (modules_ != nullptr) {
        modules_->store(slots_[i].entry.stored, slots_[i].entry.image, module);
      }
      complete(i, std::move(module));
    }
    report_ready();
  };
  job.failed = [this, group](const std::string& reason) {
    // One of them did it; each on its own shows which.
    if (group.size() > 1) {
      for (const std::size_t i : group) add_group({i});
      return;
    }
    Module module;
    module.kind = slots_[group[0]].entry.image.kind;
    module.sm = slots_[group[0]].entry.image.sm;
    module.errors.push_back(reason);
    complete(group[0], std::move(module));
    report_ready();
  };
  pool_.add(std::move(job));
}

void FileWork::complete(std::size_t index, Module module) {
  for (const std::size_t twin : twins_[slots_[index].entry.stored]) {
    Slot& slot = slots_[twin];
    if (slot.ready || !same_reading(slot.entry.image, slots_[index].entry.image)) continue;
    slot.entry.module = module;
    slot.ready = true;
    bytes_done_ += working_bytes(slot.entry.image);
  }
  sink_.progress(name_, bytes_total_ / 3 + bytes_done_, bytes_total_ + bytes_total_ / 3);
}

void FileWork::report_ready() {
  while (reported_ < order_.size() && slots_[order_[reported_]].ready) {
    sink_.entry(name_, slots_[order_[reported_]].entry);
    slots_[order_[reported_]].entry.module = {};  // it is the sink's now
    ++reported_;
  }
}

}  // namespace gpuwatch::identify
