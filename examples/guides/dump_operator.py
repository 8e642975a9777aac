"""Dumps single operators in the binary format of Ascend's runtime, as dump.json says."""

import pathlib

import torch


def main():
    torch.npu.set_device("npu:0")
    torch.npu.init_dump()
    torch.npu.set_dump(str(pathlib.Path(__file__).with_name("dump.json")))
    total = torch.tensor([2, 2]).to("npu:0")
    total.add_(1)
    torch.npu.finalize_dump()


if __name__ == "__main__":
    main()
