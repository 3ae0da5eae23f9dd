# SPDX-License-Identifier: Apache-2.0
"""A small decoder-only transformer, with a cache of keys and values, for
train_loop.py and infer_loop.py. Written for its driver calls, not its loss."""
import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 8192


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.after(x)))), (k, v)


class Transformer(nn.Module):
    def __init__(self, width=768, layers=8, heads=12):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY)

    def forward(self, tokens, caches=None):
        x, kept = self.embed(tokens), []
        for index, block in enumerate(self.blocks):
            x, cache = block(x, caches[index] if caches else None)
            kept.append(cache)
        return self.head(self.norm(x)), kept
