"""What stands in for an API that a vendor lacks, or has a faster form of; read only when asked for."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors.schema import SIMILAR_FILE, Table, read_table

_FOR_ALL = Path(__file__).parent / "any"


@dataclass(frozen=True)
class Similar:
    """One call, by the full name of what is called, and what does the same.

    `use` is a dotted name, with the same arguments; `NAME(..., key=value)`, which takes the call's own arguments as
    far as `takes` names them; or any expression with {argument}, in which [[text]] is written only if the arguments
    inside were given. Without `use` nothing is equal, and the place is reported as `kind` says.
    """

    cuda: str
    also: tuple[str, ...]  # other names of the same thing
    signature: str  # "q, k, v, causal=False"; "" where only the name matters
    use: str
    kind: str  # "unsupported" or "risk", of an entry without `use`
    when: tuple[
        str, ...
    ]  # argument=literal, argument:whole (a literal number without fraction), or argument: is given
    takes: tuple[str, ...]  # of NAME(...): its arguments in the order of their positions
    ignored: tuple[str, ...]  # arguments that only choose a kernel
    exact: bool  # the same formula: results differ by rounding alone
    keeps_gradients: bool  # an optimizer with a hold on the gradients: nobody may set them to None
    why: Text  # what is wrong with the original
    remark: Text  # what may differ, and what to mind
    source: str

    @property
    def is_name_only(self) -> bool:
        """Whether the name alone is replaced, wherever it stands."""
        return bool(self.use) and not self.signature

    @property
    def keeps_arguments(self) -> bool:
        """Whether the call's own arguments go to another function."""
        return self.use.rpartition("(")[2].startswith("...")


@cache
def load_similar(vendor_folder: str) -> tuple[Similar, ...]:
    """Read similar.toml of a vendor folder, in the order in which to try the entries; without one, plain torch."""
    own = Path(vendor_folder) / SIMILAR_FILE
    file = own if vendor_folder and own.exists() else _FOR_ALL / SIMILAR_FILE
    data = read_table(file)
    for number, row in enumerate(data.get("similar", ()), 1):
        _check(row, f"{file}: key 'similar[{number}].")
    return tuple(
        Similar(
            cuda=row["cuda"].partition("(")[0],
            also=tuple(row.get("also", ())),
            signature=row["cuda"].partition("(")[2].removesuffix(")"),
            use=row.get("use", ""),
            kind=row.get("kind", "unsupported"),
            when=tuple(row.get("when", ())),
            takes=tuple(row.get("takes", ())),
            ignored=tuple(row.get("ignored", ())),
            exact=row.get("exact", False),
            keeps_gradients=row.get("keeps_gradients", False),
            why=Text(row["why"], row.get("why_zh") or row["why"]),
            remark=Text(row.get("remark", ""), row.get("remark_zh") or row.get("remark", "")),
            source=row["source"],
        )
        for row in data.get("similar", ())
    )


def _check(row: Table, place: str) -> None:
    """Raise VendorError for a signature or an expression that Python can't read, or that don't fit each other."""
    signature = row["cuda"].partition("(")[2].removesuffix(")")
    head = _parsed(f"lambda {signature}: 0", f"{place}cuda' has no signature that Python can read")
    assert isinstance(head, ast.Lambda)
    known = {argument.arg for argument in (*head.args.args, *head.args.kwonlyargs)}
    use = row.get("use", "")
    spoken = [*re.findall(r"\{(\w+)\}", use), *(re.split("[=:]", text)[0] for text in row.get("when", ()))]
    for name in spoken:
        if name not in known:
            raise VendorError(
                f"{place}use' speaks of '{name}', which the signature does not have; use one of {sorted(known)}"
            )
    if use:
        text = re.sub(r"\[\[|\]\]", "", re.sub(r"\{(\w+)\}", r"\1", use))
        _parsed(re.sub(r"\(\s*,", "(", text), f"{place}use' is no expression that Python can read")


def _parsed(text: str, problem: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise VendorError(f"{problem} ({error}); correct it") from None
