"""Each process uses a card of its own: numbers of cards go."""

from __future__ import annotations

import pytest

from tests.conversion.distributed.programs import changed, refusal, script, told


def lines(before: str) -> list[str]:
    return [
        line for line in changed(script(end=before)) if "loader = " not in line and "Parallel(" not in line
    ]


OWN = 'int(os.environ.get("LOCAL_RANK", "0"))'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('device = torch.device("cuda:0")', 'device = torch.device("cuda")'),
        (
            "device = 'cuda:0' if torch.cuda.is_available() else 'cpu'",
            "device = 'cuda' if torch.cuda.is_available() else 'cpu'",
        ),
        ('device = f"cuda:{args.gpu}"', 'device = "cuda"'),
        ('device = "cuda:" + str(args.gpu)', 'device = "cuda"'),
        ('device = "cuda:%d" % args.gpu', 'device = "cuda"'),
        ('device = "cuda:{}".format(args.gpu)', 'device = "cuda"'),
        ('device = torch.device("cuda", 0)', 'device = torch.device("cuda")'),
        ("device = torch.device(0)", 'device = torch.device("cuda")'),
        ("x = x.cuda(0)", "x = x.cuda()"),
        ("x = x.cuda(args.gpu, non_blocking=True)", "x = x.cuda(non_blocking=True)"),
        ("x = x.to(0)", 'x = x.to("cuda")'),
        ("x = x.to(args.gpu_id)", 'x = x.to("cuda")'),
        ("x = torch.zeros(3, device=0)", 'x = torch.zeros(3, device="cuda")'),
        ("torch.cuda.set_device(args.gpu)", f"torch.cuda.set_device({OWN})"),
        (
            'x = torch.load("x.pt", map_location="cuda:0")',
            'dist.barrier()\n+ x = torch.load("x.pt", map_location="cuda")',
        ),
    ],
)
def test_the_number_of_a_card(before: str, after: str) -> None:
    assert "\n".join(lines(before)) == f"- {before}\n+ {after}"


def test_a_number_in_a_variable() -> None:
    assert lines("which = 0\nx = x.to(which)") == ["- x = x.to(which)", '+ x = x.to("cuda")']


@pytest.mark.parametrize(
    "text",
    [
        "x = x.to(device)",
        "x = x.cuda(device)",
        'x = x.to(torch.device("cuda"))',
        "x = x.to(torch.float16)",
        'print("use cuda:0")',
        'known = {"cuda:0": "cpu"}',
    ],
)
def test_what_names_no_card(text: str) -> None:
    assert lines(text) == []


def test_cards_that_the_script_hides() -> None:
    source = script(device='import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"')
    assert '- os.environ["CUDA_VISIBLE_DEVICES"] = "0"' in changed(source)
    several = script(device='import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "0,1"')
    assert not any("VISIBLE" in line for line in changed(several))


def test_model_parallelism_is_something_else() -> None:
    source = script(between='a = Net().to("cuda:0")\nb = Net().to("cuda:1")')
    assert "several cards in one process (cuda:0, cuda:1)" in refusal(source)


def test_an_argument_that_may_be_a_number() -> None:
    assert told(script(end="x = x.cuda(which)")) == ["x.cuda(which)"]
