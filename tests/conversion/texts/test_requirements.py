"""TF812: requirements."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, vendor
from tests.conversion.texts.texting import messages, rewritten, said


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("numpy  # not for cuda", id="another package"),
        pytest.param("torchmetrics", id="a package whose name begins so"),
        pytest.param("# flash-attn", id="a comment"),
        pytest.param("-r base.txt", id="another file"),
        pytest.param("--index-url https://pypi.org/simple", id="the usual index"),
        pytest.param("apexpy", id="a longer name"),
    ],
)
def test_noop(line: str) -> None:
    for name in (*VENDORS, "portable"):
        assert rewritten("requirements.txt", line + "\n", name) == line + "\n"
        assert not [item for item in said("requirements.txt", line, name) if item[0] == "TF812"]


@pytest.mark.parametrize(
    "line",
    [
        "torch==2.1.0+cu118",
        "torchvision==0.16.0+cu118; python_version > '3.8'",
        "--extra-index-url https://download.pytorch.org/whl/cu118",
        "nvidia-cublas-cu12==12.1.3.1",
        "flash_attn>=2.0",
        "xformers",
        "bitsandbytes~=0.41",
        "triton",
        "deepspeed[1bit]",
        "pynvml",
        "cupy-cuda12x",
        "tensorrt",
        "nvidia-dali-cuda110",
        "onnxruntime-gpu",
        "faiss-gpu",
        "dgl-cu118",
        "mmcv-full==1.7.0",
        "apex @ git+https://github.com/NVIDIA/apex.git",
        "git+https://github.com/NVIDIA/apex.git@22.03",
        "git+https://github.com/Dao-AILab/flash-attention.git",
    ],
)
def test_packages_for_cuda_are_reported_and_never_edited(line: str) -> None:
    for name in (*VENDORS, "portable"):
        assert rewritten("requirements.txt", line + "\n", name) == line + "\n"
        assert [item[:2] for item in said("requirements/gpu.txt", line, name)] == [("TF812", "todo")]


def test_torch_needs_the_vendors_plugin_beside_it() -> None:
    for name in VENDORS:
        text = messages("requirements.txt", "torch==2.1.0\n", name)
        assert (vendor(name).plugin or vendor(name).device_type) in text
        assert said("requirements.txt", "torch==2.1.0\n", name)[0][1] == "info"
    assert said("requirements.txt", "torch==2.1.0\n", "portable") == []


def test_the_vendors_tables_are_quoted() -> None:
    assert "npu_fusion_attention" in messages("requirements.txt", "flash-attn")
    assert "triton-ascend" in messages("requirements.txt", "triton")
    assert "npu-smi" in messages("requirements.txt", "pynvml")
    assert "No replacement for Huawei Ascend is known" in messages("requirements.txt", "cupy-cuda12x")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("environment.yml", "dependencies:\n  - pytorch-cuda=11.8\n  - pip:\n    - flash-attn\n"),
        ("pyproject.toml", '[project]\ndependencies = ["flash-attn", "xformers>=0.1"]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\nflash-attn = "*"\nbitsandbytes = "^0.4"\n'),
        ("setup.cfg", "[options]\ninstall_requires =\n    flash-attn\n    apex\n"),
        ("install.sh", "pip install -q flash-attn 'xformers>0.1'\n"),
        ("install.sh", "conda install -c nvidia pytorch-cuda=11.8 cudatoolkit\n"),
    ],
)
def test_lists_of_packages_in_other_files(name: str, text: str) -> None:
    assert rewritten(name, text) == text
    assert [item[:2] for item in said(name, text)] == [("TF812", "todo"), ("TF812", "todo")]
