"""The keys of machine.toml: what a machine must have before a vendor's device can be used."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry.vendors.keys import NAME, SOURCES, Key, Kind, text

_PATHS = r"~?/.+"
_WITH_GROUP = r"(?s).*\(.*\).*"
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
            "version": text("'version=(\\S+)'", _WITH_GROUP),
            "scripts": Key(Kind.TEXTS, '["set_env.sh"]'),
            "sets": Key(Kind.TEXTS, '["ACME_OPS_PATH"]', pattern=NAME),
            "operators": Key(Kind.TEXTS, '["{arch}-linux/ops.info", "kernels"]'),
            "packages": Key(Kind.TEXTS, '["numpy"]', pattern=r"[\w.-]+"),
            "libraries": Key(Kind.TEXTS, '["lib64"]'),
        },
    ),
    "driver": Key(
        Kind.TABLE,
        '[driver] with name = "Acme driver"',
        rows={
            "name": text('"Acme driver"', r".+", required=True),
            "version_files": Key(Kind.TEXTS, '["/usr/local/acme/driver/version"]', pattern=_PATHS),
            "version": text("'Version=(\\S+)'", _WITH_GROUP),
            "firmware_files": Key(Kind.TEXTS, '["/usr/local/acme/firmware/version"]', pattern=_PATHS),
            "firmware": text("'Version=(\\S+)'", _WITH_GROUP),
            "firmware_spans": text("'firmware=(\\S+)'", _WITH_GROUP),
            "libraries": Key(Kind.TEXTS, '["/usr/local/acme/driver/lib64"]', pattern=_PATHS),
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
            "card_addresses": text("'address_(\\d+)='", _WITH_GROUP),
            "json_variables": Key(Kind.TEXTS, '["ACCL_RANK_TABLE"]', pattern=NAME),
            "port_variable": text('"ACCL_BASE_PORT"', NAME),
            "port": Key(Kind.NUMBER, "60000"),
            "port_count": Key(Kind.NUMBER, "16"),
        },
    ),
    "releases": Key(
        Kind.ROWS,
        '[[releases]] with plugin = "1.2.0", torch = "2.4.0"',
        rows={
            "plugin": text('"1.2.0", or the beginning "1.2"', r"\d[\w.+-]*", required=True),
            "torch": text('"2.4.0"', r"\d[\w.]*", required=True),
            "toolkit": Key(Kind.TEXTS, '["3.1", ">=3.2"]', pattern=_VERSIONS),
            "compatible": Key(Kind.TEXTS, '["3.0"]', pattern=_VERSIONS),
            "python": Key(Kind.TEXTS, '["3.10", "3.11"]', pattern=r"3\.\d+"),
            "architectures": Key(Kind.TEXTS, '["x86_64", "aarch64"]'),
        },
    ),
    "drivers": Key(
        Kind.ROWS,
        '[[drivers]] with toolkit = "3.1", driver = [">=5.0"]',
        rows={
            "toolkit": text('"3.1", or ">=3.1"', _VERSIONS, required=True),
            "driver": Key(Kind.TEXTS, '[">=5.0"]', required=True, pattern=_VERSIONS),
            "source": text('"where that is known from"'),
        },
    ),
    "sources": SOURCES,
}
