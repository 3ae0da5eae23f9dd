// SPDX-License-Identifier: Apache-2.0
// What every reader of the kernel module asks of it first: the capture plan of
// the driver at hand, and the images of loaded GPU code. Says nothing itself.
#pragma once

#include <memory>

#include "base/result.h"
#include "source/image_watch.h"
#include "source/kmod_device.h"

namespace gpuwatch::pipeline {

// Sends the plan made for the driver of this machine. An error is no reason to
// stop: its message says which plan is in use instead, which may copy less.
base::Status send_capture_plan(source::KmodDevice& device);

// Has the images captured that processes of the filter load. `keep` false: only
// their records are wanted, not the bytes.
base::Result<std::unique_ptr<source::ImageWatch>> watch_images(const gpuwatch_filter& filter, bool keep);
// The same with a device that was opened earlier, with more privileges.
base::Result<std::unique_ptr<source::ImageWatch>> watch_images(source::KmodDevice device, const gpuwatch_filter& filter,
                                                               bool keep);

}  // namespace gpuwatch::pipeline
