// SPDX-License-Identifier: Apache-2.0
// check_books: whatever calls came, the tree's totals must be the sums of what
// is in it. Used by unit tests and the fuzz target.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "decode/tree.h"

namespace gpuwatch::test {

// One object: how deep, its handle, its class.
struct ShapeItem {
  unsigned depth = 0;
  std::uint32_t handle = 0;
  std::uint32_t class_number = 0;
  bool operator==(const ShapeItem&) const = default;
};
using Shape = std::vector<ShapeItem>;

inline Shape shape_of(const decode::Tree& tree) {
  struct Collector : decode::TreeVisitor {
    Shape shape;
    bool object(const model::TreeObject& object, unsigned depth) override {
      shape.push_back({depth, object.handle, object.class_number});
      return true;
    }
  } collector;
  tree.walk(collector);
  return collector.shape;
}

// Ends the program where a book is wrong: a test or the fuzzer sees it die.
inline void must_hold(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "tree: %s\n", what);
  std::abort();
}

inline void check_books(const decode::Tree& tree) {
  struct Auditor : decode::TreeVisitor {
    std::size_t processes = 0, clients = 0, objects = 0;
    model::TreeProcess current;
    std::uint32_t own_objects = 0;
    std::array<std::uint64_t, model::kLocations> sums{};
    std::map<std::int32_t, std::uint64_t> on_gpu;
    std::uint32_t promised = 0, found = 0;
    std::set<std::uint32_t> handles;

    void close_client() {
      must_hold(promised == found, "a client's number of objects");
      promised = found = 0;
      handles.clear();
    }
    void close_process() {
      close_client();
      if (processes == 0) return;
      must_hold(current.objects == own_objects, "a process's number of objects");
      for (std::size_t i = 0; i < sums.size(); ++i) {
        must_hold(current.memory[i].live == sums[i], "a process's live bytes");
        must_hold(current.memory[i].peak >= sums[i], "a process's peak");
      }
      own_objects = 0;
      sums = {};
    }
    bool process(const model::TreeProcess& process) override {
      close_process();
      current = process;
      ++processes;
      return true;
    }
    bool client(const model::TreeClient& client) override {
      close_client();
      promised = client.objects;
      ++clients;
      ++own_objects;
      ++objects;
      return true;
    }
    bool object(const model::TreeObject& object, unsigned) override {
      must_hold(handles.insert(object.handle).second, "a handle twice in a client");
      ++found;
      ++own_objects;
      ++objects;
      if (!object.counted) return true;
      sums[static_cast<std::size_t>(object.location)] += object.bytes;
      if (object.location == model::Location::kGpu) on_gpu[object.device] += object.bytes;
      return true;
    }
  } auditor;
  tree.walk(auditor);
  auditor.close_process();
  const decode::TreeStats stats = tree.stats();
  must_hold(stats.processes == auditor.processes, "number of processes");
  must_hold(stats.clients == auditor.clients, "number of clients");
  must_hold(stats.objects == auditor.objects, "number of objects");
  // More GPUs than there can be share a row: then only their sum is right.
  std::uint64_t seen = 0, told = 0;
  for (const auto& [device, bytes] : auditor.on_gpu) seen += bytes;
  for (const model::GpuUsage& gpu : tree.gpus()) told += gpu.memory.live;
  must_hold(seen == told, "live bytes of all GPUs");
}

}  // namespace gpuwatch::test
