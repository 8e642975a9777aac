"""The work of a device, given to the operators that asked for it."""

from __future__ import annotations

from collections.abc import Iterable

from torchferry.ops.trace.calls import Timeline
from torchferry.ops.trace.device_names import CUDA, flow_device, launching_device
from torchferry.ops.trace.events import Event, Kind


def add_device_work(timeline: Timeline, work: Iterable[Event]) -> None:
    """To each operator its own. Work whose operator is not known is left out."""
    flows: dict[tuple[tuple[str, str], int], Event] = {}
    others: list[Event] = []
    for event in work:
        if event.kind is Kind.FLOW_END:
            flows[event.thread, event.start] = event
        else:
            others.append(event)
    for event in others:
        flow = flows.get((event.thread, event.start))
        if flow is not None:
            owner = timeline.launches.get((flow.category, flow.link))
        elif event.kind is Kind.DEVICE:
            owner = timeline.launches.get(("", event.link)) or timeline.by_external.get(event.external)
        else:
            continue
        if owner is not None:
            owner.work.append(event)


def device_of(launches: Iterable[str], flows: Iterable[str], has_kernels: bool) -> str:
    """The type of the device that computed, by the categories of launches and flows."""
    named = [*map(flow_device, flows), *map(launching_device, launches)]
    return next((device for device in named if device), CUDA if has_kernels else "cpu")
