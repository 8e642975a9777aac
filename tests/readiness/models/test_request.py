"""What users write for a model, and what is said when it can't be read."""

from __future__ import annotations

import pytest

from torchferry.errors import InputError
from torchferry.readiness.cases.model import Draw, TensorInput
from torchferry.readiness.models.request import (
    ModelRequest,
    checked,
    parse_init,
    parse_inputs,
    split_factory,
)
from torchferry.settings import decode, encode


def test_inputs_without_names_stand_in_their_order() -> None:
    first, second = parse_inputs(["8x3x224x224", "8:int64:ints(0,1000)"]).args
    assert isinstance(first, TensorInput) and isinstance(second, TensorInput)
    assert (first.shape, first.dtype) == ((8, 3, 224, 224), "float32")
    assert (second.shape, second.dtype, second.contents.draw) == ((8,), "int64", Draw.INTS)
    assert (second.contents.low, second.contents.high) == (0, 1000)


def test_names_are_keywords_and_dots_make_dictionaries_and_lists() -> None:
    inputs = parse_inputs(["batch.ids=2x5:int64", "batch.sizes.0=3", "batch.sizes.1=4", "deep=True"])
    assert not inputs.args
    batch = inputs.kwargs["batch"]
    assert isinstance(batch, dict) and isinstance(batch["ids"], TensorInput)
    assert batch["sizes"] == [3, 4]
    assert inputs.kwargs["deep"] is True


def test_a_number_as_a_name_is_a_position() -> None:
    (batch,) = parse_inputs(["0.ids=2x5:int64"]).args
    assert isinstance(batch, dict) and list(batch) == ["ids"]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        pytest.param(["2x3:flaot16"], "did you mean `float16`", id="dtype"),
        pytest.param(["x=2x3", "x=4x4"], "given twice", id="twice"),
        pytest.param(["x=2x3", "x.y=4x4"], "can't have parts", id="value and parts"),
        pytest.param(["1.x=2x3"], "must start at 0", id="no first position"),
        pytest.param(["os.system('x')"], "neither a tensor nor a value", id="no code"),
    ],
)
def test_an_input_that_can_not_be_read(texts: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_inputs(texts)


def test_init_is_read_as_python_reads_keywords_and_never_run() -> None:
    assert parse_init("num_classes=10, pretrained=False, sizes=[1, 2]") == {
        "num_classes": 10,
        "pretrained": False,
        "sizes": [1, 2],
    }
    assert parse_init("") == {}
    for text in ("10", "x=open('f')", "**{}", "x=1)(y=2", "x=1 y"):
        with pytest.raises(InputError, match="--init"):
            parse_init(text)


def test_a_factory_is_a_module_or_a_file_and_a_name_in_it() -> None:
    assert split_factory("torchvision.models:resnet50", "--model") == ("torchvision.models", "resnet50")
    assert split_factory("some dir/net.py:Net.small", "--model") == ("some dir/net.py", "Net.small")
    for text in ("resnet50", "torchvision.models:", "some dir/net:Net", "net.py:a-b"):
        with pytest.raises(InputError, match="--model"):
            split_factory(text, "--model")


def test_a_training_step_has_an_optimizer_and_only_that() -> None:
    request = checked(ModelRequest("a:b", backward=True))
    assert (request.optimizer, request.train) == ("SGD", True)
    assert checked(ModelRequest("a:b")).optimizer == ""
    with pytest.raises(InputError, match="--backward"):
        checked(ModelRequest("a:b", optimizer="Adam"))
    with pytest.raises(InputError, match="--autocast float8"):
        checked(ModelRequest("a:b", amp="float8"))
    with pytest.raises(InputError, match="--sim"):
        checked(ModelRequest("a:b", fake=True, device="npu"))


def test_a_request_survives_the_way_to_another_process() -> None:
    request = ModelRequest("a:b", ("2x3", 'x="ä"'), init="n=1", backward=True, amp="float16")
    assert decode(ModelRequest, encode(request)) == request
