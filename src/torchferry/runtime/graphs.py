"""Graph capture where work is done at once: what was issued inside a capture is issued again at each replay, into
the same memory.

As on CUDA, a capture computes nothing: whatever the operators inside it have written to tensors from outside, and
drawn from the generators, is taken back at its end. What they made stays where it is, for replays to write to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_WITHOUT_WORK = ("aten::empty", "aten::new_empty")  # memory is there already
# What has to wait for the device: its result on the host, or a shape that depends on data.
_WAITING = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)

_WRITTEN_UNSAID = ("running_mean", "running_var")  # by batch norms, whose schemas do not say so


@dataclass(frozen=True)
class _IssuedCall:
    """An operator to issue again; `made` are the tensors that its results belong to, by their place among them."""

    operator: Any
    args: tuple[Any, ...]
    settings: dict[str, Any]
    made: tuple[tuple[int, torch.Tensor], ...]

    def repeat(self) -> None:
        results = tree_leaves(self.operator(*self.args, **self.settings))
        for place, tensor in self.made:
            tensor.copy_(results[place])


@dataclass
class _CapturedWork:
    """What was issued in a capture, and what it has touched."""

    calls: list[_IssuedCall] = field(default_factory=list)
    # kept: an address must not come twice
    made: dict[int, torch.UntypedStorage] = field(default_factory=dict)
    # bytes, and their contents
    before: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)

    def keep(self, tensor: torch.Tensor) -> None:
        """Remember what a tensor from outside holds before it is written to."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.made and storage._cdata not in self.before:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)
            self.before[storage._cdata] = (whole, whole.clone())

    def take_back(self) -> None:
        with _plain_operators():
            for whole, contents in self.before.values():
                whole.copy_(contents)
        self.before.clear()


class _Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operator between the begin and the end of a capture."""

    def __init__(self, device: type[Graph]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.work = _CapturedWork()
        self._is_on_device = device._is_on_device
        self._other_storages = device._other_storages

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        settings = kwargs or {}
        given = _tensors((args, settings))
        if any(tag in func.tags for tag in _WAITING) and any(map(self._is_on_device, given)):
            raise RuntimeError(
                f"operation not permitted when stream is capturing: {func} waits for the device; keep it outside of "
                "the graph"
            )
        written = _tensors(_written(func, args, settings))
        issued = any(map(self._is_on_device, given)) or self._is_inside(func, written)
        for tensor in written if issued else ():
            self.work.keep(tensor)
        result = func(*args, **settings)
        self._note(_IssuedCall(func, args, settings, ()), given, result, issued)
        return result

    def _is_inside(self, func: Any, written: list[torch.Tensor]) -> bool:
        """Whether an operator on the host may belong to one of the device, which can be made of the host's: what
        writes to nothing but memory of this capture. It does no harm to repeat such a one of the program's own."""
        if written:
            return all(tensor.untyped_storage()._cdata in self.work.made for tensor in written)
        return torch.Tag.nondeterministic_seeded not in func.tags

    def _note(self, call: _IssuedCall, given: list[torch.Tensor], result: Any, issued: bool) -> None:
        known = {tensor.untyped_storage()._cdata for tensor in given}
        made = [
            (place, value)
            for place, value in enumerate(tree_leaves(result))
            if isinstance(value, torch.Tensor) and value.untyped_storage()._cdata not in known
        ]
        for _, tensor in made:
            for storage in (tensor.untyped_storage(), *self._other_storages(tensor)):
                self.work.made[storage._cdata] = storage
        func = call.operator
        works = (made and not func.name().startswith(_WITHOUT_WORK)) or func._schema.is_mutable
        if works and (issued or any(self._is_on_device(tensor) for _, tensor in made)):
            self.work.calls.append(replace(call, made=tuple(made)))


