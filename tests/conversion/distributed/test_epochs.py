"""set_epoch goes into the loop that counts epochs."""

from __future__ import annotations

from tests.conversion.distributed.programs import HEAD, changes, script, told
from torchferry.finding import Kind


def set_epoch_lines(source: str) -> list[str]:
    return [line for line in changes(source).splitlines() if "set_epoch" in line]


def test_the_counter_may_have_any_name() -> None:
    assert set_epoch_lines(script(loop="for n in tqdm(range(start, 9)):")) == [
        "+     loader.sampler.set_epoch(n)"
    ]


def test_a_counted_list() -> None:
    assert set_epoch_lines(script(loop="for n, rate in enumerate(rates):")) == [
        "+     loader.sampler.set_epoch(n)"
    ]


def test_the_loop_of_the_caller() -> None:
    source = """
    import torch
    from torch.utils.data import DataLoader
    from things import Net, dataset

    def train_one_epoch(model, data, optimizer):
        for i, x in enumerate(data):
            model(x.cuda()).sum().backward()
            optimizer.step()

    def main():
        model = Net().cuda()
        optimizer = torch.optim.Adam(model.parameters())
        loader = DataLoader(dataset, 8)
        for fold in range(3):
            for e in range(9):
                train_one_epoch(model, loader, optimizer)

    if __name__ == "__main__":
        main()
    """
    assert set_epoch_lines(source) == ["+             loader.sampler.set_epoch(e)"]


def test_an_object_that_holds_its_loader() -> None:
    source = """
    import torch
    from torch.utils.data import DataLoader
    from things import Net, dataset

    class Trainer:
        def __init__(self):
            self.model = Net().cuda()
            self.optimizer = torch.optim.Adam(self.model.parameters())
            self.loader = DataLoader(dataset, 8)

        def run_epoch(self):
            for x in self.loader:
                self.model(x.cuda()).sum().backward()
                self.optimizer.step()

    if __name__ == "__main__":
        trainer = Trainer()
        for epoch in range(9):
            trainer.run_epoch()
    """
    assert set_epoch_lines(source) == ["+         trainer.loader.sampler.set_epoch(epoch)"]


def test_a_single_pass_needs_none() -> None:
    source = script(loop="if True:")
    assert set_epoch_lines(source) == []
    assert told(source) == []


NEXT_EPOCH = "loader.sampler.set_epoch(loader.sampler.epoch + 1)"


def test_rounds_that_nobody_counts() -> None:
    source = script(loop="while not done:")
    assert set_epoch_lines(source) == [f"+     {NEXT_EPOCH}"]
    assert told(source) == []


def test_an_iterator_that_is_made_anew() -> None:
    source = (
        HEAD
        + """
model = Net().cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(dataset, 8, shuffle=True)
batches = iter(loader)
while True:
    try:
        x = next(batches)
    except StopIteration:
        batches = iter(loader)
        x = next(batches)
    model(x.cuda()).sum().backward()
    optimizer.step()
"""
    )
    assert set_epoch_lines(source) == [f"+         {NEXT_EPOCH}"]


ENDLESS = """
def endless(data):
    while True:
        for x in data:
            yield x

model = Net().cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1)
batches = endless(DataLoader(dataset, 8, shuffle=True))
for step in range(100):
    model(next(batches).cuda()).sum().backward()
    optimizer.step()
"""


def test_a_generator_that_goes_over_the_loader_for_ever() -> None:
    assert set_epoch_lines(HEAD + ENDLESS) == ["+         data.sampler.set_epoch(data.sampler.epoch + 1)"]
    assert "sampler=DistributedSampler(dataset, shuffle=True)" in changes(HEAD + ENDLESS)


def test_a_generator_that_evaluations_use_as_well() -> None:
    also = "others = endless(DataLoader(dataset, 1))\ndef check():\n    return model(next(others))\n"
    lines = changes(HEAD + ENDLESS + also).splitlines()
    assert "- others = endless(DataLoader(dataset, 1))" not in lines
    place = lines.index("+         if isinstance(data.sampler, DistributedSampler):")
    assert lines[place + 1] == "+             data.sampler.set_epoch(data.sampler.epoch + 1)"


def test_a_counter_that_is_made_before_the_loop() -> None:
    source = script(between="rounds = trange(9)", loop="for _ in rounds:")
    assert set_epoch_lines(source) == ["+     loader.sampler.set_epoch(_)"]


def test_a_progress_bar_around_the_loader() -> None:
    source = script(step="pass").replace(
        "    for x in loader:\n        pass",
        "    bar = tqdm(loader)\n    for x in bar:\n        model(x.cuda()).sum().backward()",
    )
    assert set_epoch_lines(source) == ["+     loader.sampler.set_epoch(epoch)"]


def test_a_loader_that_is_made_in_each_epoch() -> None:
    made = "loader = DataLoader(dataset, 8)"
    inside = script(loader="", loop=f"for epoch in range(9):\n    {made}")
    lines = changes(inside).splitlines()
    assert lines.index("+     loader.sampler.set_epoch(epoch)") > lines.index(f"-     {made}")
    nameless = script(loader="").replace("in loader:", "in DataLoader(dataset, 8):")
    assert set_epoch_lines(nameless) == []
    assert told(nameless) == ["DataLoader(dataset, 8)"]


def test_a_mean_over_all_data_of_a_share_is_a_risk() -> None:
    mean = script(end="print(total / len(loader.dataset))")
    assert told(mean, Kind.RISK) == ["total / len(loader.dataset)"]
    assert told(script(end="print(len(loader.dataset))"), Kind.RISK) == []
