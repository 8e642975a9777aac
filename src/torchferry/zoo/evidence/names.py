"""The names of figures: spellings of the same one, and what is no result of a run."""

from __future__ import annotations

import re

METRIC = (
    r"acc(?:uracy)?(?:[@_]?[15])?|top-?_?[15]|prec@[15]|map(?:@?[\d.:]+)?|miou|iou|f1|bleu|auc|wer|cer|perplexity|ppl|"
    r"rmse|psnr|ssim|dice|fid"
)
_SPEED = r"(?:images?|imgs?|samples?|tokens?|sentences?|frames?|steps?|iters?)/s(?:ec)?"
_OF_TRAINING = re.compile(r"^train(?:ing)?[._/ ](?=.)")
# The settings of a run, its counters and its clocks.
_NO_RESULT = re.compile(
    r"(?:.*[._/ ])?(?:lr|learning_rate|momentum|weight_decay|batch_size|bs|world_size|rank|local_rank|seed|epochs?|"
    r"steps?|global_step|iters?|iterations?|index|version|format|eta|progress|memory|grad_norm|loss_scale|"
    r"time|\w*_time|timestamp|datetime|elapsed\w*|seconds|date)"
)


def canonical(text: str) -> str:
    """acc@1, Top-1 and Prec@1 are the same figure; so are loss and train.loss."""
    name = _OF_TRAINING.sub("", text.strip().lower())
    if name == "ips":
        return "images/s"
    if re.fullmatch(_SPEED, name):
        unit = name.partition("/")[0].rstrip("s").replace("image", "img").replace("img", "image")
        return f"{unit}s/s"
    if re.fullmatch(METRIC, name):
        name = name.replace("accuracy", "acc").replace("-", "").replace("@", "").replace("_", "")
        name = name.replace("prec", "acc").replace("top", "acc")
    return name


def is_result(name: str) -> bool:
    """Whether a column says how well or how fast a run went."""
    return bool(name) and not _NO_RESULT.fullmatch(name.strip().lower())


def is_loss(name: str) -> bool:
    """Whether it is a curve that goes down."""
    return "loss" in name
