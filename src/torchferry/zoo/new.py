"""Makes the folder of a delivery: the converted code, READMEs, requirements, a test script, evidence, the licence."""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from torchferry.convert.added import AddedFile
from torchferry.convert.discover import check_input
from torchferry.convert.filesystem import read_file
from torchferry.convert.project import Plan, ProjectOutcome, examine_project
from torchferry.convert.write import Replace, check_output, write_project
from torchferry.errors import InputError
from torchferry.vendors.model import Vendor
from torchferry.vendors.zoo import ZooTable
from torchferry.zoo.delivery import (
    EVIDENCE,
    ORIGINAL,
    PLACEHOLDER,
    PORT,
    READMES,
    REQUIREMENTS,
    TEST_SCRIPT,
)
from torchferry.zoo.evidence.compare import compare
from torchferry.zoo.evidence.model import Evidence
from torchferry.zoo.evidence.reading import holds_both, read_evidence
from torchferry.zoo.licences import licence_files, licence_name
from torchferry.zoo.place import Place, checked_place
from torchferry.zoo.readme_text import Facts, readme

_SCRIPT = """\
#!/usr/bin/env bash
# A short training: it starts, takes some steps and ends. NPROC=4 starts four processes.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON="${{PYTHON:-python}}"
if [[ "${{NPROC:-1}}" -gt 1 ]]; then
    exec "$PYTHON" -m torch.distributed.run --nproc_per_node "$NPROC" {main} {arguments} "$@"
fi
exec "$PYTHON" {main} {arguments} "$@"
"""
_KEPT_README = "README.original.md"
_FRAMEWORK = "PyTorch"  # the one whose programs this tool converts


@dataclass(frozen=True)
class Request:
    """What a user has said of a delivery that is to be made."""

    path: Path
    origin: Path
    main: str = ""  # the script that trains
    arguments: str = ""  # that make its training short
    results: Path | None = None  # of the migrated program
    original: Path | None = None  # of the original
    source: str = ""
    commit: str = ""
    dataset: str = ""


@dataclass(frozen=True)
class Made:
    """What was made."""

    place: Place
    outcome: ProjectOutcome
    main: str
    candidates: tuple[str, ...]  # for the script that trains, where it could not be told


def make_delivery(request: Request, vendor: Vendor, table: ZooTable, plan: Plan) -> Made:
    """Convert the project and write it with all that the zoo asks for; nothing is ever overwritten."""
    place = checked_place(request.path, table)
    if place.framework != _FRAMEWORK:
        raise InputError(
            f"{request.path}: programs for {place.framework} can't be converted, only {_FRAMEWORK}"
        )
    request = replace(request, arguments=_one_line_of_shell(request.arguments))
    origin = check_input(request.origin)
    if not origin.is_dir():
        raise InputError(f"{origin}: is a file; --from wants the folder of the original project")
    out = check_output(origin, request.path, Replace.NOTHING)
    evidence = _evidence(request)
    outcome = examine_project(origin, plan, skip=[out])
    _carry_licence(outcome, origin)
    candidates = _training_scripts(outcome)
    main = _main(request, outcome, candidates)
    facts = _facts(request, place, vendor, table, outcome, main, evidence)
    _keep_readme(outcome)
    _add_files(outcome, facts, evidence)
    write_project(outcome, out, {}, Replace.NOTHING)
    return Made(place, outcome, main, () if main else tuple(candidates))


def _one_line_of_shell(arguments: str) -> str:
    """The words of a text, written so that a shell takes none of them for anything else."""
    try:
        return shlex.join(shlex.split(arguments))
    except ValueError as error:
        raise InputError(f"--arguments {arguments!r}: {error}; quote the text as a shell wants it") from None


def _evidence(request: Request) -> dict[str, Evidence]:
    """Read before anything is written. A proof holds both sides, so that one file is enough."""
    found: dict[str, Evidence] = {}
    if request.results is not None:
        found[PORT] = read_evidence(request.results)
    original = request.original
    if original is None and request.results is not None and holds_both(request.results):
        original = request.results
    if original is not None:
        found[ORIGINAL] = read_evidence(original, of_original=True)
    return found


def _training_scripts(outcome: ProjectOutcome) -> list[str]:
    """Scripts at the top that train: they go backwards, or are called so."""
    found = []
    for entry in outcome.entries:
        if entry.is_folder or entry.is_link or entry.problem or not entry.path.endswith(".py"):
            continue
        if os.sep in entry.path:
            continue
        try:
            tree = ast.parse(read_file(os.path.join(outcome.folder, entry.path)))
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if "backward" in attributes or re.match(r"(train|main)\b", Path(entry.path).stem):
            found.append(entry.path)
    return found


