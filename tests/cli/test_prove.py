"""`ferry prove` as users call it: unchanged CUDA programs, and converted ones, against the original on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import pytest

from tests.forked_ferry import ferry_forked
from torchferry.accuracy.file.reader import open_record

from .commands import command, environment, make, one_line

ROOT = Path(__file__).parents[2]
IMAGENET = ROOT / "examples" / "imagenet" / "main.py"


def ferry_prove(
    *arguments: object, cwd: Path, stdin: IO[str] | int = subprocess.DEVNULL, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("ferry", "prove", *arguments),
        env=environment(OMP_NUM_THREADS="1", TORCHFERRY_LANG="en", **variables),
        stdin=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=600,  # the first run compiles the device
    )


def prove_forked(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """For what the command finds, not for how it runs programs."""
    return ferry_forked("prove", *arguments, folder=cwd)


def proof_in(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "proof.json").read_text("utf-8"))
    return content


def verdicts(folder: Path) -> dict[str, str]:
    return {result["vendor"]: result["verdict"] for result in proof_in(folder)["results"]}


HEAD = """\
import os, sys
import torch
from torch import nn
import torch.nn.functional as F
MIGRATED = "TORCHFERRY_SIM" in os.environ
"""

TRAIN = (
    HEAD
    + """
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(30):
    x, y = torch.randn(4, 6, device="cuda"), torch.randint(0, 3, (4,)).cuda(non_blocking=True)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, *sys.argv[1:])
"""
)

# a GAN with mixed precision whose generator's gradient is accumulated, then a fit with a closure
MIXED = (
    HEAD
    + """
G, D = nn.Linear(4, 4).cuda(), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
of_g, of_d = (torch.optim.SGD(net.parameters(), lr=0.05) for net in (G, D))
scaler = torch.cuda.amp.GradScaler(init_scale=128.0)
for step in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        noise = torch.randn(8, 4).cuda()
        loss = D(G(noise).detach()).mean() - D(torch.randn(8, 4).cuda()).mean()
    scaler.scale(loss).backward()
    scaler.step(of_d)
    for part in noise.chunk(2):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = -D(G(part)).mean() / 2
        scaler.scale(loss).backward()
    scaler.step(of_g)
    scaler.update()
    of_g.zero_grad(); of_d.zero_grad()

line = nn.Linear(3, 1).cuda()
inputs = torch.randn(16, 3).cuda()
lbfgs = torch.optim.LBFGS(line.parameters(), max_iter=4)
def closure():
    lbfgs.zero_grad()
    loss = (line(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    loss.backward()
    return loss
lbfgs.step(closure)
"""
)


def test_an_unchanged_program_on_two_vendors(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN)
    result = ferry_prove(
        "--to", "ascend,cambricon", "--steps", 5, "-o", "proof", "--", "train.py", "-o", "x", cwd=tmp_path
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    assert "equal bit for bit" in result.stdout
    assert verdicts(tmp_path / "proof") == {"ascend": "equal", "cambricon": "equal"}
    logs = {file.name: file.read_text() for file in (tmp_path / "proof/logs").iterdir()}
    assert (
        logs["ascend.stdout.txt"] == logs["reference.stdout.txt"] == "".join(f"{n} -o x\n" for n in range(4))
    )
    assert {name: text for name, text in logs.items() if "stderr" in name} == {
        f"{name}.stderr.txt": "" for name in ("ascend", "cambricon", "reference")
    }
    assert sorted(os.listdir(tmp_path)) == ["proof", "train.py"]


def test_mixed_precision_two_optimizers_accumulation_and_a_closure(tmp_path: Path) -> None:
    make(tmp_path, train=MIXED)
    result = prove_forked("--to", "ascend", "--steps", "all", "-o", "proof", "train.py", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    (process,) = proof_in(tmp_path / "proof")["reference"]["processes"]
    assert [len(step["losses"]) for step in process["steps"]] == [1, 2, 1, 2, 1, 2, 4]
    assert verdicts(tmp_path / "proof") == {"ascend": "equal"}


DISTRIBUTED = (
    HEAD
    + """
import torch.distributed as dist
dist.init_process_group("nccl")
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
torch.manual_seed(dist.get_rank())
net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(5, 2), nn.BatchNorm1d(2))).cuda()
model = nn.parallel.DistributedDataParallel(net, device_ids=[local])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    (1 - model(torch.randn(4, 5).cuda())).relu().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
)


