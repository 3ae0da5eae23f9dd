// SPDX-License-Identifier: Apache-2.0
// The little that the service asks of the machine by itself: its name, and
// directories for its files.
#pragma once

#include <pwd.h>

#include <string>
#include <vector>

namespace gpuwatch::daemon {

std::string host_name();
// Directories of ours, for whom the daemon will be.
void make_directory(const std::string& path, const passwd* owner);
std::string parent_of(const std::string& path);
// With newlines between.
std::string joined(const std::vector<std::string>& lines);

}  // namespace gpuwatch::daemon
