"""TF710 (opt-in): a training script for one card becomes one for all cards of all nodes."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.text import Text

# A file that the rewrite touches holds one of these words.
TRIGGERS = (
    "cuda", "DataLoader", "DataParallel", "backward(", "state_dict", "torch.save", "SummaryWriter",
    "__main__", "tqdm", "wandb", "mkdir", "makedirs", "shutil", "savefig", "save_image",
)  # fmt: skip


def _restructure(context: FileContext) -> Iterator[Proposal]:
    from torchferry.conversion.distributed.plan import plan_for  # few runs ask for it, and it is large

    settings = context.settings.distributed
    if settings is not None:
        yield from plan_for(context, settings)


RULE = Rule(
    id="TF710",
    name="distributed",
    summary=Text(
        "Rewrites a training script for one card to one process per card (DistributedDataParallel)",
        "将单卡训练脚本改写为每卡一个进程（DistributedDataParallel）",
    ),
    triggers=TRIGGERS,
    option="distributed",
    restructure=_restructure,
)
