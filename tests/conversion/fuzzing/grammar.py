"""Made-up programs: idioms of CUDA in expressions and statements of every sort."""

from __future__ import annotations

from random import Random

_NAMES = [
    "x",
    "y",
    "z",
    "model",
    "net",
    "device",
    "args",
    "cfg",
    "self",
    "torch",
    "cuda",
    "f",
    "g",
    "loss",
    "optimizer",
    "data",
    "k",
    "d",
    "opt",
    "scaler",
]
_STRINGS = (
    "'cuda'",
    '"cuda:0"',
    "f'cuda:{i}'",
    "f\"{'cuda'}{0}\"",
    "'nccl'",
    "'npu'",
    "'cpu'",
    "r'cuda'",
    "b'cuda'",
    "''",
    "'gpu'",
    "'CUDA_VISIBLE_DEVICES'",
    "'torch.cuda.FloatTensor'",
    "'cu' 'da'",
    "'''cuda\n'''",
    "'is_cuda'",
    "'cpu:gloo,cuda:nccl'",
    "'CUDAExecutionProvider'",
)
_IDIOMS = (
    "torch.cuda.is_available()",
    "torch.device('cuda')",
    "torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "torch.device(f'cuda:{rank}')",
    "x.cuda()",
    "x.cuda(non_blocking=True)",
    "x.cuda(0)",
    "x.cuda(device)",
    "x.cuda(*args)",
    "x.to('cuda')",
    "x.is_cuda",
    "x.cuda",
    "getattr(x, 'cuda')()",
    "getattr(x, 'is_cuda')",
    "getattr(torch, 'cuda')",
    "getattr(torch.cuda, name)",
    "hasattr(torch.cuda, 'amp')",
    "torch.cuda.FloatTensor(3)",
    "torch.cuda.amp.autocast()",
    "torch.cuda.amp.autocast(enabled=True)",
    "torch.cuda.amp.GradScaler()",
    "torch.amp.autocast('cuda')",
    "torch.cuda.Stream()",
    "torch.cuda.current_device()",
    "torch.cuda.device_count() > 1",
    "torch.backends.cudnn.benchmark",
    "torch.version.cuda",
    "torch.nn.DataParallel(model, device_ids=[0])",
    "torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)",
    "torch.load(path, map_location='cuda:0')",
    "torch.load(path, map_location=lambda s, l: s.cuda())",
    "torch.distributed.init_process_group('nccl')",
    "os.environ['CUDA_VISIBLE_DEVICES']",
    "device.type == 'cuda'",
    "device != 'cpu'",
    "x.device.type in ('cuda', 'mps')",
    "x.type(torch.cuda.HalfTensor)",
    "torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, pin_memory=True)",
    "torch.tensor(1, dtype=torch.float64)",
    "torch.nn.CrossEntropyLoss()(y, z.long())",
    "torch.nn.functional.binary_cross_entropy(y, z)",
    "torch.nn.BCELoss()",
    "model(x)",
    "subprocess.run(['nvidia-smi'])",
    "torch.hypot(x, y)",
    "functools.partial(f, device='cuda')",
    "torch.ｃｕｄａ.is_available()",
)
_DECORATORS = (
    "f",
    "torch.no_grad()",
    "pytest.mark.parametrize('device', ['cuda'])",
    "torch.cuda.amp.autocast()",
)
_OPERATORS = ["+", "-", "*", "/", "and", "or", "==", "!=", "<", "is", "in", "not_in", "if"]


def expression(random: Random, depth: int = 3) -> str:
    """Any expression."""
    if depth <= 0 or random.random() < 0.25:
        return random.choice(
            random.choice((_NAMES, _STRINGS, _IDIOMS, _IDIOMS, ("0", "None", "True", "1.5")))
        )
    below = depth - 1
    form = random.randrange(14)
    one = expression(random, below)
    if form == 0:
        operator = random.choice(_OPERATORS)
        if operator == "if":
            return f"({one} if {expression(random, below)} else {expression(random, below)})"
        return f"({one} {operator.replace('_', ' ')} {expression(random, below)})"
    if form == 1:
        return f"{random.choice(_NAMES)}({one}, {random.choice(_NAMES)}={expression(random, below)})"
    if form == 2:
        return f"[{one}, {expression(random, below)}]"
    if form == 3:
        return f"{{{one}: {expression(random, below)}, 'device': {expression(random, below)}}}"
    if form == 4:
        return f"[{one} for {random.choice(_NAMES)} in {expression(random, below)}]"
    if form == 5:
        return f"(lambda {random.choice(_NAMES)}: {one})"
    if form == 6:
        return f"({one}).{random.choice(('cuda()', 'to(device)', 'is_cuda', 'e.cuda()', 'cuda', 'half()'))}"
    if form == 7:
        return f"d[{one}]"
    if form == 8:
        return f"({one}, {expression(random, below)})"
    if form == 9:
        return f"({one}\n    # cuda\n    , {expression(random, below)})"
    if form == 10:
        return f"(not {one})"
    if form == 11:
        return f"f(**{one}, device={expression(random, below)})"
    if form == 12:
        return f"(k := {one})"
    return f'f"{{{random.choice(_NAMES)}}}{random.choice(("cuda", "cuda:0", ""))}"'


