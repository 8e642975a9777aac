"""Mended copies: what was asked for is done, everything else stays as it was, bit for bit."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch

from tests.checkpoint import samples
from torchferry.checkpoint.fixing import repair
from torchferry.checkpoint.folders import read
from torchferry.checkpoint.loading import load_tree
from torchferry.checkpoint.model import Cast, Repair
from torchferry.checkpoint.names import tensors_of
from torchferry.checkpoint.writing import write_safetensors
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
    assert (done.tensors, done.renamed, done.left_out) == (
        7,
        (("module.", "", 7),),
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
            "--strip model.: no weight's name starts with that; all begin with module.",
        ),
        (Repair(devices=(("mlu", "cpu"),)), "nothing was saved on mlu; devices in the file: npu:0"),
        (Repair(only="state"), "no such part; choose one of epoch, state_dict, optimizer, args"),
        (Repair(), "args is a tests.checkpoint.samples.Settings, and loading it would run code"),
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
    with pytest.raises(InputError, match="add --part state_dict"):
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


def test_names_begin_with_something_else(tmp_path: Path) -> None:
    """In the weights alone: the optimizer's tensors, and one beside the weights, keep their names."""
    model = samples.model()
    tree = {
        "state_dict": model.state_dict(),
        "best": torch.ones(1),
        "optimizer": {"state": {0: {"m": torch.ones(1)}}},
    }
    torch.save(tree, tmp_path / "a.pth")
    done = repair(tmp_path / "a.pth", tmp_path / "b.pth", Repair(rename=(("0.", "stem."), ("", "module."))))
    after = torch.load(tmp_path / "b.pth", weights_only=True)
    assert list(after["state_dict"])[:3] == ["module.stem.weight", "module.stem.bias", "module.1.weight"]
    assert list(after) == list(tree) and list(after["optimizer"]["state"][0]) == ["m"]
    assert after["state_dict"]._metadata["module.1"]["version"] == 2
    assert done.renamed == (("0.", "stem.", 2), ("", "module.", 7))


def test_another_dtype_keeps_what_is_shared_and_says_what_overflows(tmp_path: Path) -> None:
    weight = torch.tensor([[1.0, 2.0], [3.0, 1e6]])
    state = {"w": weight, "tied": weight, "turned": weight.t(), "count": torch.tensor(3)}
    torch.save({"state_dict": state, "best": torch.ones(1)}, tmp_path / "a.pth")
    done = repair(tmp_path / "a.pth", tmp_path / "b.pth", Repair(dtype="float16"))
    after = torch.load(tmp_path / "b.pth", weights_only=True)
    assert after["state_dict"]["w"].data_ptr() == after["state_dict"]["turned"].data_ptr()
    assert torch.equal(after["state_dict"]["turned"], weight.half().t())
    assert after["state_dict"]["count"].dtype == torch.int64 and after["best"].dtype == torch.float32
    assert done.cast == Cast("float16", 3, 1)
    with pytest.raises(InputError, match="no weight has another floating-point dtype"):
        repair(tmp_path / "b.pth", tmp_path / "c.pth", Repair(dtype="float16"))


def test_what_safetensors_can_not_say_is_told(tmp_path: Path) -> None:
    weight = torch.ones(2)
    torch.save({"w": weight, "tied": weight}, tmp_path / "a.pth")
    assert repair(tmp_path / "a.pth", tmp_path / "b.safetensors", Repair()).written_twice == 1
    write_safetensors(tmp_path / "c.safetensors", {"w": weight}, {"made by": "us"})
    assert repair(tmp_path / "c.safetensors", tmp_path / "d.pth", Repair()).lost_metadata


def test_the_file_behind_a_link_is_replaced_and_keeps_its_mode(tmp_path: Path) -> None:
    source = samples.nested(tmp_path / "a.pth")
    source.chmod(0o640)
    link = tmp_path / "link.pth"
    link.symlink_to("a.pth")
    repair(link, link, Repair("state_dict", force=True))
    assert link.is_symlink() and source.stat().st_mode & 0o777 == 0o640
    assert len(tensors_of(read(source).tree)) == 7


def test_a_disk_that_is_full_leaves_nothing(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(100_000)}, tmp_path / "a.pth")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        for name in ("b.pth", "b.safetensors"):
            with pytest.raises(OutputError, match=r"can't be written: File too large"):
                repair(tmp_path / "a.pth", tmp_path / name, Repair())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.iterdir()] == ["a.pth"]


def test_what_is_on_the_disk_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that writes something else."""
    torch.save({"w": torch.ones(3)}, tmp_path / "a.pth")
    save = torch.save
    monkeypatch.setattr(torch, "save", lambda tree, stream: save({"w": torch.zeros(3)}, stream))
    with pytest.raises(OutputError, match="w on disk differs from what was written"):
        repair(tmp_path / "a.pth", tmp_path / "b.pth", Repair())
    assert [path.name for path in tmp_path.iterdir()] == ["a.pth"]
