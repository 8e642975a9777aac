"""Puts an archive together in a folder of its own, makes it small enough, and writes it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from torchferry import __version__
from torchferry.bundle.archive import sha256_of, write_archive
from torchferry.bundle.log_excerpt import excerpt_of
from torchferry.bundle.machine import ExaminedMachine, examined, page_for_strangers
from torchferry.bundle.model import (
    LOG,
    MACHINE,
    MANIFEST,
    README,
    RECORD,
    VERSIONS,
    Bundle,
    BundlePart,
    BundleRequest,
    BundleSources,
    IssueCase,
    LogExcerpt,
)
from torchferry.bundle.readme import ReadmeFacts, holds, readme_of
from torchferry.bundle.sources import sorted_sources
from torchferry.errors import InputError, OutputError, not_writable
from torchferry.explanation.explaining import Shown
from torchferry.explanation.rules import rule_book
from torchferry.files.aside import temporary_folder, whole_file, write_whole
from torchferry.readiness.cases.writing import data_name
from torchferry.report.anonymous import KIND_NAMES, Anonymiser, PrivateKind, counted_kinds
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.units import size

_WITHOUT_RECORD = Text(
    "the recording was left out to stay below {most}; the test contains its inputs",
    "为不超过 {most}，未包含记录；测试中有其输入",
)
_WITH_DRAWN = Text(
    "the recorded inputs were left out to stay below {most}; the test generates others with the same "
    "shape, layout, dtype and range from a seed",
    "为不超过 {most}，未包含记录的输入；测试以固定种子生成形状、布局、数据类型与取值范围相同的输入",
)
_FAILS_NO_MORE = Text(
    "the test passes on the device here; with generated inputs it may not reproduce the problem of "
    "the recorded ones",
    "该测试在此处的设备上通过；使用生成的输入可能无法重现所记录输入的问题",
)
_STILL = Text(
    "{name} still contains the {kind} `{word}` inside other words; if that is private, remove it with --hide",
    "{name} 中仍有{kind} `{word}`（作为其他词的一部分）；如涉及隐私，请用 --hide 去除",
)
_SHOWS_NOTHING = Text(
    "neither the test nor the recording shows a problem; add a log, or run this on a machine with the device",
    "测试与记录均未显示异常；请加上日志，或在有该设备的机器上执行本命令",
)
_CHUNK = 1 << 20


class _Work:
    """What is known while an archive is put together."""

    def __init__(self, request: BundleRequest, folder: Path, show: Shown | None) -> None:
        self.request, self.folder = request, folder
        self.machine: ExaminedMachine = examined(request)
        self.anonymiser = Anonymiser(self.machine.facts)
        self.sources: BundleSources = sorted_sources(request)
        self.log = self._excerpt(show)
        self.case: IssueCase | None = None
        self.notes: list[Text] = []

    def _excerpt(self, show: Shown | None) -> LogExcerpt | None:
        if not self.sources.logs:
            return None
        book = rule_book([self.request.vendor.name], self.request.vendor_path)
        found = excerpt_of(self.sources.logs, book, show)
        self.anonymiser.learn(found.text)
        return found


def make_bundle(
    request: BundleRequest, output: Path, *, is_dry: bool = False, show: Shown | None = None
) -> Bundle:
    """Write the archive, or only look at what it would be."""
    with temporary_folder() as folder:
        work = _Work(request, Path(folder, "made"), show)
        work.folder.mkdir()
        packed = Path(folder, "packed")
        reductions = _reductions(work)
        counted = work.anonymiser.counted()
        for reduce in reductions:
            work.anonymiser.count_from(counted)
            reduce()
            _finish(work)
            with packed.open("wb") as stream:
                write_archive(work.folder, _root(work), output.name, stream)
            if packed.stat().st_size <= request.most:
                break
        nbytes = packed.stat().st_size
        if nbytes > request.most:
            raise OutputError(_too_large(work, nbytes))
        work.notes += _leftovers(work)
        if work.case is not None and work.case.shows_nothing and work.log is None:
            work.notes.append(_SHOWS_NOTHING)
        if not is_dry:
            _put(packed, output)
        unread = work.log.unread if work.log is not None else {}
        name = "" if is_dry else str(output)
        parts = _parts(work.folder)
        return Bundle(name, nbytes, parts, work.anonymiser.replacements, tuple(work.notes), unread)


def _reductions(work: _Work) -> list[Callable[[], None]]:
    """What puts the case into the folder, and then what makes the folder smaller, one after the other."""
    from torchferry.bundle import issue_case

    case_work = issue_case.CaseWork(work.request, work.folder, work.anonymiser)
    record, case, most = work.sources.record, work.sources.case, size(work.request.most)
    if case is not None:
        path = case

        def given() -> None:
            work.case = issue_case.given_case(case_work, path)

        return [given]
    if record is None:
        return [lambda: None]
    call = issue_case.cut_call(case_work, record)

    def whole() -> None:
        work.case = issue_case.recorded_case(case_work, call)

    def without_record() -> None:
        (work.folder / RECORD).rename(work.folder.parent / RECORD)
        work.notes.append(_WITHOUT_RECORD.format(most=most))

    def drawn() -> None:
        before = work.case
        assert before is not None
        (work.folder.parent / RECORD).rename(work.folder / RECORD)
        work.case = replace(
            issue_case.recorded_case(case_work, call, is_drawn=True),
            recorded=before.recorded,
            is_recorded_wrong=before.is_recorded_wrong,
        )
        (work.folder / RECORD).unlink()
        (work.folder / data_name(work.case.file)).unlink(missing_ok=True)
        work.notes[:] = [_WITH_DRAWN.format(most=most)]
        failed = before.outcome is not None and before.outcome.kind.is_failure
        if failed and work.case.outcome is not None and not work.case.outcome.kind.is_failure:
            work.notes.append(_FAILS_NO_MORE)

    return [whole, without_record, drawn]


_TOO_LARGE = Text(
    "the archive would be {whole}, more than --most {most}: {name} takes {largest}; raise the limit, or create "
    "the case with smaller inputs (`ferry case --shrink`)",
    "归档将达到 {whole}，超过 --most {most}：仅 {name} 就占 {largest}；请提高上限，或用更小的输入生成用例"
    "（`ferry case --shrink`）",
)


def _too_large(work: _Work, nbytes: int) -> Text:
    files = sorted(work.folder.iterdir(), key=lambda path: -path.stat().st_size)
    largest = files[0]
    return _TOO_LARGE.format(
        whole=size(nbytes),
        most=size(work.request.most),
        name=largest.name,
        largest=size(largest.stat().st_size),
    )


def _finish(work: _Work) -> None:
    """Write what is told about the case: excerpt, versions, README, manifest."""
    request, hide = work.request, work.anonymiser
    if work.log is not None:
        write_whole(work.folder / LOG, hide(work.log.text).encode("utf-8", "replace"))
    write_whole(work.folder / MACHINE, page_for_strangers(work.machine, hide, request))
    versions = {name: one_line(value) for name, value in work.machine.versions.items()}
    write_whole(work.folder / VERSIONS, _as_json(versions))
    names = {path.name for path in work.folder.iterdir()} | {README, MANIFEST}
    facts = ReadmeFacts(
        request.vendor.name,
        request.vendor.plugin,
        None if work.case is None else _hidden_case(work.case, hide),
        None if work.log is None else _hidden_log(work.log, hide),
        versions,
        tuple(sorted(names)),
        counted_kinds(hide.replacements),
    )
    write_whole(work.folder / README, readme_of(facts, request.language).encode("utf-8", "replace"))
    write_whole(work.folder / MANIFEST, _as_json(_manifest(work)))


def _hidden_case(case: IssueCase, hide: Anonymiser) -> IssueCase:
    recorded = tuple((name, Text(*map(hide, text))) for name, text in case.recorded)
    return replace(case, recorded=recorded, run=tuple((name, hide(value)) for name, value in case.run))


def _hidden_log(log: LogExcerpt, hide: Anonymiser) -> LogExcerpt:
    return replace(log, cause=tuple(Text(*map(hide, text)) for text in log.cause))


def _manifest(work: _Work) -> dict[str, object]:
    case = work.case
    return {
        "format": "torchferry-bundle-manifest",
        "version": 1,
        "tool": f"TorchFerry {__version__}",
        "vendor": work.request.vendor.name,
        "operator": None if case is None else case.operator,
        "run": None if case is None else case.command,
        "outcome": None if case is None or case.outcome is None else case.outcome.kind.value,
        "replaced": counted_kinds(work.anonymiser.replacements),
        "files": [
            {"name": part.name, "bytes": part.nbytes, "sha256": part.sha256}
            for part in _parts(work.folder)
            if part.name != MANIFEST
        ],
    }


def _as_json(content: Mapping[str, object]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _parts(folder: Path) -> tuple[BundlePart, ...]:
    return tuple(
        BundlePart(path.name, holds(path.name), path.stat().st_size, sha256_of(path))
        for path in sorted(folder.iterdir())
    )


def _root(work: _Work) -> str:
    """The one folder of the archive: nothing lands beside it where it is unpacked."""
    about = "log" if work.case is None else work.case.file.removesuffix(".py").removeprefix("test_")
    return re.sub(r"[^\w-]+", "_", f"issue-{work.request.vendor.name}-{about}")


def _put(packed: Path, output: Path) -> None:
    try:
        with packed.open("rb") as source, whole_file(output) as target:
            shutil.copyfileobj(source, target, _CHUNK)
    except OSError as error:
        raise not_writable(output, error) from None


def _leftovers(work: _Work) -> list[Text]:
    """Names of users and machines that still are a part of other words, where no pattern takes them out."""
    names = {
        each.original: each.kind
        for each in work.anonymiser.replacements
        if each.kind in (PrivateKind.USER, PrivateKind.HOST)
    }
    found = []
    for path in sorted(work.folder.iterdir()):
        if path.suffix not in (".py", ".txt", ".md", ".json", ".h5"):
            continue
        data = path.read_bytes().lower()
        for name, kind in names.items():
            if name.encode() in data:
                found.append(_STILL.format(name=path.name, kind=KIND_NAMES[kind], word=name))
    return found


def check_sources(request: BundleRequest) -> None:
    """Complain before the work of what can't be put into an archive."""
    if not request.sources:
        raise InputError(
            Text(
                "a bundle needs a subject; name a case, a recording with --call N, or logs",
                "缺少打包对象；请给出用例、记录（加 --call N）或日志",
            )
        )
    sorted_sources(request)