def test_two_processes(tmp_path: Path) -> None:
    make(tmp_path, train=DISTRIBUTED)
    result = ferry_prove(
        "--to", "tecorigin", "--nproc", 2, "--steps", 3, "-o", "proof", "--", "train.py", cwd=tmp_path
    )
    assert result.returncode == 0, result.stdout + result.stderr
    proof = proof_in(tmp_path / "proof")
    assert verdicts(tmp_path / "proof") == {"tecorigin": "equal"}
    for run in (proof["reference"], proof["results"][0]["run"]):
        assert [process["identity"]["rank"] for process in run["processes"]] == [0, 1]
        assert [len(process["steps"]) for process in run["processes"]] == [3, 3]
    assert proof["results"][0]["compared_steps"] == 6


@pytest.mark.long  # the demo, whose test is not, proves the same
def test_the_imagenet_trainer(tmp_path: Path) -> None:
    vendors = "ascend,cambricon,tecorigin"
    small = (
        "--dummy -a resnet_tiny --dummy-batches 3 -b 8 --image-size 32 --classes 10 -j 0 --epochs 1 --seed 1"
    )
    result = ferry_prove(
        "--to", vendors, "-o", "proof", "--", IMAGENET, *small.split(), "--gpu", 0, cwd=tmp_path
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert verdicts(tmp_path / "proof") == dict.fromkeys(vendors.split(","), "equal")
    assert proof_in(tmp_path / "proof")["results"][0]["compared_steps"] == 3


def converted(device: str) -> str:
    text = TRAIN.replace('"cuda"', f'"{device}"').replace(".cuda(", f".{device}(")
    return text.replace("import torch\n", f"import torch, torch_{device}\n")


def test_a_converted_program_without_and_with_a_mistake_in_it(tmp_path: Path) -> None:
    make(tmp_path / "original", train=TRAIN)
    make(tmp_path / "out_ascend", train=converted("npu"))
    make(tmp_path / "out_cambricon", train=converted("mlu").replace("lr=0.01", "lr=0.02"))
    programs = ["--before", "original/train.py", "--after", "out_{vendor}/train.py"]
    proof = prove_forked(
        "--to", "ascend,cambricon", "--steps", 3, "-o", "proof", *programs, "--", "x", cwd=tmp_path
    )
    assert proof.returncode == 1, proof.stdout + proof.stderr
    assert verdicts(tmp_path / "proof") == {"ascend": "equal", "cambricon": "parted"}
    _, result = proof_in(tmp_path / "proof")["results"]
    assert (result["parting"]["what"], result["parting"]["step"]) == ("parameter", 1)
    assert result["parting"]["name"] == "0.weight"
    assert result["operator"] is not None
    assert result["operator"]["migrated"]["phase"] == "optimizer"


FAULT = TRAIN.replace("model(x)", "model(x) * (1.01 if MIGRATED and step == 2 else 1)")


def test_a_difference_is_traced_to_its_operator(tmp_path: Path) -> None:
    make(tmp_path, train=FAULT)
    result = prove_forked("--to", "ascend", "--steps", 5, "-o", "proof", "train.py", cwd=tmp_path)
    assert result.returncode == 1
    (parted,) = proof_in(tmp_path / "proof")["results"]
    assert (parted["verdict"], parted["parting"]["what"], parted["parting"]["step"]) == ("parted", "loss", 3)
    assert "aten::mul" in parted["operator"]["migrated"]["name"]
    assert "aten::mul" in result.stdout
    assert (tmp_path / "proof/proof.html").stat().st_size > 1000


WRONG_KERNEL = (
    HEAD
    + """
if MIGRATED:
    def tanh(x):
        y = x.cpu().tanh()
        y.view(-1)[-4:] = 0
        return y.to(x.device)
    library = torch.library.Library("aten", "IMPL")
    library.impl("tanh", tanh, "PrivateUse1")
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(2):
    loss = model(torch.randn(16, 6).cuda()).square().mean()
    loss.backward()
    optimizer.step()
"""
)


def test_a_wrong_operator_is_judged_and_its_tensors_are_kept(tmp_path: Path) -> None:
    make(tmp_path, train=WRONG_KERNEL)
    result = prove_forked("--to", "ascend", "-o", "proof", "train.py", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    (parted,) = proof_in(tmp_path / "proof")["results"]
    assert (parted["operator"]["migrated"]["name"], parted["operator"]["migrated"]["module"]) == (
        "aten::tanh",
        "1",
    )
    judgement = parted["judgement"]
    assert (judgement["verdict"], judgement["sort"], judgement["step"]) == ("fault", "tail", 1)
    assert judgement["own_error"] > 1000 * judgement["limit"]
    assert "the last 4 of 128 elements are wrong" in " ".join(result.stdout.split())
    record = [
        "ferry record",
        "--to ascend --sim",
        "--seed 0 --first-step 1 --steps 1 --in-module 1 -o ascend.h5 train.py",
    ]
    assert f"\n    {' '.join(record)}\n" in result.stdout
    with open_record(tmp_path / "proof" / judgement["record"]) as kept:
        assert {call.operator for call in kept.calls} == {"aten::tanh"}


def test_what_parted_is_traced_to_where_the_bits_first_differed(tmp_path: Path) -> None:
    factor = "1 + MIGRATED * {1: 1e-6, 5: 1e-1}.get(step, 0)"
    make(tmp_path, train=TRAIN.replace("model(x)", f"model(x) * ({factor})").replace("Adam", "SGD"))
    options = ["--to", "ascend", "--steps", 8, "--rtol", "1e-3", "-o", "proof"]
    result = prove_forked(*options, "train.py", cwd=tmp_path)
    assert result.returncode == 1, result.stdout
    (parted,) = proof_in(tmp_path / "proof")["results"]
    assert (parted["verdict"], parted["parting"]["step"]) == ("parted", 6)
    operator = parted["operator"]
    assert (operator["step"], operator["migrated"]["name"]) == (2, "aten::mul.Tensor")


def test_close_is_enough(tmp_path: Path) -> None:
    nearly = TRAIN.replace("model(x)", "model(x) * (1 + 1e-6 * MIGRATED)").replace("Adam", "SGD")
    make(tmp_path, train=nearly)
    make(tmp_path / "proof", **{"proof.json": "an earlier one, replaced"})
    result = prove_forked(
        "--to", "ascend", "--steps", 1, "-o", "proof", "--rtol", "1e-3", "train.py", cwd=tmp_path
    )
    assert result.returncode == 0, result.stdout
    assert verdicts(tmp_path / "proof") == {"ascend": "close"}


def test_a_crash_of_the_original(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN.replace("    print(", "    step < 1 or [][0]\n    print("))
    result = ferry_prove("--to", "ascend,cambricon", "train.py", cwd=tmp_path)
    assert result.returncode == 1
    traceback, ours = result.stderr.rstrip("\n").rsplit("\n", 1)
    assert traceback.startswith("Traceback (most recent call last):")
    assert traceback.endswith("IndexError: list index out of range")
    assert ours == "ferry prove: the original ended with exit code 1 on the CPU, after 2 optimizer steps"


def test_a_crash_of_the_migrated_run(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN.replace("    print(", "    MIGRATED and [][0]\n    print("))
    result = prove_forked("--to", "ascend", "--steps", 2, "train.py", cwd=tmp_path)
    assert result.returncode == 1
    traceback, ours = result.stderr.rstrip("\n").rsplit("\n", 1)
    assert traceback.startswith("Traceback (most recent call last):")
    assert traceback.endswith("IndexError: list index out of range")
    assert ours == "ferry prove: ascend: the migrated run ended with exit code 1, after 1 optimizer steps"


def test_an_original_that_does_not_repeat_itself(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN.replace("model(x)", "model(x) * (1 + os.getpid() % 1000 / 1000)"))
    result = prove_forked("--to", "ascend", "--steps", 2, "-o", "proof", "train.py", cwd=tmp_path)
    assert result.returncode == 1
    assert verdicts(tmp_path / "proof") == {"ascend": "unrepeatable"}
    assert "a second run of the original on the CPU" in result.stdout.replace("\n  ", " ")


RESUMES = (
    HEAD
    + """
epoch, model = torch.load("last.pt", weights_only=False) if os.path.exists("last.pt") else (0, nn.Linear(2, 2))
optimizer = torch.optim.SGD(model.cuda().parameters(), lr=0.1)
while epoch < 3:
    model(torch.randn(2, 2).cuda()).sum().backward()
    optimizer.step()
    epoch += 1
    torch.save((epoch, model), "last.pt")
"""
)


def test_a_program_that_goes_on_where_the_run_before_ended(tmp_path: Path) -> None:
    make(tmp_path, train=RESUMES)
    result = prove_forked("--to", "ascend", "-o", "proof", "train.py", cwd=tmp_path)
    assert result.returncode == 1
    assert verdicts(tmp_path / "proof") == {"ascend": "unrepeatable"}
    assert "does it read what the first run wrote, such as a checkpoint?" in " ".join(result.stdout.split())


# An option that could be short for some of ours, words on stdin, a failure where it is only told to end, a model that
# gets its shapes late, an optimizer that wants a device, compiled code, processes that start in any order.
HABITS = (
    HEAD
    + """
import multiprocessing, random, time
def train(steps, compile=False):
    time.sleep(random.SystemRandom().random() / 2)
    torch.manual_seed(steps)
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2)).cuda()
    called = torch.compile(model) if compile else model
    model(torch.zeros(1, 3, device="cuda"))
    optimizer = torch.optim.Adam(model.parameters(), capturable=True)
    for _ in range(steps):
        called(torch.randn(2, 3, device="cuda")).square().mean().backward()
        optimizer.step()
if __name__ == "__main__":
    assert sys.argv[1:] == ["--n", "3"]
    few, many = map(int, sys.stdin.read().split())
    children = [multiprocessing.get_context("spawn").Process(target=train, args=(n,)) for n in (few, few + 1)]
    for child in children: child.start()
    for child in children: child.join()
    try:
        train(many, compile=True)
    except BaseException:
        sys.exit(1)
"""
)


@pytest.mark.long
def test_a_program_with_habits(tmp_path: Path) -> None:
    make(tmp_path, train=HABITS)
    (tmp_path / "words").write_text("2 9")
    with (tmp_path / "words").open() as words:
        result = ferry_prove(
            "--to",
            "ascend",
            "--steps",
            2,
            "-o",
            "proof",
            "train.py",
            "--n",
            3,
            cwd=tmp_path,
            stdin=words,
            CUDA_VISIBLE_DEVICES="3",
        )
    assert result.returncode == 0, result.stdout + result.stderr
    reference = proof_in(tmp_path / "proof")["reference"]
    assert [len(process["steps"]) for process in reference["processes"]] == [2, 2, 2]
    assert reference["exit_code"] == 1
    assert verdicts(tmp_path / "proof") == {"ascend": "equal"}


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("print(torch.ones(2).cuda())", "never called backward and made no optimizer step"),
        (
            "w = torch.ones(2, requires_grad=True)\noptimizer = torch.optim.SGD([w])\nw.sum().backward()",
            "made no step with an optimizer",
        ),
        ("torch.optim.SGD(nn.Linear(2, 2).cuda().parameters()).step()", "made steps without a gradient"),
        (
            TRAIN.replace("cuda(", "to('cpu', ").replace('"cuda"', '"cpu"'),
            "trained on the CPU and never on npu",
        ),
    ],
)
def test_a_program_that_does_not_train(tmp_path: Path, program: str, says: str) -> None:
    make(tmp_path, train=f"{HEAD}\n{program}\n")
    result = prove_forked("--to", "ascend", "train.py", cwd=tmp_path)
    assert result.returncode == 1
    assert says in " ".join(result.stdout.split())


