"""Names of weights: what wrappers put before them, and what was meant where they don't fit."""

from __future__ import annotations

from torchferry.checkpoint.names import differences, fit, renamed_to_fit, wrappers_of

MODEL = ["conv.weight", "conv.bias", "head.weight"]


def test_names_that_fit_stay() -> None:
    assert renamed_to_fit(MODEL, MODEL).names == {name: name for name in MODEL}


def test_prefixes_and_wrappers_within_are_taken_off() -> None:
    given = [
        "_orig_mod.module.conv.weight",
        "_orig_mod.module.conv.bias",
        "_orig_mod.module.head._orig_mod.weight",
    ]
    renaming = renamed_to_fit(given, MODEL)
    assert list(renaming.names.values()) == MODEL
    assert (renaming.stripped, renaming.unwrapped) == ("_orig_mod.module.", 1)
    assert wrappers_of(given) == ("_orig_mod.", "module.")


def test_a_frameworks_own_prefix_goes_only_if_that_fits() -> None:
    assert renamed_to_fit(["net.conv.weight", "net.conv.bias"], MODEL).stripped == "net."
    assert renamed_to_fit(["module.weight"], ["module.weight"]).stripped == ""


def test_differences_are_told_both_ways() -> None:
    given = {"conv.weight": (4, 3), "conv.bais": (4,), "head.weight": (10, 4), "bn.num_batches_tracked": ()}
    wanted = {"conv.weight": (4, 3), "conv.bias": (4,), "head.weight": (5, 4), "bn.num_batches_tracked": ()}
    assert [line.en for line in differences(fit(given, wanted))] == [
        "missing in the file: conv.bias (closest: conv.bais)",
        "not in the model: conv.bais (closest: conv.bias)",
        "shape mismatch: head.weight is 10x4 in the file, 5x4 in the model",
    ]


def test_a_counter_of_training_may_be_missing() -> None:
    assert fit({"bn.weight": (4,)}, {"bn.weight": (4,), "bn.num_batches_tracked": ()}).is_whole
