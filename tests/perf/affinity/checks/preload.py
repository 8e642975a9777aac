"""A loader, and the same one with batches copied ahead."""

from __future__ import annotations

import pickle
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader, TensorDataset

from torchferry.perf.affinity import PreLoader

Pair = namedtuple("Pair", "image label")


@dataclass(frozen=True)
class _Sample:
    image: torch.Tensor
    name: str


class _Named(dict):  # type: ignore[type-arg]
    """A dictionary that holds something beside its items."""

    title = ""


def check_the_same_batches_in_order_for_every_epoch(target: Any) -> None:
    data = TensorDataset(torch.randn(10, 3, 4, 4), torch.arange(10))
    loader = DataLoader(data, batch_size=4)
    ahead = PreLoader(loader, target.type)
    assert len(ahead) == len(loader) == 3 and ahead.batch_size == 4 and ahead.dataset is data
    for _ in range(2):
        batches = list(ahead)
        assert len(batches) == 3
        for (image, label), (plain_image, plain_label) in zip(batches, loader, strict=True):
            assert image.device.type == label.device.type == target.type
            assert torch.equal(image.cpu(), plain_image) and torch.equal(label.cpu(), plain_label)


def check_all_sorts_of_batches(target: Any) -> None:
    named = _Named(x=torch.ones(2))
    named.title = "kept"
    packed = pack_sequence([torch.ones(3, 2), torch.ones(2, 2)])
    batch = {
        "tuple": (torch.ones(1), 3, "text", None),
        "list": [torch.ones(2), [torch.zeros(0)]],
        "named tuple": Pair(torch.ones(2), 5),
        "ordered": OrderedDict(b=torch.ones(1), a=1),
        "dataclass": _Sample(torch.ones(2), "name"),
        "own": named,
        "packed": packed,
    }
    (found,) = PreLoader([batch], target.type)
    assert found["tuple"][1:] == (3, "text", None) and type(found["list"][1]) is list
    assert type(found["named tuple"]) is Pair and found["named tuple"].label == 5
    assert type(found["ordered"]) is OrderedDict and list(found["ordered"]) == ["b", "a"]
    assert found["dataclass"].name == "name" and found["own"].title == "kept"
    on_device = [found["tuple"][0], found["list"][1][0], found["named tuple"].image, found["ordered"]["b"]]
    on_device += [found["dataclass"].image, found["own"]["x"], found["packed"].data]
    assert all(tensor.device.type == target.type for tensor in on_device)
    assert found["packed"].batch_sizes.device.type == "cpu"
    assert batch["tuple"][0].device.type == "cpu" and named["x"].device.type == "cpu"  # type: ignore[index]


def check_an_error_comes_when_its_batch_is_due(target: Any) -> None:
    def batches() -> Any:
        yield torch.tensor(1)
        yield torch.tensor(2)
        raise OSError("a file is broken")

    seen = []
    try:
        for batch in PreLoader(batches(), target.type):
            seen.append(batch.item())
    except OSError as error:
        assert "broken" in str(error)
    else:
        raise AssertionError("the error was lost")
    assert seen == [1, 2]


def check_an_end_is_an_end(target: Any) -> None:
    iterator = iter(PreLoader([torch.ones(1)], target.type))
    assert len([*iterator]) == 1 and [*iterator] == [] and [*PreLoader([], target.type)] == []
    for _ in PreLoader([torch.ones(1), torch.ones(1)], target.type):
        break


def check_images_are_normalised_as_by_torchvision(target: Any) -> None:
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    images = torch.randint(0, 256, (2, 3, 64, 200), dtype=torch.uint8)
    mask, flat = torch.ones(2, 64, 200, dtype=torch.uint8), torch.ones(2, 1, 8, 8, dtype=torch.uint8)
    columns = [torch.tensor(values).view(-1, 1, 1) for values in (mean, std)]
    plain = images.to(torch.float32).div(255).sub_(columns[0]).div_(columns[1])
    for _ in range(2):
        ((found, found_mask, found_flat),) = PreLoader(
            [(images, mask, flat)], target.type, mean=mean, std=std
        )
        assert torch.equal(found.cpu(), plain)
        assert found_mask.dtype == found_flat.dtype == torch.uint8
    assert next(iter(PreLoader([images], target.type))).dtype == torch.uint8
    for wrong in ({"mean": mean}, {"std": std}, {"mean": mean, "std": (1.0,)}):
        try:
            PreLoader([], target.type, **wrong)
        except ValueError:
            continue
        raise AssertionError(f"{wrong} was taken")


def check_the_device_of_the_process_is_the_default(target: Any) -> None:
    assert PreLoader([]).device.type == ("cuda" if torch.cuda.is_available() else target.type)
    assert pickle.loads(pickle.dumps(PreLoader([1, 2]))).loader == [1, 2]
