"""torch.load of files that a GPU has written, in both formats, onto whatever map_location says."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from tests.sim.checking import Target


def _as_a_gpu_writes(content: Any, place: str = "cuda:0", zip_format: bool = True) -> bytes:
    """A file of the host's tensors whose storages say that they were on a GPU."""
    file = io.BytesIO()
    with mock.patch("torch.serialization.location_tag", lambda storage: place):
        torch.save(content, file, _use_new_zipfile_serialization=zip_format)
    written = file.getvalue()
    assert place.encode() in written
    return written


def _load(written: bytes, *args: Any, **settings: Any) -> Any:
    return torch.load(io.BytesIO(written), *args, **settings)


CONTENT = {"weight": torch.arange(4.0), "step": 3}


def check_without_a_map(target: Target) -> None:
    for zip_format in (True, False):
        for place, index in (("cuda:0", 0), ("cuda:1", 1), ("cuda", 0)):
            for weights_only in (True, False):
                read = _load(_as_a_gpu_writes(CONTENT, place, zip_format), weights_only=weights_only)
                assert read["weight"].device == torch.device(target.type, index)
                assert read["weight"].tolist() == [0, 1, 2, 3] and read["step"] == 3


def check_with_a_map(target: Target) -> None:
    second, host = torch.device(target.type, 1), torch.device("cpu")
    maps: list[tuple[Any, torch.device]] = [
        ("cuda:1", second),
        (torch.device("cuda:1"), second),
        (torch.device("cuda", 1), second),
        ({"cuda:0": "cuda:1"}, second),
        (lambda storage, place: storage.cuda(1), second),
        (lambda storage, place: None, torch.device("cuda:0")),
        ("cpu", host),
        (torch.device("cpu"), host),
        ({"cuda:0": "cpu"}, host),
        (lambda storage, place: storage, host),
    ]
    for zip_format in (True, False):
        written = _as_a_gpu_writes(CONTENT, "cuda:0", zip_format)
        for where, expected in maps:
            for arguments, settings in (((where,), {}), ((), {"map_location": where})):
                read = _load(written, *arguments, **settings, weights_only=True)
                assert read["weight"].device == expected, where
                assert read["weight"].tolist() == [0, 1, 2, 3]


def check_a_function_sees_what_the_file_says(target: Target) -> None:
    said = []
    where: Callable[[Any, str], Any] = lambda storage, place: said.append(place) or storage  # noqa: E731
    _load(_as_a_gpu_writes(CONTENT), where)
    assert said == ["cuda:0"]


def check_our_own_files(target: Target) -> None:
    """A file that the device wrote says the vendor's name, as without the layer, and is read by CUDA's."""
    content = {"weight": torch.ones(2, device="cuda:1"), "device": torch.device("cuda:1")}
    for zip_format in (True, False):
        file = io.BytesIO()
        torch.save(content, file, _use_new_zipfile_serialization=zip_format)
        assert f"{target.type}:1".encode() in file.getvalue() and b"cuda" not in file.getvalue()
        places = {None: "cuda:1", "cuda:0": "cuda:0", "cpu": "cpu"}
        for where, expected in [*places.items(), ({"cuda:1": "cuda:0"}, "cuda:0")]:
            read = _load(file.getvalue(), where, weights_only=False)
            assert read["weight"].device == torch.device(expected)
            assert read["weight"].tolist() == [1, 1] and read["device"] == torch.device("cuda:1")


def check_a_function_that_asks_for_cuda(target: Target) -> None:
    """Of a file that the device wrote, too."""
    file = io.BytesIO()
    torch.save(torch.ones(2, device="cuda:1"), file)
    where: Callable[[Any, str], Any] = (  # noqa: E731
        lambda storage, place: storage.cuda(0) if place.startswith("cuda") else storage
    )
    for written in (file.getvalue(), _as_a_gpu_writes(torch.ones(2))):
        assert _load(written, map_location=where).device == torch.device(target.type, 0)


def check_mapped_files(target: Target) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        path.write_bytes(_as_a_gpu_writes(CONTENT))
        read = torch.load(path, map_location="cuda:1", mmap=True, weights_only=True)
        assert read["weight"].device.index == 1 and read["weight"].tolist() == [0, 1, 2, 3]
        assert torch.load(str(path), map_location="cpu", mmap=True)["weight"].device.type == "cpu"
        with path.open("rb") as file:
            assert torch.load(file, map_location=lambda storage, _: storage.cuda(0))["weight"].is_cuda


def check_resuming(target: Target) -> None:
    """A checkpoint of a model and its optimizer, as every training program writes it."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    written = _as_a_gpu_writes({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1})
    for where in (None, "cuda:0", torch.device("cuda"), "cpu", lambda storage, _: storage.cuda(0)):
        resumed = torch.nn.Linear(3, 2).cuda()
        again = torch.optim.Adam(resumed.parameters())
        checkpoint = _load(written, map_location=where)
        resumed.load_state_dict(checkpoint["model"])
        again.load_state_dict(checkpoint["optimizer"])
        assert torch.equal(resumed.weight.cpu(), model.weight)
        assert again.state[resumed.weight]["exp_avg"].is_cuda
        resumed(torch.ones(1, 3, device="cuda")).sum().backward()
        again.step()


def check_whole_modules(target: Target) -> None:
    read = _load(_as_a_gpu_writes(torch.nn.Linear(2, 2)), weights_only=False)
    assert read.weight.is_cuda and isinstance(read.weight, torch.nn.Parameter)
