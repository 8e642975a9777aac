"""TF204: torch.nn.DataParallel, which most other accelerators don't have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind
from torchferry.text import Text
from torchferry.vendors.model import Support

_NAMES = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.data_parallel.DataParallel",
        "torch.nn.parallel.data_parallel",
        "torch.nn.parallel.data_parallel.data_parallel",
    }
)
_RECIPE = Text(
    "{company} {verb} DataParallel; use one process per device: start with `torchrun --nproc_per_node=N`, "
    'call {module}.set_device(int(os.environ["LOCAL_RANK"])) and '
    "torch.distributed.init_process_group({backend}), give the training DataLoader a DistributedSampler, "
    "and wrap the model in torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank]); "
    "`ferry convert --distributed --main SCRIPT` writes all of it, if the program is clear; "
    "`--data-parallel single` makes it the module on one card",
    "{company} {verb} DataParallel；请每个设备一个进程：用 `torchrun --nproc_per_node=N` 启动，"
    '调用 {module}.set_device(int(os.environ["LOCAL_RANK"])) 和 '
    "torch.distributed.init_process_group({backend})，为训练 DataLoader 使用 DistributedSampler，"
    "并用 torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank]) 包装模型；"
    "`ferry convert --distributed --main 脚本` 可在程序结构清晰时完成以上全部改写；"
    "`--data-parallel single` 则改为单卡上的模块",
)
_BESIDE = Text(
    "{company} {verb} DataParallel; this program has DistributedDataParallel already: start it that way, with one "
    "process per device, or convert with `--data-parallel single`, which makes this branch the module on one card",
    "{company} {verb} DataParallel；该程序已有 DistributedDataParallel：请以每个设备一个进程的方式启动，"
    "或使用 `--data-parallel single` 转换，使该分支成为单卡上的模块",
)
_VERBS = {
    Support.UNSUPPORTED: Text("does not support", "不支持"),
    Support.UNKNOWN: Text("is not known to support", "未知是否支持"),
}
_PORTABLE = Text(
    "works on CUDA, but most other accelerators have no", "在 CUDA 上可用，但多数其他加速卡不支持"
)
_HARMLESS = Text("asks only for the type; it can stay", "仅判断类型，可以保留")


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    if isinstance(site.parent, ast.Attribute) or site.qualified(site.node) not in _NAMES:
        return
    vendor = site.target.vendor
    if vendor.data_parallel in (Support.SAME, Support.RENAMED):
        return
    is_base = isinstance(site.place.statement, ast.ClassDef)
    if not (site.parent.func is site.node if isinstance(site.parent, ast.Call) else is_base):
        yield site.remark(Kind.INFO, _HARMLESS)
        return
    verb = _PORTABLE if site.target.is_portable else _VERBS[vendor.data_parallel]
    is_unknown = vendor.data_parallel is Support.UNKNOWN and not site.target.is_portable
    words = {
        "company": vendor.company_name,
        "module": vendor.torch_module,
        "backend": site.target.backend.code,
    }
    recipe = _BESIDE if b"DistributedDataParallel" in site.module.data else _RECIPE
    kind = Kind.UNKNOWN if is_unknown else Kind.TODO
    yield site.remark(kind, recipe.format(verb=verb, **words))


RULE = Rule(
    id="TF204",
    name="data-parallel",
    summary=Text(
        "DataParallel, with the recipe for DistributedDataParallel",
        "DataParallel 及其改为 DistributedDataParallel 的步骤",
    ),
    triggers=("DataParallel", "data_parallel"),
    tracks=_NAMES,
    nodes=(ast.Attribute, ast.Name),
    check=_check,
    names=("torch.nn.",),
)
