"""Takes out of texts what tells strangers whose machine they are from: secrets, addresses, names of machines and users, paths.

Each thing gets a placeholder, the same one wherever it stands, so that a text can still be followed: <path-1>/train.py.
What is public stays: folders of Python's packages and of systems, the toolkit's own, well-known web pages, versions.
"""

from __future__ import annotations

import io
import ipaddress
import posixpath
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from torchferry.report.page import Column, Table
from torchferry.report.safe import shortened
from torchferry.text import Text


class PrivateKind(str, Enum):
    """What sort of thing is taken out."""

    SECRET = "secret"  # keys, tokens, passwords
    EMAIL = "email"
    URL = "url"  # of a page that is not one of the well-known
    ADDRESS = "address"  # IP and MAC
    PATH = "path"
    HOST = "host"
    USER = "user"
    VALUE = "value"  # of an environment variable
    WORD = "word"  # that the user has named


KIND_NAMES = {
    PrivateKind.SECRET: Text("secret", "密钥"),
    PrivateKind.EMAIL: Text("e-mail", "邮箱"),
    PrivateKind.URL: Text("web address", "网址"),
    PrivateKind.ADDRESS: Text("address", "地址"),
    PrivateKind.PATH: Text("path", "路径"),
    PrivateKind.HOST: Text("host name", "主机名"),
    PrivateKind.USER: Text("user name", "用户名"),
    PrivateKind.VALUE: Text("variable's value", "变量的值"),
    PrivateKind.WORD: Text("word of --hide", "--hide 指定的词"),
}


@dataclass(frozen=True)
class PrivateFacts:
    """What is known of the machine and its user."""

    user: str = ""
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()  # values of variables that hold keys
    words: tuple[str, ...] = ()  # that the user wants to be taken out
    public_folders: tuple[str, ...] = ()  # of a vendor's toolkit: where everybody has it
    public_variables: tuple[str, ...] = ()  # whose values may stay, as those of a vendor's runtime
    versions: tuple[str, ...] = ()  # that look like addresses: 24.1.0.3


def facts_of(environment: Mapping[str, str], hostname: str, user: str = "") -> PrivateFacts:
    """What the variables of a process tell of its machine and its user."""
    hosts = [hostname, *(environment.get(name, "") for name in _HOST_VARIABLES)]
    secrets = [
        value
        for name, value in environment.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_SECRET
    ]
    names = (user, *(environment.get(name, "") for name in ("USER", "LOGNAME", "USERNAME")))
    return PrivateFacts(next(filter(None, names), ""), tuple(filter(None, hosts)), tuple(secrets))


@dataclass(frozen=True)
class Replaced:
    """A thing that was taken out."""

    kind: PrivateKind
    original: str
    placeholder: str
    count: int


ALL_KINDS = frozenset(PrivateKind)
_SHORTEST_SECRET, _SHORTEST_NAME = 6, 3
_HOST_VARIABLES = ("HOSTNAME", "HOST", "MASTER_ADDR", "POD_NAME", "NODE_NAME", "SLURMD_NODENAME")
_SECRET_VARIABLE = re.compile(
    r"(?i)(?:^|_)(?:\w*token|\w*key|\w*secret|pass|passwd|\w*password|auth|cred\w*)(?:_|$)"
)

