"""Vendors of the user: by folder, by folder of folders, by entry point; and names that nobody knows."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from torchferry.errors import VendorError
from torchferry.vendors.model import Support
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import ENTRY_POINT_GROUP, get_vendor, vendor_names


def test_minimal_vendor_is_otherwise_unknown(acme: Path) -> None:
    vendor = get_vendor("acme", [acme])
    assert vendor.smi == vendor.amp_module == vendor.triton == ""
    assert vendor.apis == {} and not vendor.apis_complete
    assert vendor.data_parallel is Support.UNKNOWN
    assert vendor.api("torch.cuda.set_device").support is Support.UNKNOWN
    assert load_ops(acme).has_kernel("add.Tensor") is None
    assert vendor.folder == str(acme)


def test_folder_of_folders(acme: Path) -> None:
    assert vendor_names([acme.parent]) == sorted([*vendor_names(), "acme"])


def test_user_vendor_overrides_a_built_in_one(acme: Path) -> None:
    name = vendor_names()[0]
    file = acme / "vendor.toml"
    file.write_text(file.read_text().replace('name = "acme"', f'name = "{name}"'))
    assert get_vendor(name).company != "Acme Ltd"
    assert get_vendor(name, [acme]).company == "Acme Ltd"


@pytest.mark.parametrize(("what", "message"), [("missing", "no such folder"), ("", "no vendor.toml")])
def test_bad_folder(tmp_path: Path, what: str, message: str) -> None:
    with pytest.raises(VendorError, match=message):
        vendor_names([tmp_path / what])


def test_unknown_name() -> None:
    with pytest.raises(VendorError) as caught:
        get_vendor("asend")
    message = str(caught.value)
    assert "unknown vendor 'asend'" in message and "did you mean 'ascend'?" in message
    assert all(name in message for name in vendor_names())


@pytest.fixture
def entry_point(monkeypatch: pytest.MonkeyPatch, acme: Path) -> Path:
    """An installed package that declares the entry point `acme`; its module lies in the vendor folder."""
    root = acme.parent
    info = root / "acme_vendor-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-vendor\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\nacme = acme\n")
    monkeypatch.syspath_prepend(root)
    monkeypatch.delitem(sys.modules, "acme", raising=False)
    assert [entry.name for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)] == ["acme"]
    yield info / "entry_points.txt"
    sys.modules.pop("acme", None)


def test_entry_point_to_a_module(entry_point: Path, acme: Path) -> None:
    (acme / "__init__.py").write_text("")
    assert "acme" in vendor_names()
    assert get_vendor("acme").company == "Acme Ltd"


def test_entry_point_to_a_folder_without_code(entry_point: Path) -> None:
    assert get_vendor("acme").company == "Acme Ltd"


def test_entry_point_to_a_path(entry_point: Path, acme: Path) -> None:
    (acme / "__init__.py").write_text("FOLDER = __path__[0]\n")
    entry_point.write_text(f"[{ENTRY_POINT_GROUP}]\nacme = acme:FOLDER\n")
    assert get_vendor("acme").folder == str(acme)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("acme = no_such_module", "can't be loaded .* uninstall its package"),
        ("acme = json", "is not a vendor folder"),
        ("other = acme", "leads to the vendor 'acme'; give both the same name"),
    ],
)
def test_broken_entry_point_hurts_only_its_own_vendor(entry_point: Path, declared: str, message: str) -> None:
    entry_point.write_text(f"[{ENTRY_POINT_GROUP}]\n{declared}\n")
    for name in vendor_names():
        if name == declared.split()[0]:
            with pytest.raises(VendorError, match=message):
                get_vendor(name)
        else:
            assert get_vendor(name).name == name
