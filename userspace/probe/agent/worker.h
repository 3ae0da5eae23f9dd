// SPDX-License-Identifier: Apache-2.0
// Answers a requester's frames in the watched process: what is mapped, bytes,
// digests. What it took from the driver it gives back with the connection.
#pragma once

#include <map>
#include <memory>

#include "probe/agent/hook.h"
#include "probe/agent/live_gpu.h"
#include "probe/agent/server.h"

namespace gpuwatch::probe::agent {

class Worker : public Service {
 public:
  explicit Worker(MappedMemory& memory) : memory_(memory) {}
  Frame facts() override;
  Frame read(const AskRead& ask) override;
  Frame hash(const AskHash& ask) override;
  Frame survey(const AskSurvey& ask) override;
  void end() override;

 private:
  Trouble driver();
  Trouble gpu(std::uint32_t device, LiveGpu*& out);

  MappedMemory& memory_;
  std::unique_ptr<LiveApi> api_;
  std::vector<DeviceFact> devices_;
  std::map<std::uint32_t, std::unique_ptr<LiveGpu>> gpus_;
};

}  // namespace gpuwatch::probe::agent
