"""Checkpoints that are folders: what belongs together is read as one, and put together by `fix`."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed import checkpoint as distributed
from torch.distributed.checkpoint import metadata as described
from torch.distributed.checkpoint.filesystem import _StorageInfo

from tests.checkpoint import samples
from torchferry.checkpoint.fixing import repair
from torchferry.checkpoint.folders import read
from torchferry.checkpoint.model import FileFormat, Repair
from torchferry.checkpoint.names import state_dicts, tensors_of
from torchferry.cli.main import main
from torchferry.errors import InputError


def shards(folder: Path, suffix: str = "bin") -> dict[str, torch.Tensor]:
    """As transformers writes a large model, with the optimizer of its Trainer."""
    state = samples.model().state_dict()
    names = list(state)
    parts = {f"model-1-of-2.{suffix}": names[:3], f"model-2-of-2.{suffix}": names[3:]}
    folder.mkdir()
    for file, keys in parts.items():
        part = {key: state[key] for key in keys}
        if suffix == "bin":
            torch.save(part, folder / file)
        else:
            pytest.importorskip("safetensors.torch").save_file(part, folder / file, {"format": "pt"})
    where = {key: file for file, keys in parts.items() for key in keys}
    (folder / f"model.{suffix}.index.json").write_text(json.dumps({"weight_map": where}))
    torch.save({}, folder / "optimizer.pt")
    return dict(state)


@pytest.mark.parametrize("suffix", ["bin", "safetensors"])
def test_shards_become_one_file(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = shards(tmp_path / "model", suffix)
    assert main(["checkpoint", "info", str(tmp_path / "model")]) == 0
    text = capsys.readouterr().out
    assert "shards with an index" in text and "also in the folder: optimizer.pt" in text
    done = repair(tmp_path / "model", tmp_path / "one.pth", Repair())
    after = torch.load(tmp_path / "one.pth", weights_only=True)
    assert list(after) == list(state) and all(torch.equal(after[key], state[key]) for key in state)
    assert done.left_out == ("optimizer.pt",)


def test_a_shard_that_is_missing_or_elsewhere_is_named(tmp_path: Path) -> None:
    shards(tmp_path / "model")
    (tmp_path / "model" / "model-2-of-2.bin").unlink()
    with pytest.raises(InputError, match=r"the shard model-2-of-2\.bin is missing"):
        read(tmp_path / "model")
    index = tmp_path / "model" / "model.bin.index.json"
    index.write_text('{"weight_map": {"w": "../../secret.bin"}}')
    with pytest.raises(InputError, match="is not in the same folder"):
        read(index)
    index.write_text('{"weight_map": {"w": "model-1-of-2.bin"}}')
    with pytest.raises(InputError, match=r"w should be in model-1-of-2\.bin but is not"):
        read(index)


def test_a_distributed_checkpoint_is_the_tree_that_was_saved(tmp_path: Path) -> None:
    model = samples.model()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 3, 8, 8)).sum().backward()
    optimizer.step()
    tree = {
        "model": model.state_dict(),
        "optim": optimizer.state_dict(),
        "epoch": 3,
        "pair": (torch.ones(2), 1),
    }
    distributed.save(dict(tree), checkpoint_id=tmp_path / "saved", no_dist=True)
    contents = read(tmp_path / "saved")
    assert contents.format is FileFormat.DISTRIBUTED and [
        each.name for each in state_dicts(contents.tree)
    ] == ["model"]
    repair(tmp_path / "saved", tmp_path / "one.pth", Repair())
    after = torch.load(tmp_path / "one.pth", weights_only=True)
    assert after["epoch"] == 3 and torch.equal(after["pair"][0], torch.ones(2))
    optimizer.load_state_dict(after["optim"])
    for key, value in tree["model"].items():
        assert torch.equal(after["model"][key], value)


def split(folder: Path, whole: torch.Tensor, pieces: list[tuple[int, int, int, int]]) -> None:
    """As the ranks of two dimensions of parallelism leave it: rows and columns of one tensor in one file."""
    folder.mkdir()
    chunks, stored, position = [], {}, 0
    with open(folder / "__0_0.distcp", "wb") as stream:
        for top, left, rows, columns in pieces:
            torch.save(whole[top : top + rows, left : left + columns].clone(), stream)
            starts = torch.Size((top, left))
            chunks.append(described.ChunkStorageMetadata(starts, torch.Size((rows, columns))))
            length = stream.tell() - position
            stored[described.MetadataIndex("w", starts)] = _StorageInfo("__0_0.distcp", position, length)
            position += length
    form = described.TensorProperties(dtype=whole.dtype)
    tensor = described.TensorStorageMetadata(form, whole.shape, chunks)
    about = described.Metadata({"w": tensor}, None, stored)
    (folder / ".metadata").write_bytes(pickle.dumps(about))


def test_parts_of_a_tensor_are_put_together(tmp_path: Path) -> None:
    whole = torch.arange(30.0).reshape(5, 6)
    split(tmp_path / "saved", whole, [(0, 0, 3, 6), (3, 0, 2, 4), (3, 4, 2, 2)])
    repair(tmp_path / "saved", tmp_path / "one.safetensors", Repair())
    contents = read(tmp_path / "one.safetensors")
    assert list(tensors_of(contents.tree)) == ["w"]
    repair(tmp_path / "saved", tmp_path / "one.pth", Repair())
    assert torch.equal(torch.load(tmp_path / "one.pth", weights_only=True)["w"], whole)
    split(tmp_path / "cut", whole, [(0, 0, 3, 6)])
    with pytest.raises(InputError, match="parts of w are missing"):
        read(tmp_path / "cut")


def test_what_frameworks_leave(tmp_path: Path) -> None:
    """A file that names the folder, and the one rank in it."""
    weights = {"layer.weight": torch.ones(2)}
    steps: list[tuple[str, str, str, Any]] = [
        ("latest", "step5", "step5/mp_rank_00_model_states.pt", {"module": weights}),
        (
            "latest_checkpointed_iteration.txt",
            "100",
            "iter_0000100/mp_rank_00/model_optim_rng.pt",
            {"model": weights},
        ),
    ]
    for number, (pointer, text, file, tree) in enumerate(steps):
        folder = tmp_path / str(number)
        (folder / file).parent.mkdir(parents=True)
        (folder / pointer).write_text(text)
        torch.save(tree, folder / file)
        assert [len(state.tensors) for state in state_dicts(read(folder).tree)] == [1]
        (folder / pointer).write_text("../../elsewhere")
        with pytest.raises(InputError, match="does not exist"):
            read(folder)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["a.pth", "b.pth"], r"a folder with 2 checkpoints; give one of them: a\.pth, b\.pth"),
        (["notes.txt"], "no checkpoint in this folder"),
        (["mp_rank_00_model_states.pt", "mp_rank_01_model_states.pt"], "split over 2 ranks"),
        (["zero_pp_rank_0_mp_rank_00_model_states.pt"], r"zero_to_fp32\.py"),
    ],
)
def test_folders_that_are_no_one_checkpoint(files: list[str], said: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=said):
        read(tmp_path)


def test_a_folder_that_leads_to_itself(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(".")
    (tmp_path / "latest").write_text("again")
    with pytest.raises(InputError, match="does not exist"):
        read(tmp_path)


def test_a_folder_called_latest_points_nowhere(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    torch.save({"w": torch.ones(1)}, tmp_path / "model.pth")
    assert list(tensors_of(read(tmp_path).tree)) == ["w"]
