"""TF101: the import of the vendor's plugin."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, run, target, vendor


def converted(source: str, to: str = "ascend") -> str:
    text = run(source, to).new_text
    return source if text is None else text


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import torch\nx = 1\n", id="nothing converted"),
        pytest.param("import torch\nprint('cuda')\n", id="only a message"),
        pytest.param("import torch\nimport torch_npu\nx = x.npu()\n", id="converted before"),
        pytest.param("import torch\nv = torch.version.cuda\n", id="only a remark"),
        pytest.param("import torch\ntorch.cuda.comm.broadcast(x)\n", id="only something unsupported"),
    ],
)
def test_noop(source: str) -> None:
    assert converted(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "import torch\nx.cuda()\n", "import torch\nimport torch_npu\nx.npu()\n", id="after import torch"
        ),
        pytest.param(
            "'''doc'''\nfrom __future__ import annotations\nimport os\nimport torch\nx.cuda()\n",
            "'''doc'''\nfrom __future__ import annotations\nimport os\nimport torch\nimport torch_npu\nx.npu()\n",
            id="docstring and future import",
        ),
        pytest.param(
            "'''doc'''\nfrom __future__ import annotations\nx.cuda()\n",
            "'''doc'''\nfrom __future__ import annotations\nimport torch_npu\nx.npu()\n",
            id="no import of torch: after the future import",
        ),
        pytest.param(
            "'''doc'''\nx.cuda()\n", "'''doc'''\nimport torch_npu\nx.npu()\n", id="after the docstring"
        ),
        pytest.param(
            "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# (c)\nx.cuda()\n",
            "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# (c)\nimport torch_npu\nx.npu()\n",
            id="after the shebang and the cookie",
        ),
        pytest.param(
            "import os, torch\nx.cuda()\n",
            "import os, torch\nimport torch_npu\nx.npu()\n",
            id="import os, torch",
        ),
        pytest.param(
            "import os, \\\n    torch\nx.cuda()\n",
            "import os, \\\n    torch\nimport torch_npu\nx.npu()\n",
            id="a continued line",
        ),
        pytest.param(
            "import torch  # noqa\nx.cuda()\n",
            "import torch  # noqa\nimport torch_npu\nx.npu()\n",
            id="a comment behind",
        ),
        pytest.param(
            "import torch as th\nx.cuda()\n",
            "import torch as th\nimport torch_npu\nx.npu()\n",
            id="torch by another name",
        ),
        pytest.param(
            "import torch.nn as nn\nx.cuda()\n",
            "import torch.nn as nn\nimport torch_npu\nx.npu()\n",
            id="a submodule",
        ),
        pytest.param(
            "from torch import nn\nx.cuda()\n",
            "from torch import nn\nimport torch_npu\nx.npu()\n",
            id="from torch",
        ),
        pytest.param(
            "from torch import (\n    nn,\n)\nx.cuda()\n",
            "from torch import (\n    nn,\n)\nimport torch_npu\nx.npu()\n",
            id="after the closing bracket",
        ),
        pytest.param(
            "from torch.cuda.amp import autocast\nimport torch\n",
            "import torch_npu\nfrom torch.npu.amp import autocast\nimport torch\n",
            id="before what needs it",
        ),
        pytest.param(
            "import torch\nfrom torch.cuda.amp import autocast\n",
            "import torch\nimport torch_npu\nfrom torch.npu.amp import autocast\n",
            id="between torch and what needs it",
        ),
        pytest.param(
            "try:\n    import torch\nexcept ImportError:\n    torch = None\nx.cuda()\n",
            "try:\n    import torch\n    import torch_npu\nexcept ImportError:\n    torch = None\nx.npu()\n",
            id="in a try",
        ),
        pytest.param(
            "try: import torch\nexcept ImportError: torch = None\nx.cuda()\n",
            "try: import torch; import torch_npu\nexcept ImportError: torch = None\nx.npu()\n",
            id="a try on one line",
        ),
        pytest.param(
            "def f(x):\n    import torch\n    return x.cuda()\n",
            "def f(x):\n    import torch\n    import torch_npu\n    return x.npu()\n",
            id="in a function",
        ),
        pytest.param(
            "def f(x):\n    import torch\n    return x.cuda()\ndef g():\n    import torch\n    return torch\n",
            "def f(x):\n    import torch\n    import torch_npu\n    return x.npu()\ndef g():\n    import torch\n    return torch\n",
            id="only in the function that needs it",
        ),
        pytest.param(
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nimport torch.nn\nx.cuda()\n",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nimport torch.nn\nimport torch_npu\nx.npu()\n",
            id="not where only type checkers look",
        ),
        pytest.param(
            "if 1:\n\timport torch\n\tx.cuda()\n",
            "if 1:\n\timport torch\n\timport torch_npu\n\tx.npu()\n",
            id="tabs",
        ),
        pytest.param(
            "import torch\nx.cuda()", "import torch\nimport torch_npu\nx.npu()", id="no final newline"
        ),
        pytest.param(
            "import torch\r\nx.cuda()\r\n", "import torch\r\nimport torch_npu\r\nx.npu()\r\n", id="CRLF"
        ),
        pytest.param("import torch\rx.cuda()\r", "import torch\rimport torch_npu\rx.npu()\r", id="lone CR"),
        pytest.param(
            "import torch; x.cuda()\n",
            "import torch; import torch_npu; x.npu()\n",
            id="code behind it on the line",
        ),
        pytest.param(
            "if 1: import torch; x.cuda()\n",
            "if 1: import torch; import torch_npu; x.npu()\n",
            id="a block on one line",
        ),
        pytest.param(
            "import torch\ntry:\n    import torch_npu\nexcept ImportError:\n    pass\nx.cuda()\n",
            "import torch\ntry:\n    import torch_npu\nexcept ImportError:\n    pass\nx.npu()\n",
            id="there already, in a try",
        ),
        pytest.param(
            "import torch\nfrom torch_npu.contrib import transfer_to_npu\nx.cuda()\n",
            "import torch\nfrom torch_npu.contrib import transfer_to_npu\nx.npu()\n",
            id="there already, as a from-import",
        ),
        pytest.param(
            "cfg = dict(device='cuda')\n", "cfg = dict(device='npu')\n", id="a file of settings needs none"
        ),
    ],
)
def test_placement(before: str, after: str) -> None:
    assert converted(before) == after
    compile(after, "module.py", "exec")


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    plugin = vendor(name).plugin
    line = f"import {plugin}\n" if plugin else ""
    assert (
        converted("import torch\nx.cuda()\n", name)
        == f"import torch\n{line}x.{vendor(name).tensor_method}()\n"
    )


_LINE = target("portable").prelude


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\nx.cuda()\n", f"import torch\n{_LINE}\nx.to(DEVICE_TYPE)\n"),
        ("import torch\nimport os\nx.cuda()\n", f"import torch\nimport os\n{_LINE}\nx.to(DEVICE_TYPE)\n"),
        (
            "import torch\ntorch.cuda.synchronize()\n",
            f'import torch\n{_LINE}\nDEVICE_TYPE != "cpu" and torch.accelerator.synchronize()\n',
        ),
        (
            "import torch\nn = torch.cuda.device_count()\n",
            "import torch\nn = torch.accelerator.device_count()\n",
        ),
        ("import torch\nok = x.is_cuda\n", 'import torch\nok = (x.device.type != "cpu")\n'),
    ],
)
def test_portable(before: str, after: str) -> None:
    assert converted(before, "portable") == after


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("def f(device='cuda'):\n    return x.to(device)\n", id="a module without torch"),
        pytest.param("cfg = dict(device='cuda')\n", id="a file of settings"),
        pytest.param(
            "def f(x):\n    import torch\n    return x.cuda()\ndef g(x):\n    return x.cuda()\n",
            id="torch in one function",
        ),
        pytest.param("import torch; x = torch.ones(1).cuda()\n", id="one line"),
        pytest.param(
            "from torch import nn\ndef f(d='cuda', x=None):\n    return x.to(d)\n", id="only a submodule"
        ),
        pytest.param(
            "def f(x):\n    import torch\n    d = 'cuda'\n    return torch.ones(1).to(d)\n", id="inside"
        ),
    ],
)
def test_portable_defines_its_name_before_it_is_used(source: str) -> None:
    text = converted(source, "portable")
    assert "DEVICE_TYPE" in text
    values: dict[str, object] = {}
    exec(compile(text, "module.py", "exec"), values)
    import torch

    for name in ("f", "g"):
        function = values.get(name)
        if callable(function):
            values["x"] = torch.ones(1)
            function(**({"x": torch.ones(1)} if "x" in function.__code__.co_varnames[:2] else {}))


@pytest.mark.parametrize(
    "to", [name for name in (*VENDORS, "portable", "ascend+cuda") if target(name).prelude]
)
@pytest.mark.parametrize("head", ["", "# first\n\n", "'doc'\n"])
def test_before_the_decorators_of_the_first_statement(head: str, to: str) -> None:
    text = converted(f"{head}@first\n@second\ndef f(x):\n    return x.cuda()\n", to)
    lines = text.splitlines()
    assert "cuda" not in text
    assert lines.index("@first") > min(
        i for i, line in enumerate(lines) if "torch" in line or "ferry" in line
    )
    assert text.startswith(head)


_SCRIPT = "import argparse\nfrom trainer import train\nif __name__ == '__main__':\n    {body}\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            _SCRIPT.format(body="parser.add_argument('--device', default='cuda')"), id="only a string"
        ),
        pytest.param(
            "import torch\ndef main(args):\n    d = torch.device(args.device)\nif __name__ == '__main__':\n    main()\n",
            id="a device that the command line names",
        ),
        pytest.param(
            "import torch\nmodel.to(cfg.device)\nif __name__ == '__main__':\n    main()\n",
            id="a device that a configuration names",
        ),
    ],
)
def test_scripts_that_are_told_their_device_load_the_plugin(source: str) -> None:
    text = converted(source)
    assert text.count("import torch_npu\n") == 1
    assert converted(text) == text
    assert "torch_npu" not in converted(source, "portable")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import torch\ndef f(args):\n    return torch.device(args.device)\n", id="no script"),
        pytest.param(
            "import torch\nd = torch.device('cpu')\nx.to(d)\nif __name__ == '__main__':\n    main()\n",
            id="the CPU",
        ),
        pytest.param(
            "import torch\nx.to(torch.float32)\nif __name__ == '__main__':\n    main()\n",
            id="a dtype, no device",
        ),
        pytest.param("DEVICE = 'cpu'\nif __name__ == '__main__':\n    main()\n", id="nothing of torch"),
    ],
)
def test_other_modules_do_not(source: str) -> None:
    assert converted(source) == source


@pytest.mark.parametrize("to", ["portable", "ascend+cuda"])
def test_a_name_is_defined_before_its_first_use(to: str) -> None:
    text = converted("x = y.cuda()\nfrom torch import nn\n", to)
    assert text.index("import") < text.index("x = y.to(")
