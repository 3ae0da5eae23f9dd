// SPDX-License-Identifier: Apache-2.0
// gpuwatch-probe, which lies beside this program: started as a child, waited for,
// its lines read back. This program never touches a GPU itself.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpuwatch::cli {

// Takes each line of its output; an error of it ends the child.
using TakeAnswer = std::function<base::Status(const nlohmann::json&)>;

// For one that goes on round after round: has it said enough? Then it is told to
// end after its round.
using Enough = std::function<bool()>;

// The program's exit status. Without `take` its output is this program's. With
// `enough` signals that end this program in order are passed on to it, and how much
// it prints in all has no bound; else it ends by itself. An
// error where it cannot be started, was ended by a signal, or printed what is
// none of its lines. One that gave up waiting for the driver and cannot end
// because that call hangs in the kernel is not waited for; its status is 14.
base::Result<int> run_probe_program(const std::vector<std::string>& arguments, const TakeAnswer& take = nullptr,
                                    const Enough& enough = nullptr);

}  // namespace gpuwatch::cli
