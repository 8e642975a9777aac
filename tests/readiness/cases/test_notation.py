"""What users write for arguments, and what it means."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from torchferry.errors import InputError
from torchferry.readiness.cases import notation
from torchferry.readiness.cases.model import Draw, TensorContents, TensorInput
from torchferry.readiness.cases.notation import described, parse_init, parse_input, parse_inputs, parse_value
from torchferry.readiness.model import Special


def _tensor(dtype: str, *shape: int, **rest: object) -> TensorInput:
    return TensorInput(dtype, shape, **{"contents": TensorContents(Draw.DEFAULT), **rest})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10x20", _tensor("float32", 10, 20)),
        ("10x", _tensor("float32", 10)),
        ("10:int64", _tensor("int64", 10)),
        ("scalar:bfloat16", _tensor("bfloat16")),
        ("0x3", _tensor("float32", 0, 3)),
        ("2x3:half", _tensor("float16", 2, 3)),
        (" 2x3 : int64 ", _tensor("int64", 2, 3)),
        ("2x3:torch.complex64", _tensor("complex64", 2, 3)),
        ("2x3:uniform(-1,2.5)", _tensor("float32", 2, 3, contents=TensorContents(Draw.UNIFORM, -1, 2.5))),
        ("2x3:int8:ints(0,9)", _tensor("int8", 2, 3, contents=TensorContents(Draw.INTS, 0, 9))),
        (
            "2x3:normal+nan+-inf",
            _tensor("float32", 2, 3, contents=TensorContents(Draw.NORMAL, special=("nan", "-inf"))),
        ),
        (
            "2x3:ones:transposed",
            _tensor("float32", 2, 3, contents=TensorContents(Draw.FULL, 1), stride=(1, 2)),
        ),
        ("2x3x4x5:channels_last", _tensor("float32", 2, 3, 4, 5, stride=(60, 1, 15, 3))),
        ("2x3:strides(1,5):offset(4)", _tensor("float32", 2, 3, stride=(1, 5), offset=4)),
        ("4x3:expanded", _tensor("float32", 4, 3, stride=(0, 1))),
        ("list(2x3, 4:int64)", (_tensor("float32", 2, 3), _tensor("int64", 4))),
        ("3", 3),
        ("2.5", 2.5),
        ("-inf", float("-inf")),
        ("[2, 2]", (2, 2)),
        ("None", None),
        ("True", True),
        ("'sum'", "sum"),
        ("bilinear", "bilinear"),
        ("'bij,bjk->bik'", "bij,bjk->bik"),
        ("float16", Special("dtype", "float16")),
        ("torch.channels_last", Special("memory_format", "channels_last")),
        ("device", Special("device", "")),
        ("1+2j", 1 + 2j),
    ],
)
def test_value(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_names() -> None:
    assert parse_input("dim=1") == ("dim", 1)
    assert parse_input("index=4x5:int64") == ("index", _tensor("int64", 4, 5))
    assert parse_input("'a=b'") == ("", "a=b")
    assert parse_init("16, 32, kernel_size=(3, 3), bias=False") == [
        ("0", 16),
        ("1", 32),
        ("kernel_size", (3, 3)),
        ("bias", False),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10x20:int63", "did you mean `int64`"),
        ("10x20:unifrom(0,1)", "did you mean `uniform`"),
        ("10x20:uniform(1)", "takes 0 or 2 numbers"),
        ("10x20:uniform(2,1)", "must be less than"),
        ("10x20:normal+nun", "write +nan"),
        ("10x20:channels_last", "can't be channels_last"),
        ("10x20:strides(1)", "a number for each of the 2 dimensions"),
        ("10x20:strides(-1,2)", "are not numbers"),
        ("10x20:float16:float32", "`float32` is a second dtype"),
        ("10x20:normal:uniform(0,1)", "`uniform(0,1)` is a second distribution"),
        ("10x20:uniform(0,inf)", "must be finite"),
        ("10x20:ints(0.5,0.9)", "must be integers"),
        ("10x20:ints(0,1e30)", "below 2**63"),
        ("10x20:int64:nan", "int64 has no infinities"),
        ("10x20:bool:normal+inf", "bool has no infinities"),
        ("10 x", "neither a tensor nor a value"),
        ("{1: 2}", "neither a tensor nor a value"),
        ("", "neither a tensor nor a value"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_value(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("3, kernel_size=3, 4", "--init 3, kernel_size=3, 4: a positional value comes before"),
        ("bias=True, bias=False", "--init: `bias` is given twice; leave one out"),
        ("weight=3x4", "`weight` is a tensor"),
        ("Linear(3,4)", "--init Linear(3,4): neither"),
    ],
)
def test_mistakes_in_a_module_s_arguments(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_init(text)
    assert said in str(error.value)


def test_a_name_is_given_once() -> None:
    with pytest.raises(InputError, match="--input: `dim` is given twice; leave one out"):
        parse_inputs(["3x4", "dim=0", "dim=1"])


_SHAPES = st.lists(st.integers(0, 9), max_size=4).map(tuple)


@given(
    _SHAPES,
    st.sampled_from(notation.ALL),
    st.sampled_from(["normal", "ints(-3,4)", "full(2.5)", "full(2.5)+inf", "arange"]),
)
def test_what_is_shown_can_be_written(shape: tuple[int, ...], dtype: str, draw: str) -> None:
    assume("+" not in draw or notation.is_floating(dtype))
    text = f"{'x'.join(map(str, shape)) or 'scalar'}:{dtype}:{draw}"
    assert parse_value(described(parse_value(text))) == parse_value(text)


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_a_mistake(text: str) -> None:
    try:
        parse_input(text)
    except InputError as error:
        assert str(error)
