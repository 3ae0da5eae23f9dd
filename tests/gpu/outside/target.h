// SPDX-License-Identifier: Apache-2.0
// The process that gpu-outside reads from: loads a cubin and the self test's
// module through libcuda, writes its own driver calls down and goes on
// computing. Its ioctl() stands before libc's, in the whole program; it only
// notes, and only when it plays the target.
#pragma once

namespace gpuwatch::outside {

// Lines on stdout, all numbers hexadecimal but sizes:
//   client FD HANDLE            a root client and the descriptor it was made through
//   share CLIENT HEX            a share policy that libcuda sets for its client
//   object CLIENT PARENT HANDLE CLASS FLAGS      of a class that matters here, still there
//   debugger CLIENT HANDLE APP_CLIENT COMPUTE_OBJECT
//   map ADDRESS BYTES CLIENT HANDLE
//   function NAME ADDRESS BYTES
//   large ADDRESS BYTES         1 GiB of device memory
//   ready | skip WHY | failed WHY
// then for each line on stdin: `run N`: what N launches compute and the median of their microseconds.
// 77: no GPU.
int run_target(const char* cubin);

}  // namespace gpuwatch::outside
