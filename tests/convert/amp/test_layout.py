"""What is put into a new block keeps its text: strings, comments, continuation lines, tabs, line endings."""

from __future__ import annotations

from tests.convert.amp.amping import amped, check


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
