"""Graph capture: the names exist, capturing raises. The simulated device has nothing that it could replay."""

from __future__ import annotations

from typing import Any, NoReturn

_MESSAGE = "the simulated device can't capture graphs; run the program without graph capture"


class Graph:
    """The vendor's graph class."""

    def __init__(self, *_: object, **__: object) -> None:
        self._pool = graph_pool_handle()

    def capture_begin(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise NotImplementedError(_MESSAGE)

    capture_end = capture_begin
    replay = capture_begin

    def reset(self) -> None:
        """Nothing was captured."""

    def pool(self) -> tuple[int, int]:
        """The pool of this graph."""
        return self._pool


class GraphContext:
    """A with block that captures into a graph: entering it raises."""

    def __init__(self, graph: Any, *_: object, **__: object) -> None:
        self.graph = graph

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(_MESSAGE)

    def __exit__(self, *error: object) -> None:
        """Never entered."""


def make_graphed_callables(*_: object, **__: object) -> NoReturn:
    """Refuse."""
    raise NotImplementedError(_MESSAGE)


def graph_pool_handle() -> tuple[int, int]:
    """A name for a pool."""
    return 0, 1


def is_current_stream_capturing() -> bool:
    """False: nothing is ever captured."""
    return False


API = {
    "CUDAGraph": Graph,
    "graph": GraphContext,
    "graph_pool_handle": graph_pool_handle,
    "is_current_stream_capturing": is_current_stream_capturing,
    "make_graphed_callables": make_graphed_callables,
}
