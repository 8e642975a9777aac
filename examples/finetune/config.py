"""What a fine-tuning run can be told."""

from dataclasses import dataclass


@dataclass
class Config:
    device: str = "cuda:0"
    backend: str = "nccl"
    steps: int = 20
    batch_size: int = 16
    length: int = 32
    vocabulary: int = 200
    width: int = 64
    heads: int = 4
    classes: int = 3
    lr: float = 3e-4
    amp: bool = True
    profile: bool = False
