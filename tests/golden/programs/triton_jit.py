# SPDX-License-Identifier: Apache-2.0
"""A Triton kernel compiled at run time, launched and checked."""
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


n = 100_000
x = torch.arange(n, device="cuda", dtype=torch.float32)
out = torch.empty_like(x)
add_kernel[(triton.cdiv(n, 1024),)](x, x, out, n, BLOCK=1024)
torch.cuda.synchronize()
if not torch.equal(out, 2 * x):
    raise SystemExit("wrong sum")