def test_weights_that_each_run_draws_for_itself(tmp_path: Path) -> None:
    own = TRAIN.replace("optimizer = ", "model[0].weight.data.add_(1.0 if MIGRATED else 0.0)\noptimizer = ")
    make(tmp_path, train=own)
    result = prove_forked(
        "--to", "ascend", "--steps", 2, "-o", "proof", "--same-weights", "train.py", cwd=tmp_path
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert verdicts(tmp_path / "proof") == {"ascend": "equal"}


def test_an_original_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    make(tmp_path, train="import threading\nthreading.Event().wait()\n")
    result = ferry_prove("--to", "ascend", "--timeout", 1, "-o", "proof", "train.py", cwd=tmp_path)
    assert result.returncode == 1
    ended, ours = result.stderr.splitlines()[-2:]
    assert ended == "ferry prove: stopped after 1 seconds (--timeout)"
    assert ours == "ferry prove: the original ended with exit code 143 on the CPU, after 0 optimizer steps"
    assert verdicts(tmp_path / "proof") == {"ascend": "crashed"}


@pytest.mark.long  # waits longer than the original takes on a busy machine
def test_a_migrated_run_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    waits = "import threading\nif MIGRATED:\n    threading.Event().wait()\n"
    make(tmp_path, train=TRAIN.replace("for step", waits + "for step", 1))
    result = ferry_prove("--to", "ascend", "--timeout", 20, "-o", "proof", "train.py", cwd=tmp_path)
    assert result.returncode == 1
    assert "ferry prove: stopped after 20 seconds (--timeout)" in result.stderr
    assert verdicts(tmp_path / "proof") == {"ascend": "crashed"}


def test_ctrl_c_ends_everything_and_leaves_nothing(tmp_path: Path) -> None:
    make(tmp_path, train=HEAD + "import time\nopen('began', 'w').close()\ntime.sleep(600)\n")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        command("ferry", "prove", "--to", "ascend", "-o", "proof", "train.py"),
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        until = time.monotonic() + 300
        while not (tmp_path / "began").exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert stderr == "ferry: interrupted; nothing was written\n"
    assert sorted(os.listdir(tmp_path)) == ["began", "tmp", "train.py"]
    assert os.listdir(temporary) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--to", "ascend"], "which program?"),
        (["--to", ",", "train.py"], "which devices?"),
        (["--to", "nobody", "train.py"], "nobody"),
        (["--to", "intel", "train.py"], "can't be simulated"),
        (["--to", "ascend", "missing.py"], "no such script: missing.py"),
        (
            ["--to", "ascend", "--before", "train.py", "--", "x"],
            "--before and --after go together",
        ),
        (
            ["--to", "ascend", "--before", "train.py", "--after", "out_{vendor}.py"],
            "no such script: out_ascend.py",
        ),
        (["--to", "ascend", "-o", "full", "train.py"], "full: not empty and holds no proof"),
        (["--to", "ascend", "-o", "nowhere/proof", "train.py"], "name a folder inside one that exists"),
    ],
)
def test_bad_usage(tmp_path: Path, arguments: list[str], says: str) -> None:
    make(tmp_path, train="")
    make(tmp_path / "full", kept="")
    result = ferry_prove(*arguments, cwd=tmp_path)
    one_line(result, says)


