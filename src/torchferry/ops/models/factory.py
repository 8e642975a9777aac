"""Finds a user's factory and makes the model."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any

import torch

from torchferry.errors import InputError, RunError
from torchferry.ops.models.failures import told_as
from torchferry.ops.models.request import ModelRequest, is_file, parse_init, split_factory


def make_model(request: ModelRequest) -> torch.nn.Module:
    """The model; a factory is called, a model that is there already is taken as it is."""
    found = find(request.factory, "--model")
    init = parse_init(request.init)
    if isinstance(found, torch.nn.Module):
        if init:
            raise InputError(f"--init {request.init}: {request.factory} is a model already; leave --init out")
        return found
    if not callable(found):
        raise InputError(f"--model {request.factory}: it is a {type(found).__name__}, which makes no model")
    with told_as(f"{request.factory}({request.init})", _how_to_call(found, "--init"), request.fake):
        model = found(**init)
    if not isinstance(model, torch.nn.Module):
        raise RunError(
            f"--model {request.factory}: what it makes is a {type(model).__name__}, not a torch.nn.Module; name a "
            "function that answers the model alone"
        )
    return model


def find(text: str, option: str) -> Any:
    """What is called package.module:name, or path/to/file.py:name."""
    place, name = split_factory(text, option)
    with told_as(f"{option} {text}: importing {place}"):
        module = _from_file(place) if is_file(place) else importlib.import_module(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"{option} {text}: {place} has no {name}{hint}")
        found = getattr(found, part)
    return found


def _from_file(place: str) -> ModuleType:
    """The file as a module; what lies beside it can be imported, as if Python had been called with it."""
    path = os.path.abspath(place)
    if not os.path.isfile(path):
        raise InputError(f"{place}: no such file")
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        name = f"torchferry_model_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look there
    if os.path.dirname(path) not in sys.path:
        sys.path.insert(0, os.path.dirname(path))
    spec.loader.exec_module(module)
    return module


def _how_to_call(function: Any, option: str) -> str:
    try:
        return f"{option} is for {getattr(function, '__name__', '')}{inspect.signature(function)}"
    except (TypeError, ValueError):
        return ""


def how_to_call_model(model: torch.nn.Module) -> str:
    """What a model's forward pass takes, for a user whose inputs did not fit."""
    return _how_to_call(model.forward, "--input")
