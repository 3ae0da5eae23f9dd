// SPDX-License-Identifier: Apache-2.0
// One GPU of a living process, for one connection: reads and hashes what is
// proven to be mapped, by short launches on a stream of lowest priority, into a
// few MiB of pinned host memory. It allocates no memory of the GPU, which a later
// search would find copies of code in, and writes to nothing but its own.
#pragma once

#include "kernels/agent.h"
#include "probe/agent/live_api.h"
#include "probe/agent/memory.h"

namespace gpuwatch::probe::agent {

struct Trouble {
  Reason reason = Reason::kGpu;
  std::string text;  // empty: none
  explicit operator bool() const { return !text.empty(); }
};

class LiveGpu {
 public:
  LiveGpu(const LiveApi& api, MappedMemory& memory) : api_(api), memory_(memory) {}
  ~LiveGpu() { close(); }
  LiveGpu(const LiveGpu&) = delete;
  LiveGpu& operator=(const LiveGpu&) = delete;

  // `gpu`: what ranges must be mapped on; null where there is one GPU only.
  Trouble open(int ordinal, const Uuid* gpu);
  Trouble read(const Span& span, std::vector<std::uint8_t>& out);
  Trouble hash(const AskHash& ask, std::vector<identify::Digest>& roots);
  Trouble survey(const AskSurvey& ask, std::vector<SpanCount>& counts);

 private:
  void close();
  Trouble prepare();
  Trouble refresh();
  struct Shape {
    unsigned blocks, threads;
  };
  static constexpr Shape kAgentShape{kernels::kAgentBlocks, kernels::kAgentThreads};
  Trouble run(CuFunction function, Shape shape, void** arguments, const std::vector<Span>& spans);
  bool idle_within(int ms);
  Trouble failed(CuResult result, const char* what) const;

  const LiveApi& api_;
  MappedMemory& memory_;
  const Uuid* gpu_ = nullptr;
  CuDevice device_ = -1;
  CuContext context_ = nullptr;
  CuModule module_ = nullptr;
  CuFunction read_ = nullptr, hash_ = nullptr, survey_ = nullptr;
  CuStream stream_ = nullptr;
  std::uint8_t* host_ = nullptr;
  CuPointer host_address_ = 0;
};

}  // namespace gpuwatch::probe::agent
