// SPDX-License-Identifier: Apache-2.0
// What this machine is, for the head of a recording: kernel, driver, GPUs,
// clocks. Reads /proc and /sys only, never the driver, and never the host's
// name. No driver is an empty answer, not an error.
#pragma once

#include <string>
#include <vector>

#include "source/gwcap_format.h"

namespace gpuwatch::source {

std::string kernel_release();

// "580.159.04", from the loaded driver; empty without one. `root` stands in
// front of /proc and /sys, for tests.
std::string driver_version(const std::string& root = "");

std::vector<GwcapGpu> gpus(const std::string& root = "");

// Everything of GwcapHeader that is known here and now.
GwcapHeader describe_host(const std::string& source_name);

}  // namespace gpuwatch::source
