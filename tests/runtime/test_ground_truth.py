"""What a real GPU answered to CUDA expressions, and what the layer answers on every vendor's simulated device."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.forking import run_module_forked
from tests.runtime.ground_truth import probe
from tests.sim.checking import VENDORS
from torchferry.runtime import REFERENCE
from torchferry.vendors.registry import get_vendor

# Where the device differs from a GPU, and the layer must not hide it.
_DIFFERS = {
    "torch.get_device_module('cuda') is torch.cuda": "it is the vendor's module, whose functions torch.cuda has",
    "torch.Generator(device='cuda').device": "carries the index of its device, which CUDA's does not",
    "torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.tensor([1.0]), (2, 2), device='cuda').device": (
        "the simulated device has no sparse tensors"
    ),
    "h.cuda(99)": "a RuntimeError; CUDA's AcceleratorError is one of them",
    "h.to('cuda:99')": "a RuntimeError; CUDA's AcceleratorError is one of them",
    "x.type(torch.float64).dtype": "a card without float64 casts to float32, and warns",
}

# Where the original of a proof, on the CPU, differs from a GPU: it takes more, or it says something of the memory.
_REFERENCE_DIFFERS = {
    "torch.cuda.memory_allocated() > 0": "nothing is counted on the CPU",
    "torch.cuda.max_memory_allocated('cuda:0') > 0": "nothing is counted on the CPU",
    "torch.cuda.memory_reserved(0) > 0": "nothing is counted on the CPU",
    "h.cuda(99)": "a RuntimeError; CUDA's AcceleratorError is one of them",
    "h.to('cuda:99')": "a RuntimeError; CUDA's AcceleratorError is one of them",
    "isinstance(x, torch.FloatTensor)": "decided in C++ by where PyTorch has the tensor",
    "torch.empty(2, pin_memory=True).is_pinned()": "there is no pinned memory",
    "h.pin_memory().is_pinned()": "there is no pinned memory",
    "torch.Generator(device='cuda').device": "there is one sort of generator",
    "torch.rand(2, device='cuda', generator=torch.Generator())": "there is one sort of generator",
    "m(h)": "tensors of the host and of a device may meet",
    "x + h": "tensors of the host and of a device may meet",
    "torch.cat([x, h])": "tensors of the host and of a device may meet",
    "x.numpy()": "the memory is the host's",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, str]]:
    @cache
    def ask(vendor: str) -> dict[str, str]:
        file = tmp_path_factory.mktemp(vendor) / "answers.json"
        run_module_forked("tests.runtime.ground_truth.probe", str(file), vendor).check_returncode()
        return _read(file)

    return ask


def _read(file: Path) -> dict[str, str]:
    # An expression that occurs twice asks again after something was set in between.
    rows = json.loads(file.read_text("utf-8"))["answers"]
    return {f"{number}: {expression}": answer for number, (expression, answer) in enumerate(rows)}


def _in_cudas_words(answer: str, device_type: str) -> str:
    for before in ("'", "torch.", "on "):
        answer = answer.replace(before + device_type, before + "cuda")
    return answer


@pytest.mark.parametrize("vendor", VENDORS)
def test_layer_answers_as_the_gpu_did(answers: Callable[[str], dict[str, str]], vendor: str) -> None:
    gpu = _read(probe.ANSWERS)
    ours = answers(vendor)
    device_type = get_vendor(vendor).device_type
    different = {
        key: f"GPU: {gpu[key]}; here: {ours[key]}"
        for key in gpu
        if key.partition(": ")[2] not in _DIFFERS and _in_cudas_words(ours[key], device_type) != gpu[key]
    }
    assert not different, json.dumps(different, indent=1)


def test_the_original_of_a_proof_answers_as_the_gpu_did(answers: Callable[[str], dict[str, str]]) -> None:
    gpu, ours = _read(probe.ANSWERS), answers(REFERENCE)
    different = {
        key.partition(": ")[2]: f"GPU: {gpu[key]}; here: {ours[key]}" for key in gpu if ours[key] != gpu[key]
    }
    unexpected = {key: said for key, said in different.items() if key not in _REFERENCE_DIFFERS}
    assert not unexpected, json.dumps(unexpected, indent=1)
    assert set(_REFERENCE_DIFFERS) <= set(different)


def test_every_difference_that_is_allowed_is_one_somewhere(answers: Callable[[str], dict[str, str]]) -> None:
    gpu = _read(probe.ANSWERS)
    for expression in _DIFFERS:
        [key] = [key for key in gpu if key.partition(": ")[2] == expression]
        assert any(
            _in_cudas_words(answers(vendor)[key], get_vendor(vendor).device_type) != gpu[key]
            for vendor in VENDORS
        ), expression


def test_answers_were_recorded_for_these_expressions() -> None:
    recorded = json.loads(probe.ANSWERS.read_text("utf-8"))
    assert [expression for expression, _ in recorded["answers"]] == probe.expressions()
