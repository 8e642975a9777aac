"""TF105: strings that name a CUDA device."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression, findings, rewritten, said_of, vendor


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("'''cuda'''", id="a docstring"),
        pytest.param("def f():\n    'cuda:0'", id="a function's docstring"),
        pytest.param("# device = 'cuda'", id="a comment"),
        pytest.param("print('cuda')", id="a message"),
        pytest.param("print('cuda:0')", id="a message that looks like a device"),
        pytest.param("print(f'cuda:{i}')", id="a message made by an f-string"),
        pytest.param("print('using', 'cuda' if ok else 'cpu')", id="a message with a choice"),
        pytest.param("print(f'Using device cuda:{i}')", id="a sentence"),
        pytest.param("logger.info('cuda:%d', i)", id="a log message"),
        pytest.param("logging.warning('cuda is slow')", id="a warning"),
        pytest.param("raise ValueError('cuda')", id="an error"),
        pytest.param("assert ok, 'cuda'", id="an assertion's message"),
        pytest.param(
            "parser.add_argument('--cuda', action='store_true', help='cuda')", id="a flag and its help"
        ),
        pytest.param("parser.add_argument('--x', help='cuda:0')", id="a help text"),
        pytest.param("url = 'https://developer.nvidia.com/cuda'", id="a URL"),
        pytest.param("url = 'cuda://x'", id="a URL's scheme"),
        pytest.param("path = 'csrc/cuda/kernel.cu'", id="a path"),
        pytest.param("state['cuda']", id="a checkpoint key"),
        pytest.param("state['cuda'] = x", id="a checkpoint key that is set"),
        pytest.param("state.get('cuda')", id="a key asked for"),
        pytest.param("state = {'cuda': a, 'cpu': b}", id="keys of a dictionary"),
        pytest.param("getattr(args, 'cuda')", id="an attribute's name"),
        pytest.param("hasattr(x, 'cuda')", id="an attribute's name asked for"),
        pytest.param("name = 'cuda'", id="a variable that nothing is known of"),
        pytest.param("x = b'cuda'", id="bytes"),
        pytest.param("x = 'CUDA'", id="capitals"),
        pytest.param("x = 'cuda_time_total'", id="a longer word"),
        pytest.param("x = 'not cuda'", id="a sentence that ends in it"),
        pytest.param("source = '''\ntorch::Device(\"cuda\");\n'''", id="C++ text"),
        pytest.param("from .cuda import cuda", id="own module"),
        pytest.param("def cuda(device): pass", id="own function"),
        pytest.param("label = 'cuda:'", id="a label"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


def _as_npu(source: str) -> str:
    return source.replace("cuda", "npu")


@pytest.mark.parametrize(
    "source",
    [
        "x = x.to('cuda')",
        "x = x.to('cuda:0')",
        "x = x.to(device='cuda:0', non_blocking=True)",
        'x = x.to("cuda", torch.float16)',
        "d = torch.device('cuda')",
        "d = torch.device('cuda', 0)",
        "d = torch.device(type='cuda', index=1)",
        "d = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
        "d = torch.device('cuda:0' if use_gpu and ok else 'cpu')",
        "x = torch.zeros(2, device='cuda')",
        'x = torch.tensor([1.], dtype=torch.float32, device="cuda:1")',
        "x = torch.ones(1, device=('cuda' if ok else 'cpu'))",
        "x = t.new_zeros(1, device='cuda')",
        "torch.set_default_device('cuda')",
        "g = torch.Generator('cuda')",
        "g = torch.Generator(device='cuda')",
        "with torch.autocast('cuda'): pass",
        "with torch.autocast(device_type='cuda', dtype=torch.float16): pass",
        "with torch.amp.autocast('cuda', enabled=True): pass",
        "s = torch.amp.GradScaler('cuda')",
        "s = torch.amp.GradScaler(device='cuda')",
        "from torch import autocast\nwith autocast('cuda'): pass",
        "from torch.amp import GradScaler, autocast\ns = GradScaler('cuda')",
        "loader = DataLoader(data, pin_memory_device='cuda')",
    ],
)
def test_calls(source: str) -> None:
    assert expression(source) == _as_npu(source)


@pytest.mark.parametrize(
    "source",
    [
        "d = f'cuda:{rank}'",
        "d = F'cuda:{rank}'",
        "d = rf'cuda:{rank}'",
        'd = f"cuda:{args.local_rank if args.local_rank >= 0 else 0}"',
        "d = f'cuda:{d[\"i\"]}'",
        "d = f'cuda{suffix}'",
        "d = 'cuda:%d' % rank",
        "d = 'cuda:%s' % (rank,)",
        "d = 'cuda:{}'.format(rank)",
        "d = 'cuda:{0}'.format(rank)",
        "d = 'cuda:{rank}'.format(rank=rank)",
        "d = 'cuda:' + str(rank)",
        "d = 'cuda' ':0'",
        "d = ('cuda:'  # which\n     '0')",
        "d = 'cuda:' f'{rank}'",
        "d = '''cuda:0'''",
        "d = r'cuda:0'",
        "d = u'cuda:0'",
        "x = x.to('cuda:' + str(rank))",
        "x = x.to('cuda:%d' % rank if ok else 'cpu')",
    ],
)
def test_spellings(source: str) -> None:
    assert expression(source) == _as_npu(source)


@pytest.mark.parametrize(
    "source",
    [
        "if device.type == 'cuda': pass",
        "if x.device.type != 'cuda' and ok: pass",
        "if 'cuda' == device.type: pass",
        "if 'cuda' in str(device): pass",
        "if 'cuda' not in device: pass",
        "if device in ('cuda', 'cuda:0'): pass",
        "if device in ['cpu', 'cuda']: pass",
        "if str(device) == 'cuda:0': pass",
        "if device.startswith('cuda'): pass",
        "if str(x.device).startswith('cuda'): pass",
        "if args.device.startswith('cuda'): pass",
        "if device.startswith('cuda:'): pass",
        "if device.startswith(('cuda', 'xpu')): pass",
        "i = int(device.split('cuda:')[1])",
        "i = device.replace('cuda:', '')",
        "match device.type:\n    case 'cuda': pass\n    case 'cpu': pass",
        "f = {'cuda': a, 'cpu': b}[device.type]",
        "assert device == 'cuda', 'message'",
    ],
)
def test_comparisons(source: str) -> None:
    assert expression(source) == _as_npu(source)


@pytest.mark.parametrize(
    "source",
    [
        "parser.add_argument('--device', default='cuda')",
        "parser.add_argument('--device', default='cuda:0', type=str)",
        "parser.add_argument('-d', '--device', choices=['cuda', 'cpu'])",
        "parser.add_argument('--where', choices=('cpu', 'cuda'), default='cuda')",
        "parser.add_argument('--x', dest='device', default='cuda')",
        "@click.option('--device', default='cuda')\ndef f(device): pass",
        "@click.option('--device', type=click.Choice(['cpu', 'cuda']))\ndef f(device): pass",
        "def f(device='cuda'): pass",
        "def f(x, *, device: str = 'cuda:0'): pass",
        "def f(x, dev='cuda', n=1): pass",
        "async def f(device='cuda'): pass",
        "f = lambda x, device='cuda': x",
        "class C:\n    device: str = 'cuda'",
        "class C:\n    device = 'cuda'",
        "class C:\n    device: str = field(default='cuda')",
        "class C:\n    devices: list = field(default_factory=lambda: ['cuda:0', 'cuda:1'])",
        "class C:\n    device: Literal['cuda', 'cpu'] = 'cuda'",
        "def f(device: Literal['cuda', 'cpu'] = 'cuda'): pass",
        "flags.DEFINE_string('device', 'cuda', 'where')",
        "cfg = dict(device='cuda')",
        "cfg = {'device': 'cuda', 'n': 1}",
        "cfg['device'] = 'cuda'",
        "cfg.setdefault('device', 'cuda')",
        "d = cfg.get('device', 'cuda')",
        "d = getattr(args, 'device', 'cuda')",
        "d = os.environ.get('DEVICE', 'cuda')",
        "cfg.update(device='cuda')",
        "self.device = 'cuda'",
        "args.device = 'cuda' if ok else 'cpu'",
        "device = args.device or 'cuda'",
        "a, device = 1, 'cuda'",
        "DEVICES = ('cpu', 'cuda')",
        "@pytest.mark.parametrize('device', ['cpu', 'cuda'])\ndef test(device): pass",
        "def get_device():\n    return 'cuda'",
        "def where():\n    if ok:\n        return 'cuda'\n    return 'cpu'",
        "for d in ['cuda:0', 'cuda:1']: pass",
    ],
)
def test_defaults_and_settings(source: str) -> None:
    assert expression(source) == _as_npu(source)


@pytest.mark.parametrize(
    "source",
    [
        "where = 'cuda'\nx = x.to(where)",
        "def f():\n    w = 'cuda'\n    return torch.zeros(1, device=w)",
        "WHERE = 'cuda'\ndef f(x):\n    return x.to(WHERE)",
        "def f(x, where='cuda'):\n    return x.to(where)",
        "w = 'cuda' if ok else 'cpu'",
        "if ok:\n    w = 'cuda'\nelse:\n    w = 'cpu'\nx = x.to(w)",
        "def move(x, device): pass\nmove(x, 'cuda')",
        "def move(x, where):\n    return x.to(where)\nmove(x, 'cuda')",
        "for w in ('cuda',):\n    x.to(w)",
    ],
)
def test_flows(source: str) -> None:
    assert expression(source) == _as_npu(source)


@pytest.mark.parametrize(
    "source",
    [
        "torch.load(p, map_location='cuda:0')",
        "torch.load(p, 'cuda')",
        "torch.load(p, map_location={'cuda:0': 'cpu'})",
        "torch.load(p, map_location={'cuda:1': 'cuda:0'})",
        "torch.load(p, map_location={'cuda:%d' % 0: 'cuda:%d' % rank})",
        "map_location = {'cuda:%d' % 0: 'cuda:%d' % rank}",
        "torch.load(p, map_location=f'cuda:{rank}')",
        "torch.load(p, map_location=lambda s, loc: s.cuda(0))",
        "torch.load(p, map_location=lambda s, loc: s if loc == 'cuda' else s.cpu())",
        "torch.load(p, map_location=torch.device('cuda'))",
        "torch.jit.load(p, map_location='cuda')",
    ],
)
def test_map_location(source: str) -> None:
    assert expression(source) == _as_npu(source)


def test_a_slice_takes_as_many_letters_as_the_new_word_has() -> None:
    assert expression("if device[:4] == 'cuda': pass") == "if device[:3] == 'npu': pass"


@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize(
    "source",
    [
        "x = x.to('{}')",
        "x = x.to('{}:1')",
        "d = f'{}:{{i}}'",
        "ok = device.type == '{}'",
        "def f(device='{}'): pass",
    ],
)
def test_every_vendor(name: str, source: str) -> None:
    assert expression(source.format("cuda"), name) == source.format(vendor(name).device_type)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("name = 'cuda'", [("TF105", "todo", "'cuda'")]),
        ("use('cuda')", [("TF105", "todo", "'cuda'")]),
        ("state = {'cuda': 1}", [("TF105", "todo", "'cuda'")]),
        ("state['cuda']", [("TF105", "info", "'cuda'")]),
        ("getattr(args, 'cuda')", [("TF105", "info", "'cuda'")]),
        ("d = '%s:%d' % ('cuda', i)", [("TF105", "todo", "'cuda'")]),
        ("x = x.to('c' 'uda')", []),
    ],
)
def test_what_is_left_is_said(source: str, expected: list[tuple[str, str, str]]) -> None:
    assert said_of(source) == expected


def test_the_question_names_the_reason_and_the_word() -> None:
    (question,) = findings("import torch\nname = 'cuda'\n")
    assert (
        question.message.en
        == "String that may name a device. Nothing around it says what it is for. If it is a device, write npu."
    )
    (key,) = findings("import torch\nx = state['cuda']\n")
    assert key.why.en.startswith("It is a key")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("d = torch.device('cuda')", "d = torch.device(DEVICE_TYPE)"),
        ("d = torch.device('cuda:0')", "d = torch.device(f'{DEVICE_TYPE}:0')"),
        ("d = f'cuda:{i}'", "d = f'{DEVICE_TYPE}:{i}'"),
        ("d = 'cuda:%d' % i", "d = (DEVICE_TYPE + ':%d') % i"),
        ("d = 'cuda:{}'.format(i)", "d = (DEVICE_TYPE + ':{}').format(i)"),
        ("d = 'cuda:' + str(i)", "d = f'{DEVICE_TYPE}:' + str(i)"),
        ("ok = device.type == 'cuda'", "ok = device.type != 'cpu'"),
        ("ok = device.type != 'cuda'", "ok = device.type == 'cpu'"),
        ("ok = 'cuda' in str(device)", "ok = 'cpu' not in str(device)"),
        ("ok = 'cuda' not in str(device)", "ok = 'cpu' in str(device)"),
        ("ok = device in ('cuda', 'cpu')", "ok = device in (DEVICE_TYPE, 'cpu')"),
        ("ok = device.startswith('cuda')", "ok = device.startswith(DEVICE_TYPE)"),
        ("def f(device='cuda'): pass", "def f(device=DEVICE_TYPE): pass"),
    ],
)
def test_portable(before: str, after: str) -> None:
    assert expression(before, "portable") == after


def test_portable_template_keeps_its_meaning() -> None:
    line = rewritten("import torch\nd = 'cuda:%d' % 3\n", "portable").splitlines()[-1]
    values = {"DEVICE_TYPE": "cpu"}
    exec(line, values)
    assert values["d"] == "cpu:3"


def test_a_test_for_the_target_beside_it() -> None:
    known = "if device_type == 'cuda' or device_type == 'npu': pass"
    assert expression(known) == known
    other = "if device_type == 'cuda' or device_type == 'xpu': pass"
    assert expression(other) == "if device_type == 'npu' or device_type == 'xpu': pass"
