"""What a vendor's model zoo asks of a delivery; read only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors.model import Source, Vendor
from torchferry.vendors.registry import get_vendor, vendor_names
from torchferry.vendors.schema import ZOO_FILE, read_table


@dataclass(frozen=True)
class ZooTable:
    """What zoo.toml says."""

    name: str
    address: str
    layout: str  # {framework}/contrib/{domain}/{model}
    frameworks: tuple[str, ...]
    domains: tuple[str, ...]
    new_domain: Text  # what to do about another domain
    features: tuple[str, ...]  # what the training must use: distributed, amp
    relative_error: float  # of loss curves, on average
    absolute_error: float
    container: str  # how a container with the devices is started; {image}
    run_folder: str  # where the scripts that train, and the logs of both runs, lie
    test_script: str  # the short training, in that folder
    original_log: str  # the name of a log in that folder, without its suffix
    port_log: str
    steps: int  # how many are compared where a training is not run to its end; 0: not said
    start_scripts: tuple[str, ...]  # forms of the scripts that start a training; the first is made
    sources: tuple[Source, ...]

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
    if not file.exists():
        return None
    data = read_table(file)
    new_domain = data.get("new_domain", "")
    return ZooTable(
        name=data["name"],
        address=data.get("address", ""),
        layout=data["layout"],
        frameworks=tuple(data["frameworks"]),
        domains=tuple(data["domains"]),
        new_domain=Text(new_domain, data.get("new_domain_zh") or new_domain),
        features=tuple(data.get("features", ())),
        relative_error=float(data.get("relative_error", "0.05")),
        absolute_error=float(data.get("absolute_error", "0.0002")),
        container=data.get("container", ""),
        run_folder=data.get("run_folder", "run_scripts"),
        test_script=data.get("test_script", "test.sh"),
        original_log=data.get("original_log", "original"),
        port_log=data.get("port_log", "port"),
        steps=data.get("steps", 0),
        start_scripts=tuple(data.get("start_scripts", ())) or ("scripts/train.sh",),
        sources=tuple(
            Source(row["name"], row.get("version", ""), row.get("path", ""))
            for row in data.get("sources", ())
        ),
    )


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
        raise VendorError(f"no model zoo of '{name}' is known; add a {ZOO_FILE} to a vendor folder of yours")
    known = ", ".join(vendor.name for vendor, _ in found)
    raise VendorError(f"several vendors have a model zoo: {known}; choose one with --to")
