"""Which loaders train and which evaluate, where one function, one call or one dictionary makes both."""

from __future__ import annotations

import pytest

from tests.conversion.distributed.programs import changes, refusal, told
from torchferry.finding import Kind

RUN = """
def train(model, loader, optimizer):
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()

def evaluate(model, loader):
    with torch.no_grad():
        for x in loader:
            model(x.cuda())

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(9):
    train(model, first, optimizer)
    evaluate(model, second)
"""


def program(makers: str) -> str:
    head = "import torch\nfrom torch.utils.data import DataLoader\nfrom things import Net, sets, dataset\n"
    return f"{head}\n{makers}\n{RUN}"


def sampler_lines(source: str) -> list[str]:
    lines = changes(source).splitlines()
    return [line[1:].strip() for line in lines if line.startswith("+") and "sampler=" in line]


@pytest.mark.parametrize(
    ("shuffle", "calls"),
    [
        ("split == 'train'", ("'train'", "'val'")),
        ("split != 'test'", ("'train'", "'test'")),
        ("split in ('train', 'trainval')", ("'trainval'", "split='val'")),
        ("split", ("True", "False")),
        ("not split", ("False", "True")),
        ("True if split == 'train' else False", ("'train'", "'val'")),
    ],
)
def test_one_call_for_both_that_shuffles_for_the_training(shuffle: str, calls: tuple[str, str]) -> None:
    source = program(
        f"def make(split):\n    return DataLoader(dataset, 8, shuffle={shuffle})\n"
        f"first = make({calls[0]})\nsecond = make({calls[1]})"
    )
    test = f"({shuffle})" if " if " in shuffle else shuffle
    sampler = f"DistributedSampler(dataset) if {test} else None"
    assert sampler_lines(source) == [f"return DataLoader(dataset, 8, sampler={sampler})"]


def test_a_shuffle_that_is_handed_over_or_left_out() -> None:
    source = program(
        "def make(data, shuffle=False):\n    return DataLoader(data, 8, shuffle=shuffle)\n"
        "first, second = make(sets.a, shuffle=True), make(sets.b)"
    )
    (line,) = sampler_lines(source)
    assert line == "return DataLoader(data, 8, sampler=DistributedSampler(data) if shuffle else None)"


@pytest.mark.parametrize("shuffle", ["True", "args.shuffle", "split == 'val'"])
def test_one_call_for_both_without_a_difference_that_can_be_followed(shuffle: str) -> None:
    source = program(
        f"def make(split):\n    return DataLoader(dataset, 8, shuffle={shuffle})\n"
        "first = make('train')\nsecond = make('val')"
    )
    assert "makes the loader for the training as well as one for an evaluation" in refusal(source)


@pytest.mark.parametrize(
    "rest", ["    return DataLoader(sets.b, 8)", "    else:\n        return DataLoader(sets.b, 8)"]
)
def test_one_function_with_a_branch_for_each(rest: str) -> None:
    source = program(
        f"def make(split):\n    if split == 'train':\n        return DataLoader(sets.a, 8)\n{rest}\n"
        "first = make('train')\nsecond = make('val')"
    )
    (line,) = sampler_lines(source)
    assert line == "return DataLoader(sets.a, 8, sampler=DistributedSampler(sets.a, shuffle=False))"


PHASES = """
import torch
from torch.utils.data import DataLoader
from things import Net, sets

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
loaders = LOADERS
for epoch in range(9):
    for phase in ["train", "val"]:
        for x in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = model(x.cuda()).sum()
                if phase == "train":
                    loss.backward()
                    optimizer.step()
"""


def phases(loaders: str) -> str:
    return PHASES.replace("LOADERS", loaders)


def test_a_dictionary_of_both() -> None:
    source = phases('{"train": DataLoader(sets.a, 8), "val": DataLoader(sets.b, 8)}')
    text = changes(source)
    assert '"train": DataLoader(sets.a, 8, sampler=DistributedSampler(sets.a, shuffle=False))' in text
    assert '"val": DataLoader(sets.b, 8)' in text
    assert "+     loaders['train'].sampler.set_epoch(epoch)\n" in text


