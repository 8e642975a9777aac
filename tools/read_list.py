"""Takes a public list over into a vendor's folder: the operators of a plugin's release, or the names of its module.

python -m tools.read_list operators LIST --folder DIR --version 2.4 [--complete]      into ops.txt
python -m tools.read_list names LIST --folder DIR --basis "module of 1.2" [--complete]   into apis.toml

LIST is what `tools.read_plugin -o` has written of a running plugin, or a text:

operators   a line each: `add.Tensor`, `- add.Tensor` or `- func: add.Tensor(...)`, as the YAML files have it from which
            plugins are generated. What is no operator of PyTorch's is passed over, unless it is torchvision's or torchaudio's.
names       a line each: a dotted name, then, after | or a tab, whether it is there (yes, no, 是, 否, unknown; without it:
            yes) or what it is called there, and a limit in words. Other lines, as the head of a table, are passed over.

What a list does not speak of stays as it is, and so does what people have written beside a line: limits, kinds of tensors,
notes. With --complete the list is everything that there is: operators of this version that it leaves out have no kernel, names
that it leaves out are unsupported. --source "NAME | VERSION | PATH" is put down beside those that are there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.operators.native_functions import operator_facts
from torchferry.vendors.model import natural_name
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor, load_vendor, vendor_names
from torchferry.vendors.schema import APIS_FILE, OPS_FILE, read_table

_LIBRARIES = ("torchvision::", "torchaudio::")  # whose operators programs call, too
_OPERATOR = re.compile(r"\s*(?:- *)?(?:func: *)?(?P<name>(?:\w+::)?[A-Za-z_]\w*(?:\.\w+)?) *(?:\(.*)?")
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
_ANSWERS = {"yes": "same", "是": "same", "": "same", "no": "unsupported", "否": "unsupported", "-": "unknown"}
_SECTION = re.compile(r"^\[.*$", re.MULTILINE)


def read_operators(text: str) -> set[str]:
    """The operators of a list that PyTorch or a known library has."""
    if text.lstrip().startswith("{"):
        names = set(json.loads(text)["operators"])
    else:
        names = {match["name"] for line in text.splitlines() if (match := _OPERATOR.fullmatch(line))}
    return {name for name in names if name in operator_facts() or name.startswith(_LIBRARIES)}


def with_operators(text: str, names: set[str], version: str, complete: bool) -> str:
    """An ops.txt in which these have a kernel in this version, and with `complete` no others."""
    lines = text.splitlines()
    rows = {line.split()[0]: line for line in lines if line.strip() and not line.startswith("#")}
    for name in names | rows.keys():
        row = _with_version(rows.get(name, name), version, name in names, complete)
        rows[name] = row
        if not row.partition(" ")[2]:
            del rows[name]  # no version has it, and nothing else is said of it
    head = _with_head([line for line in lines if line.startswith("#")], version, complete)
    return "\n".join([*head, *sorted(rows.values())]) + "\n"


def _with_version(row: str, version: str, has: bool, complete: bool) -> str:
    words, bar, limit = row.partition(" | ")
    name, *tokens = words.split()
    versions = {token for token in tokens if token[0].isdigit()}
    if has:
        versions.add(version)
    elif complete:
        versions.discard(version)
    others = [token for token in tokens if not token[0].isdigit()]
    return " ".join([name, *sorted(versions, key=_number), *others]) + bar + limit


def _with_head(head: list[str], version: str, complete: bool) -> list[str]:
    known = {line[1:].partition(":")[0].strip(): line for line in head}
    versions = {word for word in known.get("versions", "").split() if word[0].isdigit()} | {version}
    said = "yes" if complete or known.get("complete", "").endswith("yes") else "no"
    rows = {
        "complete": f"# complete: {said}",
        "versions": f"# versions: {' '.join(sorted(versions, key=_number))}",
    }
    head = [rows.pop(line[1:].partition(":")[0].strip(), line) for line in head]
    return [*head, *rows.values()]


def _number(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


@dataclass(frozen=True)
class Answer:
    """What a list says of one name."""

    value: str  # as in apis.toml: same, unsupported, unknown, or the name that it has there
    limit: str = ""


def read_names(text: str, torch_module: str) -> dict[str, Answer]:
    """What a list says, by CUDA's name."""
    if text.lstrip().startswith("{"):
        there = {f"torch.cuda.{name}" for name in json.loads(text)["names"]}
        return dict.fromkeys(sorted(there & _names_of_cuda()), Answer("same"))
    found = {}
    for line in text.splitlines():
        fields = [field.strip(" `") for field in re.split(r"\t|\|", line.strip().strip("|"))]
        if _DOTTED.fullmatch(fields[0]):
            name, said, limit = (*fields, "", "")[:3]
            own = f"{torch_module}."
            cuda = f"torch.cuda.{name.removeprefix(own)}" if name.startswith(own) else name
            value = _ANSWERS.get(said.lower(), said)
            if value == natural_name(cuda, torch_module):
                value = "same"
            found[cuda] = Answer(value, limit)
    return found


def _names_of_cuda() -> set[str]:
    """The names under torch.cuda, as our tables have them: a module has others of its own beside them."""
    return {name for vendor in vendor_names() for name in get_vendor(vendor).apis}


