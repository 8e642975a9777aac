"""`ferry zoo`: a migrated model for a vendor's model zoo, or what is missing in one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import check_reports, deliver
from torchferry.errors import FerryError, InputError
from torchferry.report.commands import next_step, vendor_path_words
from torchferry.report.progress import long_task
from torchferry.report.safe import one_line
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.zoo.new import NewDelivery

ABOUT = About(
    Text(
        "`new` makes a folder from a project: converted code, READMEs in Chinese and English, requirements, start "
        "scripts, logs of both runs, the licence. `check` lists what is missing in such a folder and compares the log "
        "of the migrated model with the original's and with the README.",
        "`new` 由项目生成交付文件夹：转换后的代码、中英文 README、依赖、启动脚本、两次运行的日志和许可证。`check` 列出此类文件夹"
        "缺少的内容，并将迁移模型的日志与原日志及 README 对照。",
    ),
    (
        Example(
            "ferry zoo new PyTorch/contrib/Classification/ResNet50 --from resnet",
            Text("Make the folder from a project", "由项目生成文件夹"),
        ),
        Example(
            "ferry zoo check PyTorch/contrib/Classification/ResNet50 --run",
            Text("Check it, with a short training", "检查并运行一次短训练"),
        ),
    ),
    page="how-to/zoo.md",
)
_PATH = Text(
    "The folder, for example PyTorch/contrib/Classification/ResNet50",
    "交付文件夹，例如 PyTorch/contrib/Classification/ResNet50",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry zoo`."""
    about = About(
        Text(
            "Makes the folder PATH from a project. Nothing is overwritten.",
            "由项目生成文件夹 PATH，不覆盖任何内容。",
        ),
        ABOUT.examples[:1],
        exit_codes=(
            (
                "3",
                Text(
                    "Some files could not be converted; the folder was made", "部分文件未能转换；文件夹已生成"
                ),
            ),
        ),
        page="how-to/zoo.md",
    )
    summary = Text("Make a model zoo folder from a project", "由项目生成模型库文件夹")
    _add_new(parser.verb("new", summary, about))
    about = About(
        Text(
            "Lists what is missing in a model zoo folder, and compares logs and README.",
            "列出模型库文件夹缺少的内容，并对照日志与 README。",
        ),
        ABOUT.examples[1:],
        exit_codes=(
            ("0", Text("The folder is complete", "文件夹完整")),
            ("1", Text("Something is missing", "缺少内容")),
        ),
        page="how-to/zoo.md",
    )
    _add_check(
        parser.verb("check", Text("List what is missing in such a folder", "列出此类文件夹缺少的内容"), about)
    )


def _add_path(parser: Parser) -> None:
    parser.add("path", type=Path, metavar="PATH", text=_PATH)
    text = Text(
        "Vendor whose model zoo it is for (default: the only one that has a zoo)",
        "面向哪个厂商的模型库（默认：唯一有模型库的厂商）",
    )
    options.add_to(parser, text)
    options.add_vendor_path(parser)


def _add_new(parser: Parser) -> None:
    _add_path(parser)
    parser.add("--from", dest="origin", type=Path, metavar="DIR", text=Text("The original project", "原项目"))
    text = Text(
        "Script that trains (default: the most likely one, if it is clear)",
        "训练脚本（默认：最可能的脚本，须足够明确）",
    )
    parser.add("--main", metavar="SCRIPT", text=text)
    text = Text("Arguments for a short training, as one string", "短训练的参数，写成一个字符串")
    parser.add("--arguments", metavar="TEXT", text=text)
    options.add_switch(
        parser,
        "--amp",
        Text("Add mixed precision to training steps without it", "为未使用混合精度的训练步添加混合精度"),
    )
    text = Text("Rewrite the program of --main for all cards", "将 --main 指定的程序改写为多卡训练")
    options.add_switch(parser, "--distributed", text)
    options.add_switch(
        parser,
        "--channels-last",
        Text("Put models and images in channels_last (NHWC)", "将模型和图像转为 channels_last（NHWC）"),
    )
    text = Text("Log, CSV or JSON of the migrated program's run", "迁移后程序的运行日志、CSV 或 JSON")
    parser.add("--results", type=Path, metavar="FILE", text=text)
    text = Text("The same of the original's run", "原程序的同类文件")
    parser.add(
        "--original-results", old=("--original",), dest="original", type=Path, metavar="FILE", text=text
    )
    parser.add("--source", metavar="URL", text=Text("Where the original comes from", "原项目的来源"))
    parser.add("--commit", metavar="ID", text=Text("Which commit of it", "原项目的提交"))
    parser.add(
        "--dataset", metavar="TEXT", text=Text("The data set, and where to get it", "数据集及其获取方式")
    )
    options.add_quiet(parser)
    options.add_language(parser)


def _add_check(parser: Parser) -> None:
    _add_path(parser)
    text = Text(
        "Also run the short training, on a simulated device if there is no real one",
        "同时运行短训练；没有真实设备时使用模拟设备",
    )
    options.add_switch(parser, "--run", text)
    text = Text(
        "With --run: use the vendor's own plugin on an emulated device; `ferry emulate setup` installs it",
        "配合 --run：在仿真设备上使用厂商自己的插件；`ferry emulate setup` 负责安装",
    )
    options.add_emulate(parser, text)
    text = Text(
        "How much greater losses may be on average, for example 0.05 (default: the zoo's own rule)",
        "损失平均可以高出多少，例如 0.05（默认：模型库自身的规则）",
    )
    is_share = options.number_from_zero(1, Text("a number from 0 to 1", "0 到 1 之间的数"))
    parser.add("--tolerance", type=is_share, metavar="X", text=text)
    group = parser.group(options.REPORTS)
    options.add_format(group)
    options.add_outputs(group)
    options.add_verbose(group, old=())
    options.add_quiet(group)
    options.add_language(group)


