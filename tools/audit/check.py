"""Checks a converted file against the classes of the original's sites."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from .align import Alignment, align
from .classify import File, classify_text, python_files
from .findings import NOTES, REPORTS, Finding, Findings
from .lines import line_verdicts
from .model import HUMAN, KEEP, MUST, TRIGGER, Site, Vendor, Verdict
from .paths import LIBRARIES
from .text import decode

# Families where an edit, even one that is listed as a change, can't be right without a word to the user.
NEVER_JUST_CHANGED = {*LIBRARIES.values(), "numba.cuda", "torch.version.cuda", "extension"} - {"apex"}
# Families where one finding per file (at the import, usually) is enough for all uses in the file.
ONCE_PER_FILE: dict[str, tuple[str, ...]] = {
    **{family: (family, module) for module, family in LIBRARIES.items()},
    "numba.cuda": ("numba",),
    "extension": ("extension", "cuda_home", "load_inline"),
    "torch-internal": ("nvtx", "torch._c"),
}


def check_folder(original: Path, converted: Path, findings: Findings, vendor: Vendor) -> Iterator[Verdict]:
    """The verdicts on every site, line and file."""
    for path in python_files(original):
        data = (original / path).read_bytes()
        target = converted / path
        if not target.is_file():
            yield Verdict(False, "file", "missing", path, 0, "not in the converted folder")
            continue
        yield from check_file(path, data, target.read_bytes(), findings, vendor)


def check_file(path: str, old: bytes, new: bytes, findings: Findings, vendor: Vendor) -> Iterator[Verdict]:
    """The verdicts on one file."""
    old_text, new_text = decode(old), decode(new)
    file = classify_text(old_text, path)
    if file.tree is None:
        yield from _untouchable(file, old == new, findings)
        return
    aligned = align(old_text, new_text)
    for site in file.sites:
        yield _site(site, file, aligned, findings, vendor)
    yield from line_verdicts(file, aligned, findings.of(path), vendor)
    yield from _result(path, old_text, new_text, vendor)


def _untouchable(file: File, same: bool, findings: Findings) -> Iterator[Verdict]:
    """A file without trigger words, or one that can't be parsed: must come out byte-identical."""
    if not same:
        yield Verdict(
            False, "file", "edited", file.path, 0, "a file without CUDA words, or one that can't be parsed"
        )
    elif TRIGGER.search(file.text) and file.path not in findings.files and not findings.of(file.path):
        yield Verdict(
            False, "file", "unparsed, unreported", file.path, 0, "can't be parsed and is not in the findings"
        )


def _site(site: Site, file: File, aligned: Alignment, findings: Findings, vendor: Vendor) -> Verdict:
    end = site.offset + len(site.text)
    same = aligned.same(site.offset, end)
    near = findings.at(site, aligned.old)
    if site.call.cls == KEEP:
        ok, outcome = same, "untouched" if same else "edited"
    elif site.call.cls == MUST:
        ok, outcome = _must(site, file, aligned, near, vendor, same)
    elif site.call.cls == HUMAN:
        ok, outcome = _human(site, near, findings, same)
    else:
        ok, outcome = True, "untouched" if same else "edited"
        outcome += ", reported" if near else ""
    detail = (
        f"{site.call.reason}; now: {aligned.instead(site.offset, end)!r}" if not same else site.call.reason
    )
    return Verdict(ok, site.call.cls, outcome, site.path, site.line, detail, site)


def _must(
    site: Site, file: File, aligned: Alignment, near: list[Finding], vendor: Vendor, same: bool
) -> tuple[bool, str]:
    if not same:
        return True, "changed"
    if any(item.kind == "info" for item in near) and _knows_target(site, aligned, vendor):
        return True, "left (the target is tested beside it)"
    if any(item.kind in REPORTS for item in near):
        kinds = sorted({item.kind for item in near if item.kind in REPORTS})
        return True, f"reported ({kinds[0]})"
    prefix = "torch.cuda."
    if file.text[: site.offset].endswith(prefix) and not aligned.same(site.offset - len(prefix), site.offset):
        return True, "changed (its module; the vendor has the same name)"
    if _through_import(site, file.text, aligned.new.text, vendor):
        return True, "changed (at its import)"
    return False, "silent"


