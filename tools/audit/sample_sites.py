"""Draws the places that a reader judges one by one, from conversions of the corpus.

    python -m tools.audit.sample_sites .cache/corpus sites.csv

Every project is converted for three of the vendors, `portable` and `ascend --keep-cuda`, which take turns; in half of
these runs, alternating, the opt-in rules are on. From all runs together come, with a fixed seed and no place twice:

- python: findings in Python modules, each as likely as any other
- text: findings in other files, the sorts of files in turn
- opt-in: findings of rules that have an option, the rules in turn
- across modules: findings that differ when a module is converted without the rest of its project
- silent python, silent text: lines that name CUDA, outside comments and docstrings, without any finding
- amp, channels_last, similar: whole files that one option alone changes

A second draw is made from the smaller projects alone, which the first leaves in the shadow of the large ones, a third
of opt-in rules alone. `verdict`, `reason` and `after_fix` are left to the reader.
"""

from __future__ import annotations

import csv
import difflib
import io
import random
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import attrgetter
from pathlib import Path, PurePosixPath

from torchferry.conversion.file import FileJob
from torchferry.conversion.planning import find_target
from torchferry.conversion.project import Plan, ProjectOutcome, convert_file, examine_project
from torchferry.conversion.rule import RuleSet, all_rules
from torchferry.conversion.settings import AmpForm, PassSettings
from torchferry.vendors.registry import vendor_names

SEED = 20261115
# The later draws were made after mistakes that the earlier ones had shown were corrected.
DRAWS = {
    "first": (
        "",
        {
            "python": 75,
            "text": 30,
            "opt-in": 35,
            "across modules": 20,
            "silent python": 28,
            "silent text": 12,
        },
    ),
    "second": (
        "accelerate allennlp fastai mmcv mmengine pytorch-lightning speechbrain timm ultralytics",
        {"python": 14, "text": 6, "opt-in": 9, "silent python": 7, "silent text": 4},
    ),
    "third": ("espnet fairseq mmdet monai", {"opt-in": 40}),
}
WHOLE_FILES = {"amp": ("TF72", 20), "channels_last": ("TF701", 20), "similar": ("TF73", 20)}
KEEP_CUDA = "ascend+cuda"
TARGETS = (*vendor_names(), "portable", KEEP_CUDA)
RUNS = 3  # of each project
OPTIONS = (
    *("similar", "amp", "channels_last", "drop_last", "int32_labels", "float32_data"),
    *("blocking_copies", "drop_cudnn_flags"),
)
_NAMES_CUDA = re.compile(
    r"(?i)cuda|nccl|nvidia|cudnn|\bapex\b|flash[-_]attn|xformers|bitsandbytes|pynvml|distributed\.launch"
)
_IN_TEXT = re.compile(rf"{_NAMES_CUDA.pattern}|\bgpus?\b")
_TEXT_FILE = re.compile(
    r"(?i)\.(sh|ya?ml|json|toml|cfg|ini|ipynb)$|requirements[^/]*\.txt$|dockerfile|makefile$"
)
_IMPORT_OF_PLUGIN = "TF101"  # follows from other findings
_COMMENT_LINE = re.compile(r"\s*#")


@dataclass(frozen=True)
class Row:
    """One line of the sample; a place is `path:line`."""

    part: str
    project: str
    place: str
    target: str
    options: str
    rule: str
    kind: str
    before: str
    after: str
    message: str
    draw: str = "first"
    verdict: str = ""
    reason: str = ""
    after_fix: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        return self.project, self.place, self.rule


def main(corpus: Path, output: Path) -> None:
    """Converts, draws, writes."""
    folders = sorted(path for path in corpus.iterdir() if path.is_dir() and path.name != "downloads")
    rows: list[Row] = []
    for number, draw in enumerate(DRAWS):
        rows += drawn_sites(folders, draw, SEED + number)
    write_rows(output, [*rows, *drawn_files(folders)])


def drawn_sites(folders: list[Path], draw: str, seed: int) -> Iterator[Row]:
    """Findings, and places without one."""
    names, quotas = DRAWS[draw]
    chosen = [folder for folder in folders if not names or folder.name.rpartition("-")[0] in names.split()]
    pools: dict[str, list[Row]] = defaultdict(list)
    for number, folder in enumerate(chosen):
        print(draw, folder.name, file=sys.stderr)
        for run in range(RUNS * number, RUNS * (number + 1)):
            _gather(folder, _plan(TARGETS[run % len(TARGETS)], OPTIONS if run % 2 else ()), pools)
    chance = random.Random(seed)
    for part, count in quotas.items():
        yield from (replace(row, draw=draw) for row in _drawn(part, pools[part], count, chance))


def drawn_files(folders: list[Path]) -> Iterator[Row]:
    """Whole files that one option changes."""
    chance = random.Random(SEED)
    for option, (prefix, count) in WHOLE_FILES.items():
        pool: list[Row] = []
        for number, folder in enumerate(folders):
            plan = _plan(TARGETS[number % len(TARGETS)], (option,))
            pool += _whole_files(folder, replace(plan, select=(prefix,)), option)
        yield from (replace(row, draw="files") for row in _drawn(option, pool, count, chance))


def write_rows(output: Path, rows: Iterable[Row]) -> None:
    """Write a sample, or a sample that was read."""
    names = [field.name for field in fields(Row)]
    with output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([getattr(row, name) for name in names] for row in rows)


def _plan(name: str, options: tuple[str, ...]) -> Plan:
    target = find_target(name.removesuffix("+cuda"), [], keep_cuda=name == KEEP_CUDA)
    settings = PassSettings(amp=AmpForm.TORCH if "amp" in options else None)
    return Plan(target, frozenset(options), settings=settings)


