"""Tensors of which it shows only later whether they would be the device's or the host's.

A program that makes a tensor with device="cpu" may mean the host, or its device, which goes by this name here. If it
moves the tensor later, it meant the host; if it computes with it and a tensor of the device, it meant the device.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from torchferry.readiness.capture.folding import PastCall, tensors_among

_OWNER = "_torchferry_owner"
_MOST_CALLS = 200  # a tensor that so much is computed with, by itself, is no grid or mask


class Undecided:
    """Calls that depend on each other: one answer holds for all of them and for their tensors."""

    def __init__(self) -> None:
        self._calls: list[PastCall] = []
        self._joined: Undecided | None = None
        self._are_the_hosts: bool | None = None  # None: not known yet

    def latest(self) -> Undecided:
        """This, or what it has been joined with."""
        return self if self._joined is None else self._joined.latest()

    @property
    def are_the_hosts(self) -> bool | None:
        """Whether the tensors are the host's; None while this is not known."""
        return self.latest()._are_the_hosts

    def add(self, call: PastCall) -> None:
        """Note a call that was made with these tensors, or made one of them."""
        latest = self.latest()
        latest._calls.append(call)
        if len(latest._calls) > _MOST_CALLS:
            latest.decide(are_the_hosts=False)

    def join(self, other: Undecided) -> None:
        """From now on they have one answer."""
        latest, gone = self.latest(), other.latest()
        if latest is not gone:
            latest._calls += gone._calls
            gone._calls, gone._joined = [], latest

    def decide(self, are_the_hosts: bool) -> list[PastCall]:
        """Answer, and give back the calls that waited for it."""
        latest = self.latest()
        if latest._are_the_hosts is None:
            latest._are_the_hosts = are_the_hosts
        calls, latest._calls = latest._calls, []
        return calls


Owner = Undecided | bool  # whether a tensor is the host's


def owner_of(tensor: torch.Tensor) -> Owner:
    """Whether a tensor would be the host's if the program ran on a device, or that this is undecided."""
    owner: Owner = getattr(tensor, _OWNER, False)
    if isinstance(owner, Undecided):
        decided = owner.are_the_hosts
        return owner.latest() if decided is None else decided
    return owner


def is_the_hosts(tensor: torch.Tensor) -> bool:
    """Whether a tensor would certainly be the host's."""
    return owner_of(tensor) is True


def set_owner(tensors: Iterable[Any], owner: Owner) -> None:
    """Note of all tensors among these whose they are."""
    for tensor in tensors_among(tensors):
        setattr(tensor, _OWNER, owner)


def owner_of_all(values: Iterable[Any]) -> Owner | None:
    """Whose a call with these arguments is; None: there is no tensor among them. One tensor of the device makes it the
    device's, and decides the others."""
    owners: list[Owner] = []
    for tensor in tensors_among(values):
        owner = owner_of(tensor)
        if owner not in owners:  # a list may have hundreds of tensors
            owners.append(owner)
    undecided = [owner for owner in owners if isinstance(owner, Undecided)]
    if False in owners:
        for each in undecided:
            each.decide(are_the_hosts=False)
        return False
    if undecided:
        for each in undecided[1:]:
            undecided[0].join(each)
        return undecided[0]
    return True if owners else None
