"""Dumps of msprobe are records: real ones of three versions, and what becomes of damaged, cut off and hostile ones."""

from __future__ import annotations

import json
import math
import pickle
import random
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchferry.accuracy.file.api_names import parsed_name
from torchferry.accuracy.file.json_members import CutOffError, members
from torchferry.accuracy.file.reader import open_record, open_records
from torchferry.accuracy.file.saved_tensors import UnreadableTensorError, saved_elements
from torchferry.accuracy.model import Call, Kept, TensorRecord
from torchferry.cli.main import main
from torchferry.errors import InputError
from torchferry.readiness.cases.model import contiguous

# Made by msprobe 26.2.0 (statistics, md5), 8.1.0 and 1.0.4 of examples/msprobe/train.py; tensors are in examples/msprobe.
REAL = Path(__file__).parent / "msprobe"
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "msprobe"


def calls_of(path: Path) -> dict[str, Call]:
    with open_record(path) as record:
        return {call.node: call for call in record.calls}


def described(values: torch.Tensor, **more: Any) -> dict[str, Any]:
    """As msprobe describes a tensor."""
    real = values.double()
    figures = {
        "Max": real.max().item(),
        "Min": real.min().item(),
        "Mean": real.mean().item(),
        "Norm": real.norm().item(),
    }
    dtype, shape = str(values.dtype), list(values.shape)
    return {"type": "torch.Tensor", "dtype": dtype, "shape": shape, **figures, "requires_grad": False, **more}


def write_dump(folder: Path, data: dict[str, Any], task: str = "statistics", **files: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    head = {"task": task, "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": data}, indent=1))
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def write_tensors(
    folder: Path, tensors: dict[str, torch.Tensor], name: str = "Functional.relu.0.forward"
) -> Path:
    """A dump of one call with these outputs."""
    (folder / "dump_tensor_data").mkdir(parents=True)
    outputs = []
    for file, values in tensors.items():
        torch.save(values, folder / "dump_tensor_data" / file)
        outputs.append(described(values, data_name=file))
    return write_dump(folder, {name: {"input_args": [], "input_kwargs": {}, "output": outputs}}, "tensor")


@pytest.mark.parametrize(
    ("name", "operator", "phase", "module"),
    [
        ("Functional.conv2d.0.forward", "Functional::conv2d", "forward", ""),
        ("Tensor.__iadd__.3.backward", "Tensor::add_", "backward", ""),
        ("Tensor.__rmul__.0.forward", "Tensor::mul", "forward", ""),
        ("Tensor.__getitem__.0.forward", "Tensor::getitem", "forward", ""),
        ("Aten.mul.Tensor.0.forward", "Aten::mul.Tensor", "forward", ""),
        ("Module.layer1.0.conv1.Conv2d.forward.2", "Module::Conv2d", "forward", "layer1.0.conv1"),
        ("Module.fc.Linear.parameters_grad", "Module::parameters_grad", "backward", "fc"),
        ("Cell.fc.Dense.backward.0", "Module::Dense", "backward", "fc"),
        ("something else", "something else::something else", "", ""),
    ],
)
def test_names_are_taken_apart(name: str, operator: str, phase: str, module: str) -> None:
    parsed = parsed_name(name)
    assert (parsed.operator, parsed.phase, parsed.module) == (operator, phase, module)


@pytest.mark.parametrize("version", ["1.0", "8.1", "26.2"])
def test_every_version_tells_the_same_of_a_call(version: str) -> None:
    call = calls_of(REAL / f"statistics_{version}")["Functional.conv2d.0.forward"]
    assert (call.operator, call.phase, call.module, call.step) == ("Functional::conv2d", "forward", "conv", 1)
    assert call.place == "train.py:19"  # the first line that is no library's
    assert [each.shape for each in call.inputs] == [(2, 1, 4, 4), (2, 1, 3, 3), (2,)]
    statistics = call.outputs[0].statistics
    assert statistics is not None and statistics.count == 16
    assert statistics.norm == pytest.approx(2.0, abs=1.5) and statistics.minimum < statistics.maximum
    assert dict(call.arguments)["input_3"] == (1, 1)


