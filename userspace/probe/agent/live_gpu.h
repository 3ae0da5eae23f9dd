// SPDX-License-Identifier: Apache-2.0
// One GPU of a living process, for one connection: reads and hashes what is
// proven to be mapped, by short launches on a stream of lowest priority, into a
// piece of pinned host memory. It allocates no memory of the GPU, which a later
// search would find copies of code in, and writes to nothing but its own.
#pragma once

#include <chrono>

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
  Trouble run(CuFunction function, Shape shape, void** arguments, const std::vector<Span>& spans);
  Trouble run_once(CuFunction function, Shape shape, void** arguments, const std::vector<Span>& spans, bool& late);
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
  std::chrono::steady_clock::time_point loaded_;  // the agent's kernels, which is a refresh once they ran
  bool ran_ = false;
  std::uint8_t* host_ = nullptr;
  CuPointer host_address_ = 0;
};

}  // namespace gpuwatch::probe::agent
