"""What `ferry migrate` is asked for, and the command of each step as a user would type it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from torchferry.report.commands import ferry_command, in_folder
from torchferry.text import Text

STEP_NAMES = ("doctor", "scan", "ops", "convert", "run", "prove", "report")
DEVICES = {
    "sim": Text("a simulated device", "模拟设备"),
    "emulate": Text("an emulated device", "仿真设备"),
    "": Text("the real device", "真实设备"),
}  # by `means`


@dataclass(frozen=True)
class MigrationRequest:
    """A program and where it goes. Paths count from the project's folder, so that the whole can be moved."""

    script: str  # from the folder where it is started
    to: str
    arguments: tuple[str, ...] = ()
    here: str = "."  # the folder where the program is started
    copy: str = ""  # the converted copy: ../project_npu
    means: str = "sim"
    steps: int = 20
    seed: int = 0
    nproc: int = 0  # 0: without torchrun
    convert_options: tuple[str, ...] = ()  # further options of `ferry convert`
    vendor_paths: tuple[str, ...] = ()

    @property
    def vendor_words(self) -> list[str]:
        """The target, as every command takes it."""
        return ["--to", self.to, *(word for path in self.vendor_paths for word in ("--vendor-path", path))]

    @property
    def _several(self) -> list[str]:
        return ["--nproc", str(self.nproc)] if self.nproc else []

    @property
    def _device(self) -> list[str]:
        return [f"--{self.means}"] if self.means else []

    @property
    def in_copy(self) -> str:
        """The folder of the converted copy where the program is started."""
        return os.path.normpath(os.path.join(self.copy, self.here))

    def words(self, step: str, force: bool = False) -> list[str]:
        """The words after `ferry` of a step's command."""
        steps, seed = ["--steps", str(self.steps)], ["--seed", str(self.seed)]
        program = [self.script, *self.arguments]
        back = os.path.relpath(".", self.here)
        if step == "doctor":
            emulate = ["--emulate"] if self.means == "emulate" else []
            return ["doctor", *self.vendor_words, *self._several, *emulate]
        if step == "scan":
            return ["scan", back, *self.vendor_words, *self.convert_options]
        if step == "ops":
            return ["ops", *self.vendor_words, *self._several, *program]
        if step == "convert":
            output = ["-o", os.path.normpath(os.path.join(back, self.copy))]
            forced = ["--force"] if force else []
            return ["convert", back, *self.vendor_words, *self.convert_options, *output, *forced]
        if step == "run":
            several = self._several or (["--devices", "1"] if self.means else [])
            return ["run", *self.vendor_words, *self._device, "--converted", *steps, *several, *program]
        if step == "prove":
            emulate = ["--emulate"] if self.means == "emulate" else []
            converted = os.path.normpath(os.path.join(back, self.in_copy, self.script))
            sides = ["--before", self.script, "--after", converted]
            arguments = ["--", *self.arguments] if self.arguments else []
            return ["prove", *self.vendor_words, *steps, *seed, *self._several, *emulate, *sides, *arguments]
        return ["report"]

    def folder_of(self, step: str) -> str:
        """Where the step's command is started, from the project's folder."""
        return self.in_copy if step == "run" else self.here

    def by_hand(self, step: str, force: bool = False) -> str:
        """The command, ready to be pasted into a shell in the folder where the program is started."""
        line = ferry_command(*self.words(step, force))
        folder = os.path.relpath(self.folder_of(step), self.here)
        return in_folder(folder, line)


def request_of(
    script: Path, project: Path, here: Path, device_type: str, copy: Path | None, **choices: object
) -> MigrationRequest:
    """The request for a program that lies in a project and is started in a folder."""
    root = project.resolve()
    start = here.resolve() if here.resolve().is_relative_to(root) else root
    place = script.resolve() if script.is_absolute() else (here / script).resolve()
    output = copy.resolve() if copy is not None else root.with_name(f"{root.name}_{device_type}")
    return MigrationRequest(
        script=os.path.relpath(place, start),
        here=os.path.relpath(start, root),
        copy=os.path.relpath(output, root),
        **choices,  # type: ignore[arg-type]
    )