@pytest.mark.parametrize(
    "option", [["--steps", "0"], ["--steps", "x"], ["--seed", "-1"], ["--rtol", "x"], ["--timeout", "0"]]
)
def test_bad_numbers(tmp_path: Path, option: list[str]) -> None:
    make(tmp_path, train="")
    assert ferry_prove("--to", "ascend", *option, "train.py", cwd=tmp_path).returncode == 2


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path) -> None:
    make(tmp_path, train=HEAD)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    ferry_prove("--to", "ascend", "train.py", cwd=tmp_path, TMPDIR=str(temporary))
    assert os.listdir(temporary) == []
    assert tempfile.gettempdir() != str(temporary)


READS = (
    HEAD
    + """
import json
device = json.load(open("c.json"))["device"]
model = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.ones(3, 4, device=device)).square().sum()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
open("written.txt", "w").write(device)
"""
)


def _converted(folder: Path) -> None:
    make(folder / "a", t=READS)
    (folder / "a/c.json").write_text('{"device": "cuda:0"}')
    subprocess.run(
        command("ferry", "convert", "a", "--to", "ascend", "-o", "b", "-q"),
        env=environment(),
        cwd=folder,
        check=False,
    )
    assert json.loads((folder / "b/c.json").read_text()) == {"device": "npu:0"}


