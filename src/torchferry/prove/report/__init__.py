"""A proof as text for the terminal, as JSON and as a page: `render_text`, `to_json`, `render_html`. Imports no torch."""

from torchferry.prove.report.html import render_html
from torchferry.prove.report.proof_json import to_json
from torchferry.prove.report.sentences import log_tails
from torchferry.prove.report.text import render_text

__all__ = ["log_tails", "render_html", "render_text", "to_json"]
