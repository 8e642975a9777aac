"""The proof as JSON: its names are a contract."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from torchferry.proof.report import json as proof_json
from torchferry.report.formats import Options

from .samples import SAMPLES, not_finite, sample

PROOF = "format version torchferry holds request reference results torch date"
REQUEST = "original converted vendors steps seed processes same_weights exact rtol atol emulated"
RUN = "name exit_code seconds stdout stderr processes"
PROCESS = "identity optimizers steps"
IDENTITY = "rank role pid started restart torch"
STEP = "ordinal optimizer losses gradient_norm checksum skipped step"
JUDGEMENT = "verdict sort own_error limit why record step"
RESULT = "vendor device_type verdict run compared_steps reason parting largest operator judgement notes"
DIFFERENCE = "what step rank optimizer name reference migrated distance relative tolerance"
OPERATOR = "reference migrated output distance relative cause notes step"
CALL = "ordinal name phase module place outputs inputs arguments node"
TENSOR = "shape dtype checksum norm projections"


def names(record: dict[str, Any]) -> str:
    return " ".join(record)


def test_the_names_stay() -> None:
    content = json.loads(proof_json.to_json(sample(), Options()))
    parted = content["results"][1]
    process = content["reference"]["processes"][0]
    assert (names(content), names(content["request"])) == (PROOF, REQUEST)
    assert (names(content["reference"]), names(process)) == (RUN, PROCESS)
    assert (names(process["identity"]), names(process["steps"][0])) == (IDENTITY, STEP)
    assert (names(parted), names(parted["parting"]), names(parted["operator"])) == (
        RESULT,
        DIFFERENCE,
        OPERATOR,
    )
    assert names(parted["judgement"]) == JUDGEMENT
    call = parted["operator"]["reference"]
    assert (names(call), names(call["inputs"][0])) == (CALL, TENSOR)
    assert (content["format"], content["version"]) == ("torchferry-proof", 1)
    assert (content["holds"], parted["verdict"]) == (False, "parted")
    assert content["results"][2]["reason"] == {"en": "The migrated run failed.", "zh": "迁移后的运行失败。"}


def test_every_name_is_documented() -> None:
    documented = set(re.findall(r"\w+", proof_json.__doc__ or ""))
    all_names = " ".join(
        [PROOF, REQUEST, RUN, PROCESS, IDENTITY, STEP, RESULT, DIFFERENCE, OPERATOR, JUDGEMENT, CALL, TENSOR]
    )
    assert set(all_names.split()) <= documented


def test_numbers_that_json_does_not_have() -> None:
    steps = json.loads(proof_json.to_json(not_finite(), Options()))["reference"]["processes"][0]["steps"]
    assert [steps[at]["losses"][0] for at in (2, 3, 4)] == ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("name", SAMPLES)
def test_everything_is_valid(name: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    text = proof_json.to_json(SAMPLES[name](), Options())
    text.encode()
    json.loads(text, parse_constant=refuse)
