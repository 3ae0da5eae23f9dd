# SPDX-License-Identifier: Apache-2.0
"""One PyTorch training step: a small convolutional network, cross entropy, SGD."""
import torch

torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
    torch.nn.Flatten(), torch.nn.Linear(256, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images = torch.randn(32, 3, 32, 32, device="cuda")
labels = torch.randint(0, 10, (32,), device="cuda")
before = torch.nn.functional.cross_entropy(model(images), labels)
optimizer.zero_grad()
before.backward()
optimizer.step()
after = torch.nn.functional.cross_entropy(model(images), labels)
torch.cuda.synchronize()
if not after.item() < before.item():
    raise SystemExit("the loss did not fall")
