"""The classic ImageNet trainer as the Ascend guide migrates it by hand: `import torch.npu`, apex.amp with a static
loss scale, labels as int32, one process per card with hccl. Takes data.py and resnet.py from examples/imagenet."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.npu
from apex import amp
from data import RandomImages
from resnet import MODELS
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--addr", default="127.0.0.1", type=str, help="master addr")
parser.add_argument("--port", default="29688", type=str)
parser.add_argument("--device-list", default="0", type=str, help="device id list")
parser.add_argument("--amp", default=False, action="store_true", help="use amp to train the model")
parser.add_argument("--loss-scale", default=1024.0, type=float, help="-1 means dynamic")
parser.add_argument("--opt-level", default="O2", type=str)
parser.add_argument("--combine-grad", action="store_true")
parser.add_argument("--steps", default=4, type=int)
parser.add_argument("--checkpoint", default="", type=str, help="save here, and load it again")


def device_id_to_process_device_map(device_list):
    return dict(enumerate(sorted(int(x) for x in device_list.split(","))))


def main():
    args = parser.parse_args()
    os.environ["MASTER_ADDR"] = args.addr
    os.environ["MASTER_PORT"] = args.port
    args.process_device_map = device_id_to_process_device_map(args.device_list)
    args.world_size = len(args.process_device_map)
    if args.world_size > 1:
        mp.spawn(main_worker, nprocs=args.world_size, args=(args,))
    else:
        main_worker(0, args)


def main_worker(process, args):
    args.gpu = args.process_device_map[process]
    loc = f"npu:{args.gpu}"
    torch.npu.set_device(loc)
    if args.world_size > 1:
        dist.init_process_group(backend="hccl", world_size=args.world_size, rank=process)
    torch.manual_seed(49)
    model = MODELS["resnet_tiny"](num_classes=10).to(loc)
    criterion = nn.CrossEntropyLoss().to(loc)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    if args.amp:
        scale = "dynamic" if args.loss_scale == -1 else args.loss_scale
        model, optimizer = amp.initialize(
            model, optimizer, opt_level=args.opt_level, loss_scale=scale, combine_grad=args.combine_grad
        )
    if args.world_size > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
    data = RandomImages(8 * args.steps * args.world_size, 32, 10)
    sampler = DistributedSampler(data) if args.world_size > 1 else None
    loader = DataLoader(data, batch_size=8, sampler=sampler, num_workers=0, pin_memory=False, drop_last=True)
    for step, (images, target) in enumerate(loader):
        target = target.to(torch.int32)
        images, target = images.to(loc, non_blocking=False), target.to(loc, non_blocking=False)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        if args.amp:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
        print(f"rank {process} step {step} loss {loss.item():.6f}", flush=True)
    if args.checkpoint and process == 0:
        save_and_load(args, loc, model, optimizer)


def save_and_load(args, loc, model, optimizer):
    state = {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
    if args.amp:
        state["amp"] = amp.state_dict()
    torch.save(state, args.checkpoint)
    checkpoint = torch.load(args.checkpoint, map_location=loc)
    model.load_state_dict(checkpoint["state_dict"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    if args.amp:
        amp.load_state_dict(checkpoint["amp"])
    print(f"loaded on {next(iter(checkpoint['state_dict'].values())).device}")


if __name__ == "__main__":
    main()
