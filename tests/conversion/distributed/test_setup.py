"""Where the process group is joined and left."""

from __future__ import annotations

import pytest

from tests.conversion.distributed.programs import MAIN, changes, convert, refusal, script
from torchferry.conversion.settings import Distributed

WORK = """\
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(dataset, 8)
    for x in loader:
        model(x.cuda()).sum().backward()
        optimizer.step()
"""
IMPORTS = """\
import argparse
import sys
import torch
from torch.utils.data import DataLoader
from things import Net, dataset
"""


def around(source: str) -> list[str]:
    """The lines of set-up and clean-up, each with the line before it."""
    text = convert(source, Distributed(MAIN)).new_text or ""
    lines = [line for line in text.splitlines() if line.strip()]
    start = lines.index("    return local_rank") + 1
    found = [
        number
        for number in range(start, len(lines))
        if "setup_distributed()" in lines[number] or "destroy_process_group()" in lines[number]
    ]
    return [f"{lines[number - 1].strip()} / {lines[number].strip()}" for number in found]


def test_a_main_function() -> None:
    source = f'{IMPORTS}def main():\n    """Train."""\n    seed = 1\n{WORK}if __name__ == "__main__":\n    main()\n'
    assert around(source) == [
        "seed = 1 / local_rank = setup_distributed()",
        "main() / dist.destroy_process_group()",
    ]


def test_arguments_are_parsed_first() -> None:
    source = (
        f"{IMPORTS}def options():\n    return argparse.ArgumentParser().parse_args()\n"
        f'def main():\n    args = options()\n    print(args)\n{WORK}if __name__ == "__main__":\n    main()\n'
    )
    assert around(source)[0] == "args = options() / local_rank = setup_distributed()"


@pytest.mark.parametrize("call", ["sys.exit(main())", "raise SystemExit(main())"])
def test_a_result_that_becomes_the_exit_code(call: str) -> None:
    source = f"{IMPORTS}def main():\n    if not dataset:\n        return 1\n{WORK}    return 0\n{call}\n"
    assert around(source)[1:] == [
        "if not dataset: / dist.destroy_process_group()",
        "optimizer.step() / dist.destroy_process_group()",
    ]


def test_the_body_of_the_name_test() -> None:
    body = f'if __name__ == "__main__":\n    print("start")\n{WORK}'
    assert around(IMPORTS + body) == [
        'if __name__ == "__main__": / local_rank = setup_distributed()',
        "optimizer.step() / dist.destroy_process_group()",
    ]


def test_work_at_the_level_of_the_module() -> None:
    lines = changes(script()).splitlines()
    assert (lines[0], lines[-1]) == ("+ local_rank = setup_distributed()", "+ dist.destroy_process_group()")


def test_a_function_that_a_library_calls() -> None:
    source = (
        f"{IMPORTS}import fire\ndef main(rate=0.1):\n{WORK}if __name__ == '__main__':\n    fire.Fire(main)\n"
    )
    assert around(source) == [
        "def main(rate=0.1): / local_rank = setup_distributed()",
        "fire.Fire(main) / dist.destroy_process_group()",
    ]


def test_a_script_that_does_not_train() -> None:
    source = f"{IMPORTS}def work():\n{WORK}print('nothing')\n"
    assert "nothing in this script" in refusal(source)


def test_names_that_are_taken_and_imports_that_are_there() -> None:
    source = script(device="import torch.distributed as comm\nlocal_rank = 'mine'\ndist = 3.0")
    text = convert(source, Distributed(MAIN)).new_text or ""
    assert "process_local_rank = setup_distributed()" in text
    assert "comm.init_process_group(backend=backend)" in text
    assert "import torch.distributed as dist" not in text


def test_the_way_of_the_file_is_kept() -> None:
    source = script().replace("    ", "\t").replace("\n", "\r\n")
    text = convert(source, Distributed(MAIN)).new_text or ""
    assert "\r\n\tloader.sampler.set_epoch(epoch)\r\n" in text
    assert "\r\n\tlocal_rank = int(os.environ" in text
    assert text.count("\n") == text.count("\r\n")


_WRAP = (
    "model = DistributedDataParallel(model, device_ids=[local_rank] if torch.cuda.is_available() else None)"
)


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        pytest.param(
            {"model": "model = Net(); model.cuda()"}, ["model = Net(); model.cuda()", _WRAP], id="last"
        ),
        pytest.param(
            {"model": "model = Net().cuda(); size = 3"},
            [f"model = Net().cuda(); {_WRAP}; size = 3"],
            id="first",
        ),
        pytest.param(
            {"model": "if size: model = Net().cuda()"},
            [f"if size: model = Net().cuda(); {_WRAP}"],
            id="behind a condition",
        ),
        pytest.param(
            {"loader": "size = 3; loader = DataLoader(dataset, size)"},
            [
                "# batch_size and num_workers are per process: a step takes batch_size samples on each card",
                "size = 3; loader = DataLoader(dataset, size, sampler=DistributedSampler(dataset, shuffle=False))",
            ],
            id="comment",
        ),
        pytest.param(
            {
                "model": "if size:\n    size = 2\nelif big:\n    model = Net(9).cuda()\nelse:\n    model = Net().cuda()"
            },
            ["    model = Net().cuda()", _WRAP],
            id="in branches of elif",
        ),
    ],
)
def test_several_statements_on_a_line(parts: dict[str, str], lines: list[str]) -> None:
    text = convert(script(**parts), Distributed(MAIN)).new_text or ""
    assert "\n".join(lines) in text


def test_a_comment_that_would_need_a_line_within_one() -> None:
    source = script(loader="loader = None\nif size: loader = DataLoader(dataset, size)")
    assert "several statements stand on one line" in refusal(source)


def test_a_second_run_changes_nothing() -> None:
    once = convert(script(), Distributed(MAIN)).new_text or ""
    assert convert(once, Distributed(MAIN)).new_text is None


def test_what_follows_the_main_function_still_has_a_group() -> None:
    source = f'{IMPORTS}def main():\n{WORK}    return model\nif __name__ == "__main__":\n    net = main()\n    torch.save(net, "x.pt")\n'
    assert around(source)[-1] == 'torch.save(net.module, "x.pt") / dist.destroy_process_group()'


def test_calls_between_the_imports() -> None:
    source = "import sys\nsys.path.append('..')\n" + script(end="import os")
    text = convert(source, Distributed(MAIN)).new_text or ""
    assert text.index("def setup_distributed") < text.index("local_rank = setup_distributed()")
    assert text.index("import os\n") < text.index("def setup_distributed")
