"""What runs have shown: curves and figures, read from logs, CSV, JSON, proofs and records, and compared."""

from __future__ import annotations

import ast
import codecs
import csv
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchferry.errors import InputError, not_readable
from torchferry.text import Text

FORMAT, VERSION = "torchferry-evidence", 1
Step = tuple[int, int]  # epoch and step, as the run has numbered them


@dataclass(frozen=True)
class StepCurve:
    """A value for each step."""

    values: tuple[float, ...]
    steps: tuple[Step, ...] = ()  # of each value; (): the run has not numbered them


@dataclass(frozen=True)
class RunEvidence:
    """The accuracy and the speed of one run."""

    curves: Mapping[str, StepCurve] = field(default_factory=dict)  # loss
    metrics: Mapping[str, float] = field(default_factory=dict)  # acc1, images/s
    source: str = ""  # what it was read from
    simulated: bool | None = None  # None: the file does not say

    @property
    def is_empty(self) -> bool:
        return not self.curves and not self.metrics

    def to_json(self) -> str:
        """The form in which a delivery keeps what was no text."""

        def plain(value: float) -> float | str:
            return value if math.isfinite(value) else str(value)

        content = {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "simulated": self.simulated,
            "curves": {name: list(map(plain, curve.values)) for name, curve in self.curves.items()},
            "steps": {name: curve.steps for name, curve in self.curves.items() if curve.steps},
            "metrics": {name: plain(value) for name, value in self.metrics.items()},
        }
        return json.dumps(content, indent=1, allow_nan=False) + "\n"


def numbered(values: list[float], steps: list[Step | None]) -> StepCurve:
    """A curve with its steps, where each value has one and no two have the same."""
    known = [step for step in steps if step is not None]
    whole = len(known) == len(values) and len(set(known)) == len(known)
    return StepCurve(tuple(values), tuple(known) if whole else ())


_SHARES = re.compile(r"acc|top|map|iou|f1|auc|dice|recall|precision")  # as 0.76 or as 76 %
_HIGHER_IS_BETTER = re.compile(rf"{_SHARES.pattern}|bleu|psnr|ssim")
_LOWER_IS_BETTER = re.compile(r"loss|err|wer|cer|ppl|perplexity|rmse|mae|mse|fid")
_SPEED_NAME = re.compile(r"/s$|throughput|fps")
_METRIC_TOLERANCE = 0.01  # relative; the guides ask for the original's level, and runs differ by their seeds


@dataclass(frozen=True)
class FigureRow:
    """One figure of both runs."""

    name: str
    original: float | None  # of a curve, at its end
    port: float | None
    difference: float  # relative, of curves the mean over all steps; positive: the port's is greater
    holds: bool | None  # None: nothing to judge, as for speed
    steps: int = 0  # of a curve: how many both runs have
    lengths: tuple[int, int] = (0, 0)  # of a curve: how many each has
    offset: float = math.nan  # of a curve: the mean of the differences themselves
    broken_at: Step | int | None = None  # of a curve: the first value that is no number

    @property
    def is_speed(self) -> bool:
        return _SPEED_NAME.search(self.name) is not None

    @property
    def is_curve(self) -> bool:
        return any(self.lengths)


def compare(
    original: RunEvidence, port: RunEvidence, relative: float, absolute: float
) -> Iterator[FigureRow]:
    """Curves first, then figures; what only one of them has is listed too."""
    none = StepCurve(())
    for name in dict.fromkeys((*original.curves, *port.curves)):
        theirs, ours = original.curves.get(name, none), port.curves.get(name, none)
        ends, lengths = (_end(theirs), _end(ours)), (len(theirs.values), len(ours.values))
        pairs = _pairs(theirs, ours)
        if not pairs:
            yield FigureRow(name, *ends, math.nan, None, lengths=lengths)
            continue
        share = sum(_share(golden, mine) for golden, mine in pairs) / len(pairs)
        offset = sum(mine - golden for golden, mine in pairs) / len(pairs)
        # a smaller loss is no fault; not a number is
        holds = share <= relative or offset <= absolute
        numbers: Sequence[Step | int] = ours.steps or range(len(ours.values))
        broken = (at for at, value in zip(numbers, ours.values, strict=True) if not math.isfinite(value))
        yield FigureRow(name, *ends, share, holds, len(pairs), lengths, offset, next(broken, None))
    for name in dict.fromkeys((*original.metrics, *port.metrics)):
        golden, mine = original.metrics.get(name), port.metrics.get(name)
        if golden is None or mine is None:
            yield FigureRow(name, golden, mine, math.nan, None)
            continue
        # An accuracy of 0.76 is one of 76 %.
        is_share = _SHARES.search(name) is not None
        ours_in_percent = is_share and 0 < golden <= 1 < mine <= 100
        theirs_in_percent = is_share and 0 < mine <= 1 < golden <= 100
        share = _share(golden * (100 if ours_in_percent else 1), mine * (100 if theirs_in_percent else 1))
        yield FigureRow(name, golden, mine, share, None if _SPEED_NAME.search(name) else _level(name, share))