def with_names(
    text: str, answers: Mapping[str, Answer], current: Mapping[str, str], basis: str, complete: bool
) -> str:
    """An apis.toml that says what the list says; `current` is what it said so far.

    A name that is there under another one keeps that: module lists are of the vendor's names alone.
    """
    new = {name: answer.value for name, answer in answers.items()}
    if complete:
        missing = {name for name in current if name.startswith("torch.cuda.")} - answers.keys()
        new |= dict.fromkeys(missing, "unsupported")
    changed = {
        name: value
        for name, value in new.items()
        if value != current.get(name)
        and not (value in ("same", "unsupported") and _DOTTED.fullmatch(current.get(name, "")))
    }
    text = _with_pairs(text, "apis", changed)
    text = _with_pairs(text, "notes", {name: each.limit for name, each in answers.items() if each.limit})
    return _with_basis(text, basis, changed)


def _with_pairs(text: str, section: str, pairs: Mapping[str, str]) -> str:
    """The text with these lines in a section: each in the place of the name's own, or before the next name."""
    if not pairs:
        return text
    start, end = _span(text, section)
    lines = text[start:end].rstrip("\n").splitlines()
    for name, value in sorted(pairs.items()):
        line = f"{_quoted(name)} = {_quoted(value)}"
        names = [_name(each) for each in lines]
        if name in names:
            lines[names.index(name)] = line
        else:
            lines.insert(next((i for i, each in enumerate(names) if each > name), len(lines)), line)
    return _replaced(text, section, start, end, "\n".join(lines))


def _name(line: str) -> str:
    return line.split('"')[1] if line.startswith('"') else ""


def _with_basis(text: str, basis: str, names: Iterable[str]) -> str:
    """The text with the names under this way of knowing, and under no other."""
    names = set(names)
    if not names or not basis:
        return text
    start, end = _span(text, "basis")
    lists = re.findall(r'^(?:"([^"]*)"|([\w-]+)) = \[(.*?)\]$', text[start:end], re.MULTILINE | re.DOTALL)
    held = {quoted or plain: set(re.findall(r'"([^"]+)"', names_)) for quoted, plain, names_ in lists}
    held = {how: known - names for how, known in held.items()}
    held.setdefault(basis, set()).update(names)
    body = "\n".join(
        "\n".join([f"{_quoted(how)} = [", *(f"  {_quoted(name)}," for name in sorted(known)), "]"])
        for how, known in sorted(held.items())
        if known
    )
    return _replaced(text, "basis", start, end, body)


def _span(text: str, section: str) -> tuple[int, int]:
    """Where the lines of a section are; at the end of the text if there is none."""
    head = re.search(rf"^\[{section}\]\n", text, re.MULTILINE)
    if head is None:
        return len(text), len(text)
    following = _SECTION.search(text, head.end())
    end = following.start() if following else len(text)
    comment = re.search(r"(?:^#.*\n)+\Z", text[head.end() : end], re.MULTILINE)  # it speaks of what follows
    return head.end(), head.end() + comment.start() if comment else end


def _replaced(text: str, section: str, start: int, end: int, body: str) -> str:
    head = "" if text[:start].endswith(f"[{section}]\n") else f"\n[{section}]\n"
    return text[:start] + head + body + "\n" + ("\n" if text[end:] else "") + text[end:]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _with_source(text: str, source: str, is_toml: bool) -> str:
    if not source:
        return text
    name, version, path = (part.strip() for part in (source + "||").split("|")[:3])
    if is_toml:
        row = f"\n[[sources]]\nname = {_quoted(name)}\nversion = {_quoted(version)}\npath = {_quoted(path)}\n"
        return text if row in text else text + row
    line = f"# source: {name} | {version} | {path}".rstrip(" |")
    if line in text.splitlines():
        return text
    head = [each for each in text.splitlines(True) if each.startswith("#")]
    return "".join([*head, line + "\n", text[sum(map(len, head)) :]])


def main(arguments: list[str] | None = None) -> int:
    """Change one file of a vendor folder; 2 if a list or the folder cannot be read."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("operators", "names"))
    parser.add_argument("list", type=Path, metavar="LIST")
    parser.add_argument("--folder", type=Path, required=True, metavar="DIR", help="the vendor's folder")
    parser.add_argument("--version", default="", help="the adapter's version, for operators")
    parser.add_argument("--basis", default="", help="how the names are known, in words")
    parser.add_argument("--source", default="", metavar="'NAME | VERSION | PATH'")
    parser.add_argument("--complete", action="store_true", help="what the list leaves out is not there")
    options = parser.parse_args(arguments)
    if options.what == "operators" and not re.fullmatch(r"\d+(\.\d+)*", options.version):
        parser.error("operators need --version, as 2.4")
    file = options.folder / (OPS_FILE if options.what == "operators" else APIS_FILE)
    try:
        vendor = load_vendor(options.folder)
        listed = options.list.read_text("utf-8")
        text = file.read_text("utf-8") if file.exists() else ""
        if options.what == "operators":
            text = with_operators(text, read_operators(listed), options.version, options.complete)
        else:
            current = read_table(file).get("apis", {}) if file.exists() else {}
            answers = read_names(listed, vendor.torch_module)
            text = with_names(text, answers, current, options.basis, options.complete)
        file.write_text(_with_source(text, options.source, options.what == "names"), "utf-8")
        load_ops(options.folder)
        load_vendor(options.folder)  # what was written can be read
    except (VendorError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"wrote {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
