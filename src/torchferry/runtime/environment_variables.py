"""CUDA's environment variables, also when a program sets them while it runs, put into the vendor's."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

from torchferry.runtime.patches import Action, Change, Patch
from torchferry.settings import set_variables
from torchferry.vendors.model import SAME_VALUES, Vendor

_CARDS = ("GPU-", "MIG-")  # how the UUID of a card, or of a part of one, begins
# The vendor's variables that follow CUDA's, for the processes below: there they are not the user's own word.
_FOLLOWERS = "TORCHFERRY_FOLLOWERS"
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def changes(vendor: Vendor) -> Iterator[Change]:
    """What is set now, then what will be set."""
    mapped = {_VISIBLE: vendor.visible_devices_env, **vendor.env_map}
    own = {name: vendors for name, vendors in mapped.items() if vendors and name in SAME_VALUES}
    if not own:
        return
    followers = os.environ.get(_FOLLOWERS, "").split(",")
    # the user's own word
    taken = {name for name in own.values() if name in os.environ and name not in followers}
    own = {name: vendors for name, vendors in own.items() if vendors not in taken}
    for vendors in sorted(set(own.values())):
        said = [
            (name, os.environ[name])
            for name in own
            if own[name] == vendors and name in os.environ and _means_something(name, os.environ[name])
        ]
        if said or vendors in os.environ:
            name, value = said[0] if said else (vendors, None)
            yield _set_now(name, vendors, value)
    yield _set_now(_FOLLOWERS, _FOLLOWERS, ",".join(sorted(set(own.values()))))
    kind: Any = type(os.environ)
    set_item, delete_item = kind.__setitem__, kind.__delitem__

    def __setitem__(self: Any, key: Any, value: Any) -> None:  # noqa: N807
        set_item(self, key, value)
        if self is os.environ and key in own and _means_something(key, value):
            set_item(self, own[key], value)

    def __delitem__(self: Any, key: Any) -> None:  # noqa: N807
        delete_item(self, key)
        if self is os.environ and key in own and own[key] in self:
            delete_item(self, own[key])

    for method, function in (("__setitem__", __setitem__), ("__delitem__", __delitem__)):
        yield Patch("os.environ", kind, method, function, ", ".join(f"{a} is {b}" for a, b in own.items()))


def _means_something(name: str, value: str) -> bool:
    """Whether a value says anything of the vendor's devices: an NVIDIA card's own name does not."""
    names_cards = name == _VISIBLE and any(part.strip().startswith(_CARDS) for part in value.split(","))
    if names_cards:
        warnings.warn(
            f"{name}={value} names NVIDIA cards, so all devices stay visible; use device numbers",
            stacklevel=3,
        )
    return not names_cards


def _set_now(name: str, vendors: str, value: str | None) -> Change:
    before = os.environ.get(vendors)
    means = "not set" if value is None else f"{vendors}={value}"
    return Action(
        name, means, lambda: set_variables({vendors: value}), lambda: set_variables({vendors: before})
    )
