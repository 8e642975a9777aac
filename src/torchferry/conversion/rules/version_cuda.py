"""TF603: torch.version.cuda, which is None everywhere else."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.model import Support

_NONE = Message(
    Text("`{old}` is None on the target", "`{old}` 在目标上为 None"),
    why=Text(
        "Code that compares it takes the branch without a device, or fails.",
        "使用它的代码会走没有设备的分支，或者报错。",
    ),
    do=Text(
        "Decide what the code needs: whether a device is there ({available}), or a version{other}.",
        "请确认代码需要的是设备是否存在（{available}）还是版本{other}。",
    ),
)
_OTHER = Text(" ({name})", "（{name}）")
_NAMES = frozenset({"torch.version.cuda", "torch._C._cuda_getCompiledVersion"})


def _rename(qualified: str, context: FileContext) -> Rename | None:
    prefix = next((name for name in _NAMES if qualified == name or qualified.startswith(name + ".")), "")
    if not prefix:
        return None
    api = context.target.api(prefix)
    other = _OTHER.format(name=api.name) if api.support is Support.RENAMED else Text("", "")
    available = f"{context.target.vendor.torch_module}.is_available()"
    message = _NONE.format(old=prefix, available=available, other=other)
    return Rename(prefix, "", Kind.TODO, message)


RULE = Rule(
    id="TF603",
    name="version-cuda",
    summary=Text(
        "Reports `torch.version.cuda`, which is None on other accelerators",
        "报告在其他加速卡上为 None 的 `torch.version.cuda`",
    ),
    triggers=("version.cuda", "torch import version", "_cuda_getCompiledVersion"),
    roots=("torch",),
    rename=_rename,
)
