"""Streams and events of the stand-in. The CPU computes at once, so all work of a stream is done when a call returns."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import torch

from torchferry.runtime.host.devices import Devices
from torchferry.runtime.module_parts.streams import EventsOfStream, TimedEvent

_HOST = torch.device("cpu", 0)


class Event(TimedEvent):
    """A mark in a stream: the time at which it was recorded."""

    cuda_event = 0

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if interprocess:
            raise NotImplementedError("the CPU has no events that are shared between processes")
        self.device = _HOST
        self._timed = enable_timing
        self._recorded: int | None = None

    def record(self, stream: Any = None) -> None:
        """Mark the point that a stream has reached."""
        self._mark()

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for this event: it has happened."""

    def query(self) -> bool:
        """Whether the work before the event is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for the event: it has happened."""


class Stream(EventsOfStream):
    """A queue of work; the number tells one from another."""

    _devices: Devices
    _event_class = Event
    _numbers = itertools.count(1)

    def __init__(self, device: Any = None, priority: int = 0, *, stream_id: int | None = None) -> None:
        self.device = _HOST
        self.device_index = self._devices.get_device_index(device)
        self.priority = priority
        self.stream_id = next(self._numbers) if stream_id is None else stream_id

    @property
    def cuda_stream(self) -> int:
        """The number, where CUDA has an address."""
        return self.stream_id

    def wait_stream(self, stream: Stream) -> None:
        """Let later work of this stream wait for another one's: that is done."""

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for all work: it is done."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.stream_id, self.device_index) == (
            other.stream_id,
            other.device_index,
        )

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream on the CPU, device={self.device_index} stream_id={self.stream_id:#x}>"


class _CurrentStreams(threading.local):
    """The current streams of a thread, by device."""

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


class Streams:
    """Which stream is current on each device."""

    def __init__(self, devices: Devices, stream_class: type[Stream]) -> None:
        self._devices = devices
        self._class = stream_class
        self._current = _CurrentStreams()

    def default_stream(self, device: Any = None) -> Stream:
        """The stream that a device uses when no other is chosen."""
        return self._class(self._devices.existing_index(device), stream_id=0)

    def current_stream(self, device: Any = None) -> Stream:
        """The stream that takes a device's work now."""
        index = self._devices.existing_index(device)
        return self._current.streams.get(index) or self.default_stream(index)

    def set_stream(self, stream: Stream | None) -> None:
        """Make a stream and its device the current ones; None changes nothing."""
        if stream is not None:
            self._devices.set_device(stream.device_index)
            self._current.streams[stream.device_index] = stream


class StreamContext:
    """Makes a stream the current one inside a with block; None changes nothing."""

    _devices: Devices
    _streams: Streams

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._device_before = -1
        self._stream_before: Stream | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._device_before = self._devices.current_device()
            self._stream_before = self._streams.current_stream(self.stream.device_index)
            self._streams.set_stream(self.stream)

    def __exit__(self, *error: object) -> None:
        self._streams.set_stream(self._stream_before)
        self._devices.set_device(self._device_before)


def names(devices: Devices) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parts of torch.cuda and of torch.cuda.streams that are about streams."""
    stream_class = type("Stream", (Stream,), {"_devices": devices, "__doc__": Stream.__doc__})
    streams = Streams(devices, stream_class)
    context = type("StreamContext", (StreamContext,), {"_devices": devices, "_streams": streams})
    classes = {"Event": Event, "Stream": stream_class}
    functions = {
        "StreamContext": context,
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "set_stream": streams.set_stream,
        "stream": lambda stream: context(stream),
    }
    return {**functions, **classes}, classes
