"""Finds edits on lines that have nothing to do with the device."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .align import Alignment
from .classify import File
from .findings import Finding
from .model import KEEP, Vendor, Verdict
from .paths import LIBRARIES


def line_verdicts(
    file: File, aligned: Alignment, findings: list[Finding], vendor: Vendor
) -> Iterator[Verdict]:
    """A verdict for each line that was edited or added without reason."""
    related = related_lines(file)
    for line in sorted(set(aligned.changed_lines) - related):
        if not _only_plugin(aligned, line, vendor):
            text = aligned.old.lines[line - 1].strip()
            yield Verdict(False, "line", "unrelated edit", file.path, line, text[:200])
    afters = "\n".join(item.after for item in findings)
    for line, text in aligned.inserted:
        if not _allowed(text, afters, vendor):
            yield Verdict(False, "line", "unrelated insertion", file.path, line, text.strip()[:200])


def related_lines(file: File) -> set[int]:
    """The lines of statements that hold a site to convert or report, or a name that came from such an import."""
    lines: set[int] = set()
    for site in file.sites:
        if site.call.cls != KEEP:
            lines.update(range(site.first_line, site.last_line + 1))
    if file.tree is None or file.names is None:
        return lines
    # A vendor's own profiler takes the place of torch's as a whole, where the device is watched.
    watches = any(
        isinstance(node, ast.Attribute) and node.attr == "CUDA" for node in ast.walk(file.tree.root)
    )
    imported = {
        local
        for bindings in file.names.scopes.values()
        for local, paths in bindings.imports.items()
        if any(_of_interest(path) or (watches and path.startswith("torch.profiler")) for path in paths)
    }
    for node in ast.walk(file.tree.root):
        if isinstance(node, ast.Name) and node.id in imported:
            first, last = file.tree.span(node.lineno)
            lines.update(range(first, last + 1))
    return lines


def _of_interest(path: str) -> bool:
    return path.startswith(("torch.cuda", "numba.cuda")) or path.split(".")[0] in LIBRARIES


def _only_plugin(aligned: Alignment, line: int, vendor: Vendor) -> bool:
    """Whether all that happened to a line is that the plugin's import joined it (`import torch; import torch_npu`)."""
    start, end = aligned.old.starts[line - 1], aligned.old.starts[line]
    parts = [text for first, last, text in aligned.replaced if first < end and start < max(last, first + 1)]
    joined = "".join(parts)
    return bool(re.fullmatch(rf"[\s;,]*(import\s+)?{re.escape(vendor.plugin)}[\s;,]*(#.*)?\s*", joined))


def _allowed(text: str, afters: str, vendor: Vendor) -> bool:
    stripped = text.strip()
    if re.match(rf"import {re.escape(vendor.plugin)}\b", stripped):
        return True
    if re.match(rf"(is_)?{re.escape(vendor.device)}\s*=\s*(is_)?cuda\b", stripped):
        return True
    return bool(stripped) and stripped in afters
