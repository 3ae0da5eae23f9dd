// SPDX-License-Identifier: Apache-2.0
// Asking agents, as the settings want it: the process that starts gpuwatch-probe,
// and the thread that reads it, joined with the engine.
#pragma once

#include <memory>
#include <optional>

#include "daemon/engine.h"
#include "daemon/prober.h"
#include "daemon/settings.h"

namespace gpuwatch::daemon {

// Before privileges are given up and before any thread. Nothing where it is off.
base::Status begin_starter(const Settings& settings, std::optional<ProbeStarter>& out);

ProberSettings prober_settings(const Settings& settings);

// Takes the starter over and begins; nothing where there is none.
std::unique_ptr<Prober> make_prober(const Settings& settings, std::optional<ProbeStarter>& starter, Engine& engine);

// Those that hold a context, each once.
std::vector<model::ProcessKey> with_contexts(const report::HoldingsSnapshot& holdings);

}  // namespace gpuwatch::daemon
