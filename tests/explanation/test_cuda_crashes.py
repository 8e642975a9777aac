"""What is said about crashes on a CUDA device; the logs are those of small programs, made to crash with torch 2.11."""

from __future__ import annotations

from tests.explanation.explaining import explained, ids
from torchferry.explanation.report import page_of
from torchferry.report.formats import Options

NCCL = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 6, in <module>
[rank1]:     dist.all_reduce(x)
[rank1]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9
[rank1]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
[rank1]: Last error:
[rank1]: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 6, in <module>
[rank0]:     dist.all_reduce(x)
[rank0]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:93, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9
[rank0]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
[rank0]: Last error:
[rank0]: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60
Root Cause (first observed failure):
[0]:
  time      : 2026-11-16_00:50:23
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 754)
"""
ASSERTED = """\
/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [0,0,0] Assertion `t >= 0 && t < n_classes` failed.
/pytorch/aten/src/ATen/native/cuda/Loss.cu:245: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [1,0,0] Assertion `t >= 0 && t < n_classes` failed.
Traceback (most recent call last):
  File "label.py", line 5, in <module>
    print(loss.item())
torch.AcceleratorError: CUDA error: device-side assert triggered
Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
"""


def raised(exception: str, rank: int) -> str:
    lines = [
        "Traceback (most recent call last):",
        '  File "train.py", line 6, in <module>',
        "    work()",
        exception,
    ]
    return "".join(f"[rank{rank}]: {line}\n" for line in lines)


def verdict(text: str) -> str:
    return "\n".join(said.en for said, _ in page_of(explained(text), Options()).verdicts)


def test_the_line_of_a_message_that_says_most_is_the_cause() -> None:
    found = explained(NCCL)
    assert ids(NCCL) == ["any.device-shared", "any.device-shared"], "the general rule is taken back"
    assert found.cause is not None and found.cause.frame is not None and found.cause.frame.line == 6


def test_the_order_of_lines_of_several_processes_proves_nothing() -> None:
    said = verdict(NCCL)
    assert "failed first" not in said.replace("which process failed first is unknown", "")
    assert "the launcher saw rank 0 end first" in said
    first, second = raised("ValueError: bad picture", 1), raised("RuntimeError: Connection closed by peer", 0)
    assert "rank 1 failed first" in verdict(second + first), "the other one has only a consequence"


def test_an_error_of_the_device_surfaces_later() -> None:
    said = verdict(ASSERTED)
    assert (
        "surfaced at: label.py:5, in <module>; the error may have occurred earlier" in said
        and "CUDA_LAUNCH_BLOCKING=1" in said
    )
    assert "any.cuda-error" not in ids(ASSERTED), "the message's further line says no more than its first"
    assert "in the program: train.py:6" in verdict(raised("torch.OutOfMemoryError: CUDA out of memory.", 0))


def test_an_unknown_exception_names_the_line_to_look_at() -> None:
    assert "what to do: check train.py:6" in verdict(raised("KeyError: 'label 37'", 0))


def test_a_log_without_an_error_names_exit_codes_and_claims_nothing() -> None:
    assert explained("about to work\n").cause is None
    assert "if the program ended early anyway" in verdict("about to work\n")
    assert "ended early" not in verdict(ASSERTED)
