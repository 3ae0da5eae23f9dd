// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them, for pages and pictures alike.
#pragma once

#include <cstdint>
#include <string>

namespace gpuwatch::report {

std::string grouped(std::uint64_t value);                      // 1,234,567
std::string decimal(double value, int digits);                 // 12.30
std::string rate(std::uint64_t count, std::uint64_t span_ns);  // per second: 1,729 or 45.2 or 0.35; "-" without a span
std::string seconds(std::uint64_t ns);                         // 0.458 s
std::string duration(std::uint64_t ns);                        // 11.200us
std::string bytes_text(std::uint64_t count);                   // 2.0 MiB
std::string percent(std::uint64_t part, std::uint64_t whole);  // 90.4 %
std::string plural(std::uint64_t count, const char* one, const char* many);

}  // namespace gpuwatch::report