@pytest.mark.parametrize("version", ["1.0", "8.1", "26.2"])
def test_modules_backward_calls_and_gradients_are_there(version: str) -> None:
    calls = calls_of(REAL / f"statistics_{version}")
    module, backward = calls["Module.head.0.Linear.forward.0"], calls["Functional.linear.0.backward"]
    assert (module.module, module.operator) == ("head.0", "Module::Linear")
    assert (backward.phase, backward.module, backward.place) == ("backward", "head.0", "train.py:20")
    if version != "1.0":
        gradients = next(call for name, call in calls.items() if "head.0.Linear.parameters_grad" in name)
        assert {each.name: each.shape for each in gradients.outputs} == {
            "output/weight": (4, 8), "output/bias": (4,),
        }  # fmt: skip
        # some versions note them down in the forward pass, when there are none yet
        assert list(calls).index(gradients.node) > list(calls).index("Functional.linear.0.backward")


def test_the_stack_is_told_without_the_libraries() -> None:
    with open_record(REAL / "statistics_1.0") as old, open_record(REAL / "statistics_26.2") as new:
        for record in (old, new):
            call = next(call for call in record.calls if call.node == "Functional.gelu.0.forward")
            frames = record.stack(call)
            assert frames[0] == "train.py:19 forward: features = functional.gelu(self.conv(images))"
            assert len(frames) == 3


def test_tensors_are_read_from_their_files() -> None:
    with open_record(EXAMPLES / "gpu") as record:
        assert record.header.kept is Kept.TENSORS
        call = next(call for call in record.calls if call.node == "Functional.linear.0.forward")
        x, weight, bias = (record.tensor(each) for each in call.inputs)
        assert torch.allclose(record.tensor(call.outputs[0]), torch.nn.functional.linear(x, weight, bias))


def test_folders_of_steps_and_ranks_are_records_of_ranks(tmp_path: Path) -> None:
    for step in (0, 3):
        for rank in (0, 1, 10):
            shutil.copytree(REAL / "md5_26.2/step0/proc100", tmp_path / f"step{step}" / f"rank{rank}")
    records = open_records(tmp_path)
    assert [each.header.rank for each in records] == [0, 1, 10]
    assert {call.step for call in records[2].calls} == {1, 4}
    with open_record(records[2].path) as again:  # the name that reports have for it
        assert len(again.calls) == len(records[2].calls)
    assert open_record(tmp_path / "step3" / "rank1").calls[0].step == 4
    assert [each.header.rank for each in open_records(tmp_path / "step3")] == [0, 1, 10]
    assert open_record(tmp_path / "step3" / "rank1" / "dump.json").header.rank == 1
    with pytest.raises(InputError, match="several ranks; name one"):
        open_record(tmp_path)


@pytest.mark.parametrize("value", [math.nan, "nan", "NaN"])
def test_nan_may_be_a_number_or_a_text(tmp_path: Path, value: object) -> None:
    figures = dict.fromkeys(("Max", "Min", "Mean", "Norm"), value)
    tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3], **figures}
    write_dump(tmp_path, {"Tensor.add.0.forward": {"output": [tensor]}})
    (call,) = calls_of(tmp_path).values()
    statistics = call.outputs[0].statistics
    assert statistics is not None and (statistics.nans, statistics.infinities) == (1, 0)


def test_what_a_norm_of_half_precision_overflows_to_is_no_infinity(tmp_path: Path) -> None:
    tensor = {"dtype": "torch.float16", "shape": [3], "Max": 6e4, "Min": 0.0, "Mean": 1.0, "Norm": math.inf}
    write_dump(tmp_path, {"Tensor.add.0.forward": {"output": [tensor]}})
    statistics = next(iter(calls_of(tmp_path).values())).outputs[0].statistics
    assert statistics is not None and statistics.infinities == 0 and math.isnan(statistics.rms)


