"""What the whole doctor says: ready or not and why, then the machine, then what the host costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchferry.doctor.device.checks.trial import ID as TRIAL
from torchferry.doctor.device.examine import Readiness
from torchferry.doctor.host.examine import Examination
from torchferry.doctor.model import Result, Status
from torchferry.doctor.report import (
    host_content,
    host_notes,
    host_tables,
    host_verdicts,
    names_of,
    result_content,
    result_table,
)
from torchferry.report.page import Page
from torchferry.text import Language, Text

FORMAT = "torchferry-doctor"
_TITLE = Text("Is this machine ready", "本机是否就绪")
_READY = Text("ready for {vendor}", "可以使用 {vendor}")
_ALMOST = Text("ready for {vendor}, but these may fail: {names}", "可以使用 {vendor}，但可能失败：{names}")
_NOT_READY = Text("not ready for {vendor}, in the way: {names}", "尚不能使用 {vendor}，阻碍：{names}")
_NO_VENDOR = Text(
    "not ready: no plugin, toolkit or device of a known vendor is here; --to VENDOR says what it needs",
    "尚未就绪：本机没有已知厂商的插件、工具包或设备；--to VENDOR 说明需要什么",
)
_SEVERAL = Text(
    "of several vendors something is here: {names}; choose one with --to",
    "本机有多个厂商的组件：{names}；请用 --to 选择",
)
_NO_DATA = Text(
    "what a machine needs for {vendor} is not known: its data have no machine.toml",
    "{vendor} 对机器的要求未知：其数据没有 machine.toml",
)
_GUESSED = Text("{vendor}: of no other vendor anything is here", "{vendor}：本机没有其他厂商的组件")
_FINE = Text("{count} checks found nothing wrong; --all shows them", "{count} 项检查正常；--all 显示它们")
_TRY = Text(
    "nothing was run on the device: --try computes on each",
    "未在设备上运行任何程序：--try 会在每个设备上计算",
)
_SIMULATED = Text(
    "programs run here without the device, too, on a simulated one: ferry run --sim --to {vendor} SCRIPT",
    "没有设备也可在本机的模拟设备上运行程序：ferry run --sim --to {vendor} SCRIPT",
)
_COULD = Text(
    "ferry doctor host shows the {count} settings of the host that are worth a try",
    "ferry doctor host 显示值得尝试的 {count} 项主机设置",
)
_VERSIONS = Text(
    "Python {python} on {architecture}, torch {torch}, plugin {plugin}, toolkit {toolkit}, driver {driver}",
    "Python {python}（{architecture}），torch {torch}，插件 {plugin}，工具包 {toolkit}，驱动 {driver}",
)
_MACHINE = Text("Machine for {vendor}", "{vendor} 所需环境")


def verdict(readiness: Readiness) -> tuple[Text, str]:
    """One sentence, and its style."""
    name = readiness.vendor.name
    doubts = [result for result in readiness.results if result.status is Status.DOUBT]
    if not readiness.is_ready:
        return _sentence(_NOT_READY, name, readiness.obstacles), "bold red"
    if doubts:
        return _sentence(_ALMOST, name, doubts), "yellow"
    return _READY.format(vendor=name), "green"


def _sentence(text: Text, vendor: str, results: tuple[Result, ...] | list[Result]) -> Text:
    return text.format(vendor=vendor, names=names_of(result.subject for result in results))


def page_of(
    readiness: Readiness | None,
    examination: Examination,
    language: Language,
    *,
    others: tuple[str, ...] = (),
    versions: Mapping[str, str | None],
    is_known: bool = True,
    everything: bool,
    whole_host: bool,
) -> Page:
    """Verdict first; `others` are vendors of whom something is here when none was chosen."""
    if readiness is not None:
        verdicts = [verdict(readiness)]
        title = _MACHINE.format(vendor=readiness.vendor.name)
        shown_results = [
            result for result in readiness.results if everything or result.status is not Status.FINE
        ]
        tables = [result_table(title, shown_results, language, everything=everything, commands=True)]
    else:
        verdicts = [(_SEVERAL.format(names=", ".join(others)) if others else _NO_VENDOR, "bold red")]
        tables = []
    if readiness is not None and not is_known:
        verdicts = [(_NO_DATA.format(vendor=readiness.vendor.name), "magenta")]
    if versions:
        shown_versions = {name: version or "-" for name, version in versions.items()}
        verdicts.append((_VERSIONS.format(**shown_versions), ""))
    shown = examination if whole_host else _costly(examination)
    host = host_verdicts(examination)
    return Page(
        _TITLE,
        (*verdicts, *(host if whole_host else host[:1])),
        (*tables, *host_tables(shown, language, everything=whole_host)),
        tuple(_notes(readiness, examination, everything)),
    )


def _costly(examination: Examination) -> Examination:
    """What makes the machine slow: beside whether it can be used at all, the rest is for those who ask."""
    kept = (result for result in examination.results if result.status is Status.COSTS)
    return replace(examination, results=tuple(kept))


def _notes(readiness: Readiness | None, examination: Examination, everything: bool) -> Iterator[Text]:
    if readiness is not None and examination.is_guess:
        yield _GUESSED.format(vendor=readiness.vendor.name)
    yield from (note for note in host_notes(examination) if not (readiness and examination.is_guess))
    if readiness is not None:
        if not everything:
            yield _FINE.format(count=readiness.count(Status.FINE))
        if readiness.is_ready and not any(result.id == TRIAL for result in readiness.results):
            yield _TRY
    if examination.count(Status.COULD) and not everything:
        yield _COULD.format(count=examination.count(Status.COULD))
    if not (readiness and (readiness.is_ready or not readiness.vendor.plugin)):
        yield _SIMULATED.format(vendor=readiness.vendor.name if readiness else "VENDOR")


def to_json(
    readiness: Readiness | None, examination: Examination, versions: Mapping[str, str | None], is_known: bool
) -> str:
    """Everything, for programs."""
    import json

    content: dict[str, object] = {
        "format": FORMAT,
        "version": 1,
        "vendor": readiness.vendor.name if readiness else None,
        "ready": (readiness.is_ready if is_known else None) if readiness else False,
        "versions": dict(versions),
        "counts": {status.value: readiness.count(status) if readiness else 0 for status in Status},
        "results": [result_content(result) for result in readiness.results] if readiness else [],
        "host": host_content(examination),
    }
    return json.dumps(content, indent=2) + "\n"
