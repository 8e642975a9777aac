"""Training loaders get a DistributedSampler; others stay as they are."""

from __future__ import annotations

import pytest

from tests.conversion.distributed.programs import changed, changes, refusal, script, told
from torchferry.finding import Kind

WRAP = (
    "+ model = DistributedDataParallel(model, device_ids=[local_rank] if torch.cuda.is_available() else None)"
)


def loader_lines(call: str, **settings: bool) -> list[str]:
    return [line for line in changed(script(loader=f"loader = {call}"), **settings) if line != WRAP]


def test_the_whole_of_a_small_script() -> None:
    assert changes(script()) == (
        "+ local_rank = setup_distributed()\n"
        f"{WRAP}\n"
        "- loader = DataLoader(dataset, batch_size=8, shuffle=True)\n"
        "+ # batch_size and num_workers are per process: a step takes batch_size samples on each card\n"
        "+ loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=True))\n"
        "+     loader.sampler.set_epoch(epoch)\n"
        "+ dist.destroy_process_group()\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "DataLoader(dataset, 8)",
            "DataLoader(dataset, 8, sampler=DistributedSampler(dataset, shuffle=False))",
        ),
        (
            "DataLoader(dataset, 8, True)",
            "DataLoader(dataset, 8, False, sampler=DistributedSampler(dataset, shuffle=True))",
        ),
        (
            "DataLoader(batch_size=8, dataset=dataset, shuffle=not args.fixed)",
            "DataLoader(batch_size=8, dataset=dataset, sampler=DistributedSampler(dataset, shuffle=not args.fixed))",
        ),
        (
            "DataLoader(dataset, sampler=None, shuffle=True)",
            "DataLoader(dataset, sampler=DistributedSampler(dataset, shuffle=True), shuffle=False)",
        ),
        (
            "torch.utils.data.DataLoader(dataset.train, 8, shuffle=True, drop_last=True)",
            "torch.utils.data.DataLoader(dataset.train, 8, "
            "sampler=DistributedSampler(dataset.train, shuffle=True), drop_last=True)",
        ),
        (
            "DataLoader(dataset, **options)",
            'DataLoader(dataset, **{**options, "shuffle": False}, '
            'sampler=DistributedSampler(dataset, shuffle=options.get("shuffle", False)))',
        ),
    ],
)
def test_the_sampler_takes_over_shuffle(before: str, after: str) -> None:
    assert loader_lines(before) == [f"- loader = {before}", f"+ loader = {after}"]


def test_options_beside_shuffle() -> None:
    before = "DataLoader(dataset, 8, shuffle=True, **options)"
    after = "DataLoader(dataset, 8, sampler=DistributedSampler(dataset, shuffle=True), **options)"
    assert loader_lines(before) == [f"- loader = {before}", f"+ loader = {after}"]


def test_a_random_subset_is_a_subset_that_is_shuffled() -> None:
    source = script(
        loader="""
        from torch.utils.data import SubsetRandomSampler
        order = SubsetRandomSampler(indices[:90])
        loader = DataLoader(dataset, 8, sampler=order)
        """
    )
    assert [line for line in changed(source) if line != WRAP] == [
        "- loader = DataLoader(dataset, 8, sampler=order)",
        "+ train_dataset = Subset(dataset, indices[:90])",
        "+ loader = DataLoader(train_dataset, 8, sampler=DistributedSampler(train_dataset, shuffle=True))",
    ]


def test_two_datasets_that_are_made_in_one_statement() -> None:
    source = script(loader="loader, other = DataLoader(First(), 8), DataLoader(Second(), 8)").replace(
        "for x in loader:", "for x, y in zip(loader, other):"
    )
    lines = [line for line in changed(source) if line != WRAP]
    assert lines[1:3] == ["+ train_dataset = First()", "+ train_dataset_2 = Second()"]
    assert "DistributedSampler(train_dataset_2, shuffle=False)" in lines[3]