def test_a_dump_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """At any byte: so many calls, or one line that says what is wrong."""
    whole = (REAL / "statistics_26.2/step0/proc100/dump.json").read_bytes()
    source, seen = random.Random(0), set()
    for length in [0, 1, 40, *(source.randrange(len(whole)) for _ in range(40)), len(whole) - 3]:
        (tmp_path / "dump.json").write_bytes(whole[:length])
        try:
            with open_record(tmp_path) as record:
                assert not record.header.complete and "is cut off" in " ".join(record.header.notes)
                seen.add(len(list(record.calls)))
        except InputError as error:
            assert "dump.json: " in str(error)
            seen.add(0)
    assert min(seen) == 0 and max(seen) > 20 and len(seen) > 10


def test_damaged_json_is_refused_or_read_and_never_more(tmp_path: Path) -> None:
    whole, source = (REAL / "md5_26.2/step0/proc100/dump.json").read_bytes(), random.Random(0)
    for _ in range(100):
        data = bytearray(whole)
        for _ in range(3):
            data[source.randrange(len(data))] = source.randrange(256)
        (tmp_path / "dump.json").write_bytes(bytes(data))
        try:
            with open_record(tmp_path) as record:
                list(record.calls)
        except InputError as error:
            assert len(error.lines) == 1
    (tmp_path / "dump.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="not valid JSON"):
        open_record(tmp_path)


def test_members_are_found_whatever_the_layout_and_however_long() -> None:
    data = {f"näme{at}": {"text": "ü" * at, "list": [1, {"a": "}{"}]} for at in range(50)}
    data["long"] = {"text": "x" * (3 << 20), "list": []}
    for indent in (None, 0, 4):
        text = json.dumps({"task": "t", "data": data, "end": 1}, indent=indent, ensure_ascii=False).encode()
        found = list(members(text, "data"))
        assert {each.name for each in found if each.section} == set(data)
        assert {each.name: each.value for each in found if not each.section} == {"task": "t", "end": 1}
        assert all(json.loads(text[e.start : e.start + e.length]) == data[e.name] for e in found if e.section)
        with pytest.raises(CutOffError):
            list(members(text[:-1], "data"))


@pytest.mark.long
def test_memory_does_not_grow_with_a_dump(tmp_path: Path) -> None:
    """A dump.json of 200 MB is looked through without holding it."""
    import resource

    tensor = {**described(torch.ones(3)), "note": "x" * 2000}
    line = json.dumps({"input_args": [tensor] * 4, "input_kwargs": {}, "output": [tensor]})
    with (tmp_path / "dump.json").open("w") as file:
        file.write('{"task": "statistics", "level": "L1", "data": {')
        file.writelines(f'{", " if at else ""}"Tensor.add.{at}.forward": {line}' for at in range(18_000))
        file.write("}}")
    assert (tmp_path / "dump.json").stat().st_size > 180 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_record(tmp_path) as record:
        assert len(record.calls) == 18_000 and record.calls[17_999].node == "Tensor.add.17999.forward"
    # the file's own pages count as long as it is mapped; objects of Python's would take a gigabyte
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


def test_missing_and_damaged_tensors_are_said_and_the_rest_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(EXAMPLES / "gpu", tmp_path / "mine")
    files = tmp_path / "mine/step0/proc100/dump_tensor_data"
    (files / "Functional.gelu.0.forward.output.0.pt").unlink()
    damaged = files / "Functional.linear.0.forward.output.0.pt"
    damaged.write_bytes(damaged.read_bytes()[:600])
    assert main(["compare", str(tmp_path / "mine"), str(EXAMPLES / "gpu"), "--format", "json", "-q"]) == 0
    (comparison,) = json.loads(capsys.readouterr().out)["comparisons"]
    reasons = {
        pair["mine"]["node"]: [each["reason"] for each in pair["outputs"]] for pair in comparison["pairs"]
    }
    assert reasons["Functional.gelu.0.forward"] == [
        "its file is missing: Functional.gelu.0.forward.output.0.pt"
    ]
    assert "can't be read" in reasons["Functional.linear.0.forward"][0]
    assert reasons["Functional.conv2d.0.forward"] == [""]
    shutil.rmtree(files)
    assert main(["compare", str(tmp_path / "mine"), str(EXAMPLES / "gpu"), "-q"]) == 0
    assert "its tensors are not there" in capsys.readouterr().out


def test_a_name_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.pt"
    torch.save(torch.ones(3), secret)
    folder = write_tensors(tmp_path / "dump", {"a.pt": torch.ones(3)})
    text = (folder / "dump.json").read_text().replace('"a.pt"', '"../../secret.pt"')
    (folder / "dump.json").write_text(text)
    (call,) = calls_of(folder).values()
    assert call.outputs[0].offset is None and "missing" in call.outputs[0].unread


# Files of tensors.


def saved(file: Path, values: torch.Tensor, dtype: str = "") -> np.ndarray[Any, Any]:
    shape = tuple(values.shape)
    record = TensorRecord("x", dtype or str(values.dtype)[6:], shape, contiguous(shape), "")
    return saved_elements(file, record)


@pytest.mark.parametrize(
    "values",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).t(),
        torch.arange(10, dtype=torch.int64)[2:9:3],
        torch.tensor(1.5, dtype=torch.float64),
        torch.tensor([True, False]),
        torch.zeros(0, 3),
        torch.ones(1).expand(4),
        torch.randn(3, dtype=torch.complex64),
        torch.nn.Parameter(torch.ones(2)),
    ],
    ids=["dense", "transposed", "strided", "scalar", "bool", "empty", "expanded", "complex", "parameter"],
)
def test_a_saved_tensor_is_read_in_the_order_of_its_indices(tmp_path: Path, values: torch.Tensor) -> None:
    torch.save(values, tmp_path / "x.pt")
    assert saved(tmp_path / "x.pt", values).tolist() == values.detach().reshape(-1).tolist()


