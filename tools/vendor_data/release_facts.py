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
    compatible: str = ""  # toolkits that do as well, by the vendor's table


class Driver(NamedTuple):
    """The drivers for a toolkit: after >= all from there on, else those that are known to go with it."""

    toolkit: str
    driver: str
    source: str


_BOTH = "x86_64 aarch64"
# Ascend/pytorch, COMPATIBILITY.md and release notes: torch -> Pythons for which it is published.
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
    "2.13.0": "3.10-3.14",
    "2.14.0": "3.10-3.14",
}
# The release notes of 26.2.0 publish these for one Python more than earlier packages of the same torch.
_ASCEND_LATER_PYTHONS = {"2.9.0.post9": "3.10-3.14", "2.10.0.post7": "3.10-3.14"}
# The same: CANN -> packages that go with it, each with the version of torch that it begins with.
_ASCEND = {
    "9.2.0": "2.14.0 2.13.0 2.12.0.post3 2.11.0.post3 2.10.0.post7 2.9.0.post9 2.7.1.post11",
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
    "8.0.RC1": "2.2.0 2.1.0.post4 2.1.0.post3 1.11.0.post11",
    "7.0.0": "2.1.0 2.0.1.post1 1.11.0.post8",
    "7.0.RC1": "2.1.0.rc1 2.0.1 1.11.0.post4",
    "6.3.RC3.1": "1.11.0.post3",
    "6.3.RC3": "1.11.0.post2",
    "6.3.RC2": "2.0.1.rc1 1.11.0.post1",
    "6.3.RC1": "1.11.0",
}
# Release notes of Ascend Extension for PyTorch 7.2.0 and of TorchNPU 26.2.0: toolkits among which packages may be moved.
_ASCEND_COMPATIBLE = (
    ("9.2.0 9.1 9.1.0 9.0.0 8.5.0", "8.5 9.0 9.1 9.2"),
    ("8.3.RC1 8.2.RC1 8.1.RC1 8.0.0", "8.0.RC2 8.0.RC3 8.0.0 8.1.RC1 8.2.RC1 8.3.RC1"),
)


def _ascend() -> tuple[Release, ...]:
    rows = []
    for toolkit, plugins in _ASCEND.items():
        compatible = next((given for named, given in _ASCEND_COMPATIBLE if toolkit in named.split()), "")
        for plugin in plugins.split():
            torch = next(each for each in _ASCEND_PYTHONS if plugin.startswith(each))
            pythons = _ASCEND_LATER_PYTHONS.get(plugin, _ASCEND_PYTHONS[torch])
            rows.append(Release(plugin, torch, toolkit, pythons, _BOTH, compatible))
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
        Release("2.7", "2.7"),
        Release("2.5.0", "2.5", ">=4.2"),
        Release("2.1.0", "2.5"),
        Release("1.2.1", "2.0"),
        Release("1.1.0", "2.0", "", "3.8-3.10", "x86_64"),
        Release("1.0.0", "2.0"),
    ),
    "intel": tuple(Release(f"2.{minor}", f"2.{minor}", "", "", "x86_64") for minor in range(13, 4, -1)),
}

_CANN_NOTES = "CANN 9.1.0 release notes: compatibility of CANN and Ascend HDK"
DRIVERS: dict[str, tuple[Driver, ...]] = {
    "ascend": (
        Driver("9.2.0", "26.2.0", "Rec SDK 26.2.0 release notes"),
        Driver("9.1", ">=25.2", _CANN_NOTES),
        Driver("9.0", ">=25.0", _CANN_NOTES),
        Driver("8.5", ">=25.0", "CANN 8.5.0 release notes: CANN and driver versions"),
        Driver("8.3.RC1", "25.3.RC1", "ascend-deployer (gitcode.com/yangpeng197): CANN_8.3.RC1.json"),
        Driver("8.2.RC1", ">=24.1.RC2", "MindIE 2.1.RC1 release notes: compatible versions"),
        Driver("8.1.RC1", "25.0.RC1", "ascend-deployer (gitcode.com/yangpeng197): CANN_8.1.RC1.json"),
        Driver("8.0.RC2", "24.1.RC2", "Index SDK 6.0.RC2 guide: CANN and Ascend HDK"),
        Driver("8.0.RC1", "24.1.RC1", "MindCluster 6.0.RC1 release notes"),
    ),
    "cambricon": (
        Driver(">=4.1", ">=6.0.3", "Cambricon/mlu-ops README: CNToolkit and driver at run time"),
        Driver("3.10.2", "5.10.31", "PaddlePaddle/PaddleNLP llm/mlu: driver and CNToolkit"),
        Driver("3.4.2", "5.10.10", "PaddlePaddle/docs: containers for MLU and output of cnmon"),
        Driver("3.0", ">=4.20.11", "PaddlePaddle/docs: driver for containers with CNToolkit 3.0"),
    ),
    "tecorigin": (
        Driver("3.2", "3.2", "TecoToolKit 3.2.1: output of teco-smi"),
        Driver("2.1", "2.1", "PaddlePaddle/PaddleCustomDevice backends/sdaa: output of teco-smi"),
        Driver("1.1.2", "1.1.2", "Tecorigin/modelzoo: output of teco-smi"),
    ),
    "moorethreads": (
        Driver("4.3.5", "3.3.5", "FlagOS on MTT S5000: driver of MUSA 4.3.5 images"),
        Driver("4.0.1", "3.0", "MUSA SDK 4.0.1 on MTT S80: output of mthreads-gmi"),
        Driver("3.1.0", "2.7", "MUSA SDK rc3.1.0: the driver that comes with it"),
    ),
    "intel": (),
}
