// SPDX-License-Identifier: Apache-2.0
// The commands of `gpuwatch`: each takes its parsed flags and gives the exit
// code, or an error that main prints once.
#pragma once

#include "base/result.h"
#include "cli/flags.h"

namespace gpuwatch::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFinding = 1;
inline constexpr int kExitTrouble = 2;

base::Result<int> run_tail(const Flags& flags);
base::Result<int> run_top(const Flags& flags);
base::Result<int> run_record(const Flags& flags);
base::Result<int> run_cgroup(const Flags& flags);
base::Result<int> run_decode(const Flags& flags);
base::Result<int> run_hash(const Flags& flags);
base::Result<int> run_status(const Flags& flags);
base::Result<int> run_listen(const Flags& flags);
base::Result<int> run_attach(const Flags& flags);
base::Result<int> run_detach(const Flags& flags);
base::Result<int> run_doctor(const Flags& flags);
base::Result<int> run_baseline(const Flags& flags);
base::Result<int> run_probe(const Flags& flags);

}  // namespace gpuwatch::cli
