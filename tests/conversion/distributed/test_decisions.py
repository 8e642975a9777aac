"""Decisions by figures that differ among the processes, and draws that do."""

from __future__ import annotations

import pytest

from tests.conversion.distributed.programs import HEAD, changes, script, told

STOP = """
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
"""
BEGIN = f"""{HEAD}
model = Net().cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(dataset, 8)
def validate(net):
    return 0.5
for epoch in range(9):
    total = 0
"""


def decisions(end: str) -> list[str]:
    return told(BEGIN + STOP.removeprefix("\n") + end)


@pytest.mark.parametrize(
    ("end", "test"),
    [
        ("    if total < 3:\n        break\n", "total < 3"),
        (
            "    mean = total / 9\n    if mean > best:\n        worse += 1\n    if worse > 3:\n        break\n",
            "worse > 3",
        ),
        ("        if torch.isnan(loss):\n            continue\n", "torch.isnan(loss)"),
        ("    if total < best:\n        best = total\n        print(model(x))\n", "total < best"),
        ("    plan.step(total)\n", "total"),
    ],
)
def test_a_loss_of_this_process_decides(end: str, test: str) -> None:
    assert decisions(end) == [test]


@pytest.mark.parametrize(
    "end",
    [
        "    value = validate(model)\n    if value < best:\n        break\n",
        "    if total < best:\n        best = total\n        print(total)\n",
        "        step += 1\n        if step > 100:\n            break\n",
        "    if total != total:\n        raise ValueError\n",
        "    plan.step()\n",
    ],
)
def test_decisions_that_all_processes_make_alike(end: str) -> None:
    assert decisions(end) == []


def test_a_figure_of_the_training_data() -> None:
    source = (
        BEGIN
        + STOP.removeprefix("\n")
        + "    score = measure(model, loader)\n    if score > 9:\n        break\n"
    )
    measure = "def measure(net, data):\n    return sum(net(x).sum() for x in data)\n"
    assert told(source.replace("for epoch", f"{measure}for epoch", 1)) == ["score > 9"]


SEEDED = "torch.utils.data.random_split(dataset, [9, 1], generator=torch.Generator().manual_seed(0))"


def test_a_random_split_is_the_same_on_all_processes() -> None:
    split = "parts = torch.utils.data.random_split(dataset, [9, 1])"
    assert f"+ parts = {SEEDED}\n" in changes(script(between=split))
    only_if = f"if args.seed:\n    torch.manual_seed(args.seed)\n{split}"
    assert f"+ parts = {SEEDED}\n" in changes(script(between=only_if))
    assert "Generator" not in changes(script(between=f"torch.manual_seed(1)\n{split}"))


@pytest.mark.parametrize(
    "draw",
    ["import numpy as np\norder = np.random.permutation(90)", "import random\nrandom.shuffle(files)"],
)
def test_a_draw_without_a_seed(draw: str) -> None:
    (place,) = told(script(between=draw))
    assert place in draw
    seed = draw.replace("\n", "\nrandom.seed(1)\n" if "import random" in draw else "\nnp.random.seed(1)\n", 1)
    assert told(script(between=seed)) == []
