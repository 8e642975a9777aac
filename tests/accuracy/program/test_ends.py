"""However a program ends, what was recorded until then can be read; helpers of it record nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.record.launching import completed
from torchferry.accuracy.record.outputs import sentences

from .recording import TRAINING, recorded


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("raise ValueError('oh no')", 1),
        ("os._exit(5)", 5),
        ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -15),
        ("signal.raise_signal(signal.SIGINT)", 1),
    ],
)
def test_nothing_is_lost_when_a_program_ends_early(end: str, code: int, tmp_path: Path) -> None:
    run = recorded(f"{TRAINING}step()\n{end}\n", tmp_path, steps=None)
    assert run.ended.returncode == code
    (outcome,) = run.outcomes
    assert outcome.is_over and outcome.steps == 1
    with run.record as record:
        assert record.header.complete and len(record.calls) == outcome.calls > 50


def test_what_a_killed_program_left_is_completed(tmp_path: Path) -> None:
    run = recorded(f"{TRAINING}step()\nos.kill(os.getpid(), signal.SIGKILL)\n", tmp_path, steps=None)
    (outcome,) = run.outcomes
    assert run.ended.returncode == -9 and not outcome.is_over
    with run.record as record:
        assert not record.header.complete
        calls = len(record.calls)
        assert record.calls[-1].phase == "optimizer"
    repaired, was_repaired = completed(outcome)
    assert was_repaired and (repaired.calls, repaired.steps) == (calls, 1)
    import h5py

    with h5py.File(run.paths[0]) as file:
        assert sum(len(group) for group in file.values()) == calls


def test_a_program_that_catches_everything_ends_all_the_same(tmp_path: Path) -> None:
    loop = "for number in range(20):\n    try:\n        step()\n    except BaseException:\n        print('caught')\n"
    run = recorded(f"{TRAINING}{loop}print('trained to the end')\n", tmp_path)
    assert "caught" in run.ended.stdout and "trained to the end" not in run.ended.stdout
    with run.record as record:
        assert {call.step for call in record.calls} == {1}


def test_a_full_disk_ends_the_recording_and_not_the_program(tmp_path: Path) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
    run = recorded(f"{TRAINING}{limit}step()\nstep()\nprint('trained to the end')\n", tmp_path, steps=None)
    assert run.ended.stdout == "trained to the end\n" and run.ended.returncode == 0
    assert run.outcomes[0].problem == "File too large"
    assert "recording stops here, the program continues" in run.ended.stderr
    with run.record as record:
        assert record.calls[0].operator == "aten::convolution"
        assert not record.header.complete


def test_a_recorder_that_fails_does_not_end_the_program(tmp_path: Path) -> None:
    failing = "from torchferry.accuracy.record.sinks import TensorSink\nTensorSink.write = None\n"
    run = recorded(f"{TRAINING}{failing}step()\nstep()\nprint('trained to the end')\n", tmp_path, steps=None)
    assert run.ended.stdout == "trained to the end\n"
    (outcome,) = run.outcomes
    assert outcome.is_over and "TypeError" in outcome.problem
    assert any("the recorder failed" in sentence.en for sentence in sentences(outcome, False))


LOADING = """\
class Turned(torch.utils.data.Dataset):
    def __init__(self):
        self.turn = nn.Linear(3, 3)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return self.turn(torch.ones(3)).detach().sin()


model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for batch in torch.utils.data.DataLoader(Turned(), batch_size=4, num_workers=WORKERS):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_what_makes_batches_is_not_recorded(workers: int, tmp_path: Path) -> None:
    code = "import torch\nfrom torch import nn\n" + LOADING.replace("WORKERS", str(workers))
    run = recorded(code, tmp_path, steps=3)
    assert [file.name for file in run.paths] == ["out.h5"]
    assert run.operators().count("addmm") == 3
    assert not {"sin", "stack", "cat"} & set(run.operators())


def test_a_thread_that_trains(tmp_path: Path) -> None:
    run = recorded(
        f"{TRAINING}thread = threading.Thread(target=step)\nthread.start()\nthread.join()\n", tmp_path
    )
    with run.record as record:
        assert {call.phase for call in record.calls} == {"forward", "backward", "optimizer"}


def test_replicas_of_a_model_compute_in_threads_that_are_seen(tmp_path: Path) -> None:
    """DataParallel needs devices; its threads are known by the module that their function is of."""
    code = f"""{TRAINING}
from torch.nn.parallel.parallel_apply import parallel_apply

replica = lambda: net(torch.ones(1, 3, 6, 6))
replica.__module__ = parallel_apply.__module__
replica()
for target in (replica, replica, lambda: torch.ones(2).sin()):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
"""
    operators = recorded(code, tmp_path).operators()
    assert operators.count("convolution") == 3 and "sin" not in operators


def test_a_process_that_is_forked_meanwhile_leaves_the_file_alone(tmp_path: Path) -> None:
    code = f"""{TRAINING}
net(torch.ones(1, 3, 6, 6)).sum()
child = os.fork()
if child == 0:
    net(torch.ones(1, 3, 6, 6))
    os._exit(0)
os.waitpid(child, 0)
step()
"""
    run = recorded(code, tmp_path)
    assert run.operators().count("convolution") == 2
    assert [file.name for file in run.paths] == ["out.h5"]


RANKS = """\
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(rank):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
    store = dist.FileStore("store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    global net, optimizer
    net = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step()
    dist.destroy_process_group()


mp.start_processes(train, nprocs=2, start_method="fork")
"""


def test_two_ranks_have_a_file_each(tmp_path: Path) -> None:
    (tmp_path / "out.h5").write_bytes(b"")
    earlier = str(tmp_path / "out.h5")
    run = recorded(TRAINING + RANKS, tmp_path, replaced=(earlier,))
    assert [file.name for file in run.paths] == ["out.rank0.h5", "out.rank1.h5"], run.ended.stderr
    for rank, path in enumerate(run.paths):
        with open_record(path) as record:
            assert (record.header.rank, record.header.world) == (rank, 2)
            assert {"head", "conv"} <= {call.module for call in record.calls}


def test_one_rank_alone(tmp_path: Path) -> None:
    run = recorded(TRAINING + RANKS, tmp_path, rank=1)
    assert [file.name for file in run.paths] == ["out.rank1.h5"], run.ended.stderr


def test_processes_that_know_nothing_of_each_other_have_a_file_each(tmp_path: Path) -> None:
    code = "import multiprocessing\nfork = multiprocessing.get_context('fork')\n"
    code += "children = [fork.Process(target=step) for _ in range(2)]\n"
    code += "for child in children:\n    child.start()\nfor child in children:\n    child.join()\n"
    run = recorded(TRAINING + code, tmp_path)
    assert [file.name for file in run.paths] == ["out.h5", "out.process2.h5"]
    assert all(outcome.is_over and outcome.calls for outcome in run.outcomes)
