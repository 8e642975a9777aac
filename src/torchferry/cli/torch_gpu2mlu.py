"""Drop-in for Cambricon's torch_gpu2mlu: the same flag, the same lines, the same files."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from torchferry.cli import main as ferry

_DESCRIPTION = "Convert CUDA PyTorch scripts to Cambricon MLU, as torch_gpu2mlu.py does."
_EPILOG = """\
For `-i X` the converted scripts appear in X_mlu beside X, with report.md (every
change, then what was not changed and why), report.html and findings.json. A
single file main.py becomes main_mlu/main.py. An X_mlu of an earlier run is
replaced; any other X_mlu is left alone, and you are told. X is not touched.

`ferry convert X --to cambricon -o OUT` does the same with more choices: --diff,
--dry-run, --in-place, --select, --exclude.

exit codes: 0 fine, 2 bad usage or bad input, 3 some files failed and the others
were done, 130 interrupted"""


def main(arguments: list[str] | None = None) -> int:
    """Run `torch_gpu2mlu`; returns the exit code."""
    return ferry.as_command("torch_gpu2mlu", _run, arguments)


def _run(given: list[str]) -> int:
    from torchferry.cli.ending import stoppable

    parser = argparse.ArgumentParser(
        prog="torch_gpu2mlu",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "-i", "--input", required=True, type=Path, metavar="X", help="a folder, or a single Python file"
    )
    args = parser.parse_args(given)
    with stoppable():
        return _convert(args.input)


def _convert(given: Path) -> int:
    from torchferry.cli import dropin, dropin_mlu_report
    from torchferry.convert.discover import check_input
    from torchferry.convert.write import Replace
    from torchferry.text import user_language

    root = check_input(given)
    source = Path(os.path.abspath(root))
    out = _output(source)
    outcome = dropin.convert(
        root,
        out,
        dropin.make_plan("cambricon"),
        lambda report: {"report.md": dropin_mlu_report.render(report, user_language())},
        Replace.OURS,
    )
    dropin.say(
        f"Official PyTorch model scripts: {source}",
        f"Cambricon PyTorch model scripts: {out}",
        f"Migration Report: {out / 'report.md'}",
    )
    return dropin.finish(outcome, str(out / "report.md"))


def _output(source: Path) -> Path:
    """X_mlu beside X; for a single file, a folder named after it."""
    from torchferry.errors import InputError

    name = source.stem if source.is_file() else source.name
    if not name:
        raise InputError(f"{source}: has no name to put _mlu after; give the folder of your scripts")
    return source.parent / f"{name}_mlu"


if __name__ == "__main__":  # python -m torchferry.cli.torch_gpu2mlu
    sys.exit(main())
