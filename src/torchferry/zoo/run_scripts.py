"""The scripts that start a delivery's training under the zoo's own option names, and the table that explains them."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from torchferry.conversion.discover import ProjectEntry, read_file
from torchferry.text import Text
from torchferry.zoo.delivery import PLACEHOLDER, READMES, imported_modules, parsed

# The zoo's name -> how programs call the same; the first that a program has is it.
_SPELLINGS = {
    "model_name": ("model_name", "model", "arch", "backbone", "network", "net"),
    "epoch": ("epochs", "epoch", "num_epochs", "max_epochs", "total_epochs", "num_train_epochs", "n_epochs"),
    "step": ("steps", "step", "max_steps", "num_steps", "total_steps", "max_iters", "max_iter", "iters"),
    "batch_size": ("batch_size", "bs", "train_batch_size", "per_device_train_batch_size", "batch"),
    "device": ("device",),
}
_TORCHRUN_SETS = {"LOCAL_RANK", "RANK", "WORLD_SIZE"}
_LAUNCHER = '''\
"""Starts the training of {model}: on one device, on several, or on several machines."""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = {script!r}
# The name of an option here -> what the program itself calls it.
OPTIONS = {options!r}
NEEDS_TORCHRUN = {needs_torchrun}


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="All other options go to the program.", allow_abbrev=False
    )
    parser.add_argument("--nproc_per_node", type=int, default=1, help="processes on each machine, one for each device")
    parser.add_argument("--nnode", type=int, default=1, help="machines")
    parser.add_argument("--node_rank", type=int, default=0, help="which of them this one is")
    parser.add_argument("--master_addr", default="127.0.0.1", help="address of the first machine")
    parser.add_argument("--master_port", default="29500", help="its port")
    parser.add_argument("--model_name", help="the model")
    parser.add_argument("--epoch", help="how often the data set is gone through")
    parser.add_argument("--step", help="how many steps are taken")
    parser.add_argument("--batch_size", "--bs", help="samples for each process in a step")
    parser.add_argument("--device", help="the type of the device")
    args, others = parser.parse_known_args()
    for name in ("epoch", "step", "batch_size"):
        if getattr(args, name) is not None and name not in OPTIONS:
            parser.error(f"{{SCRIPT}} has no option for --{{name}}")
    return args, others


def main():
    args, others = parse()
    command = [sys.executable]
    if NEEDS_TORCHRUN or args.nproc_per_node > 1 or args.nnode > 1:
        command += ["-m", "torch.distributed.run", "--nnodes", str(args.nnode), "--node_rank", str(args.node_rank)]
        command += ["--nproc_per_node", str(args.nproc_per_node)]
        command += ["--master_addr", args.master_addr, "--master_port", args.master_port]
    command.append(str(ROOT / SCRIPT))
    for name, option in OPTIONS.items():
        if getattr(args, name) is not None:
            command += [option, getattr(args, name)]
    return subprocess.call(command + others, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
'''
_TEST = """\
#!/usr/bin/env bash
# A short training: it starts, takes some steps and ends. NPROC=4 starts four processes.
# What it prints goes into {log} as well.
set -euo pipefail
cd "$(dirname "$0")"
"${{PYTHON:-python}}" {launcher} --nproc_per_node "${{NPROC:-1}}" {arguments} "$@" 2>&1 | tee {log}
"""
_START = """\
#!/usr/bin/env bash
# Starts the training on {devices} devices; NPROC=1 on one. Options that are given here go to the program.
set -euo pipefail
cd "$(dirname "$0")/{up}"
"${{PYTHON:-python}}" {launcher} --nproc_per_node "${{NPROC:-{devices}}}" {arguments} "$@"
"""
DEVICES = 4  # processes of one card, as models of the zoo are started
_HEAD = Text(
    "# Options\n\n| Option | Meaning | Passed on as |\n|---|---|---|\n",
    "# 参数介绍\n\n| 参数名 | 说明 | 传递给程序 |\n|---|---|---|\n",
)
_OPTIONS = {
    "model_name": Text("name of the model", "模型名称"),
    "epoch": Text("number of epochs", "训练轮次"),
    "step": Text("number of steps", "训练步数"),
    "batch_size": Text("samples per process and step; also `--bs`", "每个进程的批大小，也可写作 `--bs`"),
    "device": Text("type of the device", "设备类型"),
    "nproc_per_node": Text(
        "processes on each machine, one for each device (1)", "每台机器的进程数，每设备一个（默认 1）"
    ),
    "nnode": Text("machines (1)", "机器数量（默认 1）"),
    "node_rank": Text("number of this machine (0)", "本机序号（默认 0）"),
    "master_addr": Text("address of the first machine", "主节点地址"),
    "master_port": Text("its port", "主节点端口"),
}
_OTHERS = Text(
    "\nAll other options are passed to `{script}` unchanged.\n", "\n其余参数原样传递给 `{script}`。\n"
)


@dataclass(frozen=True)
class Start:
    """How a program is started."""

    script: str  # relative, with forward slashes; "": not known
    options: dict[str, str]  # the zoo's names -> the program's own
    needs_torchrun: bool = False


def start_of(folder: str, script: str) -> Start:
    """What a script says of itself."""
    options: dict[str, str] = {}
    needs = False
    for tree in _trees(folder, script) if script else ():
        for name, option in _named(tree).items():
            options.setdefault(name, option)
        # os.environ["LOCAL_RANK"] fails in a process that torchrun did not start
        needs = needs or any(
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and isinstance(node.slice, ast.Constant)
            and node.slice.value in _TORCHRUN_SETS
            for node in ast.walk(tree)
        )
    return Start(script, options, needs)


def _trees(folder: str, script: str) -> Iterator[ast.Module]:
    """The script, and the modules beside it that it imports: arguments are often read there."""
    main = parsed(os.path.join(folder, script))
    if main is None:
        return
    yield main
    for _, name in imported_modules(main):
        tree = parsed(os.path.join(folder, os.path.dirname(script), *name.split(".")) + ".py")
        if tree is not None:
            yield tree


def _named(tree: ast.Module) -> dict[str, str]:
    """The options of a program that mean what the zoo's do."""
    own: dict[str, str] = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_argument"
        ):
            for word in node.args:
                if isinstance(word, ast.Constant) and str(word.value).startswith("--"):
                    own.setdefault(str(word.value)[2:].replace("-", "_"), str(word.value))
    found = {}
    for name, spellings in _SPELLINGS.items():
        known = next((spelling for spelling in spellings if spelling in own), None)
        if known:
            found[name] = own[known]
    return found


