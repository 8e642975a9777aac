"""Reading rule files: the format by the suffix, all files of a run together."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from torchferry.convert.custom.json_format import read_json
from torchferry.convert.custom.matching import check_circles
from torchferry.convert.custom.model import CustomRules, UserRule
from torchferry.convert.custom.toml_format import read_toml
from torchferry.errors import RuleFileError

SUFFIXES = (".json", ".toml")


def load_custom_rules(*files: Path, vendors: Collection[str] = (), other: str = "") -> CustomRules:
    """Read rule files; mistakes are named with their lines and what is allowed there.

    `vendors` are the names that a rule may be limited to; `other` is how a file with another suffix is read.
    """
    rules: list[UserRule] = []
    for file in files:
        suffix = file.suffix.lower() if file.suffix.lower() in SUFFIXES else other
        if not suffix:
            raise RuleFileError(f"{file}: a rule file ends in {' or '.join(SUFFIXES)}")
        text = _text(file)
        rules += read_json(file, text) if suffix == ".json" else read_toml(file, text, vendors)
    custom = CustomRules(tuple(rules))
    check_circles(custom)
    return custom


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise RuleFileError(f"{file}: no such rule file") from None
    except IsADirectoryError:
        raise RuleFileError(f"{file}: is a folder; name the rule file in it") from None
    except OSError as error:
        raise RuleFileError(f"{file}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise RuleFileError(f"{file}: is not UTF-8; save it as UTF-8") from None
