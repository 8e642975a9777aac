"""The keys of zoo.toml: what the vendor's model zoo asks of a delivery."""

from __future__ import annotations

from collections.abc import Mapping

from torchferry.vendors.keys import SOURCES, Key, Kind, text

ZOO: Mapping[str, Key] = {
    "name": text('"Acme model zoo"', r".+", required=True),
    "address": text('"https://example.com/zoo"'),
    "layout": text('"{framework}/contrib/{domain}/{model}"', r".+", required=True),
    "frameworks": Key(Kind.TEXTS, '["PyTorch"]', required=True),
    "domains": Key(Kind.TEXTS, '["Classification"]', required=True),
    "new_domain": text('"what to do about a domain that is not listed"'),
    "new_domain_zh": text('"the same in Chinese"'),
    "features": Key(Kind.TEXTS, '["distributed", "amp"]'),
    "relative_error": text('"0.05"', r"[\d.]+"),
    "absolute_error": text('"0.0002"', r"[\d.]+"),
    "container": text('"docker run ..."'),
    "run_folder": text('"run_scripts"', r"\w[\w.-]*"),
    "test_script": text('"test.sh"', r"\w[\w.-]*"),
    "original_log": text('"cuda"', r"\w[\w.-]*"),
    "port_log": text('"acme"', r"\w[\w.-]*"),
    "start_scripts": Key(Kind.TEXTS, '["scripts/train.sh", "run_scripts/run_*.py"]', pattern=r"\w[\w./*-]*"),
    "steps": Key(Kind.NUMBER, "100"),
    "sources": SOURCES,
}
