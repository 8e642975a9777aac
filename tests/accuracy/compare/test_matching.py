"""Which calls of two programs belong together, when the programs differ a little."""

from __future__ import annotations

import pytest

from tests.accuracy.compare.calls import call, matched, program
from torchferry.accuracy.compare.matching import CallSequence, Matching, have_same_numbers, match_sites
from torchferry.operators.names import family, is_plumbing, likeness


def test_the_same_program() -> None:
    calls = program("conv: convolution", "relu", "fc: addmm")
    assert matched(calls, calls) == ["convolution#1 = convolution#1", "relu#2 = relu#2", "addmm#3 = addmm#3"]


def test_an_extra_operator_does_not_misalign_the_rest() -> None:
    golden = program("mm", "relu", "mm", "relu")
    mine = program("mm", "relu", "sin", "mm", "relu")
    assert matched(mine, golden) == [
        "mm#1 = mm#1",
        "relu#2 = relu#2",
        "sin#3 = (nothing)",
        "mm#4 = mm#3",
        "relu#5 = relu#4",
    ]
    assert matched(golden, mine)[2] == "(nothing) = sin#3"


def test_copies_and_casts_of_one_side_are_no_news() -> None:
    mine = program("_to_copy", "mm", "contiguous", "view", "relu", "copy_")
    lines = matched(mine, program("mm", "relu"))
    assert lines == [
        "_to_copy#1 = (extra)", "mm#2 = mm#1", "contiguous#3 = (extra)", "view#4 = (extra)", "relu#5 = relu#2",
        "copy_#6 = (extra)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("mine", "golden", "how"),
    [
        ("native_batch_norm", "cudnn_batch_norm", "equivalent"),
        ("_native_batch_norm_legit", "_batch_norm_with_update", "equivalent"),
        ("native_batch_norm_backward", "cudnn_batch_norm_backward", "equivalent"),
        ("convolution_overrideable", "cudnn_convolution", "equivalent"),
        ("convolution_backward_overrideable", "convolution_backward", "equivalent"),
        ("native_dropout", "_fused_dropout", "equivalent"),
        (
            "_scaled_dot_product_fused_attention_overrideable",
            "_scaled_dot_product_flash_attention",
            "equivalent",
        ),
        ("lstm.input", "_cudnn_rnn", "equivalent"),
        ("linear", "addmm", "equivalent"),
        ("lib::lib_rms_norm", "_fused_rms_norm", "equivalent"),
        ("lib::lib_fusion_attention", "_scaled_dot_product_efficient_attention", "equivalent"),
        ("lib::fast_gelu", "gelu", "similar"),
        ("lib::lib_swiglu", "swiglu", "equivalent"),
    ],
)
def test_other_names_for_the_same_job(mine: str, golden: str, how: str) -> None:
    """Between two neighbours that are alike."""
    lines = matched(program("mm", f"layer: {mine}", "relu"), program("mm", f"layer: {golden}", "relu"))
    assert len(lines) == 3 and lines[1].endswith(f" {how}")


@pytest.mark.parametrize(
    ("mine", "golden"),
    [
        ("convolution", "convolution_backward"),
        ("sin", "cos"),
        ("native_layer_norm", "native_batch_norm"),
        ("lib::fast_gelu_backward", "gelu"),
    ],
)
def test_other_jobs_are_not_matched(mine: str, golden: str) -> None:
    lines = matched(program("mm", mine, "relu"), program("mm", golden, "relu"))
    assert sorted(line.partition(" = ")[2] for line in lines if "(" in line) == ["(nothing)", f"{golden}#2"]


def test_similar_names_must_stand_in_the_same_module() -> None:
    mine, golden = program("a: lib::fast_gelu"), program("b: gelu")
    assert matched(mine, golden) == ["lib::fast_gelu#1 = (nothing)", "(nothing) = gelu#1"]


def test_24_equal_layers_do_not_slip() -> None:
    """One layer of mine has one operator more: in the others each call meets its own."""
    layer = ["native_layer_norm", "addmm", "gelu", "addmm", "add.Tensor"]
    golden = program(*(f"layers.{at}: {name}" for at in range(24) for name in layer))
    mine = list(golden)
    mine.insert(5 * 7 + 2, call("addmm", "layers.7"))
    mine = program(*mine)
    assert _slipped(mine, golden, extra=37) == []


def test_24_equal_layers_without_names_do_not_slip() -> None:
    """Nothing tells the layers apart, and each has an operator more."""
    layer = ["native_layer_norm", "addmm", "gelu", "addmm", "add.Tensor"]
    golden = program(*layer * 24)
    mine = program(*["native_layer_norm", "addmm", "mul.Tensor", "gelu", "addmm", "add.Tensor"] * 24)
    for line in matched(mine, golden):
        if line.startswith("mul"):
            assert line.endswith("(nothing)")
            continue
        one, other = (int(part.rpartition("#")[2]) - 1 for part in line.split(" = "))
        assert one // 6 == other // 5


def _slipped(mine: list, golden: list, extra: int) -> list[str]:  # type: ignore[type-arg]
    wrong = []
    for match in Matching(CallSequence(mine), CallSequence(golden)).matches():
        if match.mine is not None and match.golden is not None:
            shift = int(match.mine > match.golden)
            same = mine[match.mine].module == golden[match.golden].module
            if not same or (shift and match.mine < extra):
                wrong.append(f"{match.mine} = {match.golden}")
    return wrong


def test_lines_of_the_source_tell_equal_calls_apart() -> None:
    golden = program(call("add.Tensor", place="a.py:3"), call("add.Tensor", place="a.py:9"))
    mine = program(call("add.Tensor", place="a.py:9"))
    assert matched(mine, golden) == ["(nothing) = add.Tensor#1", "add.Tensor#1 = add.Tensor#2"]