# Words that are no name, though they stand where one does.
_COMMON = frozenset(
    [
        "root",
        "user",
        "users",
        "admin",
        "ubuntu",
        "debian",
        "centos",
        "work",
        "workspace",
        "data",
        "dataset",
        "datasets",
        "home",
        "share",
        "shared",
        "public",
        "models",
        "model",
        "train",
        "training",
        "test",
        "tests",
        "local",
        "localhost",
        "none",
        "null",
        "true",
        "false",
        "cpu",
        "gpu",
        "npu",
        "mlu",
        "sdaa",
        "xpu",
        "musa",
        "cuda",
        "device",
        "host",
        "node",
        "server",
        "torch",
        "torch_npu",
        "torch_mlu",
        "torch_musa",
        "torch_sdaa",
        "python",
        "python3",
        "numpy",
        "aten",
        "ascend",
        "cambricon",
        "tecorigin",
        "moorethreads",
        "intel",
        "self",
        "input",
        "output",
        "error",
        "warning",
        "info",
        "debug",
        "name",
        "float",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "tensor",
        "forward",
        "backward",
        "main",
        "path",
        "file",
        "email",
        "address",
        "secret",
        "url",
        "value",
        "word",
        "list",
        "dict",
        "tuple",
        "string",
        "bool",
        "case",
        "check",
        "close",
        "shape",
        "strides",
        "values",
    ]
)
_PUBLIC_HOSTS = re.compile(
    r"(?:^|\.)(?:pytorch\.org|python\.org|pypi\.org|github\.com|githubusercontent\.com|gitee\.com|gitcode\.com|hiascend\.com|"
    r"huawei\.com|cambricon\.com|tecorigin\.com|mthreads\.com|intel\.com|nvidia\.com|huggingface\.co|modelscope\.cn|"
    r"readthedocs\.io|stackoverflow\.com|arxiv\.org|apache\.org|numpy\.org|wikipedia\.org|example\.(?:com|org|net))$"
)
_PUBLIC_FOLDERS = (
    "/dev", "/proc", "/sys", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/include",
    "/usr/share", "/usr/src", "/usr/local/bin", "/usr/local/lib", "/usr/local/cuda",
)  # fmt: skip
_PUBLIC_ROOTS = ("/", "/tmp", "/home", "/root", "/usr", "/opt", "/var", "/mnt", "/data", "/usr/local")
_PUBLIC_VARIABLE = re.compile(
    r"(?:OMP|MKL|KMP|CUDA|NCCL|HCCL|CNCL|TCCL|MCCL|CCL|ASCEND|ACL|NPU|MLU|SDAA|MUSA|TORCH|PYTORCH|TORCHFERRY|GLOO|TF|XLA|OPENBLAS|"
    r"NUMEXPR)_\w+|RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|GROUP_RANK|MASTER_PORT|LANG|LC_ALL|PYTHON\w*|TZ|SHELL|TERM"
)
_PACKAGES = re.compile(r".*/(?=(?:site|dist)-packages/|python3\.\d+/)")
_SOURCE = re.compile(r"[^/]+\.[A-Za-z]\w{0,7}")

