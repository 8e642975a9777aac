"""What stands in for an API that a vendor lacks, or has a faster form of; read only when asked for."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors import keys
from torchferry.vendors.schema import FOR_ALL, SIMILAR_FILE, read_file


@dataclass(frozen=True, kw_only=True)
class Similar:
    """One call, by the full name of what is called, and what does the same.

    `use` is a dotted name, with the same arguments; `keys.NAME(..., key=value)`, which takes the call's own arguments as
    far as `takes` names them; or any expression with {argument}, in which [[text]] is written only if the arguments
    inside were given. Without `use` nothing is equal, and the place is reported as `kind` says.
    """

    cuda: str = keys.text('"torch.logit(input, eps=None)"', rf"{keys.DOTTED}(\(.*\))?", required=True)
    use: str = keys.text('"torch.log({input} / (1 - {input}))"')
    kind: str = keys.text('"unsupported"', default="unsupported", choices=("unsupported", "risk"))
    also: tuple[str, ...] = keys.texts('["torch.special.logit"]', keys.DOTTED)
    when: tuple[str, ...] = keys.texts('["eps=None"]', rf"{keys.NAME}(=.+|:whole)?")
    takes: tuple[str, ...] = keys.texts('["params", "lr"]', keys.NAME)
    ignored: tuple[str, ...] = keys.texts('["foreach"]', keys.NAME)
    exact: bool = keys.flag("true")
    keeps_gradients: bool = keys.flag("true")
    why: Text = keys.translated('"what is wrong with the original"', r".+", required=True)
    remark: Text = keys.translated('"what may differ"')
    source: str = keys.text('"where this is known from"', r".+", required=True)
    signature: str = ""  # "q, k, v, causal=False"; "" where only the name matters

    @property
    def is_name_only(self) -> bool:
        """Whether the name alone is replaced, wherever it stands."""
        return bool(self.use) and not self.signature

    @property
    def keeps_arguments(self) -> bool:
        """Whether the call's own arguments go to another function."""
        return self.use.rpartition("(")[2].startswith("...")


@dataclass(frozen=True)
class SimilarFile:
    """What similar.toml says."""

    similar: tuple[Similar, ...] = keys.rows(
        Similar, '[[similar]] with cuda = "...", use = "...", why = "...", source = "..."'
    )
    sources: tuple[keys.Source, ...] = keys.sources()


@cache
def load_similar(vendor_folder: str) -> tuple[Similar, ...]:
    """Read similar.toml of a vendor folder, in the order in which to try the entries; without one, plain torch."""
    own = Path(vendor_folder) / SIMILAR_FILE
    file = own if vendor_folder and own.exists() else FOR_ALL / SIMILAR_FILE
    entries = []
    for number, entry in enumerate(read_file(file, SimilarFile).similar, 1):
        name, _, signature = entry.cuda.partition("(")
        entries.append(replace(entry, cuda=name, signature=signature.removesuffix(")")))
        _check(entries[-1], f"{file}: key 'similar[{number}].")
    return tuple(entries)


def _check(entry: Similar, place: str) -> None:
    """Raise VendorError for a signature or an expression that Python can't read, or that don't fit each other."""
    head = _parsed(f"lambda {entry.signature}: 0", f"{place}cuda' has no signature that Python can read")
    assert isinstance(head, ast.Lambda)
    known = {argument.arg for argument in (*head.args.args, *head.args.kwonlyargs)}
    use = entry.use
    spoken = [*re.findall(r"\{(\w+)\}", use), *(re.split("[=:]", condition)[0] for condition in entry.when)]
    for name in spoken:
        if name not in known:
            raise VendorError(
                Text(
                    f"{place}use' mentions '{name}', which the signature does not have; use one of {sorted(known)}",
                    f"{place}use' 提到的 '{name}' 不在签名中；请使用 {sorted(known)} 之一",
                )
            )
    if use:
        written = re.sub(r"\[\[|\]\]", "", re.sub(r"\{(\w+)\}", r"\1", use))
        _parsed(re.sub(r"\(\s*,", "(", written), f"{place}use' is no expression that Python can read")


def _parsed(code: str, problem: str) -> ast.expr:
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise VendorError(Text(f"{problem} ({error}); correct it", f"{problem}（{error}）；请改正")) from None
