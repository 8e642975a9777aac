"""The sentences that say why an operator was judged as it was."""

from __future__ import annotations

from torchferry.text import Text

LISTED = Text("The vendor's table lists a kernel for it.", "厂商的算子表中列有它的内核。")
SAME_KERNEL = Text(
    "The kernel of {entry}, which the vendor's table lists, computes it.",
    "由厂商算子表中列出的 {entry} 的内核计算。",
)
EQUIVALENT = Text(
    "On a device {entry} stands for it, which the vendor's table lists.",
    "在设备上由 {entry} 代替，厂商的算子表中列有后者。",
)
ALWAYS_THERE = Text("Every adapter has it.", "每个适配插件都有它。")
COMPOSITE = Text(
    "PyTorch makes it of other operators, which are judged themselves.",
    "PyTorch 用其他算子组成它，那些算子各自判断。",
)
NO_TENSOR = Text("It works on no tensor.", "它不涉及张量。")
LIMIT = Text("There is a kernel, with a limit: {limit}.", "有内核，但有限制：{limit}。")
DTYPE_REFUSED = Text("The device refuses tensors of {dtype}.", "设备拒绝 {dtype} 张量。")
DTYPE_NARROWER = Text(
    "The device computes {dtype} as {becomes}.",
    "设备以 {becomes} 计算 {dtype}。",
)
DTYPE_CAST = Text(
    "On the device a cast to {dtype} gives {becomes}.",
    "在设备上转换为 {dtype} 得到的是 {becomes}。",
)
DTYPE_OF_OPERATOR = Text(
    "The kernel takes {allowed} only, here it gets {dtype}.",
    "该内核只接受 {allowed}，此处得到 {dtype}。",
)
FALLS_BACK = Text(
    "The vendor's table for {version} lists no kernel: the adapter computes it on the CPU.",
    "厂商 {version} 的算子表中没有它的内核：适配插件在 CPU 上计算它。",
)
RAISES = Text(
    "The vendor's table for {version} lists no kernel: the adapter raises an error.",
    "厂商 {version} 的算子表中没有它的内核：适配插件会报错。",
)
ABSENT = Text(
    "The vendor's table for {version} lists no kernel, and it is not known what the adapter does then.",
    "厂商 {version} 的算子表中没有它的内核，适配插件此时的行为未知。",
)
SPECIAL_FALLS_BACK = Text(
    "The vendor's table for {version} lists it for {kinds} tensors only: the adapter computes others on the CPU.",
    "厂商 {version} 的算子表中它只用于 {kinds} 张量：其他张量由适配插件在 CPU 上计算。",
)
SPECIAL_RAISES = Text(
    "The vendor's table for {version} lists it for {kinds} tensors only: for others the adapter raises an error.",
    "厂商 {version} 的算子表中它只用于 {kinds} 张量：对其他张量适配插件会报错。",
)
NOT_COMPLETE = Text(
    "No complete list of this vendor's kernels is public, and nothing was reported of this one.",
    "该厂商没有公开完整的内核列表，也没有关于这个算子的报告。",
)
NOT_IN_PYTORCH = Text(
    "It is not in PyTorch's operator list, so the vendor's table says nothing of it.",
    "它不在 PyTorch 的算子列表中，厂商的算子表没有涉及它。",
)
OTHER_LIBRARY = Text(
    "It belongs to {library}; the vendor's table lists PyTorch's own operators.",
    "它属于 {library}；厂商的算子表列出的是 PyTorch 自己的算子。",
)
COLLECTIVE = Text(
    "A collective: the vendor's process group, {backend}, does it.",
    "集合通信：由厂商的进程组 {backend} 执行。",
)
SPARSE = Text(
    "A tensor that is not dense: the vendor's table speaks of dense ones.",
    "张量不是稠密的：厂商的算子表只针对稠密张量。",
)
