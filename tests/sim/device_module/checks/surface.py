"""Which names torch.<type> has, by the vendor's table."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest
import torch

from tests.sim.checking import Target
from tests.sim.device_module.names import is_module, lookup, natural, own_names
from torchferry.vendors.model import Support


def check_every_name_of_the_table_exists_without_a_warning(target: Target) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, api in target.vendor.apis.items():
            known = api.support in (Support.SAME, Support.RENAMED)
            if known and api.name.startswith(target.vendor.torch_module + "."):
                assert lookup(api.name) is not None, name


def check_a_name_that_the_vendor_does_not_have_raises_and_says_so(target: Target) -> None:
    supported = [api.name for api in own_names(target).values() if api.name]
    for name, api in own_names(target).items():
        own_name = natural(target, name)
        has_children = any(other.startswith(own_name + ".") for other in supported)
        if api.support is Support.UNSUPPORTED and not has_children:
            with pytest.raises(AttributeError, match=r"does not have it|calls it"):
                lookup(own_name)


def check_a_renamed_name_says_what_it_is_called(target: Target) -> None:
    for name, api in own_names(target).items():
        if api.support is Support.RENAMED and api.name.startswith(target.vendor.torch_module + "."):
            with pytest.raises(AttributeError, match="calls it"):
                lookup(natural(target, name))


def check_a_name_that_is_not_known_warns_once_or_says_so(target: Target) -> None:
    for name, api in own_names(target).items():
        if api.support is not Support.UNKNOWN or name.rpartition(".")[2].startswith("_"):
            continue
        caught, value = _looked_up(target, natural(target, name))
        if isinstance(value, AttributeError):
            assert "is unknown" in str(value), name
        elif not is_module(value):
            assert [str(entry.message) for entry in caught if "is unknown" in str(entry.message)], name
            assert not _looked_up(target, natural(target, name))[0], name


def _looked_up(target: Target, name: str) -> tuple[list[warnings.WarningMessage], Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return caught, lookup(name)
        except AttributeError as error:
            return caught, error


def check_torch_itself_asks_without_a_warning(target: Target) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec("module.seed_all, module.is_initialized", {"__name__": "torch.random", "module": target.module})


def check_another_name_is_an_ordinary_attribute_error(target: Target) -> None:
    with pytest.raises(AttributeError, match=f"{target.vendor.torch_module}.*no attribute 'nonsense'"):
        _ = target.module.nonsense
    assert not hasattr(target.module, "__path__")


def check_old_spellings_of_imports_work(target: Target) -> None:
    space: dict[str, Any] = {}
    name = target.vendor.torch_module
    exec(f"import {name}\nimport {name}.amp as amp\nfrom {name}.amp import GradScaler, autocast", space)
    assert space["torch"] is torch
    assert space["amp"] is target.module.amp
    assert space["GradScaler"] is target.module.amp.GradScaler
    assert importlib.import_module(f"{name}.amp.grad_scaler").GradScaler is target.module.amp.GradScaler
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{name}.nonsense")


def check_dir_lists_what_is_there(target: Target) -> None:
    assert {"set_device", "amp", "Stream"} <= set(dir(target.module))


def check_a_renamed_class_bears_the_vendors_name(target: Target) -> None:
    api = target.vendor.api("torch.cuda.CUDAGraph")
    if api.support is Support.RENAMED:
        assert lookup(api.name).__name__ == api.name.rpartition(".")[2]
