"""TF811: Dockerfiles."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, vendor
from tests.conversion.texts.texting import messages, rewritten, said


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("# FROM nvidia/cuda", id="a comment"),
        pytest.param("FROM python:3.11  # gpu", id="an image without CUDA"),
        pytest.param('LABEL about="training with cuda"', id="a label"),
        pytest.param("COPY cuda /opt/cuda", id="a folder"),
        pytest.param("WORKDIR /gpu", id="a path"),
    ],
)
def test_noop(line: str) -> None:
    for name in (*VENDORS, "portable"):
        assert rewritten("Dockerfile", line + "\n", name) == line + "\n"
        assert not [item for item in said("Dockerfile", line, name) if item[0] == "TF811"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ENV CUDA_VISIBLE_DEVICES=0,1", "ENV ASCEND_RT_VISIBLE_DEVICES=0,1"),
        ("ENV CUDA_VISIBLE_DEVICES 0,1", "ENV ASCEND_RT_VISIBLE_DEVICES 0,1"),
        ("ENV A=1 \\\n    CUDA_LAUNCH_BLOCKING=1", "ENV A=1 \\\n    ASCEND_LAUNCH_BLOCKING=1"),
        ("RUN python a.py --device cuda", "RUN python a.py --device npu"),
        (
            "RUN --mount=type=cache,target=/x \\\n  python a.py \\\n  # on cuda\n  --device cuda",
            "RUN --mount=type=cache,target=/x \\\n  python a.py \\\n  # on cuda\n  --device npu",
        ),
        ("CMD python a.py --backend nccl", "CMD python a.py --backend hccl"),
        ('CMD ["python", "a.py", "--device", "cuda"]', 'CMD ["python", "a.py", "--device", "npu"]'),
        ('ENTRYPOINT ["a", "--dist-backend=nccl"]', 'ENTRYPOINT ["a", "--dist-backend=hccl"]'),
        ("HEALTHCHECK --interval=5s CMD nvidia-smi", "HEALTHCHECK --interval=5s CMD npu-smi info"),
    ],
)
def test_variables_and_commands(before: str, after: str) -> None:
    assert rewritten("Dockerfile", before + "\n") == after + "\n"
    assert rewritten("docker/train.dockerfile", before + "\n") == after + "\n"


@pytest.mark.parametrize(
    "line",
    [
        "FROM nvidia/cuda:11.8.0-devel-ubuntu22.04",
        "FROM --platform=linux/amd64 nvcr.io/nvidia/pytorch:24.01-py3 AS base",
        "FROM pytorch/pytorch:2.1.0-cuda11.8-cudnn8-devel",
        "ARG CUDA_VERSION=11.8",
    ],
)
def test_what_is_built_on_cuda_is_reported(line: str) -> None:
    for name in (*VENDORS, "portable"):
        assert rewritten("Dockerfile", line + "\n", name) == line + "\n"
        assert [item[:2] for item in said("Dockerfile", line, name)] == [("TF811", "todo")]


def test_an_image_that_no_table_names_is_not_invented() -> None:
    for name in VENDORS:
        text = messages("Dockerfile", "FROM nvidia/cuda:11.8", name)
        assert vendor(name).company in text
        assert "no equivalent tag is known" in text


def test_variables_with_other_values_are_reported() -> None:
    text = "ENV CUDA_HOME=/usr/local/cuda NVIDIA_VISIBLE_DEVICES=all\n"
    assert rewritten("Dockerfile", text) == text
    assert [kind for _, kind, _ in said("Dockerfile", text)] == ["todo", "todo"]


def test_a_list_of_words_is_never_given_another_number_of_words() -> None:
    for line in (
        'RUN ["nvidia-smi"]',
        'RUN ["python", "-m", "torch.distributed.launch", "--use_env", "a.py"]',
    ):
        assert rewritten("Dockerfile", line + "\n") == line + "\n"
        assert len(said("Dockerfile", line)) == 1


def test_packages_that_are_installed_are_looked_at_like_requirements() -> None:
    text = "RUN apt-get install -y cuda-toolkit-11-8 && pip install torch==2.1.0+cu118 apex\n"
    assert [item[0] for item in said("Dockerfile", text)] == ["TF812"] * 3
