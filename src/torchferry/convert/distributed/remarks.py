"""What changes in meaning when a program runs on several cards, said where it is seen."""

from __future__ import annotations

import ast

from torchferry.convert.distributed.changes import Changes
from torchferry.convert.distributed.program import ProgramFile
from torchferry.convert.distributed.training import Training
from torchferry.finding import Kind
from torchferry.source.names import called_name
from torchferry.text import Text

_LOCAL = Text(
    "figures of this loop (loss, accuracy) are of this process's share of the data; average them over the "
    "processes with torch.distributed.all_reduce if you need those of the whole epoch",
    "该循环中的指标（loss、准确率）仅针对本进程的数据；如需整轮指标，请用 torch.distributed.all_reduce 在进程间平均",
)
_ACCUMULATED = Text(
    "gradients are accumulated over several backward passes: correct as it is; model.no_sync() around all but the "
    "last would save communication",
    "多次反向传播累积梯度：结果正确；除最后一次外使用 model.no_sync() 可减少通信",
)
_SEED = Text(
    "all processes draw the same random numbers (dropout masks, noise); seed with SEED + rank behind the "
    "construction of the model and the split of the data if they are to differ",
    "所有进程生成相同的随机数（dropout、噪声）；如需不同，请在构建模型与划分数据之后以 SEED + rank 设定种子",
)
_SPLIT = Text(
    "draws the split at random: without a seed every process has another one, and trains on what others evaluate; "
    "give it generator=torch.Generator().manual_seed(...)",
    "随机划分数据：未设种子时各进程划分不同，会用到其他进程的评估数据训练；请传入 generator=torch.Generator().manual_seed(...)",
)
_TOGGLED = Text(
    "switches gradients of a wrapped model off and on: where they are off, call MODEL.module(...), else "
    "DistributedDataParallel waits for gradients that never come",
    "切换被包装模型的梯度：关闭期间请调用 MODEL.module(...)，否则 DistributedDataParallel 会等待不会产生的梯度",
)
_PENALTY = Text(
    "DistributedDataParallel does not work with torch.autograd.grad on its outputs; compute the penalty with "
    "MODEL.module(...)",
    "DistributedDataParallel 不支持对其输出使用 torch.autograd.grad；请用 MODEL.module(...) 计算惩罚项",
)


_COUNT = Text(
    "counts all cards of the node, of which this process uses one; where batch sizes, workers or learning rates are "
    "multiplied by it, write 1",
    "统计的是节点上的所有卡，而本进程只使用一张；若用于放大批量、worker 数或学习率，请改为 1",
)
_PLATEAU = Text(
    "must be given the same figure on every process, else their learning rates differ: that of an evaluation is the "
    "same, a training loss is of this process alone",
    "各进程必须传入相同的指标，否则学习率不一致：评估指标相同，训练 loss 仅属于本进程",
)
_OUTPUT = Text(
    "every process writes this; only print and logging are silenced in all but the first",
    "每个进程都会输出；除第一个进程外，仅 print 与 logging 被屏蔽",
)


def remark(training: Training, changes: Changes) -> None:
    """Look at the loops that train, and at what is random."""
    for iteration in training.iterations:
        if iteration.trains and isinstance(iteration.loop, (ast.For, ast.AsyncFor)):
            noted = changes.of(iteration.file)
            noted.remark(Kind.INFO, iteration.loop.iter, _LOCAL)
            if _accumulates(iteration.loop):
                noted.remark(Kind.INFO, iteration.loop.iter, _ACCUMULATED)
            for node in ast.walk(iteration.loop):
                if _switches_gradients(node):
                    noted.remark(Kind.TODO, node, _TOGGLED)
    seeds = any(_is_seed(file, call) for file in training.program.files.values() for call in file.calls)
    for file in training.program.files.values():
        for call in file.calls:
            name = file.qualified(call.func)
            if _is_seed(file, call):
                changes.of(file).remark(Kind.INFO, call, _SEED)
            elif name.startswith("torch.utils.data.") and name.endswith("random_split") and not seeds:
                if not any(keyword.arg == "generator" for keyword in call.keywords):
                    changes.of(file).remark(Kind.TODO, call, _SPLIT)
            elif name == "torch.autograd.grad":
                changes.of(file).remark(Kind.TODO, call, _PENALTY)
            elif name == "torch.cuda.device_count":
                is_question = isinstance(file.parent(call), ast.Compare)
                changes.of(file).remark(Kind.INFO if is_question else Kind.TODO, call, _COUNT)
            elif called_name(call) == "ReduceLROnPlateau":
                changes.of(file).remark(Kind.RISK, call, _PLATEAU)
            elif name in ("sys.stdout.write", "sys.stderr.write"):
                changes.of(file).remark(Kind.TODO, call, _OUTPUT)


def _is_seed(file: ProgramFile, call: ast.Call) -> bool:
    return file.qualified(call.func) in ("torch.manual_seed", "torch.random.manual_seed")


def _accumulates(loop: ast.For | ast.AsyncFor) -> bool:
    """`if (i + 1) % n == 0: optimizer.step()`."""
    for node in ast.walk(loop):
        if isinstance(node, ast.If) and any(isinstance(item, ast.Mod) for item in ast.walk(node.test)):
            if any(called_name(item) == "step" for item in ast.walk(node)):
                return True
    return False


def _switches_gradients(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "requires_grad" and isinstance(node.ctx, ast.Store):
        return True
    return called_name(node) == "requires_grad_"
