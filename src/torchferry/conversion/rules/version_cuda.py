"""TF603: torch.version.cuda, which is None everywhere else."""

from __future__ import annotations

from torchferry.conversion.rule import Rename, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind
from torchferry.text import Text
from torchferry.vendors.model import Support

_NONE = Text(
    "{old} is None here; decide what the code needs to know: that a device is there ({available}), or a version{other}",
    "{old} 在此为 None；请确认代码需要判断的是设备是否存在（{available}）还是版本{other}",
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
        "torch.version.cuda is None on other accelerators", "torch.version.cuda 在其他加速卡上为 None"
    ),
    triggers=("version.cuda", "torch import version", "_cuda_getCompiledVersion"),
    roots=("torch",),
    rename=_rename,
)
