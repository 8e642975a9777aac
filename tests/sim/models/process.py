"""A child process that answers for one model after the other, as they are asked for."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_SECONDS = 300  # for one model, with the time to build the device's library once


class ModelProcess:
    """Starts with the first question, so that importing torch and naming the device are paid once.

    `runner` is a module that reads names of models, one a line, and writes an answer in JSON for each.
    """

    def __init__(self, log: Path, runner: str, *options: str):
        self._log = log
        self._command = [sys.executable, "-m", runner, *options]
        self._child: subprocess.Popen[str] | None = None

    def ask(self, name: str) -> dict[str, Any]:
        """What the runner says about one model; a child that dies is told with its last words."""
        child = self._running()
        assert child.stdin and child.stdout
        deadline = threading.Timer(_SECONDS, child.kill)
        deadline.start()
        try:
            child.stdin.write(f"{name}\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            deadline.cancel()
        if not line:
            self.close()
            words = self._log.read_text("utf-8", "replace")[-4000:]
            return {"name": name, "error": f"the process ended with {child.returncode}\n{words}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the child."""
        child, self._child = self._child, None
        if child is not None:
            assert child.stdin and child.stdout
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            child.wait(_SECONDS)
            child.stdout.close()

    def _running(self) -> subprocess.Popen[str]:
        if self._child is None:
            with self._log.open("a", encoding="utf-8") as log:
                self._child = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    cwd=ROOT,
                )
        return self._child