def run(args: argparse.Namespace) -> int:
    """Make or check; the answer is an exit code."""
    return _new(args) if args.action == "new" else _check(args)


_SHOWN = 5


_MAKING = Text("making the delivery", "正在生成交付件")
_REVIEWING = Text("checking the delivery", "正在检查交付件")
_TRAINING = Text("running a short training of the delivery", "正在对交付件进行短时训练")


def _new(args: argparse.Namespace) -> int:
    from torchferry.vendors.zoo import find_zoo
    from torchferry.zoo.delivery import DeliveryRequest
    from torchferry.zoo.new import make_delivery, plan_for_zoo

    if args.origin is None:
        raise FerryError(
            Text("which project? ferry zoo new PATH --from DIR", "哪个项目？ferry zoo new PATH --from DIR")
        )
    vendor, table = find_zoo(args.to, args.vendor_path)
    request = DeliveryRequest(
        args.path,
        args.origin,
        args.main or "",
        args.arguments or "",
        args.results,
        args.original,
        args.source or "",
        args.commit or "",
        args.dataset or "",
    )
    chosen = {name: getattr(args, name) for name in ("amp", "distributed", "channels_last")}
    with long_task(_MAKING, args.quiet, language=options.language_of(args)):
        made = make_delivery(request, vendor, table, plan_for_zoo(request, vendor, chosen))
    for line in _told(args, made, table.address or table.name):
        print(one_line(line.in_language(options.language_of(args))))
    return 3 if made.outcome.failed else 0


_MADE = Text(
    "made {path}: {changed} files converted, {added} added",
    "已生成 {path}：转换 {changed} 个文件，新增 {added} 个",
)
_TRAINS = Text(
    "trains: {script}; say --main if it is another", "训练脚本：{script}；如不正确请用 --main 指定"
)
_ONLY_NOTEBOOKS = Text(
    "none found, only notebooks: make a script of one, as with `jupyter nbconvert --to script`",
    "没有找到，只有 notebook：请先转为脚本，例如 `jupyter nbconvert --to script`",
)
_NONE_FOUND = Text("none found", "没有找到")
_UNCLEAR = Text(
    "note: which script trains is not clear: {known}; say --main, or fill it in",
    "说明：无法确定训练脚本：{known}；请用 --main 指定，或自行填写",
)
_LEFT_OUT = Text("left out: {names}", "未包含：{names}")
_MORE = Text("{names}, and {count} more", "{names}，另有 {count} 个")
_NOT_REQUIRED = Text(
    "taken out of requirements.txt: {names}; the vendor brings its own",
    "已从 requirements.txt 中移除：{names}；由厂商提供",
)
_SEND = Text(
    "then: put it into your fork of {address}, commit it, and open a pull request",
    "然后：将其放入您 fork 的 {address}，提交并发起合并请求",
)


def _told(args: argparse.Namespace, made: NewDelivery, address: str) -> Iterator[Text]:
    changed = sum(item.new_data is not None for item in made.outcome.outcomes)
    yield _MADE.format(path=args.path, changed=changed, added=len(made.outcome.added))
    if made.main:
        chosen = [each for each in made.candidates if each.path == made.main and not args.main]
        yield from (_TRAINS.format(script=each) for each in chosen)
    else:
        known: Text | str = ", ".join(map(str, made.candidates[:_SHOWN]))
        yield _UNCLEAR.format(known=known or (_ONLY_NOTEBOOKS if made.notebooks else _NONE_FOUND))
    if made.left_out:
        names: Text | str = ", ".join(f"{name} ({why})" for name, why in made.left_out[:_SHOWN])
        if len(made.left_out) > _SHOWN:
            names = _MORE.format(names=names, count=len(made.left_out) - _SHOWN)
        yield _LEFT_OUT.format(names=names)
    if made.not_required:
        yield _NOT_REQUIRED.format(names=", ".join(made.not_required))
    given = ["--to", args.to] if args.to else []
    yield next_step("zoo", "check", args.path, *given, *vendor_path_words(args.vendor_path))
    yield _SEND.format(address=address)


def _check(args: argparse.Namespace) -> int:
    from torchferry.vendors.zoo import find_zoo
    from torchferry.zoo.delivery import Delivery
    from torchferry.zoo.review import REPORTS, review, run_short_training

    if not args.path.is_dir():
        raise InputError(
            Text(
                f"no such folder: {args.path}; `ferry zoo new` makes one",
                f"没有该文件夹：{args.path}；`ferry zoo new` 可生成",
            )
        )
    if args.emulate and not args.run:
        raise FerryError(
            Text(
                "--emulate says where the short training runs; add --run, or leave it out",
                "--emulate 指定短训练在哪里运行；请加上 --run，或去掉它",
            )
        )
    check_reports(REPORTS, args.output)
    vendor, table = find_zoo(args.to, args.vendor_path)
    delivery = Delivery(args.path, vendor, table, args.tolerance)
    paths = options.vendor_paths(args)
    with long_task(_TRAINING if args.run else _REVIEWING, args.quiet, language=options.language_of(args)):
        ran = (run_short_training(delivery, paths, args.emulate),) if args.run else ()
        found = review(delivery, ran)
    deliver(REPORTS, found, args)
    return 0 if found.is_complete else 1
