"""Reports to render: a realistic one, a hostile one, an empty one and a large one."""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from torchferry.finding import Finding, Kind
from torchferry.outcome import FileRecord, FileStatus, Hunk, Report
from torchferry.text import Text

from .training_code import PROGRAM


class Rewrite(NamedTuple):
    """A stand-in for a conversion rule: good enough to make a report that looks like a real one."""

    rule: str
    kind: Kind
    pattern: str
    after: str | None  # None: the code stays
    message: Text
    url: str = ""


GUIDE = "https://www.hiascend.com/document/detail/zh/Pytorch/index.html"
REWRITES = (
    Rewrite("TF101", Kind.CHANGE, r"^import torch$", "import torch\nimport torch_npu", Text("The adapter torch_npu registers the device.", "适配插件 torch_npu 负责注册设备。")),
    Rewrite("TF110", Kind.CHANGE, r"torch\.cuda\.(set_device|is_available|device_count|synchronize|empty_cache|max_memory_allocated)", r"torch.npu.\1", Text("The adapter has this function under torch.npu.", "适配插件在 torch.npu 下提供该函数。"), GUIDE),
    Rewrite("TF120", Kind.CHANGE, r"\.cuda\(", ".npu(", Text("A tensor or module goes to the device with .npu().", "张量或模块通过 .npu() 迁移到设备。")),
    Rewrite("TF130", Kind.CHANGE, r"(['\"])cuda", r"\1npu", Text("The device is called 'npu' here.", "此处的设备名为 'npu'。")),
    Rewrite("TF140", Kind.CHANGE, r"(['\"])nccl(['\"])", r"\1hccl\2", Text("The collective backend is hccl.", "集合通信后端为 hccl。"), GUIDE),
    Rewrite("TF150", Kind.CHANGE, r"torch\.cuda\.amp\.(autocast|GradScaler)", r"torch.npu.amp.\1", Text("Mixed precision lives in torch.npu.amp.", "混合精度位于 torch.npu.amp。")),
    Rewrite("TF160", Kind.CHANGE, r"CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", Text("The variable that chooses devices.", "用于选择设备的环境变量。")),
    Rewrite("TF301", Kind.TODO, r"nn\.DataParallel", None, Text("The target has no DataParallel: use DistributedDataParallel, one process a device. Start with torchrun --nproc_per_node=8.", "目标平台不支持 DataParallel：请改用 DistributedDataParallel，每个设备一个进程，并用 torchrun --nproc_per_node=8 启动。"), GUIDE),
    Rewrite("TF302", Kind.TODO, r"nvidia-smi[^'\"]*", None, Text("nvidia-smi is not on the target machine; npu-smi info is its equivalent.", "目标机器没有 nvidia-smi；可使用 npu-smi info。")),
    Rewrite("TF401", Kind.UNSUPPORTED, r"CUDAExtension|torch\.cuda\.CUDAGraph\(\)|from flash_attn import \w+", None, Text("The target has no equivalent; this part must be written anew.", "目标平台没有对应功能，需要重写这一部分。")),
    Rewrite("TF402", Kind.UNKNOWN, r"torch\.cuda\.(memory_stats|mem_get_info|set_per_process_memory_fraction)", r"torch.npu.\1", Text("Rewritten, but no public table says whether the adapter has it.", "已改写，但公开资料未说明适配插件是否支持。")),
    Rewrite("TF501", Kind.RISK, r"torch\.float64|\.double\(\)", None, Text("float64 is slow or computed in float32 on the target: compare the loss.", "目标平台上 float64 较慢或以 float32 计算：请对比损失。")),
    Rewrite("TF601", Kind.INFO, r"use_cuda_kernel\b", None, Text("Your own name, not torch's: left as it is.", "这是您自己的名称，并非 torch 的名称：保持原样。")),
)  # fmt: skip


def sample_report(command: str = "convert") -> Report:
    """A training program of ten files with findings of every kind, one file that could not be parsed."""
    files: list[FileRecord] = []
    findings: list[Finding] = []
    for path, source in PROGRAM.items():
        found, new = _convert(path, source)
        hunks = make_hunks(source, new)
        status = FileStatus.CHANGED if hunks else FileStatus.UNCHANGED
        files.append(FileRecord(path, status, hunks=hunks))
        findings += found
    reason = "line 3: Python 2 print statement; copied as it was"
    files.append(FileRecord("legacy/old_eval.py", FileStatus.FAILED, reason))
    findings.append(
        Finding("TF001", Kind.TODO, "legacy/old_eval.py", 7, 9, "model.cuda()", "", Text("This file could not be parsed: convert this line by hand.", "该文件无法解析：请手动转换此行。"), "ascend")
    )  # fmt: skip
    return Report(command, "ascend", "resnet-trainer", 48, tuple(files), tuple(findings))


def empty_report() -> Report:
    return Report("scan", "ascend", "no-gpu-here", 12, (), ())


