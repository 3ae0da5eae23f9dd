# SPDX-License-Identifier: Apache-2.0
"""Triton kernels alone: memory without torch's own kernels, filled, added, checked on the host."""
import torch
import triton
import triton.language as tl


@triton.jit
def fill_kernel(out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, offsets.to(tl.float32), mask=offsets < n)


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


n = 100_000
x = torch.empty(n, device="cuda", dtype=torch.float32)
out = torch.empty(n, device="cuda", dtype=torch.float32)
grid = (triton.cdiv(n, 1024),)
fill_kernel[grid](x, n, BLOCK=1024)
add_kernel[grid](x, x, out, n, BLOCK=1024)
torch.cuda.synchronize()
if not torch.equal(out.cpu(), 2 * torch.arange(n, dtype=torch.float32)):
    raise SystemExit("wrong sum")
