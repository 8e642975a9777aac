"""Writes the C interface of CANN's operator functions: `python tools/make_cann_interfaces.py ../shared/facts`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from vendor_data.facts import Facts, Json

TARGET = Path(__file__).resolve().parents[1] / "src" / "torchferry" / "emulate" / "cann" / "interfaces.tsv"
# Types in C -> the kinds that torchferry.emulate.cann.entries knows; numbers keep their types.
_KINDS = {
    "aclTensor*": "tensor",
    "aclTensorList*": "tensors",
    "aclScalar*": "scalar",
    "aclScalarList*": "scalars",
    "aclIntArray*": "ints",
    "aclBoolArray*": "bools",
    "aclFloatArray*": "floats",
    "char*": "text",
    "aclDataType": "dtype",
    "int": "int32_t",
}
_HEAD = """# The C interface of CANN's operator functions: a name, then its arguments (NAME:KIND) in the first phase.
# Made by tools/make_cann_interfaces.py from the project's fact tables. Edit those, or the tool; not this file.
"""


def interfaces(facts: Json) -> str:
    """The text of interfaces.tsv: the functions whose arguments are known."""
    lines = [
        f"# source: {name} | {' '.join(version)}\n" for name, version in sorted(facts["sources"].items())
    ]
    for name, function in sorted(facts["functions"].items()):
        if "args" in function:
            lines.append(f"{name}\t{' '.join(map(_argument, function['args']))}\n")
    return "".join([_HEAD, *lines])


def _argument(declared: str) -> str:
    kind, _, name = declared.replace("const ", "").strip().rpartition(" ")
    return f"{name}:{_KINDS.get(kind, kind)}"


def main() -> int:
    """1 with --check if the file is not what the facts say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("facts", type=Path, metavar="FOLDER", help="the fact tables")
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    options = parser.parse_args()
    text = interfaces(Facts(options.facts).table("aclnn.json"))
    if options.check:
        return int(text != TARGET.read_text("utf-8"))
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
