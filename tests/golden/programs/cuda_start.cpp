// SPDX-License-Identifier: Apache-2.0
// The least a CUDA program does: initialise, make the primary context of the
// first GPU, give it back, exit.
#include <cuda.h>

#include "check.h"
#include "phase.h"

int main() {
  CUdevice device;
  CUcontext context;
  phase("init");
  DRV(cuInit(0));
  DRV(cuDeviceGet(&device, 0));
  phase("context");
  DRV(cuDevicePrimaryCtxRetain(&context, device));
  phase("release");
  DRV(cuDevicePrimaryCtxRelease(device));
  phase("exit");
  return 0;
}
