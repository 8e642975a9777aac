"""The device functions and tensor forms that porting guides replace, each called once."""

import torch


def main():
    print(torch.cuda.is_available(), torch.cuda.current_device(), torch.cuda.device_count() > 0)
    torch.cuda.set_device(0)
    device = torch.device("cuda:0")
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        moved = torch.tensor([1, 2, 3]).to("cuda")
    with torch.cuda.device(0), torch.autograd.profiler.profile(use_cuda=True):
        print(moved.is_cuda, torch.tensor([1, 2, 3]).cuda() + moved)
    print(torch.cuda.current_stream() == torch.cuda.default_stream())
    torch.cuda.Event().record()
    torch.cuda.synchronize()

    for dtype in (torch.long, torch.int, torch.half, torch.float, torch.bool):
        print(torch.tensor([1, 2, 3], dtype=dtype, device="cuda").dtype)
    print(torch.cuda.BoolTensor([1, 2, 3]).dtype, torch.cuda.FloatTensor([1, 2, 3]).dtype)
    print(torch.cuda.IntTensor([1, 2, 3]).dtype, torch.cuda.LongTensor([1, 2, 3]).dtype)
    print(torch.cuda.HalfTensor([1, 2, 3]).dtype)


if __name__ == "__main__":
    main()
