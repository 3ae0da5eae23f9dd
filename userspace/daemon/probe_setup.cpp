// SPDX-License-Identifier: Apache-2.0
#include "daemon/probe_setup.h"

#include <algorithm>

namespace gpuwatch::daemon {

base::Status begin_starter(const Settings& settings, std::optional<ProbeStarter>& out) {
  if (!settings.flag(Key::kProbeEnabled)) return {};
  auto starter = ProbeStarter::begin(settings.text(Key::kProbeProgram));
  if (!starter) return std::move(starter.error());
  out.emplace(std::move(*starter));
  return {};
}

ProberSettings prober_settings(const Settings& settings) {
  return {settings.flag(Key::kProbeEnabled), settings.duration(Key::kProbeInterval),
          settings.duration(Key::kProbeTimeout)};
}

std::vector<model::ProcessKey> with_contexts(const report::HoldingsSnapshot& holdings) {
  std::vector<model::ProcessKey> found;
  for (const report::HeldGpu& gpu : holdings.gpus)
    for (const report::HeldContainer& container : gpu.containers)
      for (const report::HeldProcess& process : container.processes) {
        const model::ProcessKey key{process.who.start_ns, process.who.pid};
        if (process.ended_ns == 0 && process.contexts != 0 && std::find(found.begin(), found.end(), key) == found.end())
          found.push_back(key);
      }
  return found;
}

std::unique_ptr<Prober> make_prober(const Settings& settings, std::optional<ProbeStarter>& starter, Engine& engine) {
  if (!starter) return nullptr;
  auto prober = std::make_unique<Prober>(
      std::move(*starter), [&engine] { return with_contexts(engine.view()->holdings); },
      [&engine](ProbeNews news) { engine.tell(std::move(news)); });
  starter.reset();
  prober->use(prober_settings(settings));
  prober->start();
  return prober;
}

}  // namespace gpuwatch::daemon