def _gather(folder: Path, plan: Plan, pools: dict[str, list[Row]]) -> None:
    outcome = examine_project(folder, plan)
    opt_ins = {rule.id for rule in all_rules() if rule.option}
    spoken: set[tuple[str, int]] = set()
    for row, line in _findings(folder, outcome, plan):
        spoken.add((row.place.rpartition(":")[0], line))
        if row.rule in opt_ins:
            pools["opt-in"].append(row)
        else:
            pools["python" if _suffix(row) in (".py", ".pyi") else "text"].append(row)
    if not (plan.options or plan.target.helper):
        pools["across modules"] += _across_modules(folder, outcome, plan)
    for path in (entry.path for entry in outcome.entries if not (entry.is_folder or entry.is_link)):
        part = "silent python" if path.endswith(".py") else "silent text" if _TEXT_FILE.search(path) else ""
        if part:
            pools[part] += _silent(folder, path, spoken, plan, part)


def _row(folder: Path, plan: Plan, path: str, line: int, part: str) -> Row:
    options = " ".join(sorted(plan.options))
    name = KEEP_CUDA if plan.target.helper else plan.target.name
    return Row(part, folder.name, f"{path}:{line}", name, options, "", "", "", "", "")


def _findings(folder: Path, outcome: ProjectOutcome, plan: Plan) -> Iterator[tuple[Row, int]]:
    for file in outcome.outcomes:
        lines = _lines(folder / file.path) if file.findings else []
        for item in file.findings:
            before = lines[item.line - 1].strip() if item.line <= len(lines) else ""
            row = _row(folder, plan, item.path, item.line, "")
            yield (
                replace(
                    row,
                    rule=item.rule,
                    kind=item.kind.value,
                    before=_short(before),
                    after=_short(item.after),
                    message=_short(item.message.en),
                ),
                item.line,
            )


def _across_modules(folder: Path, outcome: ProjectOutcome, plan: Plan) -> Iterator[Row]:
    """Findings about what a name is that a module alone would not have, or would have otherwise."""
    job = FileJob(plan.target, RuleSet(plan.rules()), settings=plan.settings)
    rows = defaultdict(list)
    for row, _ in _findings(folder, outcome, plan):
        rows[row.place.rpartition(":")[0]].append(row)
    for file in outcome.outcomes:
        if file.path.endswith(".py") and file.findings:
            alone = convert_file(file.path, (folder / file.path).read_bytes(), job)
            known = {(item.line, item.rule, item.kind, item.after) for item in alone.findings}
            for item, row in zip(file.findings, rows[file.record.path], strict=True):
                if (
                    item.rule != _IMPORT_OF_PLUGIN
                    and (item.line, item.rule, item.kind, item.after) not in known
                ):
                    yield row


def _silent(folder: Path, path: str, spoken: set[tuple[str, int]], plan: Plan, part: str) -> Iterator[Row]:
    for number, line in _naming_cuda(folder / path):
        if (path, number) not in spoken:
            yield replace(_row(folder, plan, path, number, part), before=_short(line))


@cache
def _naming_cuda(path: Path) -> tuple[tuple[int, str], ...]:
    lines = _lines(path)
    is_module = path.suffix == ".py"
    pattern = _NAMES_CUDA if is_module else _IN_TEXT
    if not any(map(pattern.search, lines)):
        return ()
    code = _code(lines) if is_module else lines
    return tuple(
        (number, line)
        for number, (line, words) in enumerate(zip(lines, code, strict=True), 1)
        if pattern.search(words) and not _COMMENT_LINE.match(line)
    )


def _whole_files(folder: Path, plan: Plan, part: str) -> Iterator[Row]:
    for file in examine_project(folder, plan).outcomes:
        if file.new_data is not None:
            old, new = _lines(folder / file.path), file.new_data.decode("utf-8", "replace").splitlines()
            changed = [line for line in difflib.unified_diff(old, new, n=0, lineterm="") if line[:2] != "@@"]
            row = _row(folder, plan, file.record.path, 1, part)
            texts = ("\n".join(line[1:] for line in changed[2:] if line[0] == sign) for sign in "-+")
            before, after = texts
            yield replace(row, rule=plan.select[0], kind="change", before=before[:2000], after=after[:2000])


def _drawn(part: str, rows: list[Row], count: int, chance: random.Random) -> list[Row]:
    """So many rows, no place twice; of some parts the groups come in turn."""
    keys: dict[str, Callable[[Row], str]] = {"text": _suffix, "opt-in": attrgetter("rule")}
    key = keys.get(part, attrgetter("part"))
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    chosen: dict[tuple[str, str, str], Row] = {}
    while len(chosen) < count and any(groups.values()):
        for name in sorted(groups):
            if groups[name] and len(chosen) < count:
                row = groups[name].pop(chance.randrange(len(groups[name])))
                chosen.setdefault(row.identity, replace(row, part=part))
    return list(chosen.values())


def _suffix(row: Row) -> str:
    path = PurePosixPath(row.place.rpartition(":")[0])
    return path.suffix or path.name


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8", "replace").split("\n")


def _code(lines: list[str]) -> list[str]:
    """The lines of a module without comments and without strings that stand alone."""
    kept = [""] * len(lines)
    starts_line = True
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                starts_line = True
            elif token.type != tokenize.COMMENT:
                if not (token.type == tokenize.STRING and starts_line):
                    for shift, text in enumerate(token.string.splitlines()):
                        kept[token.start[0] - 1 + shift] += f" {text}"
                starts_line = False
    except (tokenize.TokenError, SyntaxError):
        pass  # what comes before the mistake is as good as any other line
    return kept


def _short(text: str) -> str:
    return " ".join(text.split())[:200]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
