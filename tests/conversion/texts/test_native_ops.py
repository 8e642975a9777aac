"""Operators that native sources register."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conversion.rewriting import target
from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.texts.native_ops import find_native_ops, is_native_of_interest, look_at_native_ops
from torchferry.finding import Kind

PYBIND = """\
#include <torch/extension.h>
void nms_cuda(at::Tensor boxes);  // m.def("in_a_comment")
/* PYBIND11_MODULE(x, m) { m.def("also") } */
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("nms", &nms_cuda, "non-maximum suppression {");
  m.def(
      "roi_align",
      &roi_align);
  py::class_<Other>(m, "NotOfM");
  m.class_<Decoder>("Decoder").def("seek", &Decoder::seek);
  if (true) { m.def("inner", &inner); }
}
void after() { m.def("outside"); }
"""
LIBRARY = """\
TORCH_LIBRARY(my_ops, lib) {
  lib.def("add(Tensor a, Tensor b) -> Tensor");
  lib.def("other::mul", &mul);
}
TORCH_LIBRARY_IMPL(my_ops, CUDA, lib) { lib.impl("add", &add_cuda); lib.impl("sub", &sub_cuda); }
TORCH_LIBRARY_FRAGMENT(more, m) { m.def("div(Tensor a) -> Tensor"); }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(PYBIND, [("nms", 5), ("roi_align", 7), ("Decoder", 10), ("inner", 11)], id="pybind"),
        pytest.param(
            LIBRARY,
            [("my_ops::add", 2), ("other::mul", 3), ("my_ops::sub", 5), ("more::div", 6)],
            id="torch library",
        ),
        pytest.param("PYBIND11_MODULE(x, m) { m.def(", [], id="cut short"),
        pytest.param("", [], id="empty"),
    ],
)
def test_registrations_are_found(text: str, expected: list[tuple[str, int]]) -> None:
    assert [tuple(op) for op in find_native_ops(text)] == expected


def test_what_speaks_of_cuda_is_work_and_the_rest_is_not() -> None:
    kernel = look_at_native_ops("readiness/nms.cpp", PYBIND, target("ascend"))
    assert {finding.kind for finding in kernel} == {Kind.TODO}
    plain = look_at_native_ops("readiness/text.cpp", PYBIND.replace("cuda", "host"), target("ascend"))
    assert {finding.kind for finding in plain} == {Kind.INFO}
    assert [finding.before for finding in kernel] == ["nms", "roi_align", "Decoder", "inner"]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.cpp", b"TORCH_LIBRARY(x, m) {}", True),
        ("a.cpp", b"int main() { cuda(); }", False),
        ("a.cu", b"", True),
        ("a.py", b"TORCH_LIBRARY", False),
    ],
)
def test_which_files_are_looked_at(name: str, data: bytes, expected: bool) -> None:
    assert is_native_of_interest(name, data) is expected


def test_a_project_reports_kernels_and_operators_and_heeds_ignore(tmp_path: Path) -> None:
    (tmp_path / "nms.cu").write_text(PYBIND)
    plan = Plan(target("ascend"))
    found = examine_project(tmp_path, plan).report("scan").findings
    assert [item.rule for item in found] == ["TF801", "TF803", "TF803", "TF803", "TF803"]
    silent = examine_project(tmp_path, replace(plan, ignore=("TF80",))).report("scan").findings
    assert not silent
