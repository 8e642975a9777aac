"""Options that several commands share."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from torchferry.convert.custom.model import CustomRules
from torchferry.convert.discover import PYTHON_SUFFIXES
from torchferry.convert.project import Plan, ProjectOutcome
from torchferry.convert.rule import all_rules
from torchferry.convert.settings import AmpForm, Distributed, Settings
from torchferry.convert.target import Target
from torchferry.convert.write import Written
from torchferry.errors import FerryError, InputError
from torchferry.outcome import Report
from torchferry.report.findings import REPORTS
from torchferry.report.formats import Options
from torchferry.report.safe import one_line
from torchferry.text import Language, Text, user_language

# The options that make a program for one card one for many.


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--distributed, and what it needs to know."""
    group = parser.add_argument_group("one process per card")
    group.add_argument(
        "--distributed",
        action="store_true",
        help="rewrite the training program that --main starts for all cards, with DistributedDataParallel; a launch "
        "script is added",
    )
    group.add_argument(
        "--main", type=Path, metavar="FILE", help="the script that starts the training, in the project"
    )
    group.add_argument(
        "--model",
        default="",
        metavar="NAME",
        help="the variable that holds the model; several with commas (default: found)",
    )
    group.add_argument(
        "--batch",
        choices=["keep", "split"],
        help="the script's batch size is that of each card (keep, the default), or of all together (split)",
    )
    group.add_argument(
        "--sync-batchnorm",
        action="store_true",
        help="BatchNorm over the batches of all cards (SyncBatchNorm)",
    )


def distributed_settings(args: argparse.Namespace) -> Distributed | None:
    """What the options say; None if the rewrite is not asked for."""
    if not args.distributed:
        given = [
            name
            for name, value in (
                ("--main", args.main),
                ("--model", args.model),
                ("--batch", args.batch),
                ("--sync-batchnorm", args.sync_batchnorm),
            )
            if value
        ]
        if given:
            raise FerryError(f"{given[0]} goes with --distributed; say that as well, or leave it out")
        return None
    if args.main is None:
        raise FerryError("--distributed: which script starts the training? Name it with --main FILE")
    main = _main_script(args.path, args.main)
    return Distributed(main, args.model, args.batch == "split", args.sync_batchnorm)


def _main_script(root: Path, main: Path) -> str:
    """The script relative to the project; it may be given so, or as seen from here."""
    folder = (root.parent if root.is_file() else root).resolve()
    for place in (folder / main, main):
        found = place.resolve()
        if found.is_file() and found.is_relative_to(folder):
            if found.suffix not in (".py", ".pyw"):
                raise InputError(
                    f"--main {main}: is no Python file; name the script that starts the training"
                )
            return found.relative_to(folder).as_posix()
    if main.is_file():
        raise InputError(f"--main {main}: is not in {root}; name a script of the project")
    raise InputError(f"--main {main}: no such file in {root}; name the script that starts the training")


# Options of commands that read source and of those that only start programs: nothing is imported for
# them.


def add_vendor_path(parser: argparse.ArgumentParser) -> None:
    """Where a user's own vendors are."""
    parser.add_argument(
        "--vendor-path",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="a folder with your own vendor data",
    )


def add_vendor_device(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> None:
    """A vendor's device, the real one or simulated."""
    group.add_argument(
        "--to",
        metavar="VENDOR",
        help="on this vendor's device, a name that `ferry vendors` lists: on its real plugin if that is installed, "
        "else simulated",
    )
    add_vendor_path(parser)
    add_means(
        group,
        "with --to: simulate, even if the vendor's plugin is installed",
        "with --to: the vendor's own plugin, on an emulated device; `ferry emulate setup` sets it up",
    )


def add_means(group: argparse._ArgumentGroup, simulate: str, emulate: str) -> None:
    """A device that is not there in truth: ours, or the vendor's plugin without its hardware."""
    either = group.add_mutually_exclusive_group()
    either.add_argument("--sim", action="store_true", help=simulate)
    add_emulate(either, emulate)


def add_emulate(group: argparse._ActionsContainer, emulate: str) -> None:
    """The vendor's plugin without its hardware, where the other ways are not a choice."""
    group.add_argument("--emulate", action="store_true", help=emulate)


def add_language(parser: argparse.ArgumentParser) -> None:
    """The language of what is printed."""
    parser.add_argument(
        "--lang", choices=("en", "zh"), help="language of reports (default: TORCHFERRY_LANG, then the locale)"
    )


def add_model(group: argparse._ArgumentGroup, shapes: str, required: bool = False) -> None:
    """A model without a program, and what it is called with."""
    group.add_argument(
        "--model",
        required=required,
        metavar="FACTORY",
        help="package.module:name or file.py:name, of a class, a function or a module that is built already",
    )
    group.add_argument(
        "--init", default="", metavar="ARGUMENTS", help="for the factory, as `num_classes=10, depth=3`"
    )
    group.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SHAPE",
        help=f"an argument of the model, as {shapes}; repeatable",
    )


