"""A capture comes back from its file as it was, and a damaged file is refused with what is wrong and where."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.readiness.samples import hostile, large, sample, training_step
from torchferry.errors import InputError
from torchferry.readiness.capture_json import dump, load
from torchferry.readiness.model import (
    Argument,
    Capture,
    ModuleInfo,
    OperatorSite,
    Phase,
    Signature,
    Special,
    TensorSpec,
    Use,
    Value,
)
from torchferry.readiness.report.json import to_json
from torchferry.report.formats import Options


def with_values(*values: Value) -> Capture:
    arguments = tuple(Argument(f"a{at}", value) for at, value in enumerate(values))
    use = Use(Signature("aten::x", arguments), OperatorSite(Phase.FORWARD), 1, 0.0)
    return replace(training_step(), uses=(use,))


@pytest.mark.parametrize("capture", [training_step(), hostile()[0].capture, Capture("", "", "")])
def test_round_trip(capture: Capture) -> None:
    assert load(dump(capture), "x.json") == capture


def test_numbers_that_are_equal_stay_apart() -> None:
    """Python calls 1, 1.0 and True equal; as arguments of an operator they are not the same."""
    uses = [
        Use(Signature("aten::x", (Argument("a", value),)), OperatorSite(Phase.FORWARD), 1, 0.0)
        for value in (1, 1.0, True, -0.0, 0.0)
    ]
    back = load(dump(replace(training_step(), uses=tuple(uses))), "x.json")
    assert [repr(use.signature.arguments[0].value) for use in back.uses] == [
        "1",
        "1.0",
        "True",
        "-0.0",
        "0.0",
    ]


def test_what_json_can_not_write() -> None:
    spec = TensorSpec("float32", (0, 3), None, "sparse_coo", "npu")
    values: list[Value] = [
        math.inf,
        -math.inf,
        (spec, (None, Special("dtype", "float16")), ()),
        "inf",
        10**30,
    ]
    back = load(dump(with_values(*values, math.nan)), "x.json")
    arguments = [argument.value for argument in back.uses[0].signature.arguments]
    assert arguments[:-1] == values
    assert isinstance(arguments[-1], float) and math.isnan(arguments[-1])


def test_names_stand_once() -> None:
    """Twice as many uses of the same signatures and sites cost only their rows."""
    capture = large(2000)[0].capture
    text = dump(capture)
    assert text.count("aten::operator_7") == 1
    doubled = dump(replace(capture, uses=capture.uses * 2))
    assert len(doubled) - len(text) < 35 * len(capture.uses)


def test_a_report_is_a_capture_too() -> None:
    assert load(to_json(sample(), Options()), "report.json") == training_step()


values: st.SearchStrategy[Value] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=9)
    | st.builds(Special, st.text(max_size=9), st.text(max_size=9))
    | st.builds(
        TensorSpec,
        st.sampled_from(["float32", "int64", "?"]),
        st.lists(st.integers(0, 9), max_size=3).map(tuple),
        st.none() | st.lists(st.integers(-9, 9), max_size=3).map(tuple),
        st.sampled_from(["strided", "jagged"]),
        st.sampled_from(["cpu", "npu"]),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)
texts = st.text(max_size=9)
uses = st.builds(
    Use,
    st.builds(
        Signature,
        texts,
        st.lists(st.builds(Argument, texts, values), max_size=3).map(tuple),
        st.lists(values, max_size=2).map(tuple),
    ),
    st.builds(OperatorSite, st.sampled_from(Phase), texts, texts, texts, texts),
    st.integers(0, 10**12),
    st.floats(0, 1e9),
    st.booleans(),
    st.booleans(),
)
captures = st.builds(
    Capture,
    texts,
    texts,
    texts,
    texts,
    st.integers(0, 9),
    st.floats(0, 1e9),
    st.integers(1, 9),
    st.lists(uses, max_size=4).map(tuple),
    st.lists(st.builds(ModuleInfo, texts, texts), max_size=3).map(tuple),
    st.lists(texts, max_size=2).map(tuple),
)


@settings(max_examples=60)
@given(captures)
def test_any_capture(capture: Capture) -> None:
    text = dump(capture)
    back = load(text, "x.json")
    assert back == capture
    assert dump(back) == text  # equality does not tell 1 from 1.0, the text does


def changed(*path: str | int, to: Any) -> str:
    """The file of the training step with one thing in it replaced."""
    document = json.loads(dump(training_step()))
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON (Expecting value: line 1, column 1)"),
        ('{"format": NaN}', "not JSON (NaN is no JSON)"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not a capture of operators"),
        ('{"format": "torchferry-findings"}', "not a capture of operators"),
        ('{"format": "torchferry-capture"}', "version is missing"),
        ('{"format": "torchferry-operators", "version": 1}', "capture is missing"),
        ('{"format": "torchferry-operators", "version": 1, "capture": 3}', "capture not a capture of operators"),
        (changed("version", to=99), "written by a newer TorchFerry (format 99"),
        (changed("program", to=3), "program must be a string"),
        (changed("steps", to=True), "steps must be an integer"),
        (changed("seconds", to="long"), "seconds must be a number of seconds"),
        (changed("seconds", to={"float": "nan"}), "seconds must be a number of seconds from 0 to 1e+12"),
        (changed("seconds", to=10**400), "seconds must be a number of seconds"),
        (changed("uses", 1, 3, to=-1.0), "uses[1][3] must be a number of seconds"),
        (changed("uses", 1, 2, to=10**30), "uses[1][2] must be a non-negative integer"),
        (changed("signatures", 0, 1, 0, 1, to={"float": []}), "signatures[0][1][0][1] must be a number"),
        (changed("uses", 1, to=[0]), "uses[1] must be a list of 6"),
        (changed("uses", 1, 0, to=-1), "uses[1][0] must be a position in signatures, which has"),
        (changed("uses", 1, 4, to=2), "uses[1][4] must be 0 or 1"),
        (changed("sites", 0, 0, to="lunch"), "sites[0][0] must be one of setup, data, forward"),
        (changed("tensors", 0, 1, to=[1.5]), "tensors[0][1] must be a list of integers"),
        (changed("strings", 2, to=None), "strings[2] must be a string"),
        (changed("signatures", 0, 1, 0, 1, to={"tensor": 10**9}), "signatures[0][1][0][1].tensor must be a position"),
        (changed("signatures", 0, 1, 0, 1, to={"what": 1}), "signatures[0][1][0][1] must be a number"),
        (changed("modules", 0, to="Net"), "modules[0] must be a list of 2"),
    ],
)  # fmt: skip
def test_damaged_files(text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load(text, "x.json")
    assert str(caught.value).startswith("x.json: ") and problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_that_are_nested_too_deeply() -> None:
    text = changed("signatures", 0, 1, 0, 1, to="deep").replace('"deep"', "[" * 50_000 + "]" * 50_000)
    with pytest.raises(InputError, match=r"nested too deeply|not JSON"):
        load(text, "x.json")


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["tensor", "special", "float"]), inner)
    ),
    max_leaves=5,
)


@settings(max_examples=150)
@given(st.data(), junk)
def test_damage_anywhere_is_refused_or_harmless(data: st.DataObject, damage: Any) -> None:
    document = json.loads(dump(training_step()))
    inner: Any = document
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(inner[key], (dict, list)) or not inner[key] or data.draw(st.booleans()):
            inner[key] = damage
            break
        inner = inner[key]
    try:
        load(json.dumps(document), "x.json")
    except InputError as error:
        assert str(error).startswith("x.json: ")
