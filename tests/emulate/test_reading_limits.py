"""What the importer reads of CANN's operator documents and sources, on made ones."""

from __future__ import annotations

from collections import Counter

import pytest
from tools.cann_limits import dtypes
from tools.cann_limits.collecting import Read, limits
from tools.cann_limits.documents import descriptions
from tools.cann_limits.tables import tables

from torchferry.emulate.cann.entries import ArgumentLimit, FunctionArgument, read_limits, write_limits

INTERFACES = {
    "aclnnMade": (
        FunctionArgument("self", "tensor"),
        FunctionArgument("dim", "int64_t"),
        FunctionArgument("out", "tensor"),
    )
}
SOURCE = """
static const std::initializer_list<op::DataType> DTYPE_SUPPORT_LIST = {DataType::DT_FLOAT, DataType::DT_FLOAT16};
static const std::initializer_list<op::DataType> ASCEND910B_LIST = {DataType::DT_FLOAT, DataType::DT_BF16};
static const std::initializer_list<op::DataType> ASCEND950_LIST = {DataType::DT_INT8};
constexpr size_t MAX_DIM = 8;
static const std::initializer_list<DataType>& GetList() {
  return IsLater() ? ASCEND950_LIST : (IsNew() ? ASCEND910B_LIST : DTYPE_SUPPORT_LIST);
}
"""
FIRST_PHASE = "\naclnnStatus aclnnMadeGetWorkspaceSize(const aclTensor* self) {}\n"


def page(self_dtypes: str = "FLOAT", dims: str = "-", below: str = "", product: str = "支持") -> str:
    """A document of a function."""
    return f"""# aclnnMade
## 产品支持情况
- <term>Atlas A2 训练系列产品/Atlas A2 推理系列产品</term>：{product}
## aclnnMadeGetWorkspaceSize
<table><tr><th>参数名</th><th>输入/输出</th><th>使用说明</th><th>数据类型</th><th>维度(shape)</th></tr>
<tr><td rowspan="2">self（aclTensor*）</td><td>输入</td><td>a</td><td rowspan="2">{self_dtypes}</td><td>{dims}</td></tr>
<tr><td>输入</td><td>b</td><td>{dims}</td></tr>
<tr><td>dim</td><td>输入</td><td>-</td><td>INT64</td><td>-</td></tr>
<tr><td>out</td><td>输出</td><td>-</td><td>与self一致</td><td>-</td></tr>
<tr><td>workspaceSize</td><td>输出</td><td>-</td><td>-</td><td>-</td></tr></table>
{below}
## aclnnMade
"""


def read(document: str, source: str = "") -> dict[str, ArgumentLimit]:
    """Argument -> limit."""
    given = Read()
    given.add("docs/aclnnMade.md", document)
    given.add("op_host/op_api/aclnn_made.cpp", source)
    return {limit.argument: limit for limit in limits(given, INTERFACES, Counter()).get("aclnnMade", ())}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FLOAT、FLOAT16，BF16", {"FLOAT", "FLOAT16", "BFLOAT16"}),
        ("FLOAT32, FLOAT64。", {"FLOAT", "DOUBLE"}),
        ("INT4（INT32）", {"INT4", "INT32"}),
        ("与self一致", None),
        ("Q_S=1：FLOAT16", None),
        ("-", None),
        ("", None),
    ],
)
def test_a_list_of_dtypes_is_read_whole_or_not_at_all(text: str, expected: set[str] | None) -> None:
    assert dtypes.listed(text) == expected


def test_cells_that_span_rows_and_columns_are_repeated_and_footnotes_left_out() -> None:
    table = '<table><tr><td rowspan="2">a</td><td colspan="2">b<sup>1</sup></td></tr><tr><td>c</td><td>d</td></tr></table>'
    assert tables(table) == [[["a", "b", "b"], ["a", "c", "d"]]]


def test_the_same_as_another_argument() -> None:
    found = read(page("FLOAT、INT8"))
    assert found["self"].dtypes == found["out"].dtypes == ("FLOAT", "INT8")
    assert set(found) == {"self", "out"}  # a number has no limit


@pytest.mark.parametrize("cell", ["见约束说明", "FLOAT8_X、FLOAT", "-"])
def test_what_can_not_be_read_has_no_limit(cell: str) -> None:
    assert read(page(cell)) == {}