@pytest.mark.parametrize("shuffle", ["shuffle=True", "shuffle=False", "shuffle=args.mix"])
def test_a_comprehension_of_both(shuffle: str) -> None:
    order = shuffle.removeprefix("shuffle=")
    source = phases(f"{{x: DataLoader(sets[x], 8, {shuffle}) for x in ['train', 'val']}}")
    sampler = f"sampler=DistributedSampler(sets[x], shuffle={order}) if x == 'train' else None"
    assert f"+ loaders = {{x: DataLoader(sets[x], 8, {sampler}) for x in ['train', 'val']}}\n" in changes(
        source
    )
    assert "+     loaders['train'].sampler.set_epoch(epoch)\n" in changes(source)


@pytest.mark.parametrize("keys", ["names", "['a', 'b']", "['train', 'train_extra']", "['train', 'more']"])
def test_a_comprehension_over_names_that_say_nothing(keys: str) -> None:
    source = phases(f"{{x: DataLoader(sets[x], 8) for x in {keys}}}")
    assert "make each in its own statement, or name them in the comprehension" in refusal(source)


def test_a_comprehension_that_makes_the_datasets_as_well() -> None:
    source = phases("{x: DataLoader(Images(x), 8) for x in ['train', 'val']}")
    assert "make the datasets in a statement before it" in refusal(source)


def test_loaders_that_two_attributes_are_given_at_once() -> None:
    source = """
    import torch
    from torch.utils.data import DataLoader
    from things import Net, sets

    class Runner:
        def __init__(self):
            self.model = Net().cuda()
            self.optimizer = torch.optim.Adam(self.model.parameters())
            self.first, self.second = self.make()

        def make(self):
            return DataLoader(sets.a, 8), DataLoader(sets.b, 8)

        def run(self):
            for epoch in range(9):
                for x in self.first:
                    self.model(x.cuda()).sum().backward()
                    self.optimizer.step()

    Runner().run()
    """
    (line,) = sampler_lines(source)
    assert (
        "DataLoader(sets.a, 8, sampler=DistributedSampler(sets.a, shuffle=False)), DataLoader(sets.b, 8)"
        in line
    )


@pytest.mark.parametrize("how", ["with torch.no_grad():", "if step % 9 == 0:"])
def test_a_batch_for_an_evaluation_between_the_steps(how: str) -> None:
    source = f"""
import torch
from torch.utils.data import DataLoader
from things import Net, sets

def endless(data):
    while True:
        for x in data:
            yield x

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
train_batches = endless(DataLoader(sets.a, 8))
val_batches = endless(DataLoader(sets.b, 8))
for step in range(99):
    model(next(train_batches).cuda()).sum().backward()
    optimizer.step()
    {how}
        print(model(next(val_batches).cuda()).sum())
"""
    (line,) = sampler_lines(source)
    assert "DistributedSampler(sets.a, shuffle=False)" in line
    assert "if isinstance(data.sampler, DistributedSampler):" in changes(source)


def test_an_evaluation_in_random_order_is_a_risk() -> None:
    source = program(
        "first = DataLoader(sets.a, 8, shuffle=True)\nsecond = DataLoader(sets.b, 8, shuffle=True)"
    )
    assert told(source, Kind.RISK) == ["DataLoader(sets.b, 8, shuffle=True)"]


ONE_FUNCTION = """
import torch
from torch.utils.data import *
from things import Net, sets

def run(model, loader, optimizer=None):
    for x in loader:
        loss = model(x.cuda()).sum()
        if optimizer:
            loss.backward()
            optimizer.step()
    return loss

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
dl_tr, dl_va = DataLoader(sets.a, 8), DataLoader(sets.b, 8)
for epoch in range(9):
    run(model, dl_tr, optimizer)
    if run(model, dl_va) > 9:
        value = run(model, dl_va)
        if value > 3:
            break
"""


def test_one_function_that_trains_and_evaluates() -> None:
    (line,) = sampler_lines(ONE_FUNCTION)
    assert "DataLoader(sets.b, 8)" in line
    assert told(ONE_FUNCTION) == []
    assert told(ONE_FUNCTION.replace("value = run(model, dl_va)", "value = run(model, dl_tr)")) == [
        "value > 3"
    ]
