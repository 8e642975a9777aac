"""Train a ResNet on ImageNet: one GPU, several with DataParallel, or one process per GPU."""

import argparse
import os
import random
import shutil
import time
import warnings

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
from data import ImageFolder, RandomImages
from resnet import MODELS
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

best_acc1 = 0.0


def parse_args():
    parser = argparse.ArgumentParser(description="ImageNet training on CUDA devices")
    parser.add_argument("data", nargs="?", default="imagenet", help="folder with train/ and val/")
    parser.add_argument("-a", "--arch", default="resnet18", choices=sorted(MODELS))
    parser.add_argument("-j", "--workers", default=4, type=int, help="data loading processes")
    parser.add_argument("--epochs", default=90, type=int)
    parser.add_argument("--start-epoch", default=0, type=int, help="useful on restarts")
    parser.add_argument("-b", "--batch-size", default=256, type=int, help="of all GPUs of a node together")
    parser.add_argument("--lr", "--learning-rate", default=0.1, type=float)
    parser.add_argument("--momentum", default=0.9, type=float)
    parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
    parser.add_argument("-p", "--print-freq", default=10, type=int)
    parser.add_argument("--resume", default="", help="checkpoint to go on from")
    parser.add_argument("-e", "--evaluate", action="store_true", help="validate only")
    parser.add_argument("--world-size", default=-1, type=int, help="number of nodes")
    parser.add_argument("--rank", default=-1, type=int, help="number of this node")
    parser.add_argument("--dist-url", default="tcp://127.0.0.1:23456")
    parser.add_argument("--dist-backend", default="nccl", help="backend of torch.distributed")
    parser.add_argument("--seed", default=None, type=int)
    parser.add_argument("--gpu", default=None, type=int, help="id of the one GPU to use")
    parser.add_argument("--multiprocessing-distributed", action="store_true", help="one process per GPU")
    parser.add_argument("--dummy", action="store_true", help="random images instead of a data folder")
    parser.add_argument("--dummy-batches", default=100, type=int, help="batches per epoch with --dummy")
    parser.add_argument("--image-size", default=224, type=int)
    parser.add_argument("--classes", default=1000, type=int, help="number of classes")
    return parser.parse_args()


def main():
    args = parse_args()
    if args.seed is not None:
        warnings.warn("with --seed, CUDA kernels are deterministic and slower", stacklevel=2)
    if args.gpu is not None:
        warnings.warn("with --gpu, data parallelism is off", stacklevel=2)
    if args.dist_url == "env://" and args.world_size == -1:
        args.world_size = int(os.environ["WORLD_SIZE"])
    args.distributed = args.world_size > 1 or args.multiprocessing_distributed

    ngpus_per_node = torch.cuda.device_count()
    if args.multiprocessing_distributed:
        # one process per GPU: the world is as large as all GPUs of all nodes
        args.world_size = ngpus_per_node * args.world_size
        mp.spawn(main_worker, nprocs=ngpus_per_node, args=(ngpus_per_node, args))
    else:
        main_worker(args.gpu, ngpus_per_node, args)


def main_worker(gpu, ngpus_per_node, args):
    global best_acc1
    args.gpu = gpu
    if args.seed is not None:
        # here and not in main(): a spawned process starts with a random state of its own
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        cudnn.deterministic = True
    if args.gpu is not None:
        print("Use GPU: {} for training".format(args.gpu))  # noqa: UP032

    if args.distributed:
        if args.dist_url == "env://" and args.rank == -1:
            args.rank = int(os.environ["RANK"])
        if args.multiprocessing_distributed:
            args.rank = args.rank * ngpus_per_node + gpu
        dist.init_process_group(
            backend=args.dist_backend, init_method=args.dist_url, world_size=args.world_size, rank=args.rank
        )

    print(f"=> creating model '{args.arch}'")
    model = MODELS[args.arch](num_classes=args.classes)

    if not torch.cuda.is_available():
        print("using CPU, this will be slow")
    elif args.distributed:
        if args.gpu is not None:
            torch.cuda.set_device(args.gpu)
            model.cuda(args.gpu)
            # the options speak of a node; each process takes its share
            args.batch_size = int(args.batch_size / ngpus_per_node)
            args.workers = int((args.workers + ngpus_per_node - 1) / ngpus_per_node)
            model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        else:
            model.cuda()
            model = torch.nn.parallel.DistributedDataParallel(model)
    elif args.gpu is not None:
        torch.cuda.set_device(args.gpu)
        model = model.cuda(args.gpu)
    else:
        model = torch.nn.DataParallel(model).cuda()

    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    optimizer = SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)

    if args.resume:
        if os.path.isfile(args.resume):
            print(f"=> loading checkpoint '{args.resume}'")
            if args.gpu is None:
                checkpoint = torch.load(args.resume)
            else:
                # the checkpoint may come from another GPU
                loc = "cuda:{}".format(args.gpu)  # noqa: UP032
                checkpoint = torch.load(args.resume, map_location=loc)
            args.start_epoch = checkpoint["epoch"]
            best_acc1 = checkpoint["best_acc1"]
            model.load_state_dict(checkpoint["state_dict"])
            optimizer.load_state_dict(checkpoint["optimizer"])
            print(f"=> loaded checkpoint '{args.resume}' (epoch {args.start_epoch})")
        else:
            print(f"=> no checkpoint found at '{args.resume}'")

    cudnn.benchmark = True

    train_dataset, val_dataset = make_datasets(args)
    train_sampler = DistributedSampler(train_dataset) if args.distributed else None
    train_loader = DataLoader(
        train_dataset,
        batch_size=args.batch_size,
        shuffle=(train_sampler is None),
        num_workers=args.workers,
        pin_memory=True,
        sampler=train_sampler,
    )
    val_loader = DataLoader(
        val_dataset, batch_size=args.batch_size, shuffle=False, num_workers=args.workers, pin_memory=True
    )

    if args.evaluate:
        validate(val_loader, model, criterion, args)
        return

    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        adjust_learning_rate(optimizer, epoch, args)
        train(train_loader, model, criterion, optimizer, epoch, args)
        acc1 = validate(val_loader, model, criterion, args)

        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        is_first_of_node = args.multiprocessing_distributed and args.rank % ngpus_per_node == 0
        if not args.multiprocessing_distributed or is_first_of_node:
            save_checkpoint(
                {
                    "epoch": epoch + 1,
                    "arch": args.arch,
                    "state_dict": model.state_dict(),
                    "best_acc1": best_acc1,
                    "optimizer": optimizer.state_dict(),
                },
                is_best,
            )
    if args.distributed:
        dist.destroy_process_group()