def launcher(model: str, start: Start) -> str:
    """The text of run_<model>.py, which knows the zoo's options by the names of the program's own."""
    script = start.script or f"{PLACEHOLDER}: the script that trains>"
    return _LAUNCHER.format(
        model=model, script=script, options=start.options, needs_torchrun=start.needs_torchrun
    )


def start_script(launcher: str, arguments: str, path: str) -> str:
    """The text of the script at `path` that starts the training through the launcher."""
    up = "/".join([".."] * path.count("/")) or "."
    return _START.format(devices=DEVICES, up=up, launcher=shlex.quote(launcher), arguments=arguments)


def short_test(launcher_name: str, arguments: str, log: str) -> str:
    """The text of test.sh, the short training."""
    script = shlex.quote(launcher_name)
    words = arguments or f"'{PLACEHOLDER}: arguments that make the training short>'"
    return _TEST.format(launcher=script, arguments=words, log=shlex.quote(log))


def explained(start: Start) -> str:
    """The README of the folder, in both languages."""
    others = _OTHERS.format(script=start.script or f"{PLACEHOLDER}>")
    pages = []
    for language in READMES:
        rows = [_HEAD.in_language(language)]
        for name, meaning in _OPTIONS.items():
            passed = f"`{start.options[name]}`" if name in start.options else ""
            if passed or name not in _SPELLINGS:
                rows.append(f"| `--{name}` | {meaning.in_language(language)} | {passed} |\n")
        pages.append("".join([*rows, others.in_language(language)]))
    return "\n".join(pages)


