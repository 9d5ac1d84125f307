#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""training.py - trains a small LSTM for some steps; prints the last loss to the bit."""

import torch

torch.manual_seed(1)
model = torch.nn.LSTM(24, 48, 2)
last = torch.nn.Linear(48, 3)
rate = torch.optim.Adam(list(model.parameters()) + list(last.parameters()))
for step in range(60):
    batch = torch.randn(5 + step % 13, 7, 24)
    out, _ = model(batch)
    loss = last(out).square().mean()
    rate.zero_grad()
    loss.backward()
    rate.step()
print(loss.item().hex())
