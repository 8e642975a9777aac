"""The recorder as a block of code: `with torchferry.accuracy.dumper(use_dump=True, dump_path="gpu.h5"):`."""

from __future__ import annotations

import os
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.errors import RunError, no_place
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

_ACL = "acl.json"


class Dumper:
    """Records, replays or checks the operators that are called inside of it; one at a time.

    use_dump records them into `dump_path`; with `load_file_path`, each is given the inputs that it has in that record.
    use_load does the latter as well, and with load_with_acl_dump dumps what the device computes of the operators in
    that record as the file acl.json says. check_overflow says which operator is the first to make inf or nan, and
    saves it to `dump_path`. A `dump_path` that is missing or a folder becomes a file named after the time.
    """

    _is_one_at_work = False

    def __init__(
        self,
        enabled: bool = True,
        use_dump: bool = False,
        use_load: bool = False,
        check_overflow: bool = False,
        dump_path: str | os.PathLike[str] | None = None,
        load_file_path: str | os.PathLike[str] | None = None,
        load_with_acl_dump: bool = False,
    ) -> None:
        switches = {"use_dump": use_dump, "use_load": use_load, "check_overflow": check_overflow}
        for name, value in {**switches, "load_with_acl_dump": load_with_acl_dump}.items():
            if not isinstance(value, bool):
                raise RunError(
                    Text(
                        f"dumper: {name} must be True or False, not {value!r}",
                        f"dumper：{name} 必须为 True 或 False，而不是 {value!r}",
                    )
                )
        chosen = [name for name, value in switches.items() if value]
        if len(chosen) > 1:
            raise RunError(
                Text(
                    f"dumper: {' and '.join(chosen)} can't be used together; leave one out",
                    f"dumper：{'、'.join(chosen)} 不能同时使用；请去掉其中一个",
                )
            )
        if use_load and not load_file_path:
            raise RunError(
                Text(
                    "dumper: use_load needs a recording; name it with load_file_path",
                    "dumper：use_load 需要一份记录；请用 load_file_path 指定",
                )
            )
        if load_with_acl_dump and not use_load:
            raise RunError(
                Text(
                    "dumper: load_with_acl_dump needs use_load=True",
                    "dumper：load_with_acl_dump 需要同时设置 use_load=True",
                )
            )
        self.enabled = enabled and bool(chosen)
        self.check_overflow = check_overflow
        self.load_with_acl_dump = load_with_acl_dump
        self.load_file_path = Path(load_file_path) if load_file_path else None
        self.path = _output_file(dump_path) if self.enabled else None  # what is written
        self.paired = 0  # operators that were given recorded inputs
        self._stack = ExitStack()

    def __enter__(self) -> Dumper:
        if not self.enabled:
            return self
        if Dumper._is_one_at_work:
            raise RunError(
                Text(
                    "dumper: another dumper is active, and dumpers can't be nested; end it first",
                    "dumper：已有另一个 dumper 在工作，且不能嵌套；请先结束它",
                )
            )
        with ExitStack() as stack:
            if self.check_overflow:
                from torchferry.accuracy.overflow import check_block

                stack.enter_context(check_block(self.path))
            else:
                self._record(stack)
            Dumper._is_one_at_work = True
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            Dumper._is_one_at_work = False
            self._stack.close()

    def _record(self, stack: ExitStack) -> None:
        from torchferry.accuracy.model import Kept
        from torchferry.accuracy.record.program import header_of, shares_randomness
        from torchferry.accuracy.record.recorder import Recorder
        from torchferry.accuracy.record.replaying import ReplayingMode

        golden = self._golden(stack)
        header = header_of(Kept.TENSORS, replayed="" if golden is None else str(golden.path))
        # before the file is there: one that can't be filled is not left behind
        around = self._dumping(header.device, header.simulated) if self.load_with_acl_dump else None
        assert self.path is not None
        recorder = Recorder(self.path, header)
        stack.callback(recorder.stop)
        recorder.start()
        if golden is not None:
            replaying = ReplayingMode(golden, recorder.forget, shares_randomness())
            replaying.around = around
            stack.callback(self._count, replaying)
            stack.callback(replaying.switch_off)
            replaying.switch_on()

    def _golden(self, stack: ExitStack) -> Record | None:
        if self.load_file_path is None:
            return None
        from torchferry.accuracy.file.reader import open_record

        assert self.path is not None
        if self.load_file_path.resolve() == self.path.resolve():
            raise RunError(
                Text(
                    f"dumper: {self.path} can't be read and written at once; choose another dump_path",
                    f"dumper：{self.path} 不能同时读写；请另设 dump_path",
                )
            )
        return stack.enter_context(open_record(self.load_file_path))

    def _dumping(self, device: str, is_simulated: bool) -> Any:
        """What dumps one call of the device, as acl.json says."""
        if not is_simulated:
            raise RunError(
                Text(
                    "dumper: load_with_acl_dump needs a simulated device (ferry run --sim); on a real device only "
                    "its runtime can dump kernels: call its dump functions around the operator",
                    "dumper：load_with_acl_dump 需要模拟设备（ferry run --sim）；真实设备的 kernel 只能由其运行时 "
                    "dump：请在算子前后调用运行时的 dump 函数",
                )
            )
        from torchferry.accuracy.dump.mode import DumpingMode, read_configuration

        mode = DumpingMode(read_configuration(_ACL), device)

        def dumped(call: Any) -> Any:
            with mode:
                return call()

        return dumped

    def _count(self, replaying: Any) -> None:
        self.paired = replaying.pairing.paired


def _output_file(dump_path: str | os.PathLike[str] | None) -> Path:
    path = Path(dump_path) if dump_path else Path()
    if path.is_dir():
        path = path / f"{datetime.now():%Y%m%d_%H%M%S.%f}.h5"
    if not path.parent.is_dir():
        raise no_place(f"dumper: {path}")
    return path