def test_bfloat16_is_read_from_files_of_both_kinds(tmp_path: Path) -> None:
    values = torch.tensor([1.0, -2.5, 3.140625]).bfloat16()
    torch.save(values, tmp_path / "own.pt")
    torch.save(values.float(), tmp_path / "wide.pt")
    np.save(tmp_path / "wide.npy", values.float().numpy())
    bits = values.view(torch.int16).numpy().view(np.uint16).tolist()
    for file in ("own.pt", "wide.pt", "wide.npy"):
        assert saved(tmp_path / file, values).tolist() == bits
    np.save(tmp_path / "other.npy", np.ones(4, np.int32))
    with pytest.raises(UnreadableTensorError, match="its shape is"):
        saved(tmp_path / "other.npy", values)


def test_nothing_in_a_file_is_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "was run",)

    torch.save(Hostile(), tmp_path / "x.pt")
    with pytest.raises(UnreadableTensorError, match="which is no tensor"):
        saved(tmp_path / "x.pt", torch.ones(1))
    with zipfile.ZipFile(tmp_path / "y.pt", "w") as archive:
        archive.writestr("x/data.pkl", pickle.dumps([1, 2]))
    with pytest.raises(UnreadableTensorError, match="holds no tensor"):
        saved(tmp_path / "y.pt", torch.ones(1))
    np.save(tmp_path / "z.npy", np.array([Hostile()], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableTensorError):
        saved(tmp_path / "z.npy", torch.ones(1))
    assert not (tmp_path / "was run").exists()


def test_damaged_files_of_tensors_are_refused(tmp_path: Path) -> None:
    torch.save(torch.arange(64.0), tmp_path / "x.pt")
    whole, source = (tmp_path / "x.pt").read_bytes(), random.Random(0)
    for at in range(100):
        data = bytearray(whole)
        for _ in range(3):
            data[source.randrange(len(data))] = source.randrange(256)
        (tmp_path / "x.pt").write_bytes(bytes(data[: source.randrange(len(data))] if at % 3 == 0 else data))
        try:
            assert saved(tmp_path / "x.pt", torch.arange(64.0)).size == 64
        except UnreadableTensorError as error:
            assert len(error.lines) == 1