def test_a_reordered_operator_is_found_elsewhere() -> None:
    lines = matched(program("sin", "mm", "relu", "exp"), program("mm", "relu", "exp", "sin"))
    assert lines == ["sin#1 = sin#4 moved", "mm#2 = mm#1", "relu#3 = relu#2", "exp#4 = exp#3"]


def test_one_piece_against_several() -> None:
    """A fused optimizer, and a recurrent layer: what is left on both sides of one place belongs together."""
    mine = program(call("_fused_adamw_", phase="optimizer"))
    golden = program(*(call(name, phase="optimizer") for name in ("lerp_.Scalar", "mul_.Tensor", "addcdiv_")))
    assert matched(mine, golden) == [
        "_fused_adamw_#1 = (group)", "(group) = lerp_.Scalar#1", "(group) = mul_.Tensor#2", "(group) = addcdiv_#3",
    ]  # fmt: skip
    lines = matched(program("rnn: lstm.input"), program("rnn: mm", "rnn: sigmoid", "rnn: tanh"))
    assert lines[0] == "lstm.input#1 = (group)" and len(lines) == 4


def test_what_is_left_in_different_modules_is_no_group() -> None:
    assert matched(program("a: sin"), program("b: cos")) == ["sin#1 = (nothing)", "(nothing) = cos#1"]


def test_foreach_and_single() -> None:
    mine = program(call("_foreach_add_.List", phase="optimizer"))
    golden = program(call("add_.Tensor", phase="optimizer"))
    assert matched(mine, golden) == ["_foreach_add_.List#1 = add_.Tensor#1 equivalent"]


def test_a_wrapper_of_the_model_changes_no_path() -> None:
    mine, golden = program("module.layer1: relu", "module: sin"), program("layer1: relu", "sin")
    assert matched(mine, golden) == ["relu#1 = relu#1", "sin#2 = sin#2"]


def test_steps_are_kept_apart() -> None:
    mine = program(call("relu", step=1), call("relu", step=2))
    golden = program(call("relu", step=2))
    assert matched(mine, golden) == ["relu#1 = (nothing)", "relu#2 = relu#1"]


def test_steps_with_other_numbers_are_compared_by_their_order() -> None:
    mine = program(call("relu", step=11), call("sin", step=12))
    golden = program(call("relu", step=1), call("sin", step=2))
    assert matched(mine, golden) == ["relu#1 = relu#1", "sin#2 = sin#2"]


def test_a_replay_is_matched_by_numbers() -> None:
    """Also where it has only some of the calls, which look alike."""
    golden = program("relu", "relu", "relu", "sin")
    mine = [golden[1], golden[3]]
    sites = CallSequence(mine), CallSequence(golden)
    assert have_same_numbers(*sites)
    found = match_sites(*sites, is_replay=True)
    assert [(match.mine, match.golden) for match in found] == [(None, 0), (0, 1), (None, 2), (1, 3)]


def test_numbers_that_mean_other_calls_are_not_believed() -> None:
    mine, golden = program("sin", "mm", "relu"), program("mm", "relu")
    assert not have_same_numbers(CallSequence(mine), CallSequence(golden))
    found = match_sites(CallSequence(mine), CallSequence(golden), is_replay=True)
    assert [(match.mine, match.golden) for match in found] == [(0, None), (1, 0), (2, 1)]


def test_every_call_appears_exactly_once() -> None:
    mine = program("a: mm", "sin", "b: relu", "copy_", "mm", "c: exp", "exp")
    golden = program("a: mm", "b: relu", "cos", "mm", "exp", "c: exp", "view")
    found = match_sites(CallSequence(mine), CallSequence(golden))
    assert sorted(match.mine for match in found if match.mine is not None) == list(range(len(mine)))
    assert sorted(match.golden for match in found if match.golden is not None) == list(range(len(golden)))


@pytest.mark.parametrize(("layers", "has_modules"), [(1000, True), (300, False)])
def test_50_000_calls_take_nearly_linear_work(layers: int, has_modules: bool) -> None:
    """Layers of 50 calls, one more in each of mine, and one name that differs."""
    layer = [f"op{at % 17}" for at in range(50)]
    golden = [
        call(name, f"layers.{at}" if has_modules else "", number=at * 50 + place + 1)
        for at in range(layers)
        for place, name in enumerate(layer)
    ]
    mine = []
    for at, each in enumerate(golden):
        mine.append(each)
        if at % 50 == 20:
            mine.append(call("op3", each.module))
        elif at % 50 == 40:
            mine[-1] = call("lib::lib_other", each.module)
    matching = Matching(CallSequence(mine), CallSequence(golden))
    assert matching.comparisons < 60 * len(mine)
    found = matching.matches()
    assert sum(match.how == "same" for match in found) == len(golden) - layers
    assert all(
        abs(match.mine - match.golden - match.golden // 50) <= 1 for match in found if match.how == "same"
    )


def test_two_programs_that_have_nothing_in_common() -> None:
    mine, golden = program(*["sin"] * 300), program(*["cos"] * 300)
    matching = Matching(CallSequence(mine), CallSequence(golden))
    assert all(match.mine is None or match.golden is None for match in matching.matches())


def test_names() -> None:
    assert family("aten::cudnn_batch_norm") == family("aten::native_batch_norm") == "batch norm"
    assert is_plumbing("aten::_to_copy") and is_plumbing("aten::empty.memory_format")
    assert not is_plumbing("aten::mm")
    assert likeness("lib::lib_rotary_mul", "aten::rotary_mul") == 1.0
    assert likeness("aten::gelu_backward", "aten::gelu") == 0.0