def test_each_side_reads_and_writes_in_its_own_project(tmp_path: Path) -> None:
    _converted(tmp_path)
    pair = ("--before", "a/t.py", "--after", "b/t.py")
    result = prove_forked("--to", "ascend", "--steps", "all", *pair, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "equal bit for bit, 3 steps compared" in result.stdout
    written = [(tmp_path / side / "written.txt").read_text() for side in ("a", "b")]
    assert written == ["cuda:0", "npu:0"]


def test_the_folder_of_both_runs_can_be_chosen(tmp_path: Path) -> None:
    _converted(tmp_path)
    pair = ("--before", "a/t.py", "--after", "b/t.py")
    result = prove_forked("--to", "ascend", "--cwd", "a", *pair, cwd=tmp_path)
    assert result.returncode == 1 and "ascend (npu): failed" in result.stdout  # it reads cuda:0 there
    missing = prove_forked("--to", "ascend", "--cwd", "nowhere", *pair, cwd=tmp_path)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


def test_a_side_that_imports_the_others_modules_proves_nothing(tmp_path: Path) -> None:
    train = (
        HEAD
        + "import net\nmodel = net.Net().to(DEVICE)\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
    )
    train += "for _ in range(2):\n    model(torch.ones(3, 4, device=DEVICE)).sum().backward()\n    optimizer.step()\n"
    net = "from torch import nn\nclass Net(nn.Linear):\n    def __init__(self): super().__init__(4, 2)\n"
    make(tmp_path / "a", t=train.replace("DEVICE", '"cuda"'), net=net)
    path = f"sys.path.insert(0, {str(tmp_path / 'a')!r})\nimport torch_npu\nimport net\n"
    make(tmp_path / "b", t=train.replace("DEVICE", '"npu"').replace("import net\n", path), net=net)
    pair = ("--before", "a/t.py", "--after", "b/t.py")
    result = prove_forked("--to", "ascend", *pair, cwd=tmp_path)
    said = " ".join(result.stdout.split())
    assert result.returncode == 1, said
    assert "can't be compared" in said and "the migrated run imported files of the other side" in said
    assert "a/net.py" in said.replace(" ", "")


BRANCHES = (
    HEAD
    + """
device = torch.device("cuda")
model = nn.Linear(6, 3).to(device)
amp = next(model.parameters()).device.type != "cpu" and device.type not in ("cpu", "mps")
scaler = torch.amp.GradScaler("cuda", enabled=amp)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    with torch.autocast("cuda", enabled=amp):
        loss = model(torch.randn(4, 6).to(device)).square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer); scaler.update(); optimizer.zero_grad()
"""
)


def test_both_sides_take_the_gpus_branch(tmp_path: Path) -> None:
    make(tmp_path, train=BRANCHES)
    result = prove_forked("--to", "ascend", "-o", "proof", "--", "train.py", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "factor" not in result.stdout


def test_a_scaler_on_one_side_alone_is_named_and_contradicts_nothing(tmp_path: Path) -> None:
    program = BRANCHES.replace("enabled=amp)", "enabled=MIGRATED)", 1).replace(
        "enabled=amp)", "enabled=False)"
    )
    make(tmp_path, train=program)
    result = prove_forked("--to", "ascend", "-o", "proof", "--", "train.py", cwd=tmp_path)
    said = " ".join(result.stdout.split())
    assert result.returncode == 0, said
    assert "equal bit for bit, 3 steps compared" in said
    assert "GradScaler's factor differs from step 1 on: 1 in the original, 65536 in the migrated run" in said


def test_a_verdict_names_its_scope(tmp_path: Path) -> None:
    make(tmp_path, train=TRAIN)
    result = prove_forked(
        "--to", "ascend", "--steps", 2, "--seed", 7, "-o", "proof", "--", "train.py", cwd=tmp_path
    )
    said = " ".join(result.stdout.split())
    assert "parameters and small buffers of 2 steps, seed 7, no arguments, on a simulated npu" in said
    assert "Not covered: rounding and bugs of the vendor's own kernels" in said
    assert "proved" not in (tmp_path / "proof/proof.html").read_text()


BY_HAND = (
    HEAD
    + """
model = nn.Linear(4, 2).cuda()
for step in range(5):
    loss = model(torch.ones(3, 4).cuda() * step).square().sum() * (1 + MIGRATED * WRONG * (step == 3))
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(parameter.grad, alpha=-0.01)
"""
)


@pytest.mark.parametrize(
    ("wrong", "code", "words"), [(0, 0, "equal bit for bit, 5"), (1, 1, "step 4: the loss")]
)
def test_parameters_that_are_updated_by_hand_are_compared(
    tmp_path: Path, wrong: int, code: int, words: str
) -> None:
    make(tmp_path, train=BY_HAND.replace("WRONG", str(wrong)))
    result = prove_forked("--to", "ascend", "-o", "proof", "--", "train.py", cwd=tmp_path)
    said = " ".join(result.stdout.split())
    assert result.returncode == code, said + result.stderr
    assert words in said and "each call of backward counts as a step" in said
