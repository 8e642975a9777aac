"""Markdown as GitHub reads it, made into Markdown as MkDocs reads it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<shown>\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\])\((?P<to>[^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")
_RULE = re.compile(r"(?<![\[\w])`(TF\d{3})`(?!\])")
_RULES = "rules/index.md"


@dataclass(frozen=True)
class Site:
    """What a link can lead to, as paths below the folder of a language."""

    pages: frozenset[str]
    repository: Path
    language: str
    base: str = ""  # the address of the repository's files in the web; "": none is known


def as_mkdocs(text: str, page: str, site: Site) -> str:
    """The page with links, fences and tables that MkDocs understands; `page` is its path below its language's folder."""
    return _outside_fences(text, lambda prose: _prose(prose, page, site))


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    pieces, at = [], 0
    for fence in FENCE.finditer(text):
        word = (fence["info"].split() or [""])[0]
        block = f"{fence['indent']}```{word}\n{fence['body']}{fence['indent']}```"
        pieces += [change(text[at : fence.start()]), block]
        at = fence.end()
    return "".join([*pieces, change(text[at:])])


def _prose(text: str, page: str, site: Site) -> str:
    text = "\n".join(_spaced(text.split("\n")))
    text = _LINK.sub(lambda link: _link(link, page, site), text)
    return _RULE.sub(lambda name: _to_rule(name, page, site), text)


def _spaced(lines: list[str]) -> Iterator[str]:
    """An empty line before a list that follows a paragraph; code in tables without the backslash before a bar."""
    before = ""
    for line in lines:
        is_item = re.match(r"(?:[-*]|\d+\.) ", line) is not None
        if is_item and before.strip() and not re.match(r"(?: *(?:[-*]|\d+\.)|  ) ?", before):
            yield ""
        if line.startswith("|"):
            line = _CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
        yield line
        before = line


def _link(link: re.Match[str], page: str, site: Site) -> str:
    target, shown = link["to"], link["shown"]
    if "://" in target or target.startswith("#"):
        return link[0]
    file, mark, heading = target.partition("#")
    place = posixpath.normpath(posixpath.join(posixpath.dirname(page), file))
    if place == _RULES and (named := re.search(r"TF\d{3}", link["text"])):
        made = f"rules/{named[0]}.md"
        return f"{shown}({_from(page, made)})" if made in site.pages else link[0]
    if place in site.pages:
        return link[0]
    beside = place.removeprefix("../")  # docs/schemas, docs/images: copied into the site of each language
    if beside in site.pages:
        return f"{shown}({_from(page, beside)}{mark}{heading})"
    return _of_repository(link["text"], posixpath.join("docs", site.language, place), mark + heading, site)


def _of_repository(text: str, path: str, heading: str, site: Site) -> str:
    """A link to a file of the repository that is no page: to its place in the web, or its path beside the words."""
    path = posixpath.normpath(path)
    if not (site.repository / path).exists():
        raise FileNotFoundError(f"a page links to {path}, which does not exist")
    if site.base:
        return f"[{text}]({site.base}/{path}{heading})"
    return text if path in text else f"{text} (`{path}`)"


def _to_rule(name: re.Match[str], page: str, site: Site) -> str:
    made = f"rules/{name[1]}.md"
    if made not in site.pages or page == made:
        return name[0]
    return f"[{name[0]}]({_from(page, made)})"


def _from(page: str, to: str) -> str:
    return posixpath.relpath(to, posixpath.dirname(page) or ".")
