"""TF704 (opt-in): the device chosen by DEVICE_ID."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, rewritten, run, vendor

_OPTION = "specify_device"
_MAIN = "import torch\nx = 1\nif __name__ == '__main__':\n    train('cuda:0')\n"


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("import torch\nx = 1\n", id="no main guard"),
        pytest.param("x = 'cuda'\nif __name__ == '__main__':\n    main()\n", id="no torch"),
        pytest.param(
            "import torch\nimport os\nif __name__ == '__main__':\n    use(os.environ['DEVICE_ID'])\n",
            id="done by the script",
        ),
        pytest.param("import torch\nif name == 'main':\n    main()\n", id="another condition"),
    ],
)
def test_noop(source: str) -> None:
    assert rewritten(source, "ascend", _OPTION) == source


def test_off_unless_asked_for() -> None:
    assert "DEVICE_ID" not in rewritten(_MAIN)


@pytest.mark.parametrize("name", VENDORS)
def test_every_vendor(name: str) -> None:
    module, device = vendor(name).torch_module, vendor(name).device_type
    expected = (
        "import torch\nx = 1\nif __name__ == '__main__':\n    import os\n"
        f'    {module}.set_device(int(os.environ.get("DEVICE_ID", "0")))\n    train(\'{device}:0\')\n'
    )
    assert rewritten(_MAIN, name, _OPTION) == expected


def test_a_guard_on_one_line() -> None:
    text = run("import torch\nif __name__ == '__main__': main('cuda:0')\n", "ascend", _OPTION).new_text
    assert text is not None
    compile(text, "module.py", "exec")
    assert text.endswith("main('npu:0')\n")
    assert text.index("set_device") < text.index("main('npu:0')")


def test_portable_has_no_such_habit() -> None:
    assert "DEVICE_ID" not in rewritten(_MAIN, "portable", _OPTION)


def test_os_is_not_imported_twice() -> None:
    before = "import os\nimport torch\nif __name__ == '__main__':\n    x.cuda()\n"
    after = rewritten(before, "ascend", "specify_device")
    assert after.count("import os") == 1
    assert 'torch.npu.set_device(int(os.environ.get("DEVICE_ID", "0")))' in after
