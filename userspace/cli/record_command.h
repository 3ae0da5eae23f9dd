// SPDX-License-Identifier: Apache-2.0
// `gpuwatch record -o F -- CMD`: runs one command under the LD_PRELOAD
// recorder, without root or kernel module. A program can evade it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "source/gwcap.h"

namespace gpuwatch::cli {

base::Result<int> record_command(const Flags& flags, const source::GwcapOptions& options);

// Path of libgpuwatch-record.so: beside this program (../lib) or installed.
base::Result<std::string> find_recorder();

}  // namespace gpuwatch::cli
