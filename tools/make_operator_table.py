"""Writes the tables of PyTorch's operators that are shipped for machines without PyTorch.

python tools/make_operator_table.py
"""

from __future__ import annotations

import sys

from torchferry.operators.native_functions import (
    SHIPPED_RELEASE,
    SHIPPED_SCHEMAS,
    SHIPPED_TABLE,
    installed_list_file,
    installed_release,
    read_native_functions,
    read_schemas,
    write_operator_facts,
    write_schemas,
)


def main() -> int:
    """Make the tables of the installed PyTorch."""
    source = installed_list_file()
    if source is None or installed_release() != SHIPPED_RELEASE:
        print(f"the table is made with torch {SHIPPED_RELEASE}; install that first", file=sys.stderr)
        return 2
    text = source.read_text("utf-8")
    write_operator_facts(read_native_functions(text), SHIPPED_TABLE)
    write_schemas(read_schemas(text), SHIPPED_SCHEMAS)
    print(SHIPPED_TABLE, SHIPPED_SCHEMAS, sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
