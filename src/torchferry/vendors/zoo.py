"""What a vendor's model zoo asks of a delivery; read only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors import keys
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names
from torchferry.vendors.schema import ZOO_FILE, read_file

_FILE_NAME = r"\w[\w.-]*"


@dataclass(frozen=True, kw_only=True)
class ZooTable:
    """What zoo.toml says."""

    name: str = keys.text('"Acme model zoo"', r".+", required=True)
    address: str = keys.text('"https://example.com/zoo"')
    layout: str = keys.text('"{framework}/contrib/{domain}/{model}"', r".+", required=True)
    frameworks: tuple[str, ...] = keys.texts('["PyTorch"]', required=True)
    domains: tuple[str, ...] = keys.texts('["Classification"]', required=True)
    new_domain: Text = keys.translated('"what to do about a domain that is not listed"')
    features: tuple[str, ...] = keys.texts('["distributed", "amp"]')
    relative_error: float = keys.fraction('"0.05"')
    absolute_error: float = keys.fraction('"0.0002"')
    container: str = keys.text('"docker run ..."')
    run_folder: str = keys.text('"run_scripts"', _FILE_NAME, "run_scripts")
    test_script: str = keys.text('"test.sh"', _FILE_NAME, "test.sh")
    original_log: str = keys.text('"cuda"', _FILE_NAME, "original")
    port_log: str = keys.text('"acme"', _FILE_NAME, "port")
    start_scripts: tuple[str, ...] = keys.texts(
        '["scripts/train.sh", "run_scripts/run_*.py"]', r"\w[\w./*-]*", ("scripts/train.sh",)
    )
    steps: int = keys.number("100")
    sources: tuple[keys.Source, ...] = keys.sources()

    @property
    def start_script(self) -> str:
        """The path of the one that is made."""
        return self.start_scripts[0]

    @property
    def test(self) -> str:
        """The path of the short training."""
        return f"{self.run_folder}/{self.test_script}"

    def launcher(self, model: str) -> str:
        """The path of the script that starts the training."""
        return f"{self.run_folder}/run_{model}.py"


def load_zoo(vendor_folder: Path) -> ZooTable | None:
    """Read zoo.toml of a vendor folder; None: the vendor has no model zoo that is known."""
    file = vendor_folder / ZOO_FILE
    return read_file(file, ZooTable) if file.exists() else None


def find_zoo(name: str | None, vendor_path: Sequence[Path]) -> tuple[Vendor, ZooTable]:
    """The zoo of this vendor, or without a name the only one that is known."""
    names = [name] if name else vendor_names(vendor_path)
    found = []
    for vendor in (get_vendor(each, vendor_path) for each in names):
        table = load_zoo(Path(vendor.folder))
        if table is not None:
            found.append((vendor, table))
    if len(found) == 1:
        return found[0]
    if name:
        raise VendorError(
            Text(
                f"no model zoo of '{name}' is known; add a {ZOO_FILE} to a vendor folder of yours",
                f"未知 '{name}' 的模型库；请在自己的厂商文件夹中添加 {ZOO_FILE}",
            )
        )
    known = ", ".join(vendor.name for vendor, _ in found)
    raise VendorError(
        Text(
            f"several vendors have a model zoo: {known}; choose one with --to",
            f"多个厂商都有模型库：{known}；请用 --to 选择",
        )
    )