def _knows_target(site: Site, aligned: Alignment, vendor: Vendor) -> bool:
    """Whether the statement names the target's device or backend as well: then it needs no change."""
    text = "".join(aligned.old.lines[site.first_line - 1 : site.last_line])
    return bool(re.search(rf"""['"]({vendor.device}|{vendor.backend})['"]""", text))


def _human(site: Site, near: list[Finding], findings: Findings, same: bool) -> tuple[bool, str]:
    family = site.call.family
    wider = findings.about(site.path, ONCE_PER_FILE[family]) if family in ONCE_PER_FILE else []
    noted = [item for item in (*near, *wider) if item.kind in NOTES]
    if same:
        return (True, "reported") if noted else (False, "silent")
    said = [item for item in wider if site.first_line <= item.line <= site.last_line]
    if noted or ((near or said) and family not in NEVER_JUST_CHANGED):
        return True, "changed, reported"
    return False, "edited silently"


def _through_import(site: Site, old: str, new: str, vendor: Vendor) -> bool:
    """Whether a use is right because its import now binds the same local name to the vendor's module."""
    before = re.search(r"([A-Za-z_]\w*)(?:\.\w+)*\.$", old[max(0, site.offset - 200) : site.offset])
    root = before.group(1) if before else site.text
    patterns = (
        rf"^\s*from torch import .*\b{vendor.device} as {root}\b",
        rf"^\s*import (torch\.{vendor.device}|{vendor.plugin})[\w.]* as {root}\b",
        rf"^\s*from (torch\.{vendor.device}|{vendor.plugin})[\w.]* import .*\b{root}\b",
        rf"^\s*{root}\s*=\s*torch\.{vendor.device}\b",
    )
    return root != "torch" and any(re.search(pattern, new, re.MULTILINE) for pattern in patterns)


def _result(path: str, old: str, new: str, vendor: Vendor) -> Iterator[Verdict]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(new)
            compile(new, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        yield Verdict(False, "file", "does not compile", path, getattr(error, "lineno", 0) or 0, str(error))
        return
    before, after = _plugin_imports(ast.parse(old), vendor), _plugin_imports(tree, vendor)
    if old != new and not after and _uses_device(tree, vendor):
        yield Verdict(
            False, "file", "no plugin import", path, 1, f"uses torch.{vendor.device} without {vendor.plugin}"
        )
    for block, lines in after.items():
        if len(lines) > max(1, len(before.get(block, []))):
            yield Verdict(False, "file", "plugin imported twice", path, lines[-1], f"lines {lines}")


def _plugin_imports(tree: ast.Module, vendor: Vendor) -> dict[str, list[int]]:
    """The lines of the plugin's imports, by the function they are in ('' for the module itself)."""
    found: dict[str, list[int]] = {}
    stack: list[tuple[ast.AST, str]] = [(tree, "")]
    while stack:
        node, block = stack.pop()
        if isinstance(node, ast.Import):
            found.setdefault(block, []).extend(
                node.lineno for alias in node.names if alias.name == vendor.plugin
            )
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            block = f"{block}.{node.name}"
        elif isinstance(node, (ast.If, ast.Try)):
            block = f"{block}?"  # under a condition: its own place
        stack += [(child, block) for child in ast.iter_child_nodes(node)]
    return {block: sorted(lines) for block, lines in found.items() if lines}


def _uses_device(tree: ast.Module, vendor: Vendor) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == vendor.device:
            if isinstance(node.value, ast.Name) and node.value.id == "torch":
                return True
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"torch.{vendor.device}"):
            return True
    return False