def test_a_function_that_the_card_lacks_has_no_limit() -> None:
    assert list(descriptions(page(product="不支持"))) == []


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        ("数据类型不支持INT8。", ("FLOAT",)),
        ("self不支持INT8、FLOAT。", ()),
        ("out的数据类型不支持INT8", ("FLOAT", "INT8")),
        ("self额外支持BFLOAT16。", ("BFLOAT16", "FLOAT", "INT8")),
        ("当self为INT8时，不支持该选项。", ("FLOAT", "INT8")),
        ("当dim为0时self不支持INT8", ("FLOAT", "INT8")),  # not always
    ],
)
@pytest.mark.parametrize("marks", [('<!-- npu="910b" id1 -->', "<!-- end id1 -->"), ("", "")])
def test_notes_of_the_card_count(note: str, expected: tuple[str, ...], marks: tuple[str, str]) -> None:
    line = f"- <term>Atlas A2 训练系列产品/Atlas A2 推理系列产品</term>：{note}"
    found = read(page("FLOAT、INT8", below="\n".join([marks[0], line, marks[1]])))
    assert (found["self"].dtypes if "self" in found else ()) == expected


def test_notes_of_other_cards_do_not_count() -> None:
    note = '<!-- npu="950" id1 -->\n- <term>Ascend 950PR</term>：数据类型不支持FLOAT。\n<!-- end id1 -->'
    assert read(page("FLOAT", below=note))["self"].dtypes == ("FLOAT",)


def test_what_the_source_checks_beyond_the_document_is_allowed() -> None:
    check = "OP_CHECK_DTYPE_NOT_SUPPORT(self, GetList(), return false);"
    found = read(page("FLOAT"), SOURCE + check + FIRST_PHASE)
    assert found["self"].dtypes == ("BFLOAT16", "FLOAT", "FLOAT16")  # not that of a later card


def test_a_comment_in_the_source_is_no_check() -> None:
    check = "// OP_CHECK_DTYPE_NOT_SUPPORT(self, {DataType::DT_INT8}, return false);\n"
    assert read(page("FLOAT"), check + FIRST_PHASE)["self"].dtypes == ("FLOAT",)


def test_where_the_source_casts_there_is_no_limit() -> None:
    check = "OP_CHECK_RESULT_DTYPE_CAST_FAILED(self->GetDataType(), out->GetDataType(), return false);"
    assert read(page("FLOAT"), check + FIRST_PHASE) == {}


def test_an_argument_that_the_source_does_not_check_may_be_all_that_it_lists() -> None:
    found = read(page("INT64"), SOURCE + FIRST_PHASE)
    assert found["self"].dtypes == ("BFLOAT16", "FLOAT", "FLOAT16", "INT64")


@pytest.mark.parametrize(
    ("cell", "check", "expected"),
    [
        ("0-8", "", (0, 8)),
        ("不超过8维", "", (0, 8)),
        ("3-4", "", (0, 8)),  # the document alone is too narrow
        ("3、4", "OP_CHECK_MIN_DIM(self, 3, return false); OP_CHECK_MAX_DIM(self, 4, return false);", (3, 4)),
        ("2", "OP_CHECK_WRONG_DIMENSION(self, 2, return false);", (2, 2)),
        ("2", "OP_CHECK_WRONG_DIMENSION(params.self, 1, return false);", (1, 2)),
        ("2", "OP_CHECK_MAX_DIM(self, MAX_DIM, return false);", (0, 8)),
        ("[B,N]", "OP_CHECK_WRONG_DIMENSION(self, 2, return false);", None),
        ("-", "", None),
    ],
)
def test_dimensions_are_limited_where_document_and_source_say_so(
    cell: str, check: str, expected: tuple[int, int] | None
) -> None:
    assert read(page("FLOAT", dims=cell), SOURCE + check + FIRST_PHASE)["self"].dims == expected


def test_what_is_written_is_what_is_read() -> None:
    table = {
        "aclnnOne": (ArgumentLimit("self", ("FLOAT", "INT8"), (0, 8)), ArgumentLimit("out", (), (2, 2))),
        "aclnnTwo": (ArgumentLimit("x", ("BOOL",), None),),
    }
    assert read_limits("# a remark\n" + write_limits(table)) == table
