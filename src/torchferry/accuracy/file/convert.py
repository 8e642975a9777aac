"""Writes the tensors of a record as .npy files or as texts, a folder for each call; or all of it as msprobe does."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.accuracy.file.api_dump_writer import Progress, write_api_dump
from torchferry.accuracy.file.call_json import encoded_call
from torchferry.accuracy.file.contents import shaped
from torchferry.accuracy.file.dumps import DumpRecord
from torchferry.accuracy.file.reader import Record, open_record, open_records
from torchferry.accuracy.model import INPUT, OUTPUT, Kept, TensorRecord
from torchferry.accuracy.native.standin import float8_values
from torchferry.errors import InputError, OutputError, not_writable
from torchferry.files.aside import folder_aside, remove_leftovers
from torchferry.text import Text

_LONGEST = 120  # letters of a name; file systems allow 255 bytes
_AT_ONCE = 1 << 16  # values of a text that are in memory as Python's
_RELEASED = 64  # calls after which memory is given back
_PLAIN = re.compile(r"[^A-Za-z0-9_.\-]")


class Form(str, Enum):
    """The form in which tensors are written."""

    NPY = "npy"
    TXT = "txt"


def convert(
    path: Path, folder: Path, form: Form, progress: Callable[[int, int], None] = lambda done, total: None
) -> int:
    """Write every tensor whose contents were recorded; how many. The folder appears whole or not at all.

    <folder>/<number>_<operator>/ has call.json, and below it the names of the tensors. Values are in the order of
    the tensor's indices; floats that numpy does not have are written as float32, which holds them exactly.
    """
    with open_record(path) as record:
        if record.header.kept is Kept.STATISTICS:
            raise InputError(
                Text(
                    f"{path}: holds statistics but no tensors; record with --tensors to keep them",
                    f"{path}：只有统计值，没有张量；如需张量请用 --tensors 记录",
                )
            )
        with _new_folder(folder) as made:
            return _write_calls(record, made, form, progress)


def convert_to_api_dump(path: Path, folder: Path, progress: Progress | None = None) -> int:
    """Write the records of all ranks in the form of msprobe's dumps; how many tensors. The folder appears whole or not
    at all."""
    count = 0
    with ExitStack() as stack:
        records = [stack.enter_context(each) for each in open_records(path)]
        with _new_folder(folder) as made:
            for record in records:
                count += write_api_dump(record, made, progress)
    return count


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which is in its place when the block has ended well."""
    try:
        if folder.exists() and not folder.is_dir():
            raise OutputError(Text(f"{folder}: is a file; name a folder", f"{folder}：是文件；请给出文件夹"))
        if folder.is_dir() and any(folder.iterdir()):
            raise OutputError(
                Text(f"{folder}: not empty; name a new folder", f"{folder}：文件夹非空；请给出新文件夹")
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder.parent)
        with folder_aside(folder.parent) as aside:
            made = aside.path / "made"
            made.mkdir()
            yield made
            if folder.is_dir():
                folder.rmdir()
            made.replace(folder)
    except OSError as error:
        raise not_writable(folder, error) from None


def write_dump_files(record: DumpRecord, folder: Path) -> int:
    """The tensors of dump files as Ascend's tool names them, FILE.input.0.npy; how many. What is there is replaced."""
    count = 0
    for at, call in enumerate(record.calls):
        for side, tensors in ((INPUT, call.inputs), (OUTPUT, call.outputs)):
            for place, tensor in enumerate(tensors):
                if tensor.offset is None:
                    continue
                file = folder / f"{record.file_of(at).name}.{side}.{place}.npy"
                try:
                    _write_tensor(record, tensor, file, Form.NPY)
                except OSError as error:
                    raise not_writable(file, error) from None
                count += 1
    return count


def _write_calls(record: Record, folder: Path, form: Form, progress: Callable[[int, int], None]) -> int:
    total, count = len(record.calls), 0
    digits = len(str(total))
    for done, call in enumerate(record.calls, 1):
        place = folder / f"{call.number:0{digits}}_{_safe(call.group)}"
        place.mkdir(exist_ok=True)
        text = json.dumps(json.loads(encoded_call(call)), indent=1)
        (place / "call.json").write_text(text + "\n", encoding="utf-8")
        used: set[str] = {"call.json"}
        for tensor in (*call.inputs, *call.outputs):
            kept, end = tensor.kept_part or tensor, ".slices" if tensor.part else ""
            if kept.offset is not None:
                _write_tensor(record, kept, _free(place, f"{kept.name}{end}", form, used), form)
                count += 1
        progress(done, total)
        if done % _RELEASED == 0:
            record.release()
    return count


def _free(folder: Path, name: str, form: Form, used: set[str]) -> Path:
    """A file for a tensor of this name that no other has; also where case makes no difference."""
    parts = [_safe(part) for part in name.split("/") if part] or ["_"]
    plain, count = "/".join(parts), 1
    chosen = f"{plain}.{form.value}"
    while chosen.casefold() in used:
        count += 1
        chosen = f"{plain}-{count}.{form.value}"
    used.add(chosen.casefold())
    file = folder / chosen
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _safe(name: str) -> str:
    """A name that is a plain file's everywhere: other letters are written as their numbers."""
    plain = _PLAIN.sub(lambda match: "".join(f"%{byte:02X}" for byte in _bytes(match[0])), name)
    if plain.startswith("."):
        plain = f"%2E{plain[1:]}"
    if len(plain) > _LONGEST:
        plain = f"{plain[:_LONGEST]}~{hashlib.sha256(_bytes(name)).hexdigest()[:12]}"
    return plain or "_"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _write_tensor(record: Record, tensor: TensorRecord, file: Path, form: Form) -> None:
    values = shaped(_readable(record, tensor), tensor)
    if form is Form.NPY:
        np.save(file, values, allow_pickle=False)
        return
    with file.open("w", encoding="ascii") as text:
        text.write(f"# shape: {'x'.join(map(str, tensor.shape)) or 'scalar'}\n# dtype: {tensor.dtype}\n")
        flat = values.reshape(-1)
        for start in range(0, flat.size, _AT_ONCE):
            text.write("\n".join(map(repr, flat[start : start + _AT_ONCE].tolist())) + "\n")


def _readable(record: Record, tensor: TensorRecord) -> np.ndarray[Any, Any]:
    """A tensor's elements, flat, in a dtype that numpy computes with."""
    array = record.array(tensor)
    if tensor.dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if tensor.dtype == "complex32":
        return array.view(np.float16).astype(np.float32).view(np.complex64)
    if tensor.dtype.startswith("float8"):
        table: np.ndarray[Any, Any] = float8_values(tensor.dtype).astype(np.float32)
        array = table[array]
    return array
