"""What stops a migration: blockers and missing operators, until they are accepted or edited away."""

from __future__ import annotations

from typing import Any

from torchferry.migration.decisions import missing_operators, open_blockers, shown_places
from torchferry.text import Text


def finding(rule: str, path: str, line: int, severity: str = "blocker") -> dict[str, Any]:
    return {
        "rule": rule,
        "path": path,
        "line": line,
        "severity": severity,
        "title": "CUDA kernel",
        "title_zh": "CUDA kernel",
    }


FOUND = {
    "findings": [
        finding("TF401", "a.py", 3),
        finding("TF401", "b.py", 7),
        finding("TF204", "a.py", 9, "decision"),
    ]
}


def test_places_of_one_cause_are_one_decision() -> None:
    (decision,) = open_blockers(FOUND, accepted=(), edited=())
    assert (decision.name, decision.places) == ("TF401", ("a.py:3", "b.py:7"))
    assert decision.text.en.endswith("or accept it: --accept TF401")


def test_a_rule_that_is_accepted_stops_nothing() -> None:
    assert open_blockers(FOUND, accepted=("TF401",), edited=()) == []


def test_a_file_that_was_edited_is_decided() -> None:
    (decision,) = open_blockers(FOUND, accepted=(), edited=("a.py",))
    assert decision.places == ("b.py:7",)
    assert open_blockers(FOUND, accepted=(), edited=("a.py", "b.py")) == []


def use(operator: str, place: str, support: str, advice: list[int]) -> dict[str, Any]:
    return {"operator": operator, "place": place, "judgements": [{"support": support, "advice": advice}]}


def test_only_operators_without_a_replacement_stop() -> None:
    readiness = {
        "uses": [
            use("aten::mm", "m.py:1", "kernel", []),
            use("aten::huber_loss", "m.py:2", "missing", [0]),
            use("aten::svd", "m.py:3", "missing", []),
            {"operator": "aten::linear", "place": "m.py:4", "judgements": [None]},
        ]
    }
    (decision,) = missing_operators(readiness, accepted=(), edited=())
    assert (decision.name, decision.places) == ("aten::svd", ("m.py:3",))
    assert missing_operators(readiness, accepted=("aten::svd",), edited=()) == []
    assert missing_operators(readiness, accepted=(), edited=("m.py",)) == []


def test_many_places_are_counted() -> None:
    places = [f"a.py:{line}" for line in range(1, 6)]
    assert shown_places(places) == Text("a.py:1, a.py:2, a.py:3 and 2 more", "a.py:1、a.py:2、a.py:3 等 5 处")
