"""Streams and events. The simulated device computes at once, so all work of a stream is done when a call returns."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.runtime.device_parts import EventsOfStream, StreamsOfThread, TimedEvent
from torchferry.sim import native
from torchferry.sim.device_module.devices import (
    DeviceContext,
    DeviceLike,
    device_type,
    existing_index,
    get_device_index,
    lazy_init,
)

# torch has had torch.accelerator, and with it one place for the current stream, since 2.6
_TORCH_KEEPS_CURRENT_STREAM = hasattr(torch._C, "_accelerator_setStream")


class Stream(EventsOfStream, torch.Stream):
    """A queue of device work."""

    def __new__(cls, device: DeviceLike = None, priority: int = 0, **ids: Any) -> Stream:
        if ids:
            made = super().__new__(cls, priority=priority, **ids)
        else:
            index = get_device_index(device, optional=True)
            made = super().__new__(cls, device=torch.device(device_type(), index), priority=priority)
        assert isinstance(made, cls)
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def __repr__(self) -> str:
        return f"<torch.{device_type()}.Stream device={self.device} stream_id={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream that another library made; here the number is only remembered."""

    def __new__(cls, stream_ptr: int, device: DeviceLike = None, **_: Any) -> ExternalStream:
        index = get_device_index(device, optional=True)
        made = super().__new__(cls, device=index)
        assert isinstance(made, cls)
        return made

    def __init__(self, stream_ptr: int, device: DeviceLike = None, **_: Any) -> None:
        super().__init__()
        self.stream_ptr = stream_ptr


class Event(TimedEvent, torch.Event):
    """A mark in a stream. It keeps its own time: torch's elapsed_time refuses subclasses of its event."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Event:
        if interprocess:
            raise NotImplementedError(
                "events shared between processes are not available on the simulated device"
            )
        made = super().__new__(cls, device=torch.device(device_type()), enable_timing=enable_timing)
        assert isinstance(made, cls)
        return made

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        super().__init__()
        self._timed = enable_timing
        self._recorded: int | None = None

    def record(self, stream: Any = None) -> None:
        """Mark the point that a stream has reached."""
        super().record(current_stream() if stream is None else stream)
        self._mark()

    def wait(self, stream: Any = None) -> None:
        """Let later work of a stream wait for this event."""
        super().wait(current_stream() if stream is None else stream)

    def recorded_time(self) -> int:
        """Nanoseconds of the host's clock when the event was recorded."""
        if self._recorded is None:
            raise RuntimeError("The event must be recorded first.")
        return self._recorded

    def __repr__(self) -> str:
        return f"<torch.{device_type()}.Event timed={self._timed} recorded={self._recorded is not None}>"


Stream._event_class = Event


_current = StreamsOfThread()  # for a torch that doesn't keep them itself


def _own(stream: torch.Stream) -> Stream:
    if isinstance(stream, Stream):
        return stream
    return Stream(
        stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
    )


def default_stream(device: DeviceLike = None) -> Stream:
    """The stream that a device uses when no other is chosen."""
    index = existing_index(device)
    like = torch.Stream(device=torch.device(device_type(), index))
    return Stream(stream_id=0, device_index=index, device_type=like.device_type)


def current_stream(device: DeviceLike = None) -> Stream:
    """The stream that takes a device's work now."""
    index = existing_index(device)
    if _TORCH_KEEPS_CURRENT_STREAM:
        return _own(torch._C._accelerator_getStream(index))
    return _current.streams.get(index) or default_stream(index)


def set_stream(stream: torch.Stream | None) -> None:
    """Make a stream and its device the current ones; None changes nothing."""
    if stream is None:
        return
    native.set_device(stream.device_index)
    if _TORCH_KEEPS_CURRENT_STREAM:
        torch._C._accelerator_setStream(stream)
    else:
        _current.streams[stream.device_index] = _own(stream)


class StreamContext:
    """Makes a stream the current one inside a with block; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._device_before = -1
        self._streams_before: list[Stream] = []

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self._device_before = native.current_device()
        self._streams_before = [current_stream(self.stream.device_index), current_stream()]
        set_stream(self.stream)

    def __exit__(self, *error: object) -> None:
        for stream in self._streams_before:
            set_stream(stream)
        if self._device_before >= 0:
            native.set_device(self._device_before)


def stream_context(stream: torch.Stream | None) -> StreamContext:
    """A with block in which a stream is the current one."""
    return StreamContext(stream)


def synchronize(device: DeviceLike = None) -> None:
    """Wait for all work of a device: it is done already."""
    lazy_init()
    with DeviceContext(device):
        pass


CLASSES_API = {"Event": Event, "ExternalStream": ExternalStream, "Stream": Stream}
API = {
    "StreamContext": StreamContext,
    "current_stream": current_stream,
    "default_stream": default_stream,
    "set_stream": set_stream,
    "stream": stream_context,
    "synchronize": synchronize,
}
