"""What a name is, across the modules of a project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.rewriting import target
from torchferry.conversion import project
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.finding import Kind

Files = dict[str, str]


def examined(folder: Path, files: Files, name: str = "", jobs: int = 1, to: str = "ascend") -> ProjectOutcome:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return examine_project(folder / name, Plan(target(to), jobs=jobs))


def texts(outcome: ProjectOutcome) -> Files:
    """The changed files, without the line that loads the plugin."""
    return {
        item.path: item.new_data.decode().replace("import torch_npu\n", "")
        for item in outcome.outcomes
        if item.new_data is not None
    }


def todos(outcome: ProjectOutcome) -> list[tuple[str, int, str]]:
    return [
        (item.path, item.line, item.before)
        for item in outcome.report("scan").findings
        if item.kind is Kind.TODO
    ]


TOLD: dict[str, Files] = {
    "a function of another module": {
        "utils.py": "def put(x, w):\n    return x.to(w)\n",
        "main.py": "from utils import put\nput(x, 'cuda')\n",
    },
    "a function by its module": {
        "lib/utils.py": "def put(x, w):\n    return x.to(w)\n",
        "lib/__init__.py": "",
        "main.py": "from lib import utils\nutils.put(x, w='cuda')\n",
    },
    "a function through a package": {
        "lib/deep.py": "def put(x, w):\n    return x.to(w)\n",
        "lib/__init__.py": "from .deep import put\n",
        "main.py": "import lib\nlib.put(x, 'cuda')\n",
    },
    "a function two modules on": {
        "a.py": "from b import go\ndef run(w):\n    go(w)\n",
        "b.py": "def go(p):\n    x.to(p)\n",
        "main.py": "from a import run\nrun('cuda')\n",
    },
    "a class of another module": {
        "net.py": "class Net:\n    def __init__(self, w):\n        self.w = w\n    def f(self, x):\n        x.to(self.w)\n",
        "main.py": "from net import Net\nnet = Net('cuda')\n",
    },
    "a constant that others use": {
        "config.py": "WHERE = 'cuda'\n",
        "main.py": "from config import WHERE\nx.to(WHERE)\n",
    },
    "a constant under another name": {
        "config.py": "WHERE = 'cuda'\n",
        "main.py": "from config import WHERE as w\nx.to(w)\n",
    },
    "a constant that others ask its module for": {
        "pkg/config.py": "WHERE = 'cuda'\n",
        "pkg/__init__.py": "",
        "pkg/train.py": "from . import config\nx.to(config.WHERE)\n",
    },
    "a constant by a relative import": {
        "pkg/config.py": "WHERE = 'cuda'\n",
        "pkg/__init__.py": "",
        "pkg/sub/__init__.py": "",
        "pkg/sub/train.py": "from ..config import WHERE\nx.to(WHERE)\n",
    },
    "a constant by a star": {
        "config.py": "WHERE = 'cuda'\n",
        "main.py": "from config import *\nx.to(WHERE)\n",
    },
    "a constant through a package": {
        "pkg/config.py": "WHERE = 'cuda'\n",
        "pkg/__init__.py": "from .config import WHERE\n",
        "main.py": "from pkg import WHERE\nx.to(WHERE)\n",
    },
    "a setting of a dictionary": {
        "config.py": "CONFIG = {'where': 'cuda'}\n",
        "main.py": "from config import CONFIG\nx.to(CONFIG['where'])\n",
    },
    "a setting of a class": {
        "config.py": "class Config:\n    where = 'cuda'\n",
        "main.py": "from config import Config\nx.to(Config.where)\n",
    },
    "a field that is passed on": {
        "config.py": "class Config:\n    where: str = 'cuda'\n",
        "main.py": "from config import Config\ndef run(cfg: Config, x):\n    x.to(cfg.where)\n",
    },
    "an option that another module uses": {
        "main.py": "import train\np.add_argument('--where', default='cuda')\ntrain.run(p.parse_args())\n",
        "train.py": "def run(args):\n    x.to(args.where)\n",
    },
    "a helper that others call": {
        "utils.py": "def pick():\n    return 'cuda'\n",
        "main.py": "from utils import pick\nx.to(pick())\n",
    },
    "a helper that others ask its module for": {
        "utils.py": "def pick():\n    return 'cuda'\n",
        "main.py": "import utils\nx.to(utils.pick())\n",
    },
    "a comparison with a helper's result": {
        "utils.py": "import torch\ndef pick(x):\n    return x.device.type\n",
        "main.py": "from utils import pick\nif pick(x) == 'cuda': pass\n",
    },
    "a comparison with a setting": {
        "config.py": "WHERE = 'cpu'\n",
        "main.py": "from config import WHERE\nif WHERE == 'cuda': pass\n",
    },
    "an attribute that a base class uses": {
        "base.py": "class Base:\n    def f(self, x):\n        x.to(self.where)\n",
        "main.py": "from base import Base\nclass A(Base):\n    def __init__(self):\n        self.where = 'cuda'\n",
    },
    "an attribute that a derived class uses": {
        "base.py": "class Base:\n    def __init__(self):\n        self.where = 'cuda'\n",
        "main.py": "from base import Base\nclass A(Base):\n    def f(self, x):\n        x.to(self.where)\n",
    },
    "modules that import each other": {
        "a.py": "import b\nWHERE = 'cuda'\n",
        "b.py": "import a\ndef f(x):\n    x.to(a.WHERE)\n",
    },
    "a table of another module": {
        "tables.py": "TABLE = {'cuda': f, 'cpu': g}\n",
        "main.py": "from tables import TABLE\nTABLE[device]()\n",
    },
    "a table of another module, by its module": {
        "tables.py": "TABLE = {'cuda': f, 'cpu': g}\n",
        "main.py": "import tables\nkind = x.device.type\ntables.TABLE[kind]()\n",
    },
    "a conditional import": {
        "utils.py": "def put(x, w):\n    return x.to(w)\n",
        "main.py": "try:\n    from utils import put\nexcept ImportError:\n    put = None\nput(x, 'cuda')\n",
    },
    "an import in a function": {
        "config.py": "WHERE = 'cuda'\n",
        "main.py": "def f(x):\n    from config import WHERE\n    x.to(WHERE)\n",
    },
    "a package in src": {
        "src/pkg/__init__.py": "",
        "src/pkg/utils.py": "def put(x, w):\n    return x.to(w)\n",
        "tools/main.py": "from pkg.utils import put\nput(x, 'cuda')\n",
    },
}


@pytest.mark.parametrize("files", TOLD.values(), ids=TOLD.keys())
def test_another_module_tells(tmp_path: Path, files: Files) -> None:
    outcome = examined(tmp_path, files)
    assert todos(outcome) == []
    assert texts(outcome) == {
        path: text.replace("'cuda'", "'npu'") for path, text in files.items() if "'cuda'" in text
    }


NOT_TOLD: dict[str, Files] = {
    "a function that prints": {
        "utils.py": "def show(x, w):\n    print(w)\n",
        "main.py": "from utils import show\nshow(x, 'cuda')\n",
    },
    "a function of another package": {
        "utils.py": "def put(x, w):\n    return x.to(w)\n",
        "main.py": "from elsewhere import put\nput(x, 'cuda')\n",
    },
    "a constant of the same name elsewhere": {
        "config.py": "WHERE = 'cuda'\n",
        "other.py": "WHERE = 1\n",
        "main.py": "from other import WHERE\nx.to(WHERE)\n",
    },
    "a constant that nobody imports": {
        "config.py": "WHERE = 'cuda'\n",
        "main.py": "def f(WHERE):\n    x.to(WHERE)\n",
    },
    "an attribute in a module that has nothing to do with it": {
        "a.py": "class A:\n    where = 'cuda'\n",
        "b.py": "def f(b, x):\n    x.to(b.where)\n",
    },
    "a module that can't be parsed": {
        "utils.py": "def put(x, w:\n    return x.to(w)\n",
        "main.py": "from utils import put\nput(x, 'cuda')\n",
    },
}


@pytest.mark.parametrize("files", NOT_TOLD.values(), ids=NOT_TOLD.keys())
def test_other_modules_do_not_tell(tmp_path: Path, files: Files) -> None:
    outcome = examined(tmp_path, files)
    assert texts(outcome) == {}
    assert [item[2] for item in todos(outcome)] == ["'cuda'"]


MIXED = {
    **TOLD["a function two modules on"],
    **TOLD["a setting of a dictionary"],
    "utils.py": "def f():\n    return 'cuda'\n",
}


def test_several_processes_decide_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = examined(tmp_path, MIXED)
    monkeypatch.setattr(project, "_BYTES_WORTH_PROCESSES", 0)
    together = examined(tmp_path, MIXED, jobs=2)
    assert texts(together) == texts(alone) != {}
    assert together.report("scan").findings == alone.report("scan").findings


def test_a_single_file_is_judged_as_in_its_folder(tmp_path: Path) -> None:
    whole = examined(tmp_path, TOLD["a constant that others use"])
    single = examined(tmp_path, {}, "config.py")
    assert texts(single) == texts(whole) == {"config.py": "WHERE = 'npu'\n"}


def test_a_single_file_does_not_look_into_folders_below(tmp_path: Path) -> None:
    """Beside a single file may lie anything, a whole home folder."""
    files = {"config.py": "WHERE = 'cuda'\n", "below/main.py": "from config import WHERE\nx.to(WHERE)\n"}
    assert texts(examined(tmp_path, files, "config.py")) == {}
    assert texts(examined(tmp_path, files)) == {"config.py": "WHERE = 'npu'\n"}


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    """The same modules under names that sort the other way round."""
    for one, other in (("a", "z"), ("z", "a")):
        files = {
            f"{one}.py": f"from {other} import go\nW = 'cuda'\ngo(W)\n",
            f"{other}.py": f"import {one}\ndef go(p):\n    if p == 'cuda':\n        pass\n    x.to({one}.W)\n",
        }
        outcome = examined(tmp_path / one, files)
        assert todos(outcome) == []
        assert texts(outcome) == {path: text.replace("cuda", "npu") for path, text in files.items()}


def test_a_second_conversion_changes_nothing(tmp_path: Path) -> None:
    first = texts(examined(tmp_path / "one", MIXED))
    assert texts(examined(tmp_path / "two", {**MIXED, **first})) == {}
