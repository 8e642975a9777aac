"""Cells for spreadsheets: what is said of one use of an operator, and of one judgement."""

from __future__ import annotations

from torchferry.ops.model import Use
from torchferry.ops.readiness import Judgement
from torchferry.ops.report import sentences, words
from torchferry.ops.report.tables import Overview
from torchferry.text import Language, Text

Cell = str | int | float


def split_place(place: str) -> tuple[str, int]:
    """File and line of train.py:34; line 0 where there is none."""
    file, colon, line = place.rpartition(":")
    return (file, int(line)) if colon and line.isascii() and line.isdigit() and len(line) < 10 else (place, 0)


def advice_text(judgement: Judgement, language: Language) -> str:
    """What can be done, with the code to write."""
    return "\n".join(
        "\n".join(filter(None, (each.text.in_language(language), each.code, each.source)))
        for each in judgement.advice
    )


def call_cells(use: Use, overview: Overview, language: Language) -> list[tuple[str, Text, Cell]]:
    """One use: the name of each field for programs and for people, and what it holds."""
    site = use.site
    inputs = use.signature.inputs
    file, line = split_place(site.place)
    varied = f" ({words.VARIED.in_language(language)})" if use.varied else ""
    return [
        ("operator", words.OPERATOR, use.operator),
        ("inputs", words.INPUTS, sentences.tensors(inputs, len(inputs)) + varied),
        ("strides", words.STRIDES, ", ".join(map(sentences.stride, inputs))),
        ("arguments", words.ARGUMENTS, sentences.arguments(use.signature)),
        ("outputs", words.OUTPUTS, sentences.tensors(use.signature.outputs, len(use.signature.outputs))),
        ("dtypes", words.DTYPES, sentences.dtypes([use])),
        ("calls", words.CALLS, use.calls),
        ("seconds", words.SECONDS, use.seconds),
        ("share", words.SHARE, round(overview.share([use]), 6)),
        ("phase", words.PHASE_COLUMN, words.PHASE[site.phase].in_language(language)),
        ("module", words.MODULE, site.module),
        ("file", words.FILE, file),
        ("line", words.PLACE, line or ""),
        ("node", words.NODE, site.node),
        ("inside", words.INSIDE, site.inside),
    ]


def judgement_cells(judgement: Judgement | None, language: Language) -> list[tuple[str, Text, Cell]]:
    """One judgement, likewise."""
    support = words.SUPPORT[judgement.support].in_language(language) if judgement else ""
    return [
        ("support", words.SUPPORT_COLUMN, support),
        ("reason", words.REASON, judgement.reason.in_language(language) if judgement else ""),
        ("moved_bytes", words.MOVED, judgement.moved_bytes if judgement else ""),
        ("advice", words.ADVICE, advice_text(judgement, language) if judgement else ""),
    ]
