"""Tries what the first generation of Ascend cards can't do."""

import argparse

import torch
import torch.distributed as dist


def refused(what):
    try:
        return what()
    except (RuntimeError, TypeError) as error:
        return f"refused: {error}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--group", action="store_true", help="join the processes, and add up a float64")
    args = parser.parse_args()
    torch.npu.set_device("npu:0")
    print("60000 * 2 in float16:", (torch.full((1,), 60000.0, dtype=torch.half).npu() * 2).item())
    print("bfloat16:", refused(lambda: torch.ones(2, dtype=torch.bfloat16).npu() * 2))
    if args.group:
        dist.init_process_group("hccl")
        print(
            "float64 over HCCL:", refused(lambda: dist.all_reduce(torch.ones(2, dtype=torch.float64).npu()))
        )
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
