"""What is put into a new block keeps its text: strings, comments, continuation lines, tabs, line endings."""

from __future__ import annotations

import pytest

from tests.conversion.amp.amping import amped, check


def test_strings_comments_and_continuation_lines() -> None:
    check(
        '''
        import torch
        def train(model, optimizer):
            for x in data:
                # forward
                out = model(x,
                    mode="a")  # first
          # a comment at another depth

                text = """one
          two
        three"""
                name = f"""{x}
        four"""
                loss = out.sum() + \\
                    model.extra(x, "a"
                                "b")
                loss.backward()
                optimizer.step()
        ''',
        '''
        import torch

        scaler = torch.cuda.amp.GradScaler()
        def train(model, optimizer):
            for x in data:
                # forward
                with torch.cuda.amp.autocast():
                    out = model(x,
                        mode="a")  # first
              # a comment at another depth

                    text = """one
          two
        three"""
                    name = f"""{x}
        four"""
                    loss = out.sum() + \\
                        model.extra(x, "a"
                                    "b")
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        ''',
    )


def test_tabs_and_windows_line_endings() -> None:
    before = "import torch\ndef train(model, optimizer):\n\tfor x in data:\n\t\tloss = model(x)\n\t\tloss.backward()\n\t\toptimizer.step()\n"
    after = (
        "import torch\n\nscaler = torch.cuda.amp.GradScaler()\ndef train(model, optimizer):\n\tfor x in data:\n"
        "\t\twith torch.cuda.amp.autocast():\n\t\t\tloss = model(x)\n\t\tscaler.scale(loss).backward()\n"
        "\t\tscaler.step(optimizer)\n\t\tscaler.update()\n"
    )
    assert amped(before) == after
    assert amped(before.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


def test_a_last_line_without_an_ending() -> None:
    before = "import torch\nopt = torch.optim.SGD(p, 0.1)\nfor x in data:\n  loss = model(x)\n  loss.backward()\n  opt.step()"
    assert amped(before).endswith(
        "  with torch.cuda.amp.autocast():\n    loss = model(x)\n"
        "  scaler.scale(loss).backward()\n  scaler.step(opt)\n  scaler.update()"
    )


def test_a_chain_of_conditions_gets_one_block_for_each_branch() -> None:
    check(
        """
        import torch
        import torch.nn.functional as F
        def run(model, loader, optimizer, mode):
            for x, y in loader:
                out = model(x)
                if mode == 1:
                    loss = F.binary_cross_entropy(out, y)
                elif mode == 2:
                    loss = F.cross_entropy(out, y)
                elif mode == 3:
                    if y is None: raise ValueError
                    loss = model.loss(out, y)
                else:
                    raise NotImplementedError
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        import torch.nn.functional as F

        scaler = torch.cuda.amp.GradScaler()
        def run(model, loader, optimizer, mode):
            for x, y in loader:
                with torch.cuda.amp.autocast():
                    out = model(x)
                if mode == 1:
                    loss = F.binary_cross_entropy(out.float(), y.float())
                elif mode == 2:
                    with torch.cuda.amp.autocast():
                        loss = F.cross_entropy(out, y)
                elif mode == 3:
                    if y is None: raise ValueError
                    with torch.cuda.amp.autocast():
                        loss = model.loss(out, y)
                else:
                    raise NotImplementedError
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
        """,
    )


def test_tabs_and_spaces_in_one_indentation() -> None:
    before = "import torch\nclass T:\n\tdef train(self):\n\t  for x in data:\n\t    loss = model(x)\n\t    loss.backward()\n\t    optimizer.step()\n"
    text = amped(before)
    assert (
        "\n\t    with torch.cuda.amp.autocast():\n\t      loss = model(x)\n\t    scaler.scale(loss)" in text
    )


def test_a_training_loop_within_another() -> None:
    """Each loop's own step is covered once; what the outer loss needs of the inner loop runs under autocast, too."""
    check(
        """
        import torch
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in outer:
            out = model(x)
            for z in inner:
                found = model(z)
                more = found.mean()
                found.sum().backward()
                optimizer.step()
            else:
                more = more + model(y)
            loss = criterion(out, y) + more
            loss.backward()
            optimizer.step()
        """,
        """
        import torch
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x, y in outer:
            with torch.cuda.amp.autocast():
                out = model(x)
            for z in inner:
                with torch.cuda.amp.autocast():
                    found = model(z)
                    more = found.mean()
                scaler.scale(found.sum()).backward()
                scaler.step(optimizer)
                scaler.update()
            else:
                with torch.cuda.amp.autocast():
                    more = more + model(y)
            with torch.cuda.amp.autocast():
                loss = criterion(out, y) + more
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
    )


def test_an_optimizer_that_is_made_in_the_loop_itself() -> None:
    """The factor of a scaler is to outlive a step."""
    check(
        """
        import torch
        for x, y in data:
            out = model(x)
            if first:
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
        """,
        """
        import torch

        scaler = torch.cuda.amp.GradScaler()
        for x, y in data:
            with torch.cuda.amp.autocast():
                out = model(x)
            if first:
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            with torch.cuda.amp.autocast():
                loss = criterion(out, y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        """,
    )


def test_an_optimizer_for_each_round_of_an_outer_loop() -> None:
    text = amped(
        "import torch\nfor fold in folds:\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "    for x in fold:\n        loss = model(x)\n        loss.backward()\n        optimizer.step()\n"
    )
    assert "lr=0.1)\n    scaler = torch.cuda.amp.GradScaler()\n    for x in fold:" in text


LOOP = """
optimizer = torch.optim.SGD(model.parameters())
for x in loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("loops", [2, 5, 9])
def test_the_scaler_of_several_loops_is_made_above_the_first(loops: int) -> None:
    # The loops were gone through in the order of a set, which is another one in each run.
    source = "import torch\nfrom nets import model, loader\n" + f"{LOOP}import os\n" * loops
    head = amped(source).partition("optimizer =")[0]
    assert head == "import torch\nfrom nets import model, loader\n\nscaler = torch.cuda.amp.GradScaler()\n\n"
