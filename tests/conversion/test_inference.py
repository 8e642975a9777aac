"""What a name is where neither imports nor its own spelling tell: by what becomes of it in its module."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, said_of


def _as_npu(source: str) -> str:
    return source.replace("'cuda", "'npu").replace("x.cuda", "x.npu")


def _todos(source: str) -> int:
    return sum(kind == "todo" for _, kind, _ in said_of(source, rule="TF105"))


VARIABLES = {
    "a variable": "w = 'cuda'\nx.to(w)",
    "through another variable": "w = 'cuda'\nv = w\nx.to(v)",
    "with an index, in an f-string": "w = 'cuda'\nx.to(f'{w}:{i}')",
    "with an index, by format": "w = 'cuda'\nx.to('{}:{}'.format(w, i))",
    "with an index, by addition": "w = 'cuda'\nx.to(w + ':0')",
    "with an index, by a template": "w = 'cuda'\nx.to('%s:%d' % (w, i))",
    "a walrus": "if (w := 'cuda') and ok:\n    x.to(w)",
    "one of several": "a, b = 'cuda', 3\nx.to(a)",
    "in a list": "places = ['cuda']\nx.to(places[0])",
    "in a list, by a loop": "places = ['cuda']\nfor p in places:\n    x.to(p)",
    "in a list of pairs": "for p, n in [('cuda', 1), ('cuda:1', 2)]:\n    x.to(p)",
    "by a comprehension": "y = [x.to(p) for p in ['cuda']]",
    "a global": "WHERE = 'cuda'\ndef f(x):\n    return x.to(WHERE)",
    "declared global": "w = None\ndef f():\n    global w\n    w = 'cuda'\ndef g(x):\n    return x.to(w)",
    "of the function around": "def f(x):\n    w = 'cuda'\n    def g():\n        return x.to(w)\n    return g",
    "else the CPU": "if ok:\n    w = 'cuda'\nelse:\n    w = 'cpu'\nrun(w)",
    "the default of a variable of the system": "w = os.environ.get('WHERE', 'cuda')\nx.to(w)",
    "another name beside it": "w = 'cuda'\ndef f(w):\n    print(w)\nx.to(w)",
    "a conditional import": "try:\n    import apex\n    w = 'cuda'\nexcept ImportError:\n    w = 'cpu'\nx.to(w)",
}
ARGUMENTS = {
    "an argument": "def run(w):\n    return x.to(w)\nrun('cuda')",
    "a keyword": "def run(w):\n    return x.to(w)\nrun(w='cuda')",
    "a default": "def run(w='cuda'):\n    return x.to(w)",
    "a default of a keyword": "def run(*, w='cuda'):\n    return x.to(w)",
    "two functions on": "def run(w):\n    go(w)\ndef go(p):\n    x.to(p)\nrun('cuda')",
    "four functions on": "def a(p):\n    b(p)\ndef b(q):\n    c(r=q)\ndef c(r):\n    d(1, r)\ndef d(n, s):\n    x.to(s)\na('cuda')",
    "a method": "class A:\n    def run(self, w):\n        x.to(w)\n    def go(self):\n        self.run('cuda')",
    "a method of an object": "class A:\n    def run(self, w):\n        x.to(w)\na = A()\na.run('cuda')",
    "a method of an unknown object": "class A:\n    def run(self, w):\n        x.to(w)\ndef f(a):\n    a.run('cuda')",
    "a static method": "class A:\n    @staticmethod\n    def run(w):\n        x.to(w)\nA.run('cuda')",
    "a class method": "class A:\n    @classmethod\n    def run(cls, w):\n        x.to(w)\nA.run('cuda')",
    "an inherited method": "class B:\n    def run(self, w):\n        x.to(w)\nclass A(B):\n    def go(self):\n        self.run('cuda')",
    "super": "class B:\n    def __init__(self, w):\n        x.to(w)\nclass A(B):\n    def __init__(self):\n        super().__init__('cuda')",
    "a constructor": "class A:\n    def __init__(self, w):\n        x.to(w)\nA('cuda')",
    "partial": "from functools import partial\ndef run(x, w):\n    x.to(w)\ngo = partial(run, w='cuda')",
    "partial by position": "from functools import partial\ndef run(w, x):\n    x.to(w)\ngo = partial(run, 'cuda')",
    "a partial function": "from functools import partial\ndef run(n, w):\n    x.to(w)\ngo = partial(run, 1)\ngo('cuda')",
    "another name of a function": "def run(w):\n    x.to(w)\ngo = run\ngo('cuda')",
    "a lambda's default": "f = lambda x, w='cuda': x.to(w)",
    "any number of arguments": "def run(*places):\n    for p in places:\n        x.to(p)\nrun('cuda')",
}
MEMBERS = {
    "an attribute": "class A:\n    def __init__(self):\n        self.w = 'cuda'\n    def f(self, x):\n        return x.to(self.w)",
    "an attribute, through a variable": "class A:\n    def __init__(self):\n        self.w = 'cuda'\n    def f(self, x):\n        p = self.w\n        return x.to(p)",
    "of a base class": "class B:\n    def f(self, x):\n        return x.to(self.w)\nclass A(B):\n    def __init__(self):\n        self.w = 'cuda'",
    "of a derived class": "class B:\n    def __init__(self):\n        self.w = 'cuda'\nclass A(B):\n    def f(self, x):\n        return x.to(self.w)",
    "a parameter becomes it": "class A:\n    def __init__(self, w='cuda'):\n        self.w = w\n    def f(self, x):\n        return x.to(self.w)",
    "a constant of a class": "class A:\n    W = 'cuda'\n    def f(self, x):\n        return x.to(self.W)",
    "a constant, by the class": "class A:\n    W = 'cuda'\nx.to(A.W)",
    "a common name, of self": "class A:\n    def __init__(self):\n        self.name = 'cuda'\n    def f(self, x):\n        return x.to(self.name)",
    "a field": "@dataclass\nclass C:\n    w: str = 'cuda'\ndef f(c, x):\n    return x.to(c.w)",
    "a field by position": "@dataclass\nclass C:\n    n: int\n    w: str\nc = C(1, 'cuda')\nx.to(c.w)",
    "a field by keyword": "class C(NamedTuple):\n    n: int\n    w: str\nc = C(n=1, w='cuda')\nx.to(c.w)",
    "a property": "class A:\n    @property\n    def w(self):\n        return 'cuda'\n    def f(self, x):\n        return x.to(self.w)",
    "an enumeration": "class W(Enum):\n    GPU = 'cuda'\nx.to(W.GPU.value)",
    "a namespace": "cfg = SimpleNamespace(w='cuda')\nx.to(cfg.w)",
    "a dictionary": "cfg = {'w': 'cuda'}\nx.to(cfg['w'])",
    "a dictionary, by get": "cfg = {'w': 'cuda'}\nx.to(cfg.get('w'))",
    "a dictionary of keywords": "cfg = dict(w='cuda')\nx.to(cfg['w'])",
    "a dictionary in a dictionary": "cfg = {'a': {'w': 'cuda'}}\nx.to(cfg['a']['w'])",
    "a namedtuple by position": "C = namedtuple('C', 'w n')\nc = C('cuda', 1)\nx.to(c.w)",
    "a namedtuple by keyword": "C = namedtuple('C', ['w', 'n'])\nc = C(n=1, w='cuda')\nx.to(c.w)",
    "an attribute that is set by name": "setattr(cfg, 'w', 'cuda')\nx.to(cfg.w)",
    "defaults of options": "p.set_defaults(w='cuda')\nx.to(args.w)",
    "settings that are added": "cfg.update({'w': 'cuda'})\nx.to(cfg['w'])",
    "an EasyDict": "cfg = EasyDict({'w': 'cuda'})\nx.to(cfg.w)",
    "an EasyDict that is set": "cfg = EasyDict()\ncfg.w = 'cuda'\nx.to(cfg.w)",
    "a key that is set": "cfg = {}\ncfg['w'] = 'cuda'\nx.to(cfg['w'])",
    "an option": "p.add_argument('--w', default='cuda')\nargs = p.parse_args()\nx.to(args.w)",
    "an option with a dash": "p.add_argument('-p', '--run-on', default='cuda')\nx.to(args.run_on)",
    "an option with a name of its own": "p.add_argument('--w', dest='place', default='cuda')\nx.to(args.place)",
    "a click option": "@click.option('--w', default='cuda')\ndef main(w):\n    x.to(w)",
}
RESULTS = {
    "a function": "def pick():\n    return 'cuda'\nx.to(pick())",
    "a function's variable": "def pick():\n    w = 'cuda'\n    return w\nx.to(pick())",
    "one of two": "def pick():\n    return 'cuda', 1\nw, n = pick()\nx.to(w)",
    "one of two by its index": "def pick():\n    return 1, 'cuda'\nx.to(pick()[1])",
    "a method": "class A:\n    def pick(self):\n        return 'cuda'\n    def f(self, x):\n        return x.to(self.pick())",
    "through two functions": "def pick():\n    return 'cuda'\ndef choose():\n    return pick()\nx.to(choose())",
}
COMPARISONS = {
    "with a device's type": "kind = x.device.type\nif kind == 'cuda': pass",
    "with a helper's choice": "def pick():\n    return 'cuda' if ok else 'cpu'\nw = pick()\nif w == 'cuda': pass",
    "with a helper's result": "def pick():\n    return torch.device('cuda')\nif str(pick()) == 'cuda': pass",
    "with what is used later": "def run(w):\n    if w == 'cuda':\n        pass\n    x.to(w)",
    "with an attribute": "class A:\n    def __init__(self, x):\n        self.w = x.device.type\n    def f(self):\n        return self.w == 'cuda'",
    "with an argument of calls": "def run(w):\n    return w == 'cuda'\nrun(x.device.type)",
    "with a setting": "cfg = {'w': 'cpu'}\nif cfg['w'] == 'cuda': pass",
    "in one of several": "kind = x.device.type\nif kind in ('cuda',): pass",
    "at its start": "kind = x.device.type\nif kind.startswith('cuda'): pass",
    "in a part of it": "kind = str(x.device)\nif 'cuda' in kind: pass",
    "in a match": "kind = x.device.type\nmatch kind:\n    case 'cuda': pass",
    "in a match with the processor": "match w:\n    case 'cuda': pass\n    case 'cpu': pass",
    "in a match, one of two": "match w:\n    case 'cuda' | 'cpu': pass",
    "of several names": "a, b = x.device.type, 1\nif a == 'cuda': pass",
}
TABLES = {
    "a table": "T = {'cuda': f, 'cpu': g}\nT[x.device.type]()",
    "a table, by get": "T = {'cuda': f, 'cpu': g}\nT.get(device)()",
    "a table, by a variable": "T = {'cuda': f, 'cpu': g}\nkind = x.device.type\nT[kind]()",
    "a table that is asked": "T = {'cuda': f}\nif device in T: pass",
    "a table in a function": "T = {'cuda': f, 'cpu': g}\ndef run(table, device):\n    return table[device]\nrun(T, d)",
    "with more than one thing as key": "T = {('cuda', 1): f, ('cpu', 1): g}\nT[device, 1]()",
    "by the word itself, too": "T = {'cuda': f, 'cpu': g}\nT[x.device.type]()\nT['cuda']()",
}


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(source, id=f"{group}: {name}")
        for group, cases in {
            "variable": VARIABLES,
            "argument": ARGUMENTS,
            "member": MEMBERS,
            "result": RESULTS,
            "comparison": COMPARISONS,
            "table": TABLES,
        }.items()
        for name, source in cases.items()
    ],
)
def test_a_string_that_becomes_a_device(source: str) -> None:
    assert expression(source) == _as_npu(source)


NOT_TOLD = {
    "never used": "w = 'cuda'",
    "only printed": "w = 'cuda'\nprint(w)",
    "another variable of the same name": "def f():\n    w = 'cuda'\n    run(w)\ndef g(w, x):\n    x.to(w)",
    "a word of a name": "w = 'cuda'\ndevice_name = f'card-{w}'",
    "a word of a text": "w = 'cuda'\ndevice_text = 'on %s' % w",
    "the beginning of a name": "w = 'cuda'\ndevice_name = f'{w}_kernel'",
    "a word that is put together": "w = 'cuda'\ndevice_name = w + '_kernel'",
    "a template that goes on": "w = 'cuda'\ndevice_name = '{}-{}'.format(w, i)",
    "the type of anything": "for w in ('cuda',):\n    if layer.type == w: pass",
    "another element": "w, n = 'cuda', 'x'\nx.to(n)",
    "the other of two results": "def pick():\n    return 'cuda', 1\nn, w = pick()\nx.to(w)",
    "another index": "def pick():\n    return 'cuda', y\nx.to(pick()[1])",
    "the name beside a device": "device, name = 0, 'cuda'",
    "an argument that is printed": "def run(w):\n    print(w)\nrun('cuda')",
    "another argument": "def run(a, b):\n    x.to(b)\nrun('cuda', y)",
    "an argument of an unknown function": "run('cuda')",
    "a function of another class": "class A:\n    def run(self, w):\n        x.to(w)\nclass B:\n    def run(self, w):\n        print(w)\ndef f(b):\n    b.run('cuda')",
    "an attribute of another class": "class A:\n    def __init__(self):\n        self.w = 'cuda'\nclass B:\n    def f(self, x):\n        return x.to(self.w)",
    "a common name, of anything": "class A:\n    def __init__(self):\n        self.name = 'cuda'\ndef f(b, x):\n    return x.to(b.name)",
    "another field": "C = namedtuple('C', 'w n')\nc = C('cuda', 1)\nx.to(c.n)",
    "another case": "match w:\n    case 'cuda': pass\n    case 'cpu': pass\n    case 'numpy': pass",
    "another key": "cfg = {'w': 'cuda', 'v': 1}\nx.to(cfg['v'])",
    "another option": "p.add_argument('--w', default='cuda')\nx.to(args.v)",
    "a function that nobody calls": "def pick():\n    return 'cuda'",
    "a comparison with anything": "if kind == 'cuda': pass",
    "a comparison with other words": "mode = 'fast'\nif mode == 'cuda': pass",
    "words of another sort beside it": "def run(kind):\n    if kind == 'cpu': pass\n    elif kind == 'cuda': pass\n    elif kind == 'numpy': pass\nrun('cuda')",
    "what a function is called with besides": "def note(what):\n    record(what)\nnote(x.device)\nnote('cuda')",
    "six functions on": "\n".join(f"def f{n}(p):\n    f{n + 1}(p)" for n in range(6))
    + "\ndef f6(p):\n    x.to(p)\nf0('cuda')",
    "a circle": "def f(p):\n    g(p)\ndef g(q):\n    f(q)\nf('cuda')",
    "a table that nobody asks": "T = {'cuda': f, 'cpu': g}",
    "a table that is asked for something else": "T = {'cuda': f}\nT[name]()",
}


@pytest.mark.parametrize("source", NOT_TOLD.values(), ids=NOT_TOLD.keys())
def test_what_nothing_tells_stays_and_is_reported(source: str) -> None:
    assert expression(source) == source
    assert _todos(source) == source.count("'cuda'")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("state = {}\nstate['cuda'] = 1", id="a key that is set"),
        pytest.param("x = state['cuda']", id="a key that is asked for"),
        pytest.param("w = 'cuda' if ok else 'cpu'\nprint('cuda')", id="a message"),
        pytest.param("args.cuda = True\nif args.cuda: pass", id="a flag"),
    ],
)
def test_keys_messages_and_flags_stay(source: str) -> None:
    assert "npu" not in expression(source).replace("'npu' if ok", "")
    assert _todos(source) == 0


def test_an_integer_is_the_accelerator_of_the_machine_already() -> None:
    source = "x.to(0); torch.device(0); torch.zeros(1, device=0)"
    assert expression(source) == source
    assert said_of(source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("b = 'nccl'\ndist.init_process_group(b)", "b = 'hccl'\ndist.init_process_group(b)"),
        (
            "class A:\n    kind = 'NCCL'\n    def f(self):\n        dist.init_process_group(self.kind)",
            "class A:\n    kind = 'HCCL'\n    def f(self):\n        dist.init_process_group(self.kind)",
        ),
        ("names = ['NCCL']", "names = ['NCCL']"),
    ],
)
def test_backends_are_followed_in_the_same_way(source: str, expected: str) -> None:
    assert expression(source) == expected


def test_portable_code_compares_with_what_is_not_the_processor() -> None:
    source = "kind = x.device.type\nif kind == 'cuda': pass"
    assert expression(source, "portable") == "kind = x.device.type\nif kind != 'cpu': pass"


def test_a_portable_table_keeps_the_entry_of_the_processor() -> None:
    """Without an accelerator both keys are "cpu", and the last one counts."""
    safe = "T = {'cuda': f, 'cpu': g}\nT[x.device.type]()"
    assert "T = {DEVICE_TYPE: f, 'cpu': g}" in expression(safe, "portable")
    unsafe = "T = {'cpu': g, 'cuda': f}\nT[x.device.type]()"
    assert expression(unsafe, "portable") == unsafe
    assert said_of(unsafe, "portable", rule="TF105") == [("TF105", "todo", "'cuda'")]


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def __init__(self):\n        self.is_cuda = ok\na = A()\nif a.is_cuda: pass",
        "class B:\n    is_cuda = False\nclass A(B):\n    def f(self):\n        return self.is_cuda",
        "class A:\n    is_cuda = False\nif A().is_cuda: pass",
    ],
)
def test_an_is_cuda_of_an_own_class_is_left(source: str) -> None:
    assert expression(source) == source
    assert [item[:2] for item in said_of(source)] == [("TF104", "info")]


def test_an_object_of_another_class_has_the_tensors_is_cuda() -> None:
    source = "class A:\n    pass\na = A()\nif a.is_cuda: pass"
    assert expression(source) == source.replace("is_cuda", "is_npu")