def make_datasets(args):
    if args.dummy:
        print("=> dummy data is used")
        length = args.dummy_batches * args.batch_size
        return (
            RandomImages(length, args.image_size, args.classes),
            RandomImages(length, args.image_size, args.classes, seed=1),
        )
    return (
        ImageFolder(os.path.join(args.data, "train"), args.image_size, train=True),
        ImageFolder(os.path.join(args.data, "val"), args.image_size, train=False),
    )


def train(train_loader, model, criterion, optimizer, epoch, args):
    batch_time = AverageMeter("Time", ":6.3f")
    data_time = AverageMeter("Data", ":6.3f")
    losses = AverageMeter("Loss", ":.4e")
    top1 = AverageMeter("Acc@1", ":6.2f")
    top5 = AverageMeter("Acc@5", ":6.2f")
    meters = [batch_time, data_time, losses, top1, top5]
    progress = ProgressMeter(len(train_loader), meters, prefix=f"Epoch: [{epoch}]")

    model.train()
    end = time.time()
    for i, (images, target) in enumerate(train_loader):
        data_time.update(time.time() - end)

        if args.gpu is not None:
            images = images.cuda(args.gpu, non_blocking=True)
        if torch.cuda.is_available():
            target = target.cuda(args.gpu, non_blocking=True)

        output = model(images)
        loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1, images.size(0))
        top5.update(acc5, images.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0:
            progress.display(i)


def validate(val_loader, model, criterion, args):
    batch_time = AverageMeter("Time", ":6.3f")
    losses = AverageMeter("Loss", ":.4e")
    top1 = AverageMeter("Acc@1", ":6.2f")
    top5 = AverageMeter("Acc@5", ":6.2f")
    progress = ProgressMeter(len(val_loader), [batch_time, losses, top1, top5], prefix="Test: ")

    model.eval()
    with torch.no_grad():
        end = time.time()
        for i, (images, target) in enumerate(val_loader):
            if args.gpu is not None:
                images = images.cuda(args.gpu, non_blocking=True)
            if torch.cuda.is_available():
                target = target.cuda(args.gpu, non_blocking=True)

            output = model(images)
            loss = criterion(output, target)
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            losses.update(loss.item(), images.size(0))
            top1.update(acc1, images.size(0))
            top5.update(acc5, images.size(0))

            batch_time.update(time.time() - end)
            end = time.time()
            if i % args.print_freq == 0:
                progress.display(i)
    print(f" * Acc@1 {top1.avg:.3f} Acc@5 {top5.avg:.3f} Loss {losses.avg:.6f}")
    return top1.avg


def save_checkpoint(state, is_best, filename="checkpoint.pth.tar"):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, "model_best.pth.tar")


class AverageMeter:
    """The last value and the average of all."""

    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.val = self.sum = self.count = self.avg = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        template = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return template.format(**self.__dict__)


class ProgressMeter:
    """One line of meters per printed batch."""

    def __init__(self, num_batches, meters, prefix=""):
        self.num_batches, self.meters, self.prefix = num_batches, meters, prefix

    def display(self, batch):
        width = len(str(self.num_batches))
        head = f"{self.prefix}[{batch:>{width}}/{self.num_batches}]"
        print("\t".join([head, *map(str, self.meters)]), flush=True)


def adjust_learning_rate(optimizer, epoch, args):
    """A tenth of the rate every 30 epochs."""
    lr = args.lr * (0.1 ** (epoch // 30))
    for group in optimizer.param_groups:
        group["lr"] = lr


def accuracy(output, target, topk=(1,)):
    """Percent of samples whose label is among the k best guesses, for each k."""
    with torch.no_grad():
        largest = min(max(topk), output.size(1))
        best = output.topk(largest, dim=1).indices
        hits = best.eq(target.view(-1, 1))
        return [hits[:, :k].any(dim=1).float().mean().item() * 100 for k in topk]


if __name__ == "__main__":
    main()
