"""Programs of several modules, and programs that are distributed already."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.conversion.distributed.programs import MAIN, convert, convert_project, refusal, script
from torchferry.conversion.program.module import called_method
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.program.training_program import TrainingProgram
from torchferry.conversion.settings import Distributed
from torchferry.finding import Kind

FILES = {
    MAIN: """
    from data import get_loaders
    from engine import train_one_epoch, save
    from models import build_model, make_optimizer

    def main():
        train_loader, val_loader = get_loaders(8)
        model = build_model()
        optimizer = make_optimizer(model)
        for epoch in range(9):
            train_one_epoch(model, optimizer, train_loader)
            save(model, epoch)

    if __name__ == "__main__":
        main()
    """,
    "data.py": """
    from torch.utils.data import DataLoader
    from things import train_set, val_set

    def get_loaders(size):
        train_loader = DataLoader(train_set, size, shuffle=True)
        val_loader = DataLoader(val_set, size)
        return train_loader, val_loader
    """,
    "models.py": """
    import torch
    from things import Net

    def build_model():
        model = Net()
        return model.cuda()

    def make_optimizer(model):
        return torch.optim.Adam(model.parameters())
    """,
    "engine.py": """
    import torch

    def train_one_epoch(model, optimizer, loader):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()

    def save(model, epoch):
        torch.save(model.state_dict(), f"{epoch}.pt")
    """,
    "unrelated.py": """
    import torch
    from torch.utils.data import DataLoader

    torch.save(torch.zeros(3).to("cuda:0"), "x.pt")
    """,
}
TARGET = (
    "model = DistributedDataParallel(model, device_ids=[local_rank] if torch.cuda.is_available() else None)"
)


def test_every_piece_is_changed_where_it_stands(tmp_path: Path) -> None:
    changes = convert_project(FILES, tmp_path)
    assert changes == {
        MAIN: (
            "+     local_rank = setup_distributed()\n"
            f"+     {TARGET}\n"
            "+         train_loader.sampler.set_epoch(epoch)\n"
            "-         save(model, epoch)\n"
            "+         if dist.get_rank() == 0:\n"
            "+             save(model, epoch)\n"
            "+     dist.destroy_process_group()\n"
        ),
        "data.py": (
            "-     train_loader = DataLoader(train_set, size, shuffle=True)\n"
            "+     # batch_size and num_workers are per process: a step takes batch_size samples on each card\n"
            "+     train_loader = DataLoader(train_set, size, sampler=DistributedSampler(train_set, shuffle=True))\n"
        ),
        "models.py": "",
        "engine.py": (
            '-     torch.save(model.state_dict(), f"{epoch}.pt")\n'
            '+     torch.save(getattr(model, "module", model).state_dict(), f"{epoch}.pt")\n'
        ),
        "unrelated.py": "",
    }


def test_all_or_nothing(tmp_path: Path) -> None:
    files = {**FILES, "data.py": FILES["data.py"].replace("shuffle=True", "sampler=Weighted(train_set)")}
    assert not any(convert_project(files, tmp_path).values())


# The same program, its functions by other names.
SPELLINGS = [
    ("from data import get_loaders", "from data import *"),
    ("from models import build_model, make_optimizer", "from models import *"),
    ("from engine import train_one_epoch, save", "import engine\nsave = engine.save\ntrain_one_epoch = engine.train_one_epoch"),
    ("            train_one_epoch(model, optimizer, train_loader)", "            fit = train_one_epoch\n            fit(model, optimizer, train_loader)"),
    (
        "            train_one_epoch(model, optimizer, train_loader)",
        "            fit = partial(train_one_epoch, model, optimizer)\n            fit(train_loader)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("plain", "other"), SPELLINGS)
def test_functions_are_known_by_any_name(plain: str, other: str, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "other").mkdir()
    main = textwrap.dedent(FILES[MAIN])
    assert textwrap.dedent(plain) in main or plain[4:] in main
    spelled = main.replace(plain.removeprefix("    "), other.replace("\n    ", "\n").removeprefix("    "))
    assert spelled != main
    expected = convert_project(FILES, tmp_path / "plain")
    found = convert_project({**FILES, MAIN: spelled}, tmp_path / "other")
    assert found == expected


LOADER_ELSEWHERE = {
    MAIN: """
    import torch
    from data import loader
    from models import Net

    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(9):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
    """,
    "data.py": """
    from torch.utils.data import DataLoader
    from sets import dataset

    loader = DataLoader(dataset, 8, shuffle=True)
    """,
    "models.py": "import torch\nclass Net(torch.nn.Module): pass\n",
}


@pytest.mark.parametrize(
    "used", ["from data import loader", "from data import loader as loader", "from data import *"]
)
def test_a_loader_that_another_module_makes(used: str, tmp_path: Path) -> None:
    files = {**LOADER_ELSEWHERE, MAIN: LOADER_ELSEWHERE[MAIN].replace("from data import loader", used)}
    changes = convert_project(files, tmp_path)
    assert "sampler=DistributedSampler(dataset, shuffle=True)" in changes["data.py"]
    assert "loader.sampler.set_epoch(epoch)" in changes[MAIN]


ALREADY = [
    ("torch.distributed.init_process_group('nccl')", "init_process_group"),
    ("net = torch.nn.parallel.DistributedDataParallel(model)", "DistributedDataParallel"),
    ("import torch.multiprocessing as mp\nmp.spawn(work, nprocs=2)", "torch.multiprocessing.spawn"),
    ("from accelerate import Accelerator", "accelerate"),
    ("import deepspeed", "deepspeed"),
    ("import pytorch_lightning as pl", "pytorch_lightning"),
]


@pytest.mark.parametrize(("sign", "name"), ALREADY)
def test_a_distributed_program_is_left_as_it_is(sign: str, name: str) -> None:
    conversion = convert(script(end=sign), Distributed(MAIN))
    assert conversion.new_text is None
    (finding,) = conversion.findings
    assert finding.kind is Kind.INFO
    assert f"It uses {name}" in finding.why.en


def test_methods_that_call_each_other_on_their_results() -> None:
    source = script(
        device="""
        class Chain:
            def first(self, other):
                return other.second(self).first(other)

            def second(self, other):
                return other.first(self).second(other)
        """,
        end="Chain().first(Chain()).second(Chain())",
    )
    assert convert(source, Distributed(MAIN)).new_text is not None


def test_a_loop_in_a_base_class(tmp_path: Path) -> None:
    files = {
        MAIN: """
        import torch
        from torch.utils.data import DataLoader
        from things import Net, dataset
        from base import BaseTrainer

        class Trainer(BaseTrainer):
            def __init__(self, model, optimizer, loader):
                super().__init__(model, optimizer)
                self.loader = loader

            def train_epoch(self, epoch):
                for x in self.loader:
                    self.model(x.cuda()).sum().backward()
                    self.optimizer.step()

        if __name__ == "__main__":
            model = Net().cuda()
            optimizer = torch.optim.Adam(model.parameters())
            loader = DataLoader(dataset, 8)
            Trainer(model, optimizer, loader).train()
        """,
        "base.py": """
        import torch

        class BaseTrainer:
            def __init__(self, model, optimizer):
                self.model = model
                self.optimizer = optimizer

            def train_epoch(self, epoch):
                raise NotImplementedError

            def train(self):
                for epoch in range(9):
                    self.train_epoch(epoch)
                    self.save()

            def save(self):
                torch.save(self.model.state_dict(), "last.pt")
        """,
    }
    changes = convert_project(files, tmp_path)
    assert f"+     {TARGET}\n" in changes[MAIN]
    assert changes["base.py"] == (
        "+             self.loader.sampler.set_epoch(epoch)\n"
        "-             self.save()\n"
        "+             if not dist.is_initialized() or dist.get_rank() == 0:\n"
        "+                 self.save()\n"
        '-         torch.save(self.model.state_dict(), "last.pt")\n'
        '+         torch.save(getattr(self.model, "module", self.model).state_dict(), "last.pt")\n'
    )


def test_what_is_said_of_a_file_that_is_not_looked_at_is_said_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("from fairscale.nn.checkpoint import checkpoint_wrapper\n")
    source = "import layers\n\nif __name__ == '__main__':\n    layers.checkpoint_wrapper(1)\n"
    conversion = convert(source, Distributed(MAIN), tmp_path)
    (finding,) = conversion.findings
    assert finding.kind is Kind.INFO
    assert finding.line == 1


def test_a_text_that_only_one_file_knows_of_changes_no_program_of_several(tmp_path: Path) -> None:
    """What another pass has made of the script could be rewritten, but the file beside it is already done."""
    (tmp_path / "data.py").write_text(
        "from torch.utils.data import DataLoader\n\ndef build(data):\n    return DataLoader(data, 8)\n"
    )
    before = script(model="model = Net()", loader="loader = data.build(dataset)", device="import data")
    (tmp_path / MAIN).write_text(before)
    reason = refusal(before, tmp_path)
    assert "is not moved to a device" in reason
    after = before.replace("model = Net()", "model = Net().cuda()")
    assert refusal(after, tmp_path) == reason
    (tmp_path / MAIN).write_text(after)
    assert convert(after, Distributed(MAIN), tmp_path).new_text is not None


def test_a_module_is_read_whole_whatever_was_asked_of_it_before(tmp_path: Path) -> None:
    for path, text in FILES.items():
        (tmp_path / path).write_text(textwrap.dedent(text))
    neighbours = Neighbours(tmp_path, frozenset({"torch"}))
    engine = neighbours.module("engine.py")
    assert engine is not None
    engine.focus([1])  # as a rule does that looks for a name which no function of the module has
    program = TrainingProgram(MAIN, neighbours)
    assert "backward" in {called_method(call) for call in program.files["engine.py"].calls}
