"""Each mistake in a vendor folder: one line that names the file, the key, what was found and what is expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.errors import VendorError
from torchferry.vendors.error_patterns import load_errors
from torchferry.vendors.keys import fields_of, keys_of
from torchferry.vendors.model import Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import load_vendor
from torchferry.vendors.schema import RECORDS, meanings, record_type

REQUIRED = [name for name, key in keys_of(Vendor).items() if key.required]


def failure(folder: Path) -> str:
    with pytest.raises(VendorError) as caught:
        load_vendor(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def append(folder: Path, text: str, file: str = "vendor.toml") -> None:
    path = folder / file
    path.write_text((path.read_text() if path.exists() else "") + text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("smi = 3", ["'smi'", "a string", "the number 3"]),
        ('channels_last = "yes"', ["'channels_last'", "true or false", "the string 'yes'"]),
        ('amp_dtypes = "float16"', ["'amp_dtypes'", "a list of strings", "the string 'float16'"]),
        ("fused_optimizers = [1]", ["'fused_optimizers'", "a list of strings", "the list [1]"]),
        ("dtypes = true", ["'dtypes'", "a table of strings", "the flag true"]),
        ("[env]\nX = 1", ["'env'", "a table of strings", "{'X': 1}"]),
        ('[env_map]\nX = "two words"', ["'env_map.X'", "'two words'"]),
        ("limits = 1", ["'limits'", "a table", "the number 1"]),
        ('[limits]\nmissing_operater = "raises"', ["'limits.missing_operater'", "'missing_operator'"]),
        ('[limits]\nmissing_operator = "crash"', ["'limits.missing_operator'", '"raises"', "'crash'"]),
        ('[limits]\nraise_when = ["ACME"]', ["'limits.raise_when[1]'", "'ACME'", '["VARIABLE=1"]']),
        ('[limits]\nmissing_message = "{op}"', ["'limits.missing_message'", "{operator}, {backend}"]),
        ('[limits]\nfallback_message = "{backend}"', ["'limits.fallback_message'", "{operator}"]),
        ('[limits]\ndevice_memory = "64 GB"', ["'limits.device_memory'", '"64GiB"']),
        ("[limits]\ndevice_count = true", ["'limits.device_count'", "a whole number", "the flag true"]),
        ("[limits.dtypes]\nfloat64 = 1", ["'limits.dtypes'", "a table of tables"]),
        ("[limits.dtypes.float64]", ["'limits.dtypes.float64.narrowing' is missing"]),
        ('[limits.dtypes.int8]\nnarrowing = "x"', ["'limits.dtypes.int8.narrowing'", '"cast_as"']),
        ('data_parallel = "no"', ["'data_parallel'", '"same"', '"unsupported"', '"unknown"', "'no'"]),
        ('profiler_module = "torch profiler"', ["'profiler_module'", "'torch profiler'"]),
        ('sources = "here"', ["'sources'", "an array of tables", "the string 'here'"]),
        ('[[sources]]\nversion = "1"', ["'sources[1].name'", "missing"]),
        ('[[sources]]\nname = "x"\ncommit = "1"', ["'sources[1].commit'", "unknown key"]),
        ('visible_device_env = "X"', ["'visible_device_env'", "did you mean 'visible_devices_env'?"]),
        ("zzz = 1", ["'zzz'", "remove it, or use one of name, company"]),
        ("smi = \n", ["not valid TOML", "line 9"]),
    ],
)
def test_mistake_in_vendor_toml(acme: Path, line: str, expected: list[str]) -> None:
    append(acme, line)
    message = failure(acme)
    for part in [str(acme / "vendor.toml"), *expected]:
        assert part in message


@pytest.mark.parametrize("key", REQUIRED)
def test_required_key(acme: Path, key: str) -> None:
    file = acme / "vendor.toml"
    file.write_text(
        "".join(line for line in file.read_text().splitlines(True) if not line.startswith(f"{key} "))
    )
    assert f"{file}: key '{key}' is missing; add {key} = " in failure(acme)


def test_name_of_the_portable_target_is_taken(acme: Path) -> None:
    file = acme / "vendor.toml"
    file.write_text(file.read_text().replace('name = "acme"', 'name = "portable"'))
    assert "key 'name'" in failure(acme)


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("apis.toml", "complete = 1", ["'complete'", "true or false", "the number 1"]),
        (
            "apis.toml",
            '[apis]\n"torch.cuda.x" = "not there"',
            ["'apis.torch.cuda.x'", "'not there'", '"unsupported"'],
        ),
        ("apis.toml", '[basis]\nlist = "torch.cuda.x"', ["'basis'", "a table of lists of strings"]),
        ("apis.toml", "[api]", ["'api'", "did you mean 'apis'?"]),
        ("replacements.toml", '[[replacements]]\nuse = "x"', ["'replacements[1].cuda'", "missing"]),
        (
            "replacements.toml",
            '[[replacements]]\ncuda = "a / b"\nuse = ""',
            ["'replacements[1].cuda'", "a string that matches", "'a / b'"],
        ),
        ("replacement.toml", "", ["unknown file", "did you mean 'replacements.toml'?"]),
    ],
)
def test_mistake_in_another_table(acme: Path, file: str, text: str, expected: list[str]) -> None:
    append(acme, text, file)
    message = failure(acme)
    for part in [str(acme / file), *expected]:
        assert part in message


def test_mistake_in_errors(acme: Path) -> None:
    append(
        acme, '[[errors]]\nregex = "x"\nclass = "oom"\ncause = "y"\nremedy = "z"\nrank = "2"', "errors.toml"
    )
    with pytest.raises(VendorError, match=r"errors\.toml: key 'errors\[1\]\.rank' must be a whole number"):
        load_errors(acme)


def test_mistake_in_ops(acme: Path) -> None:
    append(acme, "# complete: yes\nadd.Tensor, mul\n", "ops.txt")
    with pytest.raises(VendorError, match=r"ops\.txt: line 2 must be .* found 'add\.Tensor, mul'"):
        load_ops(acme)


def test_not_utf8(acme: Path) -> None:
    (acme / "vendor.toml").write_bytes('company = "太初"'.encode("gbk"))
    assert "not UTF-8" in failure(acme)


def test_no_vendor_toml(tmp_path: Path) -> None:
    assert "no vendor.toml" in failure(tmp_path)


def _records(record: type) -> set[type]:
    """A record and those of its tables."""
    inner = {key.record for key in keys_of(record).values() if key.record}
    return {record}.union(*map(_records, inner))


def test_every_key_is_explained() -> None:
    """In both languages, and nothing else is."""
    records = set().union(*(_records(record_type(file)) for file in RECORDS))
    explained = {record.__name__: set(meanings(record)) for record in records}
    expected = {record.__name__: {name for _, name, _ in fields_of(record)} for record in records}
    assert explained == expected
    for record in records:
        for name, meaning in meanings(record).items():
            assert meaning.text.en and meaning.text.zh, (record, name)
            assert meaning.label is None or (meaning.label.en and meaning.label.zh)
