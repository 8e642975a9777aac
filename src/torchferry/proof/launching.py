"""Where the runs of a proof put their records and reports, and what is compiled before them. Imports no torch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.emulate.plugins import refuse_without_emulation
from torchferry.errors import OutputError
from torchferry.files import written
from torchferry.files.aside import folder_aside, remove_leftovers
from torchferry.launch.place import DeviceKind, Place, build_for
from torchferry.launch.plugin import refuse_without_plugin
from torchferry.launch.program import check_script
from torchferry.proof.model import Proof
from torchferry.proof.prover import prove
from torchferry.proof.report import REPORTS
from torchferry.proof.runs import ProofPlan, Runner, Watch
from torchferry.report.formats import Options
from torchferry.text import Language
from torchferry.vendors.model import Vendor

if TYPE_CHECKING:
    from torchferry.building.build import Progress

_PROOF = "proof.json"


def run_proof(
    plan: ProofPlan,
    output: Path | None = None,
    language: Language = "en",
    watch: Watch | None = None,
    on_end: Callable[[Proof, Path], None] | None = None,
    progress: Progress | None = None,
) -> tuple[Path | None, Proof]:
    """Run a proof and keep it in `output`; answers where what was there is kept, if it is not a proof's alone.

    `on_end` gets the proof and the folder with the logs of its runs, which is gone afterwards without an output.
    """
    _check_scripts(plan)
    if output:
        check_output(output)
    build_devices(plan, progress)
    with proof_folders(output) as folders:
        runner = Runner(plan, folders.records, folders.kept, watch or unwatched)
        proof = prove(plan.request, plan.vendors, runner)
        write_reports(proof, folders.kept, language)
        if on_end is not None:
            on_end(proof, folders.kept)
    return folders.earlier, proof


def unwatched(name: str, folder: Path, steps: int | None) -> AbstractContextManager[None]:
    """No progress of a run is shown."""
    return nullcontext()


def refuse_unprovable(vendor: Vendor, emulate: bool) -> None:
    """Complain of a vendor whose device can't be simulated, or not be emulated where that is asked for."""
    refuse_without_plugin(vendor)
    if emulate:
        refuse_without_emulation(vendor)


def places_of(
    vendors: Sequence[Vendor],
    emulate: bool,
    converted: bool,
    devices: int,
    memory: int | str | None,
    vendor_paths: tuple[str, ...],
) -> tuple[Place, ...]:
    """Where the migrated program runs, for each vendor."""
    kind = DeviceKind.EMULATED if emulate else DeviceKind.SIMULATED
    return tuple(
        Place(kind, vendor, vendor_paths, devices, memory, converted=converted, shared_randomness=True)
        for vendor in vendors
    )


def _check_scripts(plan: ProofPlan) -> None:
    """All scripts must be there before anything is built or run."""
    if plan.original.is_module:
        return
    check_script(plan.original.target)
    if plan.converted is not None:
        for vendor in plan.vendors:
            check_script(plan.converted.target.replace("{vendor}", vendor.name))


def build_devices(plan: ProofPlan, progress: Progress | None = None) -> None:
    """Compile what the places of all runs need; the original on the CPU needs the simulated device's library, too."""
    for place in (*plan.places, plan.place_of(None)):  # a device that is not set up is said at once
        build_for(place, progress)


def check_output(folder: Path) -> None:
    """Raise before the runs, not after them, if a proof can't be written to this folder."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OutputError(f"{folder}: is no folder; choose another name")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _PROOF).is_file():
        raise OutputError(f"{folder}: is not empty and holds no proof; choose another folder")
    parent = Path(os.path.abspath(folder)).parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(f"{folder}: can't be written to {parent}; name a folder in one that exists")


@dataclass
class ProofFolders:
    """The folders of a proof while it is made."""

    records: Path  # nobody keeps it
    kept: Path  # becomes the output
    earlier: Path | None = None  # where an earlier output is to which something was added


@contextmanager
def proof_folders(output: Path | None) -> Iterator[ProofFolders]:
    """Make the folders; what was to be kept is the output when the block has ended well, and gone if it has not."""
    place = None if output is None else Path(os.path.abspath(output))
    parent = Path(tempfile.gettempdir() if place is None else place).resolve()
    parent = parent if place is None else parent.parent
    remove_leftovers(parent)
    with folder_aside(parent) as aside:
        folders = ProofFolders(aside.path / "records", aside.path / "new")
        folders.records.mkdir()
        folders.kept.mkdir()
        yield folders
        if place is not None:
            proof = folders.kept / _PROOF
            proof.write_bytes(written.with_list(proof.read_bytes(), _PROOF, written.digests(folders.kept)))
            folders.earlier = aside.replace(folders.kept, place, lambda old: not written.foreign(old, _PROOF))


def write_reports(proof: Proof, folder: Path, language: Language) -> None:
    """Write proof.json and proof.html, which shows how the runs' logs end."""
    from torchferry.proof.report.sentences import log_tails

    REPORTS.write(proof, folder / _PROOF)
    REPORTS.write(proof, folder / "proof.html", Options(language, logs=log_tails(proof, folder)))
