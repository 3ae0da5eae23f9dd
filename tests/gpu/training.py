# SPDX-License-Identifier: Apache-2.0
"""A PyTorch training loop that does what lines on its input say, an answer each; for living.py. A step is long enough to
keep the GPU busy all the time.

  N                    so many steps: seconds, and the last losses bit for bit
  triton FILE          runs a Triton kernel and writes its cubin: how many of its results are wrong
  profiler             attaches PyTorch's profiler, which takes CUPTI's records of kernels, and keeps it
  poke ADDRESS VALUE   cuMemsetD32 of one word of GPU memory, both hexadecimal
  device N             what follows is on GPU N, to which a tensor of the first GPU goes"""
import ctypes
import sys
import time

import torch

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(2048, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 2048)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
data = torch.randn(2048, 2048, device="cuda")


def step():
    optimizer.zero_grad()
    loss = ((net(data) - data) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss


def steps(count):
    begin, losses = time.monotonic(), []
    for i in range(count):
        loss = step()
        if i >= count - 8:
            losses.append(loss)
    torch.cuda.synchronize()
    return " ".join([str(time.monotonic() - begin), *[loss.item().hex() for loss in losses]])


def run_triton(path):
    import triton
    import triton.language as tl

    global add_kernel
    if "add_kernel" not in globals():

        @triton.jit
        def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            mask = at < n
            tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

    x, y = torch.rand(100_000, device="cuda"), torch.rand(100_000, device="cuda")
    out = torch.empty_like(x)
    compiled = add_kernel[(98,)](x, y, out, 100_000, BLOCK=1024)
    torch.cuda.synchronize()
    with open(path, "wb") as file:
        file.write(compiled.asm["cubin"])
    return str(int((out != x + y).sum().item()))


def profiler():
    global profile
    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    profile.start()
    steps(20)
    return "ok"


def poke(address, value):
    cuda = ctypes.CDLL("libcuda.so.1")
    result = cuda.cuMemsetD32_v2(ctypes.c_uint64(int(address, 16)), ctypes.c_uint32(int(value, 16)), ctypes.c_size_t(1))
    torch.cuda.synchronize()
    return "ok" if result == 0 else f"CUDA error {result}"


def device(number):
    torch.cuda.set_device(number)
    moved = data.to(f"cuda:{number}")  # by way of peer memory, where there is such
    return "ok" if bool((moved.cpu() == data.cpu()).all()) else "wrong"


profile = None
for _ in range(50):
    step()
torch.cuda.synchronize()
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    if words[0] == "triton":
        print(run_triton(words[1]), flush=True)
    elif words[0] == "profiler":
        print(profiler(), flush=True)
    elif words[0] == "device":
        print(device(int(words[1])), flush=True)
    elif words[0] == "poke":
        print(poke(words[1], words[2]), flush=True)
    else:
        print(steps(int(words[0])), flush=True)
if profile is not None:
    profile.stop()  # PyTorch 2.11 does not survive its own end otherwise