# What any text may hold, the first that fits at a place.
_PATTERNS: tuple[tuple[PrivateKind, str], ...] = (
    (PrivateKind.SECRET, r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    (PrivateKind.VALUE, r"(?m:^(?:declare -x |export |[ \t]*)(?P<variable>[A-Z][A-Z0-9_]{2,})=(?P<of_variable>\S[^\n]*)$)"),
    (
        PrivateKind.SECRET,
        r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|"
        r"xox[abpsr]-[\w-]{10,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{6,}\.[\w-]*)",
    ),
    (PrivateKind.SECRET, r"(?i:\b(?:bearer|basic) +)(?P<bearer>[A-Za-z0-9+/=._~-]{12,})"),
    (
        PrivateKind.SECRET,
        r"(?<![\w-])(?i:[\w-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization))"
        r"""["']?[ ]*[=:][ ]*["']?(?P<assigned>[^\s"',;<>(){}\[\]]{8,})""",
    ),
    (PrivateKind.URL, r"\b[a-z][a-z0-9+.-]*://[^\s\"'<>`|]+"),
    (PrivateKind.EMAIL, r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    (PrivateKind.USER, r"(?<![\w.-])(?P<login>[A-Za-z_][\w.-]*)@(?P<at>[\w.-]+)(?=[:,~ \]])"),
    (PrivateKind.ADDRESS, r"(?<![\w:.-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])"),
    (PrivateKind.ADDRESS, r"(?<![\w:.])(?=[0-9A-Fa-f:]*\d)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])"),
    (PrivateKind.ADDRESS, r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)"),
    (PrivateKind.PATH, r"(?<![\w\\])[A-Za-z]:[\\/](?:[^\s\"'<>|*?:]+)"),
    (PrivateKind.PATH, r"(?<=[\"'])(?:~|/)[^\"'\n<>|*]*/[^\"'\n<>|*]*(?=[\"'])"),
    (PrivateKind.PATH, r"(?<![\w.~<>/\\-])(?:~[\w.-]*)?/[^\s\"'<>|:;,()\[\]{}*?=&`\\]+"),
    (PrivateKind.SECRET, r"(?<![\w+/=.-])(?=[A-Za-z0-9+/=]*[a-z])(?=[A-Za-z0-9+/=]*[A-Z])(?=(?:[A-Za-z+/=]*\d){5})[A-Za-z0-9+/=]{40,}(?![\w.-])"),
    (PrivateKind.SECRET, r"(?<![\w./-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{32,}(?![\w.-])"),
)  # fmt: skip

# Where names of machines and users stand.
_HOSTS = (
    re.compile(r"(?m)^\s*host\s*:\s*([\w.-]+)\s*$"),  # torchrun
    re.compile(r"(?m)^([\w.-]+):\d+:\d+ (?:\[\d+\] )?[A-Z]+CL "),  # NCCL and its like
    re.compile(r"@([\w.-]+)[@,:]\d"),  # MPI
    re.compile(r"(?m)^[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d ([\w.-]+) "),  # syslog
    re.compile(
        r"(?i)(?:\b|_)(?:host(?:_?name)?|node(?:_?name|list)?|server|master[_-]addr|rdzv[_-]endpoint|pod(?:_?name)?)"
        r"""["']?[ ]*[=:][ ]*["']?([\w.-]+)"""
    ),
    re.compile(r"(?i)\b(?:host(?:name)?|node|machine|server|ssh)[ ]+([a-z][\w.-]*[\d-][\w.-]*)"),
    re.compile(r"(?<![\w.-])((?:[\w-]+\.)+(?:local|internal|intra|intranet|corp|lan|cluster|private|svc))\b"),
)
_USERS = (
    re.compile(r"(?<![\w.])/(?:home|Users)/([\w.-]+)"),
    re.compile(r"[A-Za-z]:[\\/]Users[\\/]([\w.-]+)"),
    re.compile(r"\b(?:USER|LOGNAME|USERNAME)=([\w.-]+)"),
)


class Anonymiser:
    """Replaces what is private; the same things by the same placeholders in all texts that it is given."""

    def __init__(self, facts: PrivateFacts) -> None:
        self._facts = facts
        self._names: dict[str, PrivateKind] = {}  # in lower case
        self._placeholders: dict[tuple[PrivateKind, str], str] = {}
        self._counts: Counter[tuple[PrivateKind, str]] = Counter()
        self._pattern = re.compile("")
        self._kinds: list[PrivateKind] = []
        for word in facts.words:
            self._names[word.lower()] = PrivateKind.WORD
        for host in facts.hosts:
            self._know_host(host)
        self._know(facts.user, PrivateKind.USER)
        self._compile()

    def learn(self, text: str) -> None:
        """Note names of machines and users, so that they are taken out also where nothing tells that they are names."""
        before = len(self._names)
        for pattern in _HOSTS:
            for match in pattern.finditer(text):
                if re.search(r"[\d.-]", match[1]) and not _is_number(match[1]):
                    self._know_host(match[1])
        for pattern in _USERS:
            for match in pattern.finditer(text):
                self._know(match[1], PrivateKind.USER)
        if len(self._names) > before:
            self._compile()

    def __call__(self, text: str, kinds: frozenset[PrivateKind] = ALL_KINDS) -> str:
        """The text without what is private."""

        def replaced(match: re.Match[str]) -> str:
            kind = self._kinds[int(str(match.lastgroup)[1:])]
            return self._replaced(kind, match) if kind in kinds else match[0]

        return self._pattern.sub(replaced, text)

    def in_source(self, text: str) -> str:
        """Python's source without what is private: only comments and strings are touched, so that it runs as before."""
        lines = text.splitlines(keepends=True)
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (tokenize.TokenError, SyntaxError):
            return self(text)
        changed = [(token, self._in_string(token.string)) for token in tokens if token.type in _TEXT_TOKENS]
        for token, text in reversed(changed):
            (first, start), (last, end) = token.start, token.end
            whole = lines[first - 1][:start] + text + lines[last - 1][end:]
            lines[first - 1 : last] = whole.splitlines(keepends=True)
        return "".join(lines)

    def _in_string(self, text: str) -> str:
        return "".join(each if at % 2 else self(each) for at, each in enumerate(_pieces(text)))

    def counted(self) -> Counter[tuple[PrivateKind, str]]:
        """How often each thing was taken out until now."""
        return self._counts.copy()

    def count_from(self, counted: Counter[tuple[PrivateKind, str]]) -> None:
        """Forget what was taken out since then: those texts are written anew. Placeholders stay the same."""
        self._counts = counted.copy()

    @property
    def replacements(self) -> tuple[Replaced, ...]:
        """All that was taken out, in the order of its kinds, the first first."""
        found = [
            Replaced(kind, original, self._placeholders[kind, original], count)
            for (kind, original), count in self._counts.items()
        ]
        order = list(PrivateKind)
        return tuple(sorted(found, key=lambda each: order.index(each.kind)))

    def _know_host(self, host: str) -> None:
        self._know(host.strip("."), PrivateKind.HOST)
        short = host.strip(".").partition(".")[0]
        if re.search(r"[\d-]", short) and not _is_number(host):
            self._know(short, PrivateKind.HOST)

    def _know(self, name: str, kind: PrivateKind) -> None:
        word = name.lower()
        if len(word) >= _SHORTEST_NAME and word not in _COMMON and not _is_number(word):
            self._names.setdefault(word, kind)

    def _compile(self) -> None:
        """One pattern of all: what begins first wins, of those that begin at one place the first in the list."""
        patterns = [(PrivateKind.WORD, f"(?i:{re.escape(word)})") for word in self._facts.words if word]
        patterns += [(PrivateKind.SECRET, re.escape(value)) for value in self._facts.secrets]
        patterns += _PATTERNS
        by_kind: dict[PrivateKind, list[str]] = {}
        for name in sorted(self._names, key=len, reverse=True):
            by_kind.setdefault(self._names[name], []).append(re.escape(name))
        patterns += [
            (kind, rf"(?<![A-Za-z0-9])(?i:{'|'.join(names)})(?![A-Za-z0-9])")
            for kind, names in by_kind.items()
            if kind is not PrivateKind.WORD
        ]
        self._kinds = [kind for kind, _ in patterns]
        # the outer groups, whose numbers are those of kinds, are the last that are closed
        self._pattern = re.compile("|".join(f"(?P<g{at}>{each})" for at, (_, each) in enumerate(patterns)))

    def _replaced(self, kind: PrivateKind, match: re.Match[str]) -> str:
        groups, whole = match.groupdict(), match[0]
        if kind is PrivateKind.PATH:
            return self._path(whole)
        if kind is PrivateKind.ADDRESS:
            return whole if self._is_public_address(match) else self._placeholder(kind, whole)
        if kind is PrivateKind.URL:
            return self._url(whole)
        if kind is PrivateKind.VALUE:
            return self._variable(whole, str(groups["variable"]), str(groups["of_variable"]))
        if groups.get("login"):
            login = self._placeholder(PrivateKind.USER, groups["login"])
            return f"{login}@{self(groups['at'], ALL_KINDS - {PrivateKind.PATH})}"
        inner = groups.get("bearer") or groups.get("assigned")
        if inner and not inner.isdecimal():
            return whole[: len(whole) - len(inner)] + self._placeholder(kind, inner)
        return whole if inner else self._placeholder(kind, whole)

    def _placeholder(self, kind: PrivateKind, original: str) -> str:
        same = (
            original.lower() if kind in (PrivateKind.HOST, PrivateKind.USER, PrivateKind.WORD) else original
        )
        key = (kind, same)
        if key not in self._placeholders:
            number = sum(each is kind for each, _ in self._placeholders) + 1
            self._placeholders[key] = f"<{kind.value}-{number}>"
        self._counts[key] += 1
        return self._placeholders[key]

    def _is_public_address(self, match: re.Match[str]) -> bool:
        text = match[0]
        if "-" in text or re.fullmatch(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}", text):
            return False
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return True  # a time, or a version
        before = match.string[max(0, match.start() - 12) : match.start()]
        is_version = address.version == 4 and bool(re.search(r"(?i)(?:version[ =:]*|==|\bv)$", before))
        is_own = address.is_loopback or text.startswith("0.")  # nobody has such a one: a path of modules
        return is_version or text in self._facts.versions or is_own or address.is_unspecified

    def _url(self, text: str) -> str:
        scheme, _, rest = text.partition("://")
        if scheme == "file":
            return f"file://{self._path(rest)}" if rest.startswith("/") else text
        place = rest.partition("/")[0]
        host = place.rpartition("@")[2].partition(":")[0].lower()
        has_login = "@" in place or "?" in rest
        if not has_login and (_PUBLIC_HOSTS.search(host) or host in ("localhost", "127.0.0.1", "0.0.0.0")):
            return text
        return self._placeholder(PrivateKind.URL, text)

    def _variable(self, whole: str, name: str, value: str) -> str:
        start = whole[: len(whole) - len(value)]
        is_public = _PUBLIC_VARIABLE.fullmatch(name) or name in self._facts.public_variables
        if is_public and not _SECRET_VARIABLE.search(name):
            return start + self(value, ALL_KINDS - {PrivateKind.VALUE})
        return start + self._placeholder(PrivateKind.VALUE, value)

    def _path(self, text: str) -> str:
        path = text.rstrip(".")
        end = text[len(path) :]
        plain = posixpath.normpath(path.replace("\\", "/")) if path else ""
        if plain.lstrip("/") == "" or len(plain) < _SHORTEST_NAME or plain in _PUBLIC_ROOTS:
            return text
        roots = (*_PUBLIC_FOLDERS, *self._facts.public_folders)
        if any(plain == root or plain.startswith(f"{root}/") for root in roots):
            return self._inner(path) + end
        packages = _PACKAGES.match(plain)
        if packages:
            folder = self._placeholder(PrivateKind.PATH, packages[0].rstrip("/"))
            return f"{folder}/{self._inner(plain[packages.end() :])}{end}"
        folder, _, name = plain.rpartition("/")
        if folder and _SOURCE.fullmatch(name):
            return f"{self._placeholder(PrivateKind.PATH, folder)}/{self._inner(name)}{end}"
        return self._placeholder(PrivateKind.PATH, plain) + end

    def _inner(self, text: str) -> str:
        """A part of a path that stays, but for names in it."""
        return self(
            text, frozenset({PrivateKind.HOST, PrivateKind.USER, PrivateKind.WORD, PrivateKind.SECRET})
        )


_TEXT_TOKENS = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def _pieces(string: str) -> list[str]:
    """A string, or an f-string with its expressions at the odd places."""
    is_formatted = "f" in string.partition("'")[0].partition('"')[0].lower()
    return re.split(r"(\{[^{}]*\})", string) if is_formatted else [string]


def _is_number(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return bool(re.fullmatch(r"[\d.]+", text))
    return True


_TITLE = Text("Taken out", "已去除的内容")
_WHAT = Text("what", "类别")
_FOUND = Text("found", "原文")
_BY = Text("replaced by", "替换为")
_TIMES = Text("times", "次数")
_LONGEST, _SHOWN = 80, 4


def replaced_table(replaced: Iterable[Replaced]) -> Table:
    """What was taken out, for the eyes of its owner alone; of secrets only their beginning."""
    rows = tuple(
        (KIND_NAMES[each.kind], shown_original(each), each.placeholder, each.count) for each in replaced
    )
    columns = (
        Column(_WHAT, is_whole=True),
        Column(_FOUND, kind="code"),
        Column(_BY, kind="code", is_whole=True),
        Column(_TIMES, kind="count"),
    )
    return Table(_TITLE, columns, rows)


def shown_original(each: Replaced) -> str:
    """What was taken out, as it may stand on a screen."""
    if each.kind in (PrivateKind.SECRET, PrivateKind.VALUE):
        return f"{shortened(each.original, _SHOWN)}"
    return shortened(each.original, _LONGEST)


def counted_kinds(replaced: Iterable[Replaced]) -> dict[str, int]:
    """How many different things of each kind were taken out."""
    return dict(Counter(each.kind.value for each in replaced))
