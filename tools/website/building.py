"""The site of both languages, built by MkDocs without a network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.website.navigation import DOCS, Navigation, read_navigation
from tools.website.staging import stage

from torchferry.errors import FerryError
from torchferry.text import Language, Text

LANGUAGES: tuple[Language, ...] = ("en", "zh")
_CONFIGURATION = DOCS / "site" / "mkdocs.yml"
# Parts of names are words, as in torch.nn.functional.huber_loss; jieba puts \u200b between Chinese words.
_SEPARATOR = r"[\s\u200b\-_,:!=\[\]()\"'`/|，。；：、（）“”]+|\.(?!\d)|&[lg]t;"
_WORDS = DOCS / "site" / "words.txt"  # that jieba does not know
_DESCRIPTION = Text(
    "Migrate PyTorch training code from CUDA to Ascend, Cambricon and other accelerators, and verify the result",
    "将 PyTorch 训练代码从 CUDA 迁移到昇腾、寒武纪等加速卡，并验证结果",
)


def build(target: Path, base: str = "") -> None:
    """Build the site into a folder, which is replaced; nothing is replaced where a page is wrong."""
    navigation = read_navigation()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for language in LANGUAGES:
            _build_language(work, language, navigation, base)
        shutil.copy(DOCS / "site" / "entry.html", work / "site" / "index.html")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(work / "site", target)


def _build_language(work: Path, language: Language, navigation: Navigation, base: str) -> None:
    pages = work / "pages" / language
    made = stage(pages, language, base)
    configuration = work / f"{language}.json"  # JSON is YAML
    settings = _settings(work, language, navigation.entries(made, language))
    configuration.write_text(json.dumps(settings, ensure_ascii=False), "utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(configuration)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, check=False, env=quiet, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        said = done.stderr.strip()
        raise FerryError(
            Text(
                f"MkDocs can't build the pages in {language}:\n{said}",
                f"MkDocs 无法构建 {language} 页面：\n{said}",
            )
        )


def _settings(work: Path, language: Language, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "INHERIT": str(_CONFIGURATION),
        "docs_dir": str(work / "pages" / language),
        "site_dir": str(work / "site" / language),
        "site_description": _DESCRIPTION.in_language(language),
        "nav": entries,
        "theme": {"language": language, "custom_dir": str(DOCS / "site" / "theme")},
        "plugins": {"search": _search(language), "offline": {}},
    }


def _search(language: Language) -> dict[str, Any]:
    shared = {"separator": _SEPARATOR, "jieba_dict_user": str(_WORDS)}
    return {**shared, "lang": ["en"] if language == "en" else ["zh", "en"]}