# Which script of a project trains: those that may, the likeliest first, and why.

_LEAD = 3  # points by which the first must be ahead to be chosen without asking
_LEAST = 5  # and how many it must have
_ELSEWHERE = {"test", "tests", "doc", "docs", "benchmark", "benchmarks", ".github", "build", "dist"}
_NO_TRAINING = re.compile(
    r"(?i)setup|conf|conftest|__init__|test_.*|.*_test|eval.*|infer.*|demo|export.*|val"
)
_TRAINS = re.compile(r"(?i)(?:pre)?train(?:ing)?")
_MAY_TRAIN = re.compile(r"(?i)(?:.*_)?(?:pre|fine)?-?_?(?:train|tune|tuning|fit|learn)(?:ing|er)?(?:_.*)?")
_STARTS = re.compile(r"(?i)main|run(?:_.*)?")
_FITS = {"fit", "train_model", "from_cfg"}
_WORDS = re.compile(rb"\.(?:backward|fit|train_model|from_cfg)\b")  # reading a tree takes far longer


@dataclass(frozen=True)
class Candidate:
    """A script, and what speaks for it."""

    path: str  # relative, with forward slashes
    points: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path} ({', '.join(self.reasons)})"


class _Reason(NamedTuple):
    kind: str  # name, start, runs, trains, arguments
    points: int
    text: str


def candidates(folder: str, entries: Iterable[ProjectEntry]) -> tuple[Candidate, ...]:
    """The likeliest first; what has nothing of a script that trains is not listed."""
    found = [candidate for entry in entries if (candidate := _judged(folder, entry)) is not None]
    return tuple(sorted(found, key=lambda candidate: (-candidate.points, candidate.path)))


def clear_one(found: tuple[Candidate, ...]) -> Candidate | None:
    """The first, if nothing else is nearly as likely."""
    if not found or found[0].points < _LEAST:
        return None
    ahead = len(found) == 1 or found[0].points - found[1].points >= _LEAD
    return found[0] if ahead else None


def _judged(folder: str, entry: ProjectEntry) -> Candidate | None:
    path = entry.path.replace(os.sep, "/")
    *folders, name = path.split("/")
    stem = name.removesuffix(".py")
    if entry.is_folder or entry.is_link or entry.problem or stem == name or _ELSEWHERE & set(folders):
        return None
    if _NO_TRAINING.fullmatch(stem):
        return None
    try:
        data = read_file(os.path.join(folder, entry.path))
        if not (_WORDS.search(data) or _MAY_TRAIN.fullmatch(stem)):
            return None
        tree = ast.parse(data)
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return None
    by_name = ((_TRAINS, "name", 5), (_MAY_TRAIN, "name", 3), (_STARTS, "start", 2))
    called = [
        _Reason(kind, points, f"is called {stem}") for form, kind, points in by_name if form.fullmatch(stem)
    ]
    reasons = [*called[:1], *_by_content(tree)]
    kinds = {reason.kind for reason in reasons}
    # what is only called so is some other file; what only goes backward is a part of a program
    if "runs" not in kinds or not kinds & {"name", "trains"}:
        return None
    points = sum(reason.points for reason in reasons) - len(folders)
    return Candidate(path, points, tuple(reason.text for reason in reasons))


def _by_content(tree: ast.Module) -> Iterator[_Reason]:
    tests = (node.test for node in tree.body if isinstance(node, ast.If))
    if any(isinstance(node, ast.Name) and node.id == "__name__" for test in tests for node in ast.walk(test)):
        yield _Reason("runs", 2, "runs as a script")
    elif any(
        isinstance(node, (ast.For, ast.While, ast.With))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        for node in tree.body
    ):
        yield _Reason("runs", 1, "does something when it runs")
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if "backward" in attributes:
        yield _Reason("trains", 3, "goes backward")
    elif attributes & _FITS:
        yield _Reason("trains", 2, f"calls {min(attributes & _FITS)}")
    if "add_argument" in attributes:
        yield _Reason("arguments", 1, "takes arguments")
