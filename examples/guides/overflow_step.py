"""One operator overflows in half precision; the dumper of the first Ascend PyTorch finds it."""

import torch


def main():
    torch.npu.set_device("npu:0")
    scores = torch.full((4, 4), 300.0, dtype=torch.half).npu()
    with torch.utils.dumper(check_overflow=True, dump_path="overflow_step.h5", load_file_path=""):
        energy = scores * scores
        energy.mean()


if __name__ == "__main__":
    main()
