"""The log that a vendor's runtime writes on the host, line by line as operators are called on the simulated device."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from torchferry.observe.modes import ObservingMode
from torchferry.observe.operators import (
    SKIPPED_NAMESPACES,
    base_name,
    consists_of_others,
    is_view,
    written_to,
)
from torchferry.vendors.host import HostLog, load_host
from torchferry.vendors.model import Vendor

_PICTURES, _PLAIN = "NCHW", "ND"  # names of formats, for tensors of four dimensions and for all others


def install(vendor: Vendor, environment: Mapping[str, str]) -> None:
    """Write the log from now on, on stdout, if the variables of the vendor's runtime ask for it."""
    log = load_host(Path(vendor.folder)).host_log
    if log is None or not log.written_when:
        return
    conditions = (condition.partition("=") for condition in log.written_when)
    if all(re.fullmatch(value, environment.get(name, "")) for name, _, value in conditions):
        HostLogMode(log, vendor.device_type).switch_on()


class HostLogMode(ObservingMode):  # type: ignore[no-untyped-call]
    """Writes a line for each operator with a tensor of the device, and one more where its shapes are new: a device
    that compiles operators compiles it then. Types of operators are PyTorch's names: there are no kernels with others."""

    def __init__(self, log: HostLog, device: str) -> None:
        super().__init__()
        self._log = log
        self._device = device
        self._dtypes = {name: code for code, name in log.dtypes.items()}
        self._formats = {name: code for code, name in log.formats.items()}
        self._compiled: set[tuple[str, str]] = set()

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call, then tell of it."""
        if any(map(consists_of_others, types)):
            return NotImplemented  # the operators of its parts come next
        if getattr(func, "namespace", "") in SKIPPED_NAMESPACES or is_view(func):
            return func(*args, **kwargs)
        given = list(self._of_device((*args, *kwargs.values())))
        result = func(*args, **kwargs)
        made = list(self._of_device([result]))
        if made or (given and written_to(func)):
            # NativeBatchNorm for native_batch_norm
            kind = "".join(part[:1].upper() + part[1:] for part in base_name(func).split("_") if part)
            self._tell(kind, self._described("In", given), self._described("Out", made))
        return result

    def _of_device(self, values: Iterable[Any]) -> Iterator[torch.Tensor]:
        for value in values:
            if isinstance(value, torch.Tensor):
                if value.device.type == self._device:
                    yield value
            elif isinstance(value, (list, tuple)):
                yield from self._of_device(value)

    def _described(self, side: str, tensors: list[torch.Tensor]) -> str:
        return " ".join(
            self._log.tensor_text.format(
                side=side,
                number=number,
                dtype=self._dtypes.get(str(tensor.dtype).removeprefix("torch."), "-1"),
                format=self._formats.get(_PICTURES if tensor.dim() == 4 else _PLAIN, "-1"),
                shape=", ".join(map(str, tensor.shape)),
            )
            for number, tensor in enumerate(tensors)
        )

    def _tell(self, kind: str, given: str, made: str) -> None:
        known = {
            "process": os.getpid(),
            "thread": threading.get_native_id(),
            "time": datetime.now().strftime("%Y-%m-%d-%H:%M:%S.%f")[:-3],
            "type": kind,
        }
        lines = [self._log.operator_text.format(**known, tensors=f"{given} {made}".strip())]
        if (kind, given) not in self._compiled:
            self._compiled.add((kind, given))
            lines.append(self._log.compile_text.format(**known))
        longest = self._log.line_limit or None
        sys.stdout.write("".join(f"{line[:longest]}\n" for line in lines))