def _main(request: Request, outcome: ProjectOutcome, candidates: list[str]) -> str:
    if not request.main:
        return candidates[0] if len(candidates) == 1 else ""
    wanted = Path(request.main).as_posix()
    if wanted not in {entry.path.replace(os.sep, "/") for entry in outcome.entries if not entry.is_folder}:
        raise InputError(f"--main {request.main}: {request.origin} has no such file")
    return wanted


def _facts(
    request: Request,
    place: Place,
    vendor: Vendor,
    table: ZooTable,
    outcome: ProjectOutcome,
    main: str,
    evidence: dict[str, Evidence],
) -> Facts:
    licences = _licences(outcome)
    licence = _content(outcome, licences[0]) if licences else b""
    port = evidence.get(PORT, Evidence())
    rows = compare(evidence.get(ORIGINAL, Evidence()), port, table.relative_error, table.absolute_error)
    return Facts(
        place,
        vendor,
        table,
        main=main,
        arguments=request.arguments,
        source=request.source,
        commit=request.commit,
        dataset=request.dataset,
        licence=licence_name(licence.decode("utf-8", "replace")),
        licence_file=licences[0] if licences else "",
        rows=rows,
        simulated=bool(port.simulated),
    )


def _licences(outcome: ProjectOutcome) -> list[str]:
    own = [entry.path for entry in outcome.entries if not (entry.is_folder or entry.is_link or entry.problem)]
    return licence_files([*own, *outcome.added])


def _content(outcome: ProjectOutcome, name: str) -> bytes:
    added = outcome.added.get(name)
    return added.data if added else read_file(os.path.join(outcome.folder, name))


def _carry_licence(outcome: ProjectOutcome, origin: Path) -> None:
    """Of a project that is a part of a repository, the licence lies above it."""
    folder = origin.resolve()
    if _licences(outcome) or not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return
    while not (folder / ".git").exists():
        folder = folder.parent
        names = licence_files(sorted(path.name for path in folder.iterdir() if path.is_file()))
        if names:
            outcome.add(names[0], AddedFile(read_file(str(folder / names[0]))))
            return


def _keep_readme(outcome: ProjectOutcome) -> None:
    """The original's README stays, under another name: the one of the delivery has its place."""
    ours = {name.casefold() for name in READMES.values()}
    kept = [entry for entry in outcome.entries if entry.path.casefold() in ours and not entry.is_folder]
    for entry in kept:
        if not entry.is_link and not entry.problem:
            data = read_file(os.path.join(outcome.folder, entry.path))
            outcome.add(_KEPT_README, AddedFile(data))
        outcome.entries.remove(entry)
    outcome.outcomes = [each for each in outcome.outcomes if each.path.casefold() not in ours]


def _add_files(outcome: ProjectOutcome, facts: Facts, evidence: dict[str, Evidence]) -> None:
    for language, name in READMES.items():
        text = readme(facts, "zh" if language == "zh" else "en")
        outcome.added[name] = AddedFile(text.encode("utf-8", "replace"))
    taken = {entry.path for entry in outcome.entries}
    if REQUIREMENTS not in taken:
        outcome.added[REQUIREMENTS] = AddedFile(_requirements(outcome).encode())
    if TEST_SCRIPT.replace("/", os.sep) not in taken:
        outcome.added[TEST_SCRIPT] = AddedFile(_script(facts).encode(), executable=True)
    for side, found in evidence.items():
        outcome.add(f"{EVIDENCE}/{side}.json", AddedFile(found.to_json().encode()))


def _script(facts: Facts) -> str:
    main = shlex.quote(facts.main) if facts.main else f"'{PLACEHOLDER}: the script that trains>'"
    arguments = facts.arguments or f"'{PLACEHOLDER}: arguments that make the training short>'"
    return _SCRIPT.format(main=main, arguments=arguments)


def _requirements(outcome: ProjectOutcome) -> str:
    """What the project imports and is installed here, with the version that is here; torch comes from the vendor."""
    own = {Path(entry.path).parts[0].removesuffix(".py") for entry in outcome.entries}
    packages = metadata.packages_distributions()
    lines = set()
    for name in sorted(_imported(outcome) - own - set(sys.stdlib_module_names)):
        for package in packages.get(name, ()):
            if package.lower() not in ("torch", "torchvision", "torchaudio", "torchferry"):
                lines.add(f"{package}=={metadata.version(package).partition('+')[0]}")
    return "".join(f"{line}\n" for line in sorted(lines))


def _imported(outcome: ProjectOutcome) -> set[str]:
    found: set[str] = set()
    for entry in outcome.entries:
        if entry.is_folder or entry.is_link or entry.problem or not entry.path.endswith(".py"):
            continue
        try:
            tree = ast.parse(read_file(os.path.join(outcome.folder, entry.path)))
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found