class _Refusing(TorchFunctionMode):
    """Stops functions whose operators can't be seen: a replay would leave their results as they were."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self._names = names

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in self._names:
            raise NotImplementedError(
                f"the simulated device can't capture {name}; run this part without graph capture"
            )
        return func(*args, **(kwargs or {}))


def _tensors(values: Any) -> list[torch.Tensor]:
    return [
        value
        for value in tree_leaves(values)
        if isinstance(value, torch.Tensor) and torch._C._has_storage(value)
    ]


def _written(func: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> list[Any]:
    arguments = func._schema.arguments
    values = {argument.name: value for argument, value in zip(arguments, args, strict=False)} | settings
    return [
        values.get(argument.name)
        for argument in arguments
        if argument.name in _WRITTEN_UNSAID
        or (argument.alias_info is not None and argument.alias_info.is_write)
    ]


@contextlib.contextmanager
def _plain_operators() -> Iterator[None]:
    """Operators as they were captured: derivatives, versions and casts were dealt with then."""
    views = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
    with (
        torch.no_grad(),
        torch._C._AutoDispatchBelowAutograd(),
        torch._C._ExcludeDispatchKeyGuard(views),
        torch._C._DisableAutocast(),
    ):
        yield


class Graph:
    """The base of a device's graph class."""

    _unseen: frozenset[str] = frozenset()  # functions that compute without operators that can be seen
    _capturing: list[Graph] = []  # noqa: RUF012  at most one in a process, as on CUDA

    def __init__(self, *_: object, **__: object) -> None:
        self._recording: _Recording | None = None
        self._modes = contextlib.ExitStack()
        self._work: _CapturedWork | None = None
        self._states: Any = None

    @staticmethod
    def _is_on_device(tensor: torch.Tensor) -> bool:
        raise NotImplementedError

    @staticmethod
    def _other_storages(tensor: torch.Tensor) -> list[torch.UntypedStorage]:
        """Storages under which the device knows a tensor's memory as well."""
        return []

    @staticmethod
    def _random_states() -> Any:
        raise NotImplementedError

    @staticmethod
    def _set_random_states(states: Any) -> None:
        raise NotImplementedError

    def capture_begin(self, *_: object, **__: object) -> None:
        """Record from here on what this thread issues."""
        if Graph._capturing:
            raise RuntimeError("a graph capture is already in progress; end it first")
        self._work = None
        self._states = self._random_states()
        self._recording = _Recording(type(self))
        Graph._capturing.append(self)
        self._modes.enter_context(self._recording)
        if self._unseen:
            self._modes.enter_context(_Refusing(self._unseen))

    def capture_end(self) -> None:
        """End the recording, and take back what it has changed outside."""
        if self._recording is None:
            raise RuntimeError("no graph capture is in progress")
        recording, self._recording = self._recording, None
        Graph._capturing.remove(self)
        self._modes.close()
        recording.work.take_back()
        self._set_random_states(self._states)
        self._work = recording.work

    def replay(self) -> None:
        """Issue the captured work again."""
        if self._work is None:
            raise RuntimeError("replay without a preceding successful capture")
        with _plain_operators():
            for call in self._work.calls:
                call.repeat()

    def reset(self) -> None:
        """Forget the captured work."""
        self._work = None

    def instantiate(self) -> None:
        """Nothing has to be prepared."""

    def pool(self) -> tuple[int, int]:
        """The pool of this graph."""
        return graph_pool_handle()

    def enable_debug_mode(self) -> None:
        """Accept the debug mode, which records nothing more here."""

    def debug_dump(self, debug_path: str) -> None:
        """Write the names of the captured operators."""
        calls = self._work.calls if self._work else []
        with open(debug_path, "w", encoding="utf-8") as file:
            file.writelines(f"{call.operator}\n" for call in calls)


class GraphContext:
    """A with block that captures into a graph."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        graphs = [value for value in (*args[:1], *settings.values()) if isinstance(value, Graph)]
        if not graphs:
            raise TypeError("capturing needs a graph")
        self.graph = graphs[0]

    def __enter__(self) -> None:
        self.graph.capture_begin()

    def __exit__(self, *error: object) -> None:
        self.graph.capture_end()


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """The callables as they are: to issue their work anew at each call is what a replay is here."""
    if torch.is_autocast_enabled() and torch.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    several = isinstance(callables, tuple)
    if several and len(sample_args) != len(callables):
        raise AssertionError("there must be one tuple of sample arguments for each callable")
    return callables


def graph_pool_handle() -> tuple[int, int]:
    """A name for a pool."""
    return 0, 1


def is_current_stream_capturing() -> bool:
    """Whether a graph is being captured."""
    return bool(Graph._capturing)


def names(graph: type[Graph]) -> dict[str, Any]:
    """CUDA's names for graphs, over a device's graph class."""
    return {
        "CUDAGraph": graph,
        "graph": GraphContext,
        "graph_pool_handle": graph_pool_handle,
        "is_current_stream_capturing": is_current_stream_capturing,
        "make_graphed_callables": make_graphed_callables,
    }
