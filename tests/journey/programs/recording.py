"""Imported first by a training script: notes what it does, or gives it the joined batches of several processes.

RECORDING names the folder. Without REPLAY each process notes there the batches that it trains on, the random numbers
that it draws meanwhile, its gradients before each step of an optimizer, and the files that it saves. With REPLAY=N
the batches and random numbers of N processes are joined, and a process on its own trains on these.
"""

import os
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler

FOLDER = Path(os.environ["RECORDING"])
REPLAY = int(os.environ.get("REPLAY", "0"))
STEPS = 4  # of each kind are kept
notes = {"batches": [], "noise": [], "gradients": [], "saved": []}

load_batches = DataLoader.__iter__
make_noise = torch.randn
save = torch.save
is_training = False


def rank():
    if REPLAY:
        return "joined"
    group = torch.distributed
    return group.get_rank() if group.is_initialized() else int(os.environ.get("RANK", "0"))


def keep():
    save(notes, FOLDER / f"{rank()}.tmp")
    os.replace(FOLDER / f"{rank()}.tmp", FOLDER / f"{rank()}.pt")


def copied(value):
    if isinstance(value, (list, tuple)):
        return [copied(item) for item in value]
    return value.detach().cpu().clone()


def joined(values):
    if isinstance(values[0], list):
        return [joined(items) for items in zip(*values, strict=True)]
    return torch.cat(values)


def of_all(kind):
    everyone = [torch.load(FOLDER / f"{number}.pt")[kind] for number in range(REPLAY)]
    return [joined(items) for items in zip(*everyone, strict=True)]


def iterate(loader):
    global is_training
    if not isinstance(loader.sampler, RandomSampler if REPLAY else DistributedSampler):
        yield from load_batches(loader)
        return
    for batch in of_all("batches") if REPLAY else load_batches(loader):
        if len(notes["batches"]) < STEPS:
            notes["batches"].append(copied(batch))
        is_training = True  # while the step runs: what the data set draws is not noted
        yield batch
        is_training = False


def draw(*size, **options):
    if not is_training:
        return make_noise(*size, **options)
    if REPLAY:
        noise = of_all("noise")[len(notes["noise"])].to(options["device"])
    else:
        noise = make_noise(*size, **options)
    if len(notes["noise"]) < STEPS:
        notes["noise"].append(copied(noise))
    return noise


def note_gradients(optimizer, args, kwargs):
    if len(notes["gradients"]) < STEPS:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        notes["gradients"].append([copied(parameter.grad) for parameter in parameters])
    keep()


def note_saved(value, file, *args, **kwargs):
    notes["saved"].append(str(file))
    keep()
    save(value, file, *args, **kwargs)


DataLoader.__iter__ = iterate
torch.randn = draw
torch.save = note_saved
register_optimizer_step_pre_hook(note_gradients)
if os.environ.get("SYNC_BATCHNORM"):
    wrap = torch.nn.parallel.DistributedDataParallel
    synchronous = torch.nn.SyncBatchNorm.convert_sync_batchnorm
    torch.nn.parallel.DistributedDataParallel = lambda model, **options: wrap(synchronous(model), **options)
