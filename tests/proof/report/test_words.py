"""Both languages say the same, and nothing at import time needs torch."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.report.texts import texts_of
from torchferry.proof.model import Cause, ProofVerdict, What
from torchferry.proof.report import words


def test_the_placeholders_are_the_same_in_both_languages() -> None:
    for text in texts_of(words):
        assert sorted(set(re.findall(r"\{(\w+)\}", text.en))) == sorted(
            set(re.findall(r"\{(\w+)\}", text.zh))
        )


def test_every_kind_has_words() -> None:
    assert (set(words.VERDICT), set(words.WHAT), set(words.CAUSE)) == (
        set(ProofVerdict),
        set(What),
        set(Cause),
    )


def test_reports_do_not_import_torch() -> None:
    program = (
        "import sys, torchferry.proof.report, torchferry.proof.operators; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