OPT_INS = {
    "channels_last": "put models and images in channels_last (NHWC), for vendors whose convolutions want it",
    "fixed_shape": "--drop-last and --int32-labels, as the Ascend guide asks for",
    "drop_last": "drop_last=True in data loaders for training: no second shape, no second compilation",
    "int32_labels": "class labels as int32, where the vendor's loss kernels want them",
    "float32_data": "float32 instead of float64, where the vendor limits it",
    "blocking_copies": "copies to the device with non_blocking=False",
    "drop_cudnn_flags": "drop settings of cuDNN and cuBLAS where the device has neither",
    "similar": "replace fused layers, fused optimizers and missing operators by an equivalent",
    "no_pin_memory": "pin_memory=False in data loaders, as the Ascend guide asks for",
    "specify_device": "scripts take their device from the variable DEVICE_ID",
}

_IMPLIED = {"fixed_shape": ("drop_last", "int32_labels")}


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """What to convert, and to what."""
    parser.add_argument("path", type=Path, help="a folder, or a single Python file")
    parser.add_argument(
        "--to", required=True, metavar="VENDOR", help="a name that `ferry vendors` lists, or `portable`"
    )
    parser.add_argument(
        "--keep-cuda",
        action="store_true",
        help="the result runs on the vendor's device, on CUDA and on the CPU; a module that is added decides which",
    )
    add_vendor_path(parser)
    _add_selection(parser.add_argument_group("what to look at"))
    _add_opt_ins(parser.add_argument_group("changes that are made only when you ask for them"))
    add_arguments(parser)


def _add_selection(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="RULE",
        help="only these rules, by id or its beginning: TF1 or TF105,TF201",
    )
    group.add_argument("--ignore", action="append", default=[], metavar="RULE", help="all but these rules")
    group.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="files or folders neither to look at nor to copy, e.g. 'tests/*'",
    )
    group.add_argument(
        "--rules",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="your own rules: a .toml file, or a .json file in the format of ms_fmk_transplt; may be given again",
    )
    group.add_argument(
        "-j",
        "--jobs",
        type=_positive,
        default=cores(),
        metavar="N",
        help="processes (default: all cores)",
    )


def _add_opt_ins(group: argparse._ArgumentGroup) -> None:
    for name, text in OPT_INS.items():
        flags = ["-s"] if name == "specify_device" else []
        group.add_argument(*flags, f"--{name.replace('_', '-')}", action="store_true", help=text)
    group.add_argument(
        "--data-parallel",
        choices=["single"],
        help="single: torch.nn.DataParallel(model) becomes the model itself, on one card, as the Ascend guide does",
    )
    group.add_argument(
        "--amp",
        nargs="?",
        const=AmpForm.TORCH.value,
        choices=[form.value for form in AmpForm],
        help="mixed precision for training steps that have none: torch's autocast and GradScaler, or apex's amp",
    )


