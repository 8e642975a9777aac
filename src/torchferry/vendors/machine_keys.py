"""The keys of machine.toml: what a machine must have before a vendor's device can be used."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry.vendors.keys import NAME, SOURCES, Key, Kind, text

_PATHS = r"/.+"
_VERSIONS = r"(>=)?\d[\w.+-]*"

MACHINE: Mapping[str, Key] = {
    "get": text('"where driver and toolkit come from"'),
    "get_zh": text('"the same in Chinese"'),
    "gcc": text('"13.3"', r"[\d.]*"),
    "libraries": Key(Kind.TEXTS, '["libacme.so"]'),
    "plugin": Key(
        Kind.TABLE,
        '[plugin] with package = "torch-acme"',
        rows={
            "package": text('"torch-acme"', r"[\w.-]+", required=True),
            "get": text('"pip install torch-acme=={plugin}"'),
            "torch": text("'^(\\d+\\.\\d+)'", r".*\(.*\).*"),
            "torch_build": text('"acme"', r"\w*"),
            "libraries": Key(Kind.TEXTS, '["_C*.so", "lib/*.so"]'),
        },
    ),
    "toolkit": Key(
        Kind.TABLE,
        '[toolkit] with name = "Acme SDK"',
        rows={
            "name": text('"Acme SDK"', r".+", required=True),
            "variables": Key(Kind.TEXTS, '["ACME_HOME"]', pattern=NAME),
            "folders": Key(Kind.TEXTS, '["/usr/local/acme"]', pattern=_PATHS),
            "version_files": Key(Kind.TEXTS, '["version.txt"]'),
            "version": text("'version=(\\S+)'", r"(?s).*\(.*\).*"),
            "scripts": Key(Kind.TEXTS, '["set_env.sh"]'),
            "sets": Key(Kind.TEXTS, '["ACME_OPS_PATH"]', pattern=NAME),
            "libraries": Key(Kind.TEXTS, '["lib64"]'),
        },
    ),
    "driver": Key(
        Kind.TABLE,
        '[driver] with name = "Acme driver"',
        rows={
            "name": text('"Acme driver"', r".+", required=True),
            "version_files": Key(Kind.TEXTS, '["/usr/local/acme/driver/version"]', pattern=_PATHS),
            "version": text("'Version=(\\S+)'", r"(?s).*\(.*\).*"),
        },
    ),
    "devices": Key(
        Kind.TABLE,
        '[devices] with nodes = ["/dev/acme[0-9]*"]',
        rows={
            "nodes": Key(Kind.TEXTS, '["/dev/acme[0-9]*"]', pattern=_PATHS),
            "control": Key(Kind.TEXTS, '["/dev/acme_ctl"]', pattern=_PATHS),
            "each": Key(Kind.NUMBER, "1"),
            "group": text('"acme"', r"[\w-]*"),
        },
    ),
    "smi": Key(
        Kind.TABLE,
        "[smi] with device = '(?P<index>\\d+) (?P<name>.*)'",
        rows={
            "command": text('"acme-smi list"'),
            "driver": text("'Driver (\\S+)'"),
            "toolkit": text("'Runtime (\\S+)'"),
            "device": text("'(?P<index>\\d+) (?P<name>.*)'", r"(?s).*\(\?P<name>.*"),
            "healthy": Key(Kind.TEXTS, '["OK"]'),
            "process": text("'(?P<pid>\\d+)'", r"(?s).*\(\?P<pid>.*"),
        },
    ),
    "network": Key(
        Kind.TABLE,
        '[network] with files = ["/etc/acme.conf"]',
        rows={
            "files": Key(Kind.TEXTS, '["/etc/acme.conf"]', pattern=_PATHS),
            "interface_variables": Key(Kind.TEXTS, '["ACCL_SOCKET_IFNAME"]', pattern=NAME),
            "address_variables": Key(Kind.TEXTS, '["ACCL_IF_IP"]', pattern=NAME),
        },
    ),
    "releases": Key(
        Kind.ROWS,
        '[[releases]] with plugin = "1.2.0", torch = "2.4.0"',
        rows={
            "plugin": text('"1.2.0", or the beginning "1.2"', r"\d[\w.+-]*", required=True),
            "torch": text('"2.4.0"', r"\d[\w.]*", required=True),
            "toolkit": Key(Kind.TEXTS, '["3.1", ">=3.2"]', pattern=_VERSIONS),
            "driver": Key(Kind.TEXTS, '[">=5.0"]', pattern=_VERSIONS),
            "python": Key(Kind.TEXTS, '["3.10", "3.11"]', pattern=r"3\.\d+"),
            "architectures": Key(Kind.TEXTS, '["x86_64", "aarch64"]'),
        },
    ),
    "sources": SOURCES,
}
