"""Streams and events."""

from __future__ import annotations

import time

import pytest
import torch

from tests.sim.checking import Target


def check_the_default_stream_is_current(target: Target) -> None:
    assert target.module.current_stream() == target.module.default_stream()
    assert isinstance(target.module.current_stream(), target.module.Stream)
    assert target.module.current_stream(1).device.index == 1


def check_a_stream_of_another_device_is_current_inside_its_block(target: Target) -> None:
    stream = target.module.Stream(device=1)
    with target.module.stream(stream):
        assert target.module.current_stream() == stream
        assert target.module.current_device() == 1
    assert target.module.current_device() == 0
    assert target.module.current_stream(1) == target.module.default_stream(1)
    with target.module.stream(None):
        assert target.module.current_stream() == target.module.default_stream()


def check_streams_are_torchs(target: Target) -> None:
    stream = target.module.Stream(priority=-1)
    assert isinstance(stream, torch.Stream)
    assert stream.query() is True
    stream.synchronize()
    assert stream != target.module.Stream()
    assert getattr(stream, f"{target.type}_stream") == stream.stream_id
    assert target.type in repr(stream)


def check_a_tensor_can_be_recorded_in_a_stream(target: Target) -> None:
    torch.ones(2, device=target.type).record_stream(target.module.Stream())


def check_events_measure_time(target: Target) -> None:
    begin, end = target.module.Event(enable_timing=True), target.module.Event(enable_timing=True)
    begin.record()
    time.sleep(0.01)
    end.record(target.module.current_stream())
    end.synchronize()
    assert 9 < begin.elapsed_time(end) < 5000
    assert end.query() is True
    assert isinstance(begin, torch.Event)


def check_events_without_time_or_record_say_so(target: Target) -> None:
    event = target.module.Event()
    event.record()
    with pytest.raises(RuntimeError, match="enable_timing"):
        event.elapsed_time(event)
    timed = target.module.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="recorded"):
        timed.elapsed_time(timed)


def check_streams_wait_for_events_and_streams(target: Target) -> None:
    stream = target.module.Stream()
    event = stream.record_event()
    assert isinstance(event, target.module.Event)
    target.module.current_stream().wait_event(event)
    event.wait(stream)
    stream.wait_stream(target.module.current_stream())
    stream.wait_event(torch.Event(target.type))
    target.module.synchronize()
    target.module.synchronize(f"{target.type}:1")


def check_set_stream_changes_the_current_one(target: Target) -> None:
    before, stream = target.module.current_stream(), target.module.Stream()
    target.module.set_stream(stream)
    assert target.module.current_stream() == stream
    if hasattr(torch, "accelerator"):  # came with torch 2.6
        assert torch.accelerator.current_stream() == stream
    target.module.set_stream(before)
    assert target.module.current_stream() == before