def cores() -> int:
    """The processor cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return value


def find_target(name: str, vendor_path: list[Path], keep_cuda: bool = False) -> Target:
    """The target that --to names; with CUDA beside it if that is asked for."""
    from torchferry.convert.target import vendor_target
    from torchferry.convert.targets import portable
    from torchferry.convert.targets.keep_cuda import keep_cuda_target
    from torchferry.errors import VendorError
    from torchferry.vendors.registry import get_vendor, vendor_names

    if name == portable.NAME and keep_cuda:
        raise FerryError("--keep-cuda names a vendor's device beside CUDA; --to portable keeps CUDA anyway")
    if name == portable.NAME:
        return portable.portable_target()
    try:
        vendor = get_vendor(name, vendor_path)
    except VendorError as error:
        if name in vendor_names(vendor_path):
            raise
        raise VendorError(f"{error}, or take `{portable.NAME}` for code that names no vendor") from None
    return keep_cuda_target(vendor) if keep_cuda else vendor_target(vendor)


def make_plan(args: argparse.Namespace) -> Plan:
    """The plan that the options of a command describe."""
    target = find_target(args.to, args.vendor_path, args.keep_cuda)
    return Plan(
        target=target,
        options=_chosen_opt_ins(args),
        select=_rule_ids(args.select),
        ignore=_rule_ids(args.ignore),
        exclude=tuple(args.exclude),
        custom=_custom_rules(args.rules, args.vendor_path),
        settings=Settings(distributed_settings(args), _amp_form(args.amp, target)),
        jobs=args.jobs,
    )


def _amp_form(given: str | None, target: Target) -> AmpForm | None:
    """Whose mixed precision --amp asks for."""
    form = AmpForm(given) if given else None
    if form is AmpForm.APEX and not target.vendor.has_apex:
        raise FerryError(
            f"no apex is known for '{target.name}'; --amp alone writes autocast and GradScaler of torch"
        )
    return form


def _chosen_opt_ins(args: argparse.Namespace) -> frozenset[str]:
    given = [name for name in (*OPT_INS, "amp", "distributed", "data_parallel") if getattr(args, name)]
    return frozenset(part for name in given for part in _IMPLIED.get(name, (name,)))


def _custom_rules(files: list[Path], vendor_path: list[Path]) -> CustomRules:
    """The rules of the user's files, which may name any vendor."""
    if not files:
        return CustomRules()
    from torchferry.convert.custom.json_format import load_custom_rules
    from torchferry.convert.targets import portable
    from torchferry.vendors.registry import vendor_names

    return load_custom_rules(*files, vendors=[*vendor_names(vendor_path), portable.NAME])


def _rule_ids(given: list[str]) -> tuple[str, ...]:
    """Ids or their beginnings, from `TF105 tf2` as well as `TF105,TF2`."""
    known = [rule.id for rule in all_rules()]
    chosen = [part.strip().upper() for text in given for part in text.split(",") if part.strip()]
    for part in chosen:
        if not part.startswith("USER") and not any(rule.startswith(part) for rule in known):
            raise FerryError(f"no rule begins with {part!r}; `ferry rules` lists them")
    return tuple(chosen)


def rule_docs() -> dict[str, Text]:
    """Rule id -> what it does, for reports."""
    return {rule.id: rule.summary for rule in all_rules()}


def rendered(report: Report, language: Language | None, forms: Mapping[str, str]) -> dict[str, bytes]:
    """Reports as the content of files: file name -> format in, file name -> bytes out."""
    choices = Options(language or user_language(), rule_docs=rule_docs())
    return {name: REPORTS.render(report, form, choices) for name, form in forms.items()}


def note_written(done: Written) -> None:
    """Say what became of files besides the plain ones."""
    for name in done.shadowed:
        note(f"the project's own {name} was not copied: the report has its name")
    for name in done.vanished:
        note(f"{name} was gone when it was to be copied: it is not in the output")
    for path in done.kept:
        note(
            f"what was there is kept as {path}: it holds things that were added or changed since, or that "
            "TorchFerry did not write"
        )


def note_nothing(outcome: ProjectOutcome) -> None:
    """Say so if there was no Python to convert: the path may be the wrong one."""
    if not outcome.outcomes and not any(entry.path.endswith(PYTHON_SUFFIXES) for entry in outcome.entries):
        note(f"no Python files in {outcome.root}")


def note_unused_rules(outcome: ProjectOutcome, custom: CustomRules) -> None:
    """Say which of the user's rules have found nothing: a name may be misspelled."""
    findings = [item for each in outcome.outcomes for item in each.findings if item.rule.startswith("USER")]
    for rule in custom.for_vendor(outcome.target.name):
        last = rule.match.name.rpartition(".")[2]
        if not any(
            item.rule == rule.id
            and (item.message == rule.message or last in item.message.en or last in item.before + item.after)
            for item in findings
        ):
            note(f"your rule for {rule.match.name} ({rule.place}) matched nothing")


def note(text: str) -> None:
    """A remark on stderr, on one line."""
    print(f"note: {one_line(text)}", file=sys.stderr)


# What the words after options mean: whole numbers, steps, seeds, times.

LARGEST_SEED = (1 << 32) - 1  # what PYTHONHASHSEED and numpy take


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads a number in this range, as the `type` of an option."""
    limits = f"from {least} on" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() else least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {limits}")
        return value

    return read


at_least_one = whole_number(1)
seed = whole_number(0, LARGEST_SEED)


def steps(text: str) -> int | None:
    """A number of steps; None for `all`."""
    return None if text == "all" else at_least_one(text)


def seconds(text: str) -> float:
    """A time that is more than none."""
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write it in seconds, as 600")
    return value


def number(text: str) -> float:
    """NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
