"""What only the first process does."""

from __future__ import annotations

import pytest

from tests.conversion.distributed.programs import changed, script, told

FIRST = "+ if dist.get_rank() == 0:"


def lines(source: str) -> list[str]:
    return [line for line in changed(source) if "loader = " not in line and "Parallel(" not in line]


def test_a_call_over_several_lines_is_indented_as_a_whole() -> None:
    source = script(end='torch.save(\n    {"epoch": 1},\n    "last.pt",\n)')
    assert lines(source) == [
        "- torch.save(", '-     {"epoch": 1},', '-     "last.pt",', "- )",
        FIRST, "+     torch.save(", '+         {"epoch": 1},', '+         "last.pt",', "+     )",
    ]  # fmt: skip


def test_text_inside_a_string_keeps_its_place() -> None:
    source = script(end='torch.save({"note": """two\nlines"""}, "last.pt")')
    assert '+     torch.save({"note": """two' in lines(source)
    assert not any(line.endswith('lines"""}, "last.pt")') for line in lines(source))


def test_a_function_that_saves_is_called_by_the_first_process_alone() -> None:
    source = script(
        device="""
        import shutil
        def save(state, best):
            torch.save(state, "last.pt")
            if best:
                shutil.copyfile("last.pt", "best.pt")
        """,
        end="save({}, True)",
    )
    assert lines(source) == ["- save({}, True)", FIRST, "+     save({}, True)"]


def test_a_function_that_also_keeps_count_is_called_by_all() -> None:
    source = script(
        device="""
        class Keeper:
            def save(self, state):
                self.count = self.count + 1
                torch.save(state, "last.pt")
        keeper = Keeper()
        """,
        end="keeper.save({})",
    )
    assert lines(source) == [
        '-         torch.save(state, "last.pt")',
        "+         if dist.get_rank() == 0:",
        '+             torch.save(state, "last.pt")',
    ]


def test_a_statement_that_shares_its_line() -> None:
    source = script(end='if best: torch.save({}, "best.pt")')
    assert lines(source)[-1] == '+ if best: dist.get_rank() == 0 and torch.save({}, "best.pt")'


def test_a_writer_is_there_only_in_the_first_process() -> None:
    source = script(
        device="from torch.utils.tensorboard import SummaryWriter",
        between='writer = SummaryWriter("runs")',
        end='writer.add_scalar("loss", 1.0)\nwriter.close()',
    )
    assert lines(source) == [
        '- writer = SummaryWriter("runs")',
        '+ writer = SummaryWriter("runs") if dist.get_rank() == 0 else None',
        '- writer.add_scalar("loss", 1.0)',
        "- writer.close()",
        FIRST,
        '+     writer.add_scalar("loss", 1.0)',
        "+     writer.close()",
    ]


def test_a_writer_whose_answers_are_used_is_left_to_the_user() -> None:
    source = script(
        device="from torch.utils.tensorboard import SummaryWriter",
        between="writer = SummaryWriter()",
        end="print(writer.get_logdir())",
    )
    assert lines(source) == []
    assert told(source) == ["SummaryWriter()"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for _ in tqdm(loader): pass", "for _ in tqdm(loader, disable=dist.get_rank() != 0): pass"),
        ('os.makedirs("out")', 'os.makedirs("out", exist_ok=True)'),
        ('os.mkdir("out")', 'os.makedirs("out", exist_ok=True)'),
        ("wandb.init(name)", 'wandb.init(name, mode=None if dist.get_rank() == 0 else "disabled")'),
        ('shutil.copy("a", "b")', 'if dist.get_rank() == 0:\n+     shutil.copy("a", "b")'),
    ],
)
def test_other_things_that_one_process_does_for_all(before: str, after: str) -> None:
    source = script(device="import os, shutil, wandb\nfrom tqdm import tqdm", end=before)
    assert "\n".join(lines(source)) == f"- {before}\n+ {after}"


@pytest.mark.parametrize(
    "before",
    [
        'with open("log.txt", "w") as log: pass',
        'size = torch.save({}, "x.pt") or 3',
        'data = MNIST("data", download=True)',
        'wandb.init(mode="offline")',
    ],
)
def test_what_is_left_to_the_user(before: str) -> None:
    source = script(device="import wandb\nfrom torchvision.datasets import MNIST", end=before)
    assert lines(source) == []
    assert len(told(source)) == 1


def test_reading_is_not_writing() -> None:
    assert told(script(end='open("a"), open("b", "rb"), open("c", encoding="utf-8")')) == []


def test_what_runs_the_model_is_run_by_all() -> None:
    source = script(
        device="""
        from torchvision.utils import save_image
        def draw(net, noise):
            images = net(noise)
            save_image(images, "x.png")
        """,
        end="draw(model, 3)",
    )
    assert lines(source) == [
        '-     save_image(images, "x.png")',
        "+     if dist.get_rank() == 0:",
        '+         save_image(images, "x.png")',
    ]
    nested = script(end='torch.save(model(3), "x.pt")')
    assert lines(nested) == []
    assert told(nested) == ['torch.save(model(3), "x.pt")']


def test_a_writer_that_is_handed_on_or_computes_with_the_model() -> None:
    writer = "from torch.utils.tensorboard import SummaryWriter\nfrom things import Logger"
    for use in ("Logger(writer)", 'writer.add_scalar("loss", model(3))'):
        source = script(device=writer, between="writer = SummaryWriter()", end=use)
        assert lines(source) == []
        assert told(source) == ["SummaryWriter()"]


def test_folders_of_paths_and_of_other_things() -> None:
    source = script(
        device="from pathlib import Path\nfrom things import client",
        end='Path("a").mkdir()\nclient.mkdir("b")',
    )
    assert lines(source) == ['- Path("a").mkdir()', '+ Path("a").mkdir(exist_ok=True)']
