"""Counts the devices."""

import torch

print(f"{torch.cuda.device_count()} devices")
