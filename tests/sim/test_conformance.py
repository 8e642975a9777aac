"""The simulated device gives what the CPU gives, on PyTorch's own samples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tools.conformance.__main__ import main
from tools.conformance.operators import DTYPES, operator_names, samples, skip_reason, supports
from tools.conformance.pool import Job, Settings, StartError, run_jobs
from tools.conformance.reasons import (
    DIFFERENCES,
    EXPLANATIONS,
    HOST_ARGUMENTS,
    REASONS,
    SKIPS,
    UNDEFINED_VALUES,
    explanation,
)
from tools.conformance.records import Difference, Kind, Outcome, Result, Run, pass_rate

ROOT = Path(__file__).resolve().parents[2]
VENDOR = "ascend"
BARS = {"float32": 99.4, "float16": 98.0, "bfloat16": 98.0}
A_FEW = (
    "add,abs,amax,arange,argsort,as_strided,baddbmm,bernoulli,cat,cdist,cholesky,chunk,clamp,complex,"
    "cumsum,diagonal,einsum,expand,fft.rfft,flip,gather,index_add,index_put,index_select,kthvalue,"
    "linalg.eigh,linalg.qr,linalg.solve,log_softmax,logsumexp,masked_fill,masked_select,matmul,"
    "max.reduction_with_dim,meshgrid.list_of_tensors,mul,multinomial,narrow,nn.functional.avg_pool2d,"
    "nn.functional.batch_norm,nn.functional.conv2d,nn.functional.cross_entropy,nn.functional.dropout,"
    "nn.functional.embedding,nn.functional.gelu,nn.functional.grid_sample,"
    "nn.functional.interpolate.bilinear,nn.functional.layer_norm,nn.functional.linear,"
    "nn.functional.max_pool2d,nn.functional.pad.reflect,nn.functional.scaled_dot_product_attention,"
    "nn.functional.unfold,nonzero,norm,normal,permute,pow,prod,randn,reshape,roll,scatter_add,sort,split,"
    "squeeze,stack,stft,sum,svd,take,tensor_split,topk,transpose,tril,unbind,unique,var,where,zeros_like"
)


def test_a_worker_that_dies_or_hangs_is_replaced() -> None:
    settings = Settings(timeout=3.0, module="tests.sim.misbehaving_worker")
    jobs = [Job(name, "float32") for name in ("fine", "dies", "fine", "hangs", "fine", "exits", "fine")]
    told: list[Result] = []
    results = run_jobs(jobs, settings, 2, told.append)
    assert [result.operator for result in results] == [job.operator for job in jobs]
    assert sorted(map(str, told)) == sorted(map(str, results))
    reasons = {result.operator: result.reason for result in results}
    assert reasons["fine"] == ""
    assert reasons["dies"] == "sample 3, backward: the process died of SIGSEGV"
    assert reasons["hangs"] == "sample 3, backward: no answer within 3 s"
    assert reasons["exits"] == "sample 3, backward: the process ended with code 1: no reason at all"
    assert all((result.outcome is Outcome.CRASH) == bool(result.reason) for result in results)


def test_a_worker_that_never_starts_is_an_error() -> None:
    with pytest.raises(StartError, match="no_such_module"):
        run_jobs([Job("abs", "float32")], Settings(module="tests.no_such_module"), 1, print)


def _run_of(*results: Result) -> Run:
    return Run("acme", "2.13.0", "3.11.7", "0.1.0", "2026-01-31", 61.4, 20, results)


RUN = _run_of(
    Result("abs", "float32", Outcome.PASS, 20, 120),
    Result("max", "float32", Outcome.CLOSE, 20, 120, differences=(Difference(Kind.ROUNDING, "forward", 1, "output", "2 of 3 values"),)),
    Result("min", "float32", Outcome.FAIL, 20, 120, differences=(Difference(Kind.STRIDE, "out=", 1, "out", "(1,) | (2,)"),)),
    Result("min", "float16", Outcome.CRASH, reason="sample 3, backward: the process died of SIGSEGV"),
    Result("to_sparse", "float32", Outcome.SKIPPED, reason="sparse"),
)  # fmt: skip


def test_results_survive_the_file(tmp_path: Path) -> None:
    RUN.write(tmp_path / "result.json")
    assert Run.read(tmp_path / "result.json") == RUN


def test_skipped_operators_do_not_count() -> None:
    assert pass_rate(RUN.of_dtype("float32")) == pytest.approx(100 * 2 / 3)
    assert pass_rate(RUN.of_dtype("float16")) == 0


def test_an_explanation_covers_its_own_kind_only() -> None:
    def result(kind: Kind) -> Result:
        found = Difference(kind, "forward", 0, "output", "differs")
        return Result("linalg.lstsq", "float32", Outcome.FAIL, differences=(found,))

    assert explanation(result(Kind.ROUNDING)) is not None
    assert explanation(result(Kind.DTYPE)) is None
    assert explanation(Result("linalg.lstsq", "float32", Outcome.CRASH)) is None


def test_the_tables_of_reasons_name_operators_that_exist() -> None:
    known = set(operator_names())
    assert {*SKIPS, *UNDEFINED_VALUES, *HOST_ARGUMENTS, *EXPLANATIONS} <= known
    assert set(SKIPS.values()) <= set(REASONS)
    assert set(DIFFERENCES) == set(Kind)
    assert {reason for name in known if (reason := skip_reason(name))} <= set(REASONS)


def test_half_precisions_are_those_of_the_cpu_and_of_cuda() -> None:
    assert supports("fft.fft", torch.float16)  # CUDA has it, the CPU does not
    assert not supports("fft.fft", torch.bfloat16)
    assert supports("gcd", torch.int64)
    assert not supports("gcd", torch.float32)


def test_samples_are_the_same_every_time() -> None:
    first, second = ([sample.input for sample in samples("multinomial", torch.float32, 5)] for _ in range(2))
    assert len(first) == 5
    assert all(one.equal(other) for one, other in zip(first, second, strict=True))


def _docs(folder: Path, run: Run) -> list[str]:
    run.write(folder / "result.json")
    for language in ("en", "zh"):
        (folder / language / "evidence").mkdir(parents=True)
    command = [
        sys.executable,
        "-m",
        "tools.make_conformance_docs",
        folder / "result.json",
        "--docs",
        folder,
    ]
    subprocess.run(command, check=True, cwd=ROOT)
    return [(folder / language / "evidence/conformance.md").read_text("utf-8") for language in ("en", "zh")]


def test_the_pages_say_what_differs_and_why_in_both_languages(tmp_path: Path) -> None:
    english, chinese = _docs(tmp_path, RUN)
    assert "| `float32` | 3 | 1 | 1 | 1 | 0 | 66.67 % | 1 | 360 | 0 |" in english
    assert "| `max` | `float32` | rounding: `forward: 2 of 3 values` |" in english
    assert "| `min` | `float32` | strides: `out=: (1,) \\| (2,)` |" in english
    assert "| `min` | `float16` | crashed: `sample 3, backward: the process died of SIGSEGV` |" in english
    assert f"| `to_sparse` | `float32` | {REASONS['sparse'].en} |" in english
    assert f"| `to_sparse` | `float32` | {REASONS['sparse'].zh} |" in chinese
    for pattern in (r"^#+ ", r"^\|", r"`[^`]+`"):
        counts = [len(re.findall(pattern, page, re.MULTILINE)) for page in (english, chinese)]
        assert counts[0] == counts[1] > 0


def _suite(output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.conformance", "--vendor", VENDOR, "-o", str(output), *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_sample_of_operators_gives_what_the_cpu_gives(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    options = ["--ops", A_FEW, "--dtypes", "float32", "--samples", "3", "--jobs", "1", "--fail-under", "100"]
    done = _suite(file, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    run = Run.read(file)
    assert {result.operator for result in run.results} == set(A_FEW.split(","))
    assert {result.operator: result for result in run.results if result.outcome is not Outcome.PASS} == {}
    assert all(result.checks > result.raised for result in run.results)
    assert sum(result.checks for result in run.results) > 700


def test_the_command_fails_under_its_bar(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    options = [
        "--self-check",
        "--jobs",
        "1",
        "--ops",
        "abs",
        "--samples",
        "1",
        "--dtypes",
        "int64",
        "--fail-under",
        "98,int64=101",
    ]
    assert main([*options, "-o", str(file)]) == 1
    (result,) = Run.read(file).results
    assert (result.operator, result.dtype, result.outcome) == ("abs", "int64", Outcome.PASS)


@pytest.mark.parametrize(
    "wrong",
    [
        "--self-check --dtypes int7",
        "--self-check --ops nothing",
        "--self-check --fail-under many",
        f"--self-check --vendor {VENDOR}",
        "",
    ],
)
def test_bad_usage_is_refused(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(wrong.split())
    assert stopped.value.code == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.long
def test_every_operator_of_pytorch(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    done = _suite(file, "--jobs", "2", "--timeout", "600")
    assert done.returncode == 0, done.stderr
    run = Run.read(file)
    assert set(run.dtypes()) == set(DTYPES)
    unexplained = [
        result
        for result in run.results
        if result.outcome not in (Outcome.PASS, Outcome.SKIPPED) and explanation(result) is None
    ]
    assert not unexplained, "\n".join(map(str, unexplained))
    rates = {dtype: pass_rate(run.of_dtype(dtype)) for dtype in run.dtypes()}
    assert {dtype: rate for dtype, rate in rates.items() if rate < BARS.get(dtype, 98.0)} == {}
    assert len([result for result in run.of_dtype("float32") if result.outcome is not Outcome.SKIPPED]) > 650
