"""A page for each command, from its parser."""

from __future__ import annotations

import argparse
import importlib

from torchferry.cli.main import COMMANDS, STAGES
from torchferry.text import Language, Text

_TITLE = Text("Commands", "命令")


def pages(language: Language) -> dict[str, str]:
    """Path -> text of the list of commands and of every command's page."""
    found = {"commands/index.md": _list(language)}
    for name, (module, summary) in COMMANDS.items():
        commands = importlib.import_module(f"torchferry.cli.{module}")
        parser = argparse.ArgumentParser(prog=f"ferry {name}", description=commands.__doc__)
        commands.add_arguments(parser)
        found[f"commands/{name}.md"] = f"# ferry {name}\n\n{summary}\n\n```text\n{parser.format_help()}```\n"
    return found


def _list(language: Language) -> str:
    lines = [f"# {_TITLE.in_language(language)}", ""]
    for stage, commands in STAGES.items():
        lines += [f"## {stage}", ""]
        lines += [f"- [`ferry {name}`]({name}.md): {summary}" for name, (_, summary) in commands.items()] + [
            ""
        ]
    return "\n".join(lines)
