# SPDX-License-Identifier: Apache-2.0
"""Answers requests with a small transformer: prompts of 16 to 512 tokens,
batches of 1 to 16, 64 tokens each with a cache of keys and values, the answer
read back. Arguments: seconds of the steady part, and "cudnn" to leave attention
to cuDNN, which plans anew for every length."""
import random
import sys
import time

import torch

from phase import per_round, phase
from transformer import VOCABULARY, Transformer


@torch.inference_mode()
def answer(model, batch, length):
    tokens = torch.randint(0, VOCABULARY, (batch, length)).pin_memory().to("cuda", non_blocking=True)
    caches, said = None, []
    for _ in range(64):
        logits, caches = model(tokens, caches)
        tokens = logits[:, -1:].argmax(-1)
        said.append(tokens)
    return torch.cat(said, 1).cpu()


def main():
    seconds = float(sys.argv[1])
    random.seed(1)
    torch.backends.cuda.enable_cudnn_sdp(sys.argv[2:] == ["cudnn"])
    phase("start")
    model = Transformer().cuda().half().eval()
    request = lambda: answer(model, random.choice((1, 2, 4, 8, 16)), random.randint(16, 512))
    for _ in range(3):
        request()
    begin, requests = phase("steady"), 0
    while time.monotonic_ns() - begin < seconds * 1e9:
        requests += 1
        request()
    per_round("steady", begin, requests)
    phase("exit")


if __name__ == "__main__":
    main()