def _pairs(theirs: StepCurve, ours: StepCurve) -> list[tuple[float, float]]:
    """The values of the same steps: by their numbers where both runs number them, else by their order."""
    shifts = {(b[0] - a[0], b[1] - a[1]) for a, b in zip(theirs.steps, ours.steps, strict=False)}
    # One run may count from 0 and the other from 1.
    is_shifted = len(shifts) == 1 and max(map(abs, next(iter(shifts)))) == 1
    if not theirs.steps or not ours.steps or is_shifted:
        return list(zip(theirs.values, ours.values, strict=False))
    mine = dict(zip(ours.steps, ours.values, strict=True))
    return [
        (value, mine[step]) for step, value in zip(theirs.steps, theirs.values, strict=True) if step in mine
    ]


def _share(golden: float, mine: float) -> float:
    offset = mine - golden
    if golden:
        return offset / abs(golden)
    return math.inf * offset if offset else 0.0


def _end(curve: StepCurve) -> float | None:
    """The mean of the last tenth: a single step is noise."""
    last = curve.values[-max(1, len(curve.values) // 10) :]
    return sum(last) / len(last) if last else None


def _level(name: str, share: float) -> bool:
    """Whether a figure reaches the original's level; one of unknown sense may differ in neither direction."""
    if _HIGHER_IS_BETTER.search(name):
        return share >= -_METRIC_TOLERANCE
    if _LOWER_IS_BETTER.search(name):
        return share <= _METRIC_TOLERANCE
    return abs(share) <= _METRIC_TOLERANCE


# The names of figures: spellings of the same one, and what is no result of a run.

METRIC = (
    r"acc(?:uracy)?(?:[@_]?[15])?|top-?_?[15]|prec@[15]|map(?:@?[\d.:]+)?|miou|iou|f1|bleu|auc|wer|cer|perplexity|ppl|"
    r"rmse|psnr|ssim|dice|fid"
)
_SPEED_NAMES = r"(?:images?|imgs?|samples?|tokens?|sentences?|frames?|steps?|iters?)/s(?:ec)?"
_OF_TRAINING = re.compile(r"^train(?:ing)?[._/ ](?=.)")
# The settings of a run, its counters and its clocks.
_NO_RESULT = re.compile(
    r"(?:.*[._/ ])?(?:lr|learning_rate|momentum|weight_decay|batch_size|bs|world_size|rank|local_rank|seed|epochs?|"
    r"steps?|global_step|iters?|iterations?|index|version|format|eta|progress|memory|grad_norm|loss_scale|"
    r"time|\w*_time|timestamp|datetime|elapsed\w*|seconds|date)"
)


def canonical(text: str) -> str:
    """acc@1, Top-1 and Prec@1 are the same figure; so are loss and train.loss."""
    name = _OF_TRAINING.sub("", text.strip().lower())
    if name == "ips":
        return "images/s"
    if re.fullmatch(_SPEED_NAMES, name):
        unit = name.partition("/")[0].rstrip("s").replace("image", "img").replace("img", "image")
        return f"{unit}s/s"
    if re.fullmatch(METRIC, name):
        name = name.replace("accuracy", "acc").replace("-", "").replace("@", "").replace("_", "")
        name = name.replace("prec", "acc").replace("top", "acc")
    return name


def is_result(name: str) -> bool:
    """Whether a column says how well or how fast a run went."""
    return bool(name) and not _NO_RESULT.fullmatch(name.strip().lower())


# Reads a training program's printed log: the loss of each step, figures of accuracy, throughput.

_NUMBER = r"(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf)\b)"
_LOSS = re.compile(rf"(?i)(?<![\w/])(?P<train>train(?:ing)?[_./ ])?loss\b['\"]?\W{{0,3}}?{_NUMBER}")
_OTHER_LOSS = re.compile(r"(?i)\b(?:val|valid|validation|test|eval|evaluation|average)\b[^|,;]*$")
_METRIC = re.compile(rf"(?i)(?<![\w/])(?P<name>{METRIC})\b\W{{0,3}}?{_NUMBER}")
_SPEED = re.compile(
    r"(?i)(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>images?|imgs?|samples?|tokens?|sentences?|frames?)\s*/\s*s(?:ec)?\b"
)
_RANK = re.compile(r"(?i)\brank\W{0,4}(\d+)")
_EPOCH = re.compile(r"(?i)\bepoch\W{0,4}(\d+)(?:\W{1,4}(\d+)\s*/)?")
_STEP = re.compile(r"(?i)\b(?:iter|iteration|step)\W{0,4}(\d+)")
_SIMULATED = re.compile(r"\bon a simulated \w+ device\b")
# Several processes print into one line, each record with the mark of the logger.
_RECORD = re.compile(r"[\r\n]|(?=\b(?:TCAPPDLL|DLL) \d{4}-)")
_LONGEST_LINE = 2000  # progress bars and dumps are no lines of a log


def read_log(lines: Iterable[str], source: str) -> RunEvidence:
    """The last value of a metric and the median of the speed count; a record has one loss, and rank 0 speaks for all."""
    losses: dict[bool, tuple[list[float], list[Step | None]]] = {True: ([], []), False: ([], [])}
    metrics: dict[str, float] = {}
    speeds: dict[str, list[float]] = {}
    simulated = False
    # a line has several records where several processes print into it
    for record in (record[:_LONGEST_LINE] for line in lines for record in _RECORD.split(line) if record):
        simulated = simulated or _SIMULATED.search(record) is not None
        rank = _RANK.search(record)
        if rank and int(rank[1]):
            continue
        of_training = (
            each for each in _LOSS.finditer(record) if not _OTHER_LOSS.search(record, 0, each.start())
        )
        if loss := next(of_training, None):
            values, steps = losses[bool(loss["train"])]
            values.append(float(loss["value"]))
            steps.append(_step(record))
        for found in _METRIC.finditer(record):
            metrics[canonical(found["name"])] = float(found["value"])
        for found in _SPEED.finditer(record):
            speeds.setdefault(canonical(f"{found['unit']}/s"), []).append(float(found["value"]))
    metrics.update({unit: statistics.median(values) for unit, values in speeds.items()})
    # a loss that says that it is the training's is that of each step; another beside it is some mean of it
    values, steps = losses[True] if losses[True][0] else losses[False]
    curves = {"loss": numbered(values, steps)} if values else {}
    return RunEvidence(curves, metrics, source, simulated or None)


def _step(record: str) -> Step | None:
    epoch, step = _EPOCH.search(record), _STEP.search(record)
    if step:
        return int(epoch[1]) if epoch else 0, int(step[1])
    return (int(epoch[1]), int(epoch[2] or 0)) if epoch else None


# Reads tables of a run's figures: CSV, a JSON object on each line, lists in JSON.

_STEP_NAMES = ("step", "steps", "global_step", "iter", "iteration")
_MARK = re.compile(r"[A-Z]{3,10} (?=\{)")  # of loggers, before the object


def number(value: object) -> float | None:
    """A number, also one that is written as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def of_lines(text: str, path: Path) -> RunEvidence:
    """A JSON object on each line, as loggers write them."""
    rows = []
    for count, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(_MARK.sub("", line, count=1))
            except ValueError:
                raise InputError(
                    Text(
                        f"{path}: line {count} is not JSON; give a complete file",
                        f"{path}：第 {count} 行不是 JSON；请给出完整的文件",
                    )
                ) from None
            if isinstance(row, dict):
                rows.append(row)
    return of_rows(rows, path.name)


def of_rows(rows: Sequence[Mapping[str, Any]], source: str) -> RunEvidence:
    """Columns: losses are curves, of everything else the last value counts, of speeds the median."""
    columns: dict[str, tuple[list[float], list[Step | None]]] = {}
    for row in map(_flat, rows):
        rank = number(row.get("rank"))
        if rank:
            continue
        step = _step_of_row(row)
        for name, value in row.items():
            known = number(value)
            if known is not None and is_result(name):
                values, steps = columns.setdefault(canonical(name), ([], []))
                values.append(known)
                steps.append(step)
    return _sorted_out({name: numbered(values, steps) for name, (values, steps) in columns.items()}, source)


def of_plain(content: Mapping[str, Any], source: str) -> RunEvidence:
    """{"loss": [...], "acc1": 76.1}, with or without a table of metrics."""
    columns: dict[str, StepCurve] = {}
    parts = [content, *(content[key] for key in ("curves", "metrics") if isinstance(content.get(key), dict))]
    for name, value in ((name, value) for part in parts for name, value in part.items()):
        values = [number(each) for each in value] if isinstance(value, list) else [number(value)]
        known = tuple(each for each in values if each is not None)
        if known and is_result(name):
            columns[canonical(name)] = StepCurve(known)
    return _sorted_out(columns, source)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with what lies one level deeper; cells beyond the head of a table have no name."""
    flat = {name.strip().lower(): value for name, value in row.items() if isinstance(name, str)}
    data = flat.get("data")
    if isinstance(data, str) and data.startswith("{"):
        try:
            data = ast.literal_eval(data)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            data = None
    if isinstance(data, dict):
        flat = {**{name: value for name, value in flat.items() if name == "step"}, **data}
    return flat


def _step_of_row(row: Mapping[str, Any]) -> Step | None:
    given = next((row[name] for name in _STEP_NAMES if name in row), None)
    if isinstance(given, list):
        known = [int(each) for each in map(number, given) if each is not None]
        return (known[0], known[1]) if len(known) > 1 else None
    step, epoch = number(given), number(row.get("epoch"))
    if step is None and epoch is None:
        return None
    return int(epoch or 0), int(step or 0)


def _sorted_out(columns: Mapping[str, StepCurve], source: str) -> RunEvidence:
    curves = {name: curve for name, curve in columns.items() if "loss" in name}
    rest = {name: curve.values for name, curve in columns.items() if name not in curves}
    metrics = {
        name: statistics.median(values) if name.endswith("/s") else values[-1]
        for name, values in rest.items()
    }
    return RunEvidence(curves, metrics, source)


# Reads evidence from the files of TorchFerry's own commands.


def of_record(path: Path) -> RunEvidence:
    """The loss of each step that `ferry watch` has recorded."""
    from torchferry.accuracy.file.reader import open_record

    with open_record(path) as record:
        losses = [
            call.outputs[0].statistics.mean
            for call in record.calls
            if call.operator == "loss" and call.outputs and call.outputs[0].statistics is not None
        ]
        simulated = record.header.simulated
    return RunEvidence(_loss_curve(losses), {}, path.name, simulated)


def is_proof(content: Mapping[str, Any]) -> bool:
    """Whether it is one of `ferry prove`."""
    return "holds" in content and "reference" in content and "results" in content


def _of_evidence(content: Mapping[str, Any], source: str, _: bool) -> RunEvidence:
    steps = content.get("steps", {})
    curves = {
        name: StepCurve(tuple(map(float, values)), tuple((int(a), int(b)) for a, b in steps.get(name, ())))
        for name, values in content.get("curves", {}).items()
    }
    metrics = {name: float(value) for name, value in content.get("metrics", {}).items()}
    return RunEvidence(curves, metrics, content.get("source") or source, content.get("simulated"))


def _of_proof(content: Mapping[str, Any], source: str, of_original: bool) -> RunEvidence:
    """Of `ferry prove`: the original on the CPU, or the first vendor's run, on a simulated device."""
    results = content.get("results") or [{}]
    run = content["reference"] if of_original else results[0].get("run", {})
    processes = run.get("processes") or [{}]
    steps = processes[0].get("steps", ())
    losses = [value for step in steps for loss in step["losses"] if (value := number(loss)) is not None]
    return RunEvidence(_loss_curve(losses), {}, source, None if of_original else True)


def _of_analysis(content: Mapping[str, Any], source: str, _: bool) -> RunEvidence:
    """How many steps a second `ferry analyze` has found."""
    run = (content.get("runs") or [{}])[0]
    count, seconds = len(run.get("steps", ())), number(run.get("seconds")) or math.nan
    metrics = {"steps/s": count / seconds} if count and seconds > 0 else {}
    return RunEvidence({}, metrics, source, run.get("simulated"))


def _loss_curve(losses: list[float]) -> dict[str, StepCurve]:
    return {"loss": StepCurve(tuple(losses))} if losses else {}


_Reader = Callable[[Mapping[str, Any], str, bool], RunEvidence]
KNOWN: tuple[tuple[Callable[[Mapping[str, Any]], bool], _Reader], ...] = (
    (lambda content: content.get("format") == FORMAT, _of_evidence),
    (lambda content: content.get("format") == "torchferry-analysis", _of_analysis),
    (is_proof, _of_proof),
)


_RECORDS = (".h5", ".hdf5")
TEXTS = (".log", ".txt", ".csv", ".json", ".jsonl", "")
SUFFIXES = (*TEXTS, *_RECORDS)
_LARGEST = 512 << 20


def read_evidence(path: Path, *, of_original: bool = False) -> RunEvidence:
    """What a file shows; `of_original` chooses the side of a proof, which holds both."""
    try:
        if not path.is_file() and path.exists():
            raise InputError(
                Text(
                    f"{path}: not a regular file; give the log, CSV or JSON of a run",
                    f"{path}：不是普通文件；请给出一次运行的日志、CSV 或 JSON",
                )
            )
        if path.stat().st_size > _LARGEST:
            raise InputError(
                Text(
                    f"{path}: more than {_LARGEST >> 20} MiB; give a summary, or part of the log",
                    f"{path}：超过 {_LARGEST >> 20} MiB；请给出摘要或部分日志",
                )
            )
        found = _read(path, of_original)
    except OSError as error:
        raise not_readable(path, error) from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError, csv.Error):
        raise InputError(
            Text(
                f"{path}: damaged, or not in the format that its name says; create it again",
                f"{path}：已损坏，或与文件名所示的格式不符；请重新生成",
            )
        ) from None
    if found.is_empty:
        raise InputError(
            Text(
                f"{path}: no loss, accuracy or throughput found; give a log that prints them, a CSV with a "
                'header, JSON as {"curves": {"loss": [...]}, "metrics": {"acc1": 76.1}}, or a file '
                "of `ferry prove`, `watch`, `analyze`",
                f'{path}：没有找到损失、精度或吞吐量；请给出打印这些值的日志、带表头的 CSV、形如 {{"curves": '
                '{"loss": [...]}, "metrics": {"acc1": 76.1}} 的 JSON，或 `ferry prove`、`watch`、'
                "`analyze` 的文件",
            )
        )
    return found


def is_plain(path: Path) -> bool:
    """Whether it is a text of the run's own, that everybody can read, and not a file of TorchFerry's."""
    if path.suffix.lower() not in TEXTS:
        return False
    content = _json(path)
    return not (isinstance(content, dict) and any(fits(content) for fits, _ in KNOWN))


def holds_both(path: Path) -> bool:
    """Whether a file is a proof, which shows the original's run as well."""
    content = _json(path)
    return isinstance(content, dict) and is_proof(content)


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes()) if path.suffix.lower() == ".json" else None
    except (OSError, ValueError, RecursionError):
        return None


def _read(path: Path, of_original: bool) -> RunEvidence:
    suffix = path.suffix.lower()
    if suffix in _RECORDS:
        return of_record(path)
    data = path.read_bytes()
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as shells of Windows write
    text = data.decode("utf-16" if is_wide else "utf-8-sig", "replace")
    if suffix == ".csv":
        return of_rows(list(csv.DictReader(text.splitlines())), path.name)
    if suffix in (".json", ".jsonl"):
        return _of_json(text, path, of_original)
    return read_log(text.splitlines(), path.name)


def _of_json(text: str, path: Path, of_original: bool) -> RunEvidence:
    try:
        content = json.loads(text)
    except ValueError:
        return of_lines(text, path)
    if isinstance(content, list):
        return of_rows([row for row in content if isinstance(row, dict)], path.name)
    if not isinstance(content, dict):
        return RunEvidence(source=path.name)
    for fits, read in KNOWN:
        if fits(content):
            return read(content, path.name, of_original)
    return of_plain(content, path.name)
