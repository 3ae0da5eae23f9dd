// SPDX-License-Identifier: Apache-2.0
// The compiled kernels as bytes in this program. embed.S defines them.
#pragma once

extern "C" {
extern const unsigned char gpuwatch_probe_image[];
extern const unsigned char gpuwatch_probe_image_end[];
extern const unsigned char gpuwatch_selftest_image[];
extern const unsigned char gpuwatch_selftest_image_end[];
extern const unsigned char gpuwatch_agent_image[];
extern const unsigned char gpuwatch_agent_image_end[];
}
