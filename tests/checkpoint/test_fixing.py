"""Mended copies: what was asked for is done, everything else stays as it was, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.checkpoint import samples
from torchferry.checkpoint.fixing import repair
from torchferry.checkpoint.loading import load_tree
from torchferry.checkpoint.names import tensors_of
from torchferry.checkpoint.reading import read
from torchferry.checkpoint.repair import Repair
from torchferry.errors import InputError, OutputError


def devices(path: Path) -> set[str]:
    return {tensor.device for tensor in tensors_of(read(path).tree).values()}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return list(left) == list(right) and all(
        samples.bits(left[key]) == samples.bits(right[key]) for key in left
    )


def test_part_prefix_and_device(tmp_path: Path) -> None:
    source, output = samples.nested(tmp_path / "a.pth.tar", args=True), tmp_path / "clean.pth"
    before, _, _ = load_tree(read(source), allow_pickle=True)
    done = repair(source, output, Repair("state_dict", ("module.",), (("npu", "cpu"),)))
    after = torch.load(output, weights_only=True)
    assert same(
        after, {name.removeprefix("module."): tensor for name, tensor in before["state_dict"].items()}
    )
    assert devices(output) == {"cpu"}
    assert (done.tensors, done.stripped, done.left_out) == (
        7,
        (("module.", 7),),
        ("epoch", "optimizer", "args"),
    )


def test_what_is_not_asked_for_stays(tmp_path: Path) -> None:
    source, output = samples.nested(tmp_path / "a.pth.tar"), tmp_path / "b.pth"
    repair(source, output, Repair())
    assert devices(output) == {"npu:0"}
    before, after = (load_tree(read(path), allow_pickle=False)[0] for path in (source, output))
    assert same(before["state_dict"], after["state_dict"])
    assert before["optimizer"]["param_groups"] == after["optimizer"]["param_groups"]


def test_a_device_keeps_its_number(tmp_path: Path) -> None:
    source = samples.nested(tmp_path / "a.pth", device="npu:3")
    repair(source, tmp_path / "b.pth", Repair(devices=(("npu", "mlu"),)))
    repair(source, tmp_path / "c.pth", Repair(devices=(("npu:3", "cuda:0"),)))
    assert (devices(tmp_path / "b.pth"), devices(tmp_path / "c.pth")) == ({"mlu:3"}, {"cuda:0"})


def test_to_safetensors_and_back(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.torch")
    weights = {
        **samples.model().state_dict(),
        "turned": torch.randn(3, 5).t(),
        "brain": torch.randn(3).bfloat16(),
    }
    source, middle, back = (tmp_path / name for name in ("a.pth", "b.safetensors", "c.pth"))
    torch.save(weights, source)
    repair(source, middle, Repair())
    read_by_library = library.load_file(middle)
    assert same(dict(sorted(read_by_library.items())), dict(sorted(weights.items())))
    repair(middle, back, Repair())
    assert same(dict(sorted(torch.load(back, weights_only=True).items())), dict(sorted(weights.items())))


def test_shared_weights_stay_shared_and_versions_follow_the_names(tmp_path: Path) -> None:
    model = torch.nn.DataParallel(samples.model())
    state = model.state_dict()
    state["module.tied"] = state["module.0.weight"]
    torch.save(state, tmp_path / "a.pth")
    repair(tmp_path / "a.pth", tmp_path / "b.pth", Repair(strip=("module.",)))
    after = torch.load(tmp_path / "b.pth", weights_only=True)
    assert after["tied"].data_ptr() == after["0.weight"].data_ptr()
    assert after._metadata["1"]["version"] == state._metadata["module.1"]["version"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            Repair(strip=("model.",)),
            "no name of .* begins with that; the first is module.0.weight|all begin with module.",
        ),
        (Repair(devices=(("mlu", "cpu"),)), "nothing was saved on mlu; devices in the file: npu:0"),
        (Repair(only="state"), "there is no such part; there are epoch, state_dict, optimizer, args"),
        (Repair(), "args is a argparse.Namespace, and making it would run code"),
    ],
)
def test_what_can_not_be_done_writes_nothing(asked: Repair, said: str, tmp_path: Path) -> None:
    source = samples.nested(tmp_path / "a.pth", args=True)
    asked = Repair(asked.only or ("state_dict" if asked != Repair() else ""), asked.strip, asked.devices)
    with pytest.raises(InputError, match=said):
        repair(source, tmp_path / "b.pth", asked)
    assert [path.name for path in tmp_path.iterdir()] == ["a.pth"]


def test_safetensors_holds_no_epochs(tmp_path: Path) -> None:
    source = samples.nested(tmp_path / "a.pth")
    with pytest.raises(InputError, match="add --only state_dict"):
        repair(source, tmp_path / "b.safetensors", Repair())
    assert not (tmp_path / "b.safetensors").exists()


def test_a_file_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    source = samples.nested(tmp_path / "a.pth")
    before = source.read_bytes()
    with pytest.raises(OutputError, match="the input itself"):
        repair(source, source, Repair("state_dict"))
    assert source.read_bytes() == before
    repair(source, source, Repair("state_dict", force=True))
    assert len(torch.load(source, map_location="cpu", weights_only=True)) == 7
