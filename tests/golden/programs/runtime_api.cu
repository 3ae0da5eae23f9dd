// SPDX-License-Identifier: Apache-2.0
// Runtime API: two streams, events, pinned and managed memory, a graph that is
// launched ten times.
#include <cuda_runtime.h>

#include "check.h"

__global__ void add(int* values, int count, int what) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += what;
}

int main() {
  constexpr int kCount = 1 << 16;
  constexpr size_t kBytes = kCount * sizeof(int);
  cudaStream_t streams[2];
  cudaEvent_t begin, end;
  int *device, *pinned, *managed;
  RT(cudaStreamCreate(&streams[0]));
  RT(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
  RT(cudaEventCreate(&begin));
  RT(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  RT(cudaMalloc(&device, kBytes));
  RT(cudaMallocHost(&pinned, kBytes));
  RT(cudaMallocManaged(&managed, kBytes));
  for (int i = 0; i < kCount; ++i) pinned[i] = managed[i] = i;

  RT(cudaMemcpyAsync(device, pinned, kBytes, cudaMemcpyHostToDevice, streams[0]));
  add<<<kCount / 256, 256, 0, streams[0]>>>(device, kCount, 1);
  RT(cudaGetLastError());
  RT(cudaEventRecord(begin, streams[0]));
  RT(cudaStreamWaitEvent(streams[1], begin, 0));
  add<<<kCount / 256, 256, 0, streams[1]>>>(managed, kCount, 2);
  RT(cudaGetLastError());
  RT(cudaEventRecord(end, streams[1]));
  RT(cudaEventSynchronize(end));

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  RT(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal));
  add<<<kCount / 256, 256, 0, streams[0]>>>(device, kCount, 1);
  RT(cudaMemcpyAsync(pinned, device, kBytes, cudaMemcpyDeviceToHost, streams[0]));
  RT(cudaStreamEndCapture(streams[0], &graph));
  RT(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 10; ++i) RT(cudaGraphLaunch(executable, streams[0]));
  RT(cudaDeviceSynchronize());
  for (int i = 0; i < kCount; ++i)
    if (pinned[i] != i + 11 || managed[i] != i + 2) return 3;

  RT(cudaGraphExecDestroy(executable));
  RT(cudaGraphDestroy(graph));
  RT(cudaFree(managed));
  RT(cudaFreeHost(pinned));
  RT(cudaFree(device));
  RT(cudaEventDestroy(end));
  RT(cudaEventDestroy(begin));
  RT(cudaStreamDestroy(streams[1]));
  RT(cudaStreamDestroy(streams[0]));
  return 0;
}
