"""The Python API: each function does what its command does, and returns what the command reports."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import torchferry
from tests.forking import run_forked
from torchferry import api
from torchferry.cli.main import COMMANDS, main, parser_of

ROOT = Path(__file__).parent.parent
PACKAGES = {"accuracy", "emulate", "perf", "runtime", "sim"}
LOG = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"


def test_all_that_is_public_is_there() -> None:
    assert torchferry.__all__ == sorted(torchferry.__all__)
    assert set(torchferry.__all__) == {*api.__all__, *PACKAGES}
    for name in torchferry.__all__:
        assert getattr(torchferry, name) is not None and name in dir(torchferry)


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="'torchferry' has no attribute 'transport'"):
        torchferry.transport  # noqa: B018


def test_importing_it_imports_nothing_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import torchferry; print(sorted(set(sys.modules) - before))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "['torchferry']"


def test_no_package_hides_a_function() -> None:
    """Importing `torchferry.NAME` would put the module in the function's place."""
    parts = {path.stem for path in Path(torchferry.__file__).parent.iterdir()}
    assert not parts & set(api.__all__)


@pytest.mark.parametrize("page", ["docs/en/formats/python-api.md", "docs/zh/formats/python-api.md"])
def test_the_page_lists_every_function(page: str) -> None:
    rows = re.findall(r"^\| `(\w+)\(", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert {*rows, "FerryError", "render", "save"} == set(api.__all__)


# Options are named as on the command line; these are of Python alone, or say how `ferry` prints.
OWN = {"program", "module", "vendor_path", "lang", "path", "output", "paths", "message", "logs", "options"}
RENAMED = {
    "trial": "--try",
    "origin": "--from",
    "module": "--module",
    "mine": "--mine",
}
GIVEN = {"record", "file", "checkpoint"}  # that the command takes without a flag


@pytest.mark.parametrize("name", sorted(set(api.__all__) - {"FerryError", "render", "save"}))
def test_options_have_the_names_of_the_command(name: str) -> None:
    command, _, action = name.partition("_")  # ferry checkpoint info
    parameters = set(inspect.signature(getattr(api, name)).parameters) - OWN - GIVEN
    parser = parser_of(command)
    known = (parser.verbs[action] if action else parser).spellings
    flags = {each: RENAMED.get(each, f"--{each.replace('_', '-')}") for each in parameters}
    assert {each for each, flag in flags.items() if flag not in known} == set()


def test_every_function_is_a_command() -> None:
    functions = set(api.__all__) - {"FerryError", "render", "save"}
    assert {name.partition("_")[0] for name in functions} <= set(COMMANDS)


PROJECT = """import torch

model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4).cuda()).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text(PROJECT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    return tmp_path / "project"


def test_scan(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = torchferry.scan(project, "ascend")
    assert [finding.line for finding in report.findings if finding.after] == [1, 3, 7]
    assert main(["scan", str(project), "--to", "ascend", "--format", "json", "-q"]) == 0
    assert main(["scan", str(project), "--to", "ascend", "--format", "json", "-o", "by_command.json"]) == 0
    torchferry.save(report, "by_function.json")
    by_command, by_function = (
        json.loads(Path(f"by_{who}.json").read_text()) for who in ("command", "function")
    )
    assert by_command == by_function
    assert list(project.iterdir()) == [project / "train.py"]


def test_convert(project: Path) -> None:
    assert main(["convert", str(project), "--to", "ascend", "-o", "by_command", "-q"]) == 0
    torchferry.convert(project, "ascend", "by_function")
    by_command, by_function = (
        {file.name: file.read_bytes() for file in Path(name).iterdir()}
        for name in ("by_command", "by_function")
    )
    assert by_command.keys() == by_function.keys() == {"train.py", "findings.json", "report.html"}
    assert by_command["train.py"] == by_function["train.py"] != PROJECT.encode()
    with pytest.raises(torchferry.FerryError, match="by_function"):
        torchferry.convert(project, "ascend", "by_function")
    torchferry.convert(project, "ascend", "by_function", force=True, select=["TF1"])


def test_what_a_project_asks_for_by_option(project: Path) -> None:
    with pytest.raises(torchferry.FerryError, match="no rule begins with 'XY'"):
        torchferry.scan(project, "ascend", select=["XY"])
    with pytest.raises(torchferry.FerryError, match="no/such: no such file or folder"):
        torchferry.scan("no/such", "ascend")


def test_explain(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    explanation = torchferry.explain(LOG)
    assert explanation.cause is not None and explanation.cause.text == LOG
    main(["explain", LOG])
    assert torchferry.render(explanation).decode() == capsys.readouterr().out
    (project / "rank_0.log").write_text(f"{LOG}\n")
    assert torchferry.explain(logs=[project]).logs
    for wrong in ({}, {"message": LOG, "logs": [project]}):
        with pytest.raises(torchferry.FerryError, match="a message, or the logs"):
            torchferry.explain(**wrong)  # type: ignore[arg-type]


def test_doctor() -> None:
    machine = torchferry.doctor("ascend")
    assert machine.device is not None and machine.device.vendor.name == "ascend"
    assert b"Ascend" in torchferry.render(machine, "html", lang="en")
    with pytest.raises(torchferry.FerryError, match="emulate needs a vendor"):
        torchferry.doctor(emulate=True)


def in_a_program(code: str, folder: Path) -> str:
    """What a program that uses the API prints; it runs in a fork that has imported PyTorch."""
    ended = run_forked(code, {**os.environ, "TORCHFERRY_LANG": "en", "OMP_NUM_THREADS": "1"}, folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_run_and_prove(project: Path) -> None:
    summary = torchferry.run(project / "train.py", to="ascend", sim=True, devices=1, memory="1GiB")
    assert (summary.outcome.device_type, summary.outcome.exit_code, len(summary.devices)) == ("npu", 0, 1)
    proof = torchferry.prove([project / "train.py"], to=["ascend"], steps=2, output="proof")
    assert proof.holds and json.loads(Path("proof/proof.json").read_text())["holds"]
    assert b"ascend" in torchferry.render(proof)


def test_a_program_that_fails_says_so_in_the_record(project: Path) -> None:
    (project / "fails.py").write_text("import sys\nsys.exit(7)\n")
    assert torchferry.run(project / "fails.py", to="ascend", sim=True).outcome.exit_code == 7


def test_ops_of_a_program_and_of_its_capture(project: Path) -> None:
    ascend, cambricon = torchferry.ops(project / "train.py", to="ascend,cambricon")
    assert (ascend.vendor, cambricon.vendor) == ("ascend", "cambricon")
    torchferry.save([ascend, cambricon], "ops.json")
    (again,) = torchferry.ops(capture="ops.json", to="ascend")
    assert torchferry.render([again], "csv") == torchferry.render([ascend], "csv")


def test_record_and_compare(project: Path) -> None:
    for name in ("mine", "golden"):
        recorded = torchferry.record(project / "train.py", f"{name}.h5", seed=1)
        assert [written.path for written, _ in recorded.files] == [str(Path(f"{name}.h5").resolve())]
    (comparison,) = torchferry.compare("mine.h5", "golden.h5")
    assert comparison.culprit is None and len(comparison.pairs) > 0
    assert b"mine" in torchferry.render([comparison], "html")


def test_overflow(project: Path) -> None:
    assert torchferry.overflow(project / "train.py").first is None
    (project / "large.py").write_text(PROJECT.replace(".sum()", ".mul(1e38).mul(1e38).sum()"))
    found = torchferry.overflow(project / "large.py", "large.h5", seed=0).first
    assert found is not None and Path("large.h5").is_file()


@pytest.mark.long
def test_watch_and_replay(project: Path) -> None:
    watched = torchferry.watch(project / "train.py", every=2, seed=0)
    assert watched.ending.exit_code == 0 and Path("watch.h5").is_file()
    torchferry.record(project / "train.py", "golden.h5", seed=1)
    (outcome,) = torchferry.replay("golden.h5", device="cpu", op=["aten::*"])
    assert outcome.calls > 0 and not outcome.problem
    assert len(torchferry.compare("replay.h5", "golden.h5")) == 1


@pytest.mark.long
def test_profile_and_analyze(project: Path) -> None:
    profiled = torchferry.profile(project / "train.py", "prof", steps=(2, 3), warmup=0, no_stacks=True)
    assert profiled.is_written and [each.last_step for each in profiled.traces] == [3]
    assert len(torchferry.analyze("prof").analyses) == 1
    with pytest.raises(torchferry.FerryError, match="ended before step 8 was over"):
        torchferry.profile(project / "train.py", "later", steps=(8, 9), warmup=0)
    assert not Path("later").exists()


def test_checkpoint(tmp_path: Path) -> None:
    import torch

    torch.save({"module.weight": torch.ones(2, 3)}, tmp_path / "a.pth")
    contents = torchferry.checkpoint_info(tmp_path / "a.pth")
    assert b"module.weight" in torchferry.render(contents, "json", lang="en")
    repaired = torchferry.checkpoint_fix(
        tmp_path / "a.pth", tmp_path / "b.pth", strip=["module."], rename={"weight": "head.weight"}
    )
    assert repaired.tensors == 1
    assert [*torch.load(tmp_path / "b.pth", weights_only=True)] == ["head.weight"]


def test_zoo(project: Path) -> None:
    made = torchferry.zoo_new("PyTorch/contrib/Classification/Net", project, main="train.py", amp=True)
    assert made.main == "train.py" and Path("PyTorch/contrib/Classification/Net/README.md").is_file()
    review = torchferry.zoo_check("PyTorch/contrib/Classification/Net")
    assert not review.is_complete
    torchferry.save(review, "review.html", lang="en")


REFUSED: list[tuple[str, Callable[[Path], object]]] = [
    ("no such script", lambda project: torchferry.run(project / "none.py", to="ascend", sim=True)),
    ("which program", lambda project: torchferry.run([], to="ascend", sim=True)),
    ("can't be simulated", lambda project: torchferry.run(project / "train.py", to="intel", sim=True)),
    (
        "--native works only on the emulated device",
        lambda project: torchferry.run(project / "train.py", to="ascend", sim=True, native=True),
    ),
    ("which devices", lambda project: torchferry.prove(project / "train.py", to="")),
    ("can't be simulated", lambda project: torchferry.prove(project / "train.py", to="intel")),
    ("no such folder", lambda project: torchferry.prove(project / "train.py", to="ascend", cwd="none")),
    ("no such script", lambda project: torchferry.prove(project / "train.py", to="ascend", converted="x.py")),
    ("one of a program, a capture and a trace", lambda project: torchferry.ops(to="ascend")),
    (
        "can't be used together",
        lambda project: torchferry.record(project / "train.py", stats=True, inputs=True),
    ),
    (
        "can't be used together",
        lambda project: torchferry.overflow(project / "train.py", sim=True, emulate=True),
    ),
    ("nothing to analyze", lambda project: torchferry.analyze()),
    ("not a range of steps", lambda project: torchferry.profile(project / "train.py", steps=(3, 2))),
    ("replay needs a device", lambda project: torchferry.replay("golden.h5")),
    ("no such file", lambda project: torchferry.replay("golden.h5", device="cpu")),
    ("No such file", lambda project: torchferry.checkpoint_info("none.pth")),
    ("needs the training script", lambda project: torchferry.zoo_new("a/b", project, distributed=True)),
    ("zoo_new creates one", lambda project: torchferry.zoo_check("none")),
    ("this is the checkpoint itself", lambda project: torchferry.export(__file__, __file__, model="a:b")),
    (
        "add --force to replace it",
        lambda project: torchferry.export("a.pth", project / "train.py", model="train:model"),
    ),
    ("no report for int", lambda project: torchferry.render(1)),
    ("unknown report format", lambda project: torchferry.render(torchferry.explain(LOG), "pdf")),
]


@pytest.mark.parametrize(("message", "call"), REFUSED)
def test_what_a_command_refuses_is_an_error(
    message: str, call: Callable[[Path], object], project: Path
) -> None:
    with pytest.raises(torchferry.FerryError, match=message):
        call(project)


def test_analyze(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 10.0 * at, "dur": 5.0}
        for at in range(50)
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    report = torchferry.analyze(tmp_path / "trace.json")
    assert len(report.analyses) == 1
    assert torchferry.render(report, "md")


@pytest.mark.parametrize("page", ["docs/en/formats/python-api.md", "docs/zh/formats/python-api.md"])
def test_the_programs_of_the_page_run(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    programs = re.findall(r"^```python api\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)
    printed = [in_a_program(code, tmp_path) for code in programs]
    assert len(printed) == 3
    assert "npu 0\nTrue\n" in printed[0] and (tmp_path / "ratings_npu/report.html").is_file()
    assert "out of memory" in printed[1] and "('ascend'," in printed[1] and (tmp_path / "ops.html").is_file()
    assert "no/such/folder" in printed[2]