def test_a_dataset_that_is_made_in_the_call_is_made_once() -> None:
    assert loader_lines("DataLoader(Images('train'), 8, shuffle=True)") == [
        "- loader = DataLoader(Images('train'), 8, shuffle=True)",
        "+ train_dataset = Images('train')",
        "+ loader = DataLoader(train_dataset, 8, sampler=DistributedSampler(train_dataset, shuffle=True))",
    ]


def test_a_random_sampler_is_a_shuffle() -> None:
    source = script(
        loader="""
        from torch.utils.data import RandomSampler
        order = RandomSampler(dataset)
        loader = DataLoader(dataset, sampler=order, batch_size=8)
        """
    )
    assert [line for line in changed(source) if line != WRAP] == [
        "- order = RandomSampler(dataset)",
        "+ order = DistributedSampler(dataset, shuffle=True)",
    ]


def test_a_batch_that_is_split_among_the_cards() -> None:
    assert loader_lines("DataLoader(dataset, batch_size=n + 1)", split=True)[-1] == (
        "+ loader = DataLoader(dataset, batch_size=(n + 1) // dist.get_world_size(), "
        "sampler=DistributedSampler(dataset, shuffle=False))"
    )


EVALUATED = """
    model.eval()
    with torch.no_grad():
        for x in DataLoader(dataset, 8):
            model(x.cuda())
"""


def test_an_evaluation_goes_over_all_of_its_data() -> None:
    source = script(end=EVALUATED)
    assert "DataLoader(dataset, 8)" in told(source, Kind.INFO)
    assert "DataLoader(dataset, 8)" not in changes(source)


def test_one_loop_for_both_is_told_by_the_names() -> None:
    source = """
    import torch
    from torch.utils.data import DataLoader
    from things import Net, train_set, val_set

    def run(model, loader, optimizer=None):
        for x in loader:
            loss = model(x.cuda()).sum()
            if optimizer:
                loss.backward()
                optimizer.step()

    def main():
        train_loader, val_loader = DataLoader(train_set, 8), DataLoader(val_set, 8)
        model = Net().cuda()
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(9):
            run(model, train_loader, optimizer)
            run(model, val_loader)

    main()
    """
    text = changes(source)
    assert (
        "DataLoader(train_set, 8, sampler=DistributedSampler(train_set, shuffle=False)), DataLoader(val_set, 8)"
        in text
    )
    assert "train_loader.sampler.set_epoch(epoch)" in text
    assert "val_loader.sampler" not in text
    one_name = source.replace("train_loader", "first").replace("val_loader", "second")
    assert "does this loader feed the training" in refusal(one_name)


@pytest.mark.parametrize(
    ("loader", "reason"),
    [
        ("loader = DataLoader(dataset, batch_sampler=Buckets(dataset))", "has its own batch_sampler"),
        ("loader = DataLoader(dataset, 8, sampler=Weighted(dataset))", "has its own sampler"),
        ("loader = DataLoader(*arguments)", "its arguments are hidden"),
        ("loader = (lambda: DataLoader(dataset, 8))()", "no torch.utils.data.DataLoader feeds the training"),
        ("loader = batches(dataset, 8)", "no torch.utils.data.DataLoader feeds the training"),
    ],
)
def test_what_is_left_to_the_user(loader: str, reason: str) -> None:
    assert reason in refusal(script(loader=loader))


def test_a_stream_of_data_can_not_be_sampled() -> None:
    source = script(
        device="""
        class Stream(torch.utils.data.IterableDataset):
            pass
        """,
        loader="loader = DataLoader(Stream(), 8)",
    )
    assert "an IterableDataset can't be sampled" in refusal(source)


def test_a_dataset_that_is_written_over_several_lines() -> None:
    text = changes(script(loader="loader = DataLoader(\n    first +\n    second, 8)"))
    assert "+ train_dataset = (first +\n" in text
    assert "sampler=DistributedSampler(train_dataset, shuffle=False))" in text


def test_a_loader_in_a_condition_that_nothing_can_precede() -> None:
    source = """
    import torch
    from torch.utils.data import DataLoader
    from things import Net, make

    def train(loader):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()

    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    if not model:
        pass
    elif train(DataLoader(make(), 8)):
        pass
    """
    assert "several statements stand on one line" in refusal(source)