def one_finding(**changes: object) -> Report:
    """A report with a single change, with the named fields replaced."""
    values: dict[str, object] = {
        "rule": "TF120",
        "kind": Kind.CHANGE,
        "path": "train.py",
        "line": 12,
        "col": 13,
        "before": "model.cuda()",
        "after": "model.npu()",
        "title": Text("The device is npu.", "设备是 npu。"),
        "vendor": "ascend",
    }
    finding = Finding(**{**values, **changes})  # type: ignore[arg-type]
    hunk = Hunk(12, 12, (("~", finding.before, finding.after),))
    return Report(
        "convert",
        "ascend",
        "demo",
        1,
        (FileRecord(finding.path, FileStatus.CHANGED, "", (hunk,)),),
        (finding,),
    )


HOSTILE_TEXTS = (
    "</script><script>window.hacked=1</script><!--",
    "[bold red]x[/bold red][/]",
    "a\nb\r\nc\td\x1b[31m\x00\u2028\u202e",
    "=HYPERLINK(\"http://evil\")",
    "@torch.cuda.amp.custom_fwd",
    "`code` | **bold** <b>x</b>",
    "100% sure::warning file=x::y",
    "\ud83d lone surrogate",
)  # fmt: skip


def hostile_report() -> Report:
    """Every text field holds something that some format takes for its own syntax."""
    findings = []
    files = []
    for number, text in enumerate(HOSTILE_TEXTS):
        path = f"dir {number}/{text.replace('/', '_')}\udcff,a:b.py"
        message = Text(f"message {text}", f"说明 {text}")
        findings.append(Finding(f"TF{text}", list(Kind)[number % 6], path, 1, 1, text, text[::-1], message, text, "javascript:alert(1)"))  # fmt: skip
        hunk = Hunk(1, 1, (("~", text, text[::-1]), ("+", "", text), ("-", text, ""), (" ", text, text)))
        files.append(FileRecord(path, list(FileStatus)[number % len(FileStatus)], text, (hunk,)))
    return Report("convert", "ven<dor>", "</title><b>project\udcff", 8, tuple(files), tuple(findings))


def large_report(findings: int = 20_000) -> Report:
    """Many findings in files of 100 changed lines each."""
    per_file = 100
    files = []
    found = []
    kinds = list(Kind)
    for number in range(findings // per_file):
        path = f"package_{number % 17}/module_{number:04}.py"
        rows = []
        for line in range(1, per_file + 1):
            before, after = f"x{line} = model_{line}.cuda()", f"x{line} = model_{line}.npu()"
            kind = kinds[line % 6] if line % 5 == 0 else Kind.CHANGE
            message = Text(f"Reason number {line}.", f"原因 {line}。")
            found.append(
                Finding(f"TF{line % 13 + 100}", kind, path, line, 5, before, after, message, "ascend")
            )
            rows.append(("~", before, after) if kind is Kind.CHANGE else (" ", before, before))
        files.append(FileRecord(path, FileStatus.CHANGED, "", (Hunk(1, 1, tuple(rows)),)))
    return Report("convert", "ascend", "large", len(files), tuple(files), tuple(found))


def make_hunks(old: str, new: str) -> tuple[Hunk, ...]:
    """Side-by-side hunks with three lines of context."""
    old_lines, new_lines = old.splitlines(), new.splitlines()
    hunks = []
    for group in difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False).get_grouped_opcodes(3):
        if all(tag == "equal" for tag, *_ in group):
            continue
        rows: list[tuple[str, str, str]] = []
        for tag, old_from, old_to, new_from, new_to in group:
            before, after = old_lines[old_from:old_to], new_lines[new_from:new_to]
            paired = min(len(before), len(after))
            rows += [(" " if tag == "equal" else "~", a, b) for a, b in zip(before, after, strict=False)]
            rows += [("-", line, "") for line in before[paired:]]
            rows += [("+", "", line) for line in after[paired:]]
        hunks.append(Hunk(group[0][1] + 1, group[0][3] + 1, tuple(rows)))
    return tuple(hunks)


def _convert(path: str, source: str) -> tuple[list[Finding], str]:
    findings: list[Finding] = []
    output: list[str] = []
    for number, line in enumerate(source.splitlines(), 1):
        new = line
        for rewrite in REWRITES:
            for match in re.finditer(rewrite.pattern, line):
                after = match.expand(rewrite.after) if rewrite.after else ""
                place = (path, number, match.start() + 1, match.group())
                if rewrite.kind is Kind.UNKNOWN:
                    findings.append(
                        Finding("TF110", Kind.CHANGE, *place, after, REWRITES[1].message, "ascend")
                    )
                findings.append(Finding(rewrite.rule, rewrite.kind, *place, after, rewrite.message, "ascend", rewrite.url))  # fmt: skip
            if rewrite.after:
                new = re.sub(rewrite.pattern, rewrite.after, new)
        output.append(new)
    return sorted(findings, key=lambda finding: (finding.line, finding.col)), "\n".join(output) + "\n"
