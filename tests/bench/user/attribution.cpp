// SPDX-License-Identifier: Apache-2.0
#include "attribution.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "attribute/attributor.h"
#include "base/io.h"

namespace gpuwatch::bench {

namespace {

constexpr std::uint32_t kProcesses = 1000;
constexpr std::uint32_t kCgroups = 100;
constexpr std::uint32_t kEvents = 100'000;
constexpr int kRounds = 30;

double cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename Work>
double best_ns(int rounds, Work work) {
  double best = 1e18;
  for (int i = 0; i < rounds; ++i) {
    const double begin = cpu_ns();
    work();
    best = std::min(best, cpu_ns() - begin);
  }
  return best;
}

template <typename T>
void append(std::vector<std::byte>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

std::vector<std::byte> with_path(gpuwatch_rec head, std::vector<std::byte> payload, const std::string& path,
                                 const std::vector<std::byte>& behind) {
  for (const char c : path) payload.push_back(static_cast<std::byte>(c));
  while (payload.size() % 8 != 0) payload.push_back(std::byte{0});
  payload.insert(payload.end(), behind.begin(), behind.end());
  head.len = static_cast<__u32>(sizeof head + payload.size());
  std::vector<std::byte> out;
  append(out, head);
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

gpuwatch_rec head_of(std::uint32_t i) {
  gpuwatch_rec head{};
  head.type = GPUWATCH_REC_IOCTL;
  head.tgid = 1000 + i % kProcesses;
  head.start_ns = 7'000'000'000u + std::uint64_t{head.tgid} * 12'345'678u;
  head.cgroup_id = 5000 + i % kCgroups;
  return head;
}

std::vector<std::byte> task(std::uint32_t i) {
  gpuwatch_rec head = head_of(i);
  head.type = GPUWATCH_REC_TASK;
  const std::string path = "/opt/conda/bin/python3.11";
  gpuwatch_rec_task fixed{};
  fixed.ns_tgid = 12;
  fixed.path_len = static_cast<__u32>(path.size());
  std::vector<std::byte> payload, behind;
  append(payload, fixed);
  gpuwatch_task_more more{};
  more.nr_ancestors = 2;
  more.nr_ns = 2;
  append(behind, more);
  for (int k = 0; k < 2; ++k) append(behind, gpuwatch_ancestor{1, 1, 1, "sh"});
  append(behind, std::uint64_t{0});
  return with_path(head, payload, path, behind);
}

std::vector<std::byte> cgroup(std::uint32_t i) {
  gpuwatch_rec head = head_of(i);
  head.type = GPUWATCH_REC_CGROUP;
  std::string id(64, 'a');
  id[0] = static_cast<char>('a' + i % 6);
  const std::string path =
      "/kubepods.slice/kubepods-burstable.slice/"
      "kubepods-burstable-pod6f1c2d34_5a7b_4c8d_9e0f_1a2b3c4d5e6f.slice/cri-containerd-" +
      id + ".scope";
  gpuwatch_rec_cgroup fixed{};
  fixed.version = 2;
  fixed.path_len = static_cast<__u32>(path.size());
  std::vector<std::byte> payload;
  append(payload, fixed);
  return with_path(head, payload, path, {});
}

}  // namespace

AttributionCost measure_attribution() {
  AttributionCost cost;
  std::vector<std::vector<std::byte>> tasks;
  for (std::uint32_t i = 0; i < kProcesses; ++i) tasks.push_back(task(i));
  attribute::Attributor attributor;
  for (std::uint32_t i = 0; i < kCgroups; ++i) attributor.learn(*model::parse_record(cgroup(i)));
  cost.definition_ns = best_ns(kRounds,
                               [&] {
                                 for (const auto& record : tasks) attributor.learn(*model::parse_record(record));
                               }) /
                       kProcesses;
  // A prime step, so that neighbours in time are none in memory.
  cost.known_ns = best_ns(kRounds,
                          [&] {
                            std::uint32_t at = 0;
                            for (std::uint32_t i = 0; i < kEvents; ++i) {
                              at = (at + 7919) % (kProcesses * kCgroups);
                              const model::Actor actor = attributor.actor_of(head_of(at));
                              cost.sum += actor.ns_tgid + actor.container_id.size() + actor.exe.size();
                            }
                          }) /
                  kEvents;
  const std::string place = "/proc/" + std::to_string(::getpid());
  cost.proc_ns = best_ns(kRounds, [&] {
    std::string link(4096, '\0');
    for (const char* name : {"/stat", "/cgroup"})
      if (auto text = base::read_text_file(place + name); text.ok()) cost.sum += text->size();
    cost.sum += static_cast<std::uint64_t>(::readlink((place + "/exe").c_str(), link.data(), link.size()));
  });
  return cost;
}

}  // namespace gpuwatch::bench
