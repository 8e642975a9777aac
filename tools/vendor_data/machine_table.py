"""Makes machine.toml: what a machine needs for the device, and the matrix of versions."""

from __future__ import annotations

from vendor_data import toml
from vendor_data.machine_facts import MACHINES
from vendor_data.release_facts import DRIVERS, RELEASES, Driver, Release


def machine_toml(name: str) -> str:
    """The text of machine.toml."""
    facts = MACHINES[name]
    sections = ("plugin", "toolkit", "driver", "devices", "smi", "network")
    return (
        toml.HEADER
        + "# A version fits an entry that it begins with, as 8.1.RC1.beta1 fits 8.1.RC1, or one after >=.\n"
        + toml.pairs(facts.head)
        + "".join(toml.table(section, getattr(facts, section)) for section in sections)
        + toml.tables("releases", map(_row, RELEASES[name]))
        + toml.tables("drivers", map(_driver, DRIVERS[name]))
        + toml.tables("sources", [{**source} for source in facts.sources])
    )


def _row(release: Release) -> dict[str, toml.Value]:
    row: dict[str, toml.Value] = {"plugin": release.plugin, "torch": release.torch}
    lists = {
        "toolkit": release.toolkit.split(),
        "compatible": release.compatible.split(),
        "python": _pythons(release.python),
        "architectures": release.architectures.split(),
    }
    return row | {key: value for key, value in lists.items() if value}


def _driver(row: Driver) -> dict[str, toml.Value]:
    return {"toolkit": row.toolkit, "driver": row.driver.split(), "source": row.source}


def _pythons(span: str) -> list[str]:
    """3.8-3.10 as 3.8, 3.9, 3.10."""
    if not span:
        return []
    first, last = (int(version.partition(".")[2]) for version in span.split("-"))
    return [f"3.{minor}" for minor in range(first, last + 1)]
