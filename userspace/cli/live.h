// SPDX-License-Identifier: Apache-2.0
// What tail and record share when they read the kernel module: capture plan,
// filter, rings, and how a loss is told.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/flags.h"
#include "cli/selection.h"
#include "source/kmod_source.h"

namespace gpuwatch::cli {

// Opens the device, sends the capture plan where permitted (says so on
// standard error where not), sets the filter and starts delivery.
// `ring_bytes` 0: the flag, or a default.
base::Result<std::unique_ptr<source::KmodSource>> start_live(const Flags& flags, Selection& selection,
                                                             gpuwatch_ring_mode mode, std::uint64_t ring_bytes = 0);

// Has the GPU modules captured that processes of the selection load. Where that
// can't be done it is said on standard error, and calls are followed all the same.
// `keep` false: only their records are wanted, not the bytes.
void start_images(Selection& selection, source::KmodSource& source, bool keep);

// "lost 0 of 12 records", with the reasons where there are any.
std::string loss_line(const model::LossCounts& lost, std::uint64_t records);

}  // namespace gpuwatch::cli
