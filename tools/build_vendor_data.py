"""Regenerates the vendor folders from the fact tables: `python tools/build_vendor_data.py ../shared/facts`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from vendor_data import hand
from vendor_data.api_table import api_toml
from vendor_data.error_table import check_coverage, error_toml
from vendor_data.facts import Facts
from vendor_data.host_table import host_toml
from vendor_data.library_table import library_toml
from vendor_data.machine_table import machine_toml
from vendor_data.offline_table import OFFLINE, offline_toml
from vendor_data.old_names import OLD_NAMES, old_names_toml
from vendor_data.op_table import op_text
from vendor_data.replacement_table import replacement_toml
from vendor_data.similar import similar_toml
from vendor_data.similar_libraries import LIBRARIES
from vendor_data.similar_torch import LIMITS, OPERATORS, OPTIMIZERS
from vendor_data.vendor_table import vendor_toml
from vendor_data.zoo_table import ZOOS, zoo_toml

SIMILAR = (*LIBRARIES, *OPTIMIZERS, *OPERATORS, *LIMITS)

TARGET = Path(__file__).resolve().parent.parent / "src" / "torchferry" / "vendors"


def build(facts: Facts) -> dict[str, str]:
    """The text of every file, by its path under the vendors folder."""
    check_coverage(facts)
    files = {}
    for name, fact_id in hand.VENDORS.items():
        files[f"{name}/vendor.toml"] = vendor_toml(facts, name, fact_id)
        files[f"{name}/apis.toml"] = api_toml(facts, fact_id)
        files[f"{name}/ops.txt"] = op_text(facts, fact_id)
        files[f"{name}/replacements.toml"] = replacement_toml(facts, name, fact_id)
        files[f"{name}/errors.toml"] = error_toml(facts, name, fact_id)
        files[f"{name}/host.toml"] = host_toml(facts, name, fact_id)
        files[f"{name}/machine.toml"] = machine_toml(name)
        files[f"{name}/similar.toml"] = similar_toml(facts, name, fact_id, SIMILAR)
    files |= {f"{name}/offline.toml": offline_toml(name) for name in OFFLINE}
    files |= {f"{name}/zoo.toml": zoo_toml(name) for name in ZOOS}
    files |= {f"{name}/old_names.toml": old_names_toml(name) for name in OLD_NAMES}
    files["any/errors.toml"] = error_toml(facts, "any", "")
    files["any/libraries.toml"] = library_toml()
    files["any/similar.toml"] = similar_toml(facts, "any", "", SIMILAR)
    return files


def differing(files: dict[str, str], target: Path) -> list[str]:
    """The files that are missing or differ on disk."""
    return [
        path
        for path, text in files.items()
        if not (target / path).exists() or (target / path).read_bytes() != text.encode()
    ]


def main() -> int:
    """Write the tables, or with --check say whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("facts", type=Path, help="folder of the fact tables (with index.json)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a table differs")
    parser.add_argument("--target", type=Path, default=TARGET, help="vendors folder to write to")
    args = parser.parse_args()
    if not (args.facts / "index.json").exists():
        parser.error(f"{args.facts} has no index.json; give the folder of the fact tables")
    files = build(Facts(args.facts))
    changed = differing(files, args.target)
    for path in changed:
        print(f"{'differs' if args.check else 'wrote'}: {path}")
        if not args.check:
            (args.target / path).parent.mkdir(parents=True, exist_ok=True)
            (args.target / path).write_bytes(files[path].encode())
    return 1 if args.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
