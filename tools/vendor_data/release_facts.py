"""Which versions belong together, by vendor, the newest first; what no public table says is left out."""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """One row; "3.8-3.11" are Python 3.8 to 3.11."""

    plugin: str
    torch: str
    toolkit: str = ""
    python: str = ""
    architectures: str = ""


_BOTH = "x86_64 aarch64"
# Ascend/pytorch, README.md and COMPATIBILITY.md: torch -> Pythons for which it is published.
_ASCEND_PYTHONS = {
    "1.11.0": "3.7-3.10",
    "2.0.1": "3.8-3.10",
    "2.1.0": "3.8-3.11",
    "2.2.0": "3.8-3.10",
    "2.3.1": "3.8-3.11",
    "2.4.0": "3.8-3.11",
    "2.5.1": "3.9-3.11",
    "2.6.0": "3.9-3.11",
    "2.7.1": "3.9-3.13",
    "2.8.0": "3.9-3.13",
    "2.9.0": "3.10-3.13",
    "2.10.0": "3.10-3.13",
    "2.11.0": "3.10-3.14",
    "2.12.0": "3.10-3.14",
}
# The same: CANN -> packages that go with it, each with the version of torch that it begins with.
_ASCEND = {
    "9.1": "2.12.0.post2 2.11.0.post2 2.10.0.post6 2.9.0.post8 2.7.1.post10",
    "9.1.0": "2.12.0 2.11.0 2.10.0.post4 2.9.0.post6 2.7.1.post8",
    "9.0.0": "2.10.0 2.9.0.post2 2.8.0.post4 2.7.1.post4",
    "8.5.0": "2.12.0rc1 2.11.0rc1 2.10.0rc2 2.9.0 2.8.0.post2 2.7.1.post2 2.6.0.post5",
    "8.3.RC1": "2.8.0 2.7.1 2.6.0.post3 2.1.0.post17",
    "8.2.RC1": "2.6.0 2.5.1.post1 2.1.0.post13",
    "8.1.RC1": "2.5.1 2.4.0.post4 2.3.1.post6 2.1.0.post12",
    "8.0.0": "2.4.0.post2 2.3.1.post4 2.1.0.post10",
    "8.0.RC3": "2.4.0 2.3.1.post2 2.1.0.post8",
    "8.0.RC2": "2.3.1 2.2.0.post2 2.1.0.post6 1.11.0.post14",
    "8.0.RC1": "2.2.0 2.1.0.post3 1.11.0.post11",
    "7.0.0": "2.1.0 2.0.1.post1 1.11.0.post8",
    "7.0.RC1": "2.1.0.rc1 2.0.1 1.11.0.post4",
}


def _ascend() -> tuple[Release, ...]:
    rows = []
    for toolkit, plugins in _ASCEND.items():
        for plugin in plugins.split():
            torch = next(each for each in _ASCEND_PYTHONS if plugin.startswith(each))
            rows.append(Release(plugin, torch, toolkit, _ASCEND_PYTHONS[torch], _BOTH))
    return tuple(rows)


RELEASES: dict[str, tuple[Release, ...]] = {
    "ascend": _ascend(),
    # Cambricon/torch_mlu, README.md: with CTR-SDK 2.15, whose number is not that of CNToolkit.
    "cambricon": tuple(Release(f"1.22.0+torch{torch}", torch) for torch in ("2.4.0", "2.3.0", "2.1.0")),
    "tecorigin": (
        Release("3.3", "2.12"),
        Release("3.2.1", "2.12"),
        Release("3.2.0", "2.7.1", "3.2"),
        Release("3.1", "2.7.1", "3.1"),
        Release("2", "2.4"),
        Release("1.6", "2.0"),
    ),
    "moorethreads": (
        Release("2.11.0", "2.11", "5.1 5.2"),
        Release("2.9.1", "2.9", ">=5.1"),
        Release("2.5.0", "2.5", ">=4.2"),
        Release("2.1.0", "2.5"),
        Release("1.2.1", "2.0"),
        Release("1.1.0", "2.0", "", "3.8-3.10", "x86_64"),
        Release("1.0.0", "2.0"),
    ),
    "intel": tuple(Release(f"2.{minor}", f"2.{minor}", "", "", "x86_64") for minor in range(13, 4, -1)),
}
