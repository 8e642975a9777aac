"""The observer of calls in C++, for records of statistics: what `calls.py` and `layout.py` do for each tensor costs Python
more than most operators take. Compiled once for the installed PyTorch, by the command that starts the program; a process
in which it is not there does without."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.building import cache as build_cache
from torchferry.building.build import Library, NativeBuild, Product, Progress, ProgressLine, silent
from torchferry.building.toolchain import compile_flags, find_torch, path_flags
from torchferry.errors import BuildError
from torchferry.text import Text

if TYPE_CHECKING:
    import torch

    from torchferry.accuracy.record.layout import KnownContents, Layouts, TensorLayout
    from torchferry.accuracy.record.sinks import Sink, StatisticsSink
    from torchferry.observe.where import Whereabouts

_MODULE = "torchferry_calls"
SOURCES = Path(__file__).parent / "csrc"
_CACHE = "observer"


def build(progress: Progress | None = None) -> Path | None:
    """Where the library is; it is compiled if it must be. None: it can't be, and recording takes longer."""
    try:
        name, made = _described()
        found = _found(name, made)
        return found or made.in_cache(build_cache.writable_folder(_CACHE), progress or ProgressLine()) / name
    except (BuildError, OSError):
        return None


def _described() -> tuple[str, NativeBuild]:
    headers = Path(sysconfig.get_path("include"))
    if sys.platform != "linux" or not (headers / "Python.h").is_file():
        raise BuildError(
            Text(
                "the compiled observer needs Linux and Python's headers",
                "编译的观察器需要 Linux 和 Python 头文件",
            )
        )
    torch = find_torch()
    name = f"{_MODULE}{sysconfig.get_config_var('EXT_SUFFIX')}"
    library = Library(
        name,
        tuple(sorted(SOURCES.glob("*.cpp"))),
        headers=tuple(sorted(SOURCES.glob("*.h"))),
        flags=compile_flags(torch),
        path_flags=(*path_flags(torch, SOURCES), "-isystem", str(headers)),
        key_words=(sys.version,),
        torch_libraries=("torch_python", "torch_cpu", "c10"),
        is_for_python=True,
    )
    return name, NativeBuild(torch, Product((library,), Text("the call recorder", "调用记录器")))


def _found(name: str, made: NativeBuild) -> Path | None:
    path = build_cache.folder(_CACHE) / made.key / name
    if not path.is_file() or not build_cache.is_safe_to_load(path):
        return None
    build_cache.mark_used(path.parent)
    return path


def observer_of(contents: KnownContents, layouts: Layouts, sink: Sink, where: Whereabouts) -> tuple[Any, Any]:
    """What looks at the calls of a record, and what keeps account of contents for it: one object of C++'s, if it is a
    record of statistics and the library is there."""
    from torchferry.accuracy.record.calls import CallObserver
    from torchferry.accuracy.record.sinks import StatisticsSink

    quick = quick_observer(layouts, sink, where) if type(sink) is StatisticsSink else None
    return (CallObserver(contents, layouts, sink, where), contents) if quick is None else (quick, quick)


def quick_observer(layouts: Layouts, sink: StatisticsSink, where: Whereabouts) -> Any:
    """One that does what a CallObserver and KnownContents do together; None where the library is not there."""
    try:
        path = _found(*_described())
        if path is None:
            return None
        loaded = _loaded(path)
        where.find_site = loaded.Sites(where).site
        return loaded.QuickObserver(_Helpers(layouts, sink, where))
    except (BuildError, OSError, ImportError, NotImplementedError):
        return None


Hook = Callable[[Any], None]


def gradient_watcher(observer: Any) -> Callable[[torch.Tensor, Hook], object]:
    """What has a function called with the gradient of a tensor; RuntimeError for tensors that have none."""
    loaded = sys.modules.get(_MODULE)
    if loaded is not None and isinstance(observer, loaded.QuickObserver):
        watch: Callable[[torch.Tensor, Hook], object] = loaded.watch_gradient
        return watch
    return lambda tensor, hook: tensor.register_hook(hook)  # type: ignore[no-untyped-call]


def library() -> Any:
    """The library, compiled if it must be; ImportError where it can't be."""
    path = build(silent)
    if path is None:
        raise ImportError(
            "what reads tensors of devices can't be compiled here: no C++ compiler, or no Python.h"
        )
    return _loaded(path)


def _loaded(path: Path) -> Any:
    module = sys.modules.get(_MODULE)
    if module is None:
        spec = spec_from_file_location(_MODULE, path, loader=ExtensionFileLoader(_MODULE, str(path)))
        if spec is None or spec.loader is None:
            raise ImportError(str(path))
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[_MODULE] = module
    return module


class _Helpers:
    """What C++ asks of Python: for unusual tensors, for layouts and signatures that are new, to write and to launch."""

    def __init__(self, layouts: Layouts, sink: StatisticsSink, where: Whereabouts) -> None:
        import torch

        from torchferry.accuracy.native.library import SHORT, kernels
        from torchferry.accuracy.record.calls import UNDER_WAY, key_of_odd
        from torchferry.accuracy.record.layout import is_shared, synchronize
        from torchferry.accuracy.record.sinks import refuse_capturing
        from torchferry.observe.operators import OVERWRITTEN, UNINITIALISED
        from torchferry.observe.where import BUFFER, PARAMETER

        self.layout_of, self.layout_of_any = layouts.of, layouts.of_any
        self.is_shared: Callable[[torch.Tensor], bool] = lambda tensor: is_shared(tensor.untyped_storage())
        self.row, self.address, self.empty = sink.row, sink.address, sink.empty_number
        self.put, self.launch, self.write = sink.put, sink.read, sink.put_call
        self.rows_block, self.calls_block, self.contents_block = sink.blocks
        self.queue_for, self.refuse_capturing = sink.queue_for, refuse_capturing
        self._numbers_of = sink.numbers_of
        self.synchronize: Callable[[TensorLayout], None] = lambda layout: synchronize(
            layout.device.partition(":")[0]
        )
        self.key_of_odd = key_of_odd
        self.where = where
        self.acquire, self.release = sink.lock.acquire, sink.lock.release
        self.parameter, self.buffer, self.no_role = PARAMETER, BUFFER, ""
        self.overwritten, self.uninitialised, self.under_way = OVERWRITTEN, UNINITIALISED, UNDER_WAY
        self.tensor_type, self.parameter_type, self.dtype_type = torch.Tensor, torch.nn.Parameter, torch.dtype
        self.short_kernel, self.long_kernel = map(_address_of, kernels())
        self.most_short = SHORT

    def new_numbers(
        self,
        plan: Any,
        site: Any,
        args: Any,
        kwargs: Any,
        inputs: list[Any],
        outputs: list[Any],
        result: Any,
        shape: bytes,
    ) -> tuple[int, int]:
        """The numbers of the site and the signature of a call such as there was none before. `shape`: the same for
        calls that differ in their values alone."""
        from torchferry.accuracy.record.calls import OngoingCall

        call = OngoingCall(plan, site, args, kwargs)
        call.inputs, call.outputs, call.result = inputs, outputs, result
        return self._numbers_of(call, shape)


def _address_of(function: Any) -> int:
    if not hasattr(function, "argtypes"):
        raise NotImplementedError("numpy stands for compiled kernels")
    return ctypes.cast(function, ctypes.c_void_p).value or 0
