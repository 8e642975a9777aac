"""`python -m tools.website -o FOLDER` builds the documentation site; `make docs` calls it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.website.building import build

from torchferry.errors import FerryError


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(prog="python -m tools.website", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("site"), help="The folder of the site")
    parser.add_argument(
        "--repository",
        default="",
        metavar="URL",
        help="Where the repository's files are in the web, such as https://HOST/OWNER/NAME/blob/main; "
        "without it their paths are named and not linked",
    )
    args = parser.parse_args()
    try:
        build(args.output, args.repository.rstrip("/"))
    except FerryError as error:
        print(f"tools.website: {error}", file=sys.stderr)
        return 1
    print(args.output / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
