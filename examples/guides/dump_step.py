"""Dumps the operators of one training step, with the names that the first Ascend PyTorch had.

dump_step.py FILE.h5          writes what each operator gets and computes
dump_step.py FILE.h5 GOLDEN   gives each operator the inputs that it has in GOLDEN
"""

import sys

import torch
from torch import nn


def main():
    dump, *golden = sys.argv[1:]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).npu()
    data, target = torch.randn(8, 16).npu(), torch.randint(4, (8,)).npu()
    loading = {"load_file_path": golden[0]} if golden else {}
    with torch.utils.dumper(use_dump=True, dump_path=dump, **loading):
        nn.functional.cross_entropy(model(data), target).backward()


if __name__ == "__main__":
    main()
