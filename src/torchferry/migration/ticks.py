"""What was ticked off: exported by a page, kept in the migration folder, shown by the next pages."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from torchferry.errors import InputError
from torchferry.migration.folder import MigrationFolder
from torchferry.report.html import data_for_script
from torchferry.text import Text

_FORMAT, _LIST = "torchferry-ticks", "done"
_NOT_TICKS = Text(
    "{path}: not a file of ticks; export one with the button `Export ticks` of a page",
    "{path}：不是勾选文件；请用页面上的“导出勾选”按钮导出",
)


def keep_ticks(folder: MigrationFolder, path: Path) -> list[str]:
    """What a page has exported takes the place of what was kept before."""
    names = _read(path)
    earlier = folder.decisions().get(_LIST, [])
    return folder.decide(_LIST, names, [name for name in earlier if name not in names])


def _read(path: Path) -> list[str]:
    try:
        document = json.loads(path.read_bytes())
        if document["format"] != _FORMAT:
            raise ValueError
        return [str(each["fingerprint"]) for each in document["ticked"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(_NOT_TICKS.format(path=path)) from None


def ticks_for_script(folder: MigrationFolder) -> str:
    """The ticks for the page's script; their stamp says whether a browser has seen them before."""
    names = sorted(folder.decisions().get(_LIST, []))
    stamp = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    return data_for_script({"names": names, "stamp": stamp}, "ticks")
