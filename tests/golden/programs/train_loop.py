# SPDX-License-Identifier: Apache-2.0
"""Trains a small transformer as many people train: bf16 autocast, AdamW, two
loader processes, pinned batches, a loss read every 20 steps, an evaluation with
another batch size every 200. Argument: seconds of the steady part."""
import sys
import time

import torch
from torch.nn import functional as F

from phase import per_round, phase
from transformer import VOCABULARY, Transformer


class Tokens(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            yield torch.randint(0, VOCABULARY, (257,))


def main():
    seconds = float(sys.argv[1])
    loader = iter(torch.utils.data.DataLoader(Tokens(), batch_size=32, num_workers=2, pin_memory=True))
    phase("start")
    model = Transformer().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    def loss_of(batch):
        tokens = batch.cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            logits, _ = model(tokens[:, :-1])
            return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def run_step(step):
        loss = loss_of(next(loader))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0 and not loss.item() < 100:
            raise SystemExit("the loss ran away")
        if step % 200 == 0:
            with torch.no_grad():
                loss_of(torch.cat([next(loader) for _ in range(3)]).pin_memory()).item()

    for step in range(21):
        run_step(step)
    torch.cuda.synchronize()
    begin, step = phase("steady"), 0
    while time.monotonic_ns() - begin < seconds * 1e9:
        step += 1
        run_step(step)
    torch.cuda.synchronize()
    per_round("steady", begin, step)
    phase("exit")


if __name__ == "__main__":
    main()