_IMPORTS = (
    "import torch",
    "import torch, os",
    "import torch as t",
    "import torch.cuda as model",
    "import torch.cuda.amp",
    "from torch import cuda",
    "from torch import nn, cuda as c",
    "from torch.cuda import amp",
    "from torch.cuda.amp import autocast, GradScaler",
    "from torch.cuda.amp import (\n    autocast,  # why\n    GradScaler,\n)",
    "from torch import *",
    "import numpy as np",
    "from apex import amp",
    "import torch; import os",
    "try:\n    import torch\nexcept ImportError:\n    torch = None",
    "if True: import torch",
    "from __future__ import annotations",
    "import pynvml",
    "import torch_npu",
)


def program(random: Random) -> str:
    """A module."""
    lines: list[str] = []
    if random.random() < 0.2:
        lines.append(random.choice(('"""cuda"""', "'doc'; x = 1", "#!/usr/bin/env python")))
    if random.random() < 0.85:
        lines += [random.choice(_IMPORTS) for _ in range(random.randrange(1, 4))]
    for _ in range(random.randrange(1, 7)):
        lines.append(statement(random, ""))
    return "\n".join(lines) + "\n"


def _block(random: Random, indent: str, depth: int) -> str:
    return "\n".join(statement(random, indent, depth) for _ in range(random.randrange(1, 4)))


def statement(random: Random, indent: str, depth: int = 3) -> str:
    """Any statement, its first line indented."""
    value = expression(random, random.randrange(1, 4)).replace("\n", "\n" + indent)
    simple = (
        f"{value}",
        f"{random.choice(_NAMES)} = {value}",
        f"{random.choice(_NAMES)}: int = {value}",
        f"{random.choice(_NAMES)} += {value}",
        f"{random.choice(_NAMES)} = torch.cuda",
        f"{random.choice(_NAMES)}.device = {value}",
        f"assert {value}, 'CUDA'",
        f"x = {value}; y = x.cuda()",
        "torch.backends.cudnn.benchmark = True",
        f"print({value})  # cuda",
        "import torch",
        "del x",
        f"x, y = {value}, 'cuda'",
        "h = x.cuda",
    )
    if depth <= 0 or random.random() < 0.5:
        return indent + random.choice(simple)
    inner = indent + random.choice(("    ", "  ", "\t"))
    body = _block(random, inner, depth - 1)
    other = _block(random, inner, depth - 1)
    decorators = "".join(
        f"{indent}@{random.choice(_DECORATORS)}\n" for _ in range(random.choice((0, 0, 1, 2)))
    )
    forms = (
        f"{indent}if {value}:\n{body}",
        f"{indent}if {value}:\n{body}\n{indent}elif x.is_cuda:\n{other}",
        f"{indent}if {value}:\n{body}\n{indent}elif y:\n{other}\n{indent}else:\n{body}",
        f"{indent}for x in {value}:\n{body}",
        f"{indent}while {value}:\n{body}\n{indent}else:\n{other}",
        f"{indent}with {value} as d:\n{body}",
        f"{indent}try:\n{body}\n{indent}except Exception:\n{other}\n{indent}finally:\n{body}",
        f"{decorators}{indent}def {random.choice(_NAMES)}(x, device={value}):\n{body}\n{inner}return x",
        f"{decorators}{indent}class {random.choice(_NAMES)}(torch.nn.Module):\n{body}",
        f"{indent}if True: x = {value}; y = x.cuda()",
        _training(random, indent, inner, body, other),
        f"{indent}match x:\n{inner}case 'cuda':\n{_block(random, inner + '    ', depth - 1)}",
    )
    return random.choice(forms)


def _training(random: Random, indent: str, inner: str, body: str, other: str) -> str:
    """A loop that trains, for the passes that look for one."""
    loss = random.choice(
        (
            f"{inner}loss = torch.nn.functional.mse_loss(out, y)",
            f"{inner}if k:\n{inner}  loss = torch.nn.functional.binary_cross_entropy(out, y)\n{inner}elif d:\n"
            f"{inner}  loss = criterion(out, y)\n{inner}else:\n{inner}  raise ValueError",
            f"{inner}loss = criterion(model(x), y); print(loss)",
            body + f"\n{inner}loss = out.sum()",
        )
    )
    forward = random.choice(
        ("out = model(x.cuda())", "out = self.policy.evaluate(x)", "out = model.cuda()(x)")
    )
    backward = random.choice(
        ("loss.backward()", "criterion(out, y).backward()", "if k:\n" + inner + "  loss.backward()")
    )
    lines = [
        f"{indent}optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
        f"{indent}for x, y in data:",
        f"{inner}{forward}",
        loss,
        f"{inner}optimizer.zero_grad()",
        f"{inner}{backward}",
        f"{inner}optimizer.step()",
        other,
    ]
    return "\n".join(lines)
