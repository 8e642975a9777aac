"""Fetches the real projects of the corpus: source archives from the package registry, unpacked once.

Only archives are downloaded and unpacked; nothing of a package is built, imported or run. pip's own finder
and session are used, because they honour this machine's pip configuration (index, proxy, certificates)
and, unlike `pip download`, do not run a package's set-up code to learn its metadata.

    python tests/corpus/fetch.py [names...]
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[1] / ".cache" / "corpus"
CHUNK = 1 << 20


class FetchError(Exception):
    """A project could not be fetched; the message says which one and why."""


@dataclass(frozen=True)
class Project:
    """One pinned source distribution."""

    name: str
    version: str
    sha256: str = ""

    @property
    def folder(self) -> Path:
        """Where the unpacked project lies."""
        return CACHE / f"{self.name}-{self.version}"

    @property
    def marker(self) -> Path:
        """The file that says the project was unpacked completely."""
        return self.folder / ".fetched"


def projects(names: list[str] | None = None) -> list[Project]:
    """The pinned projects, all or those named."""
    table = tomllib.loads((HERE / "projects.toml").read_text(encoding="utf-8"))
    known = {
        row["name"]: Project(row["name"], row["version"], row.get("sha256", "")) for row in table["project"]
    }
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise FetchError(f"not in projects.toml: {', '.join(unknown)} (known: {', '.join(known)})")
    return [known[name] for name in names] if names else list(known.values())


def fetch(project: Project, log: IO[str] | None = None) -> Path:
    """Downloads and unpacks one project unless that is already done; returns its folder."""
    if project.marker.exists():
        return project.folder
    archive = _download(project, log)
    part = project.folder.with_name(f"{project.folder.name}.part-{os.getpid()}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        unpack(archive, part)
        (part / ".fetched").write_text(archive.name + "\n", encoding="utf-8")
        shutil.rmtree(project.folder, ignore_errors=True)
        part.rename(project.folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return project.folder


def _download(project: Project, log: IO[str] | None) -> Path:
    folder = CACHE / "downloads"
    folder.mkdir(parents=True, exist_ok=True)
    session, link = _find(project)
    target = folder / str(link.filename)
    if target.exists() and _matches(target, project.sha256):
        return target
    part = target.with_name(f"{target.name}.part-{os.getpid()}")
    response = session.get(link.url_without_fragment, stream=True, headers={"Accept-Encoding": "identity"})
    response.raise_for_status()
    total = int(response.headers.get("Content-Length") or 0)
    done = 0
    with part.open("wb") as out:
        for block in response.iter_content(CHUNK):
            out.write(block)
            done += len(block)
            if log:
                log.write(f"\r{project.name} {project.version}: {done >> 10:,} of {total >> 10:,} KiB")
                log.flush()
    if log:
        log.write("\n")
    if not _matches(part, project.sha256):
        part.unlink()
        raise FetchError(f"{project.name} {project.version}: the archive's sha256 is not the pinned one")
    part.replace(target)
    return target


def _find(project: Project) -> tuple[Any, Any]:
    """pip's session, and the link of the pinned source archive."""
    try:
        from pip._internal.commands import create_command
    except ImportError as error:
        raise FetchError("pip is not installed in this environment") from error
    logging.getLogger("pip").setLevel(logging.ERROR)
    command: Any = create_command("download")
    options, _ = command.parse_args(["--no-deps", "--pre", "--no-binary", ":all:", project.name])
    session = command._build_session(options)
    finder = command._build_package_finder(options, session)
    for candidate in finder.find_all_candidates(project.name):
        if not candidate.link.is_wheel and str(candidate.version) == project.version:
            return session, candidate.link
    raise FetchError(f"{project.name} {project.version}: the registry has no source distribution of it")


def _matches(path: Path, sha256: str) -> bool:
    if not sha256:
        return True
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(CHUNK):
            digest.update(block)
    return digest.hexdigest() == sha256


def unpack(archive: Path, folder: Path) -> None:
    """Writes the plain files of an archive under `folder`, without its top folder; anything else is left out."""
    for name, stream in _members(archive):
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if name.startswith("/") or ".." in parts or any(":" in part for part in parts):
            raise FetchError(f"{archive.name}: unsafe path {name!r}")
        if len(parts) < 2:
            continue
        target = folder.joinpath(*parts[1:])
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            shutil.copyfileobj(stream, out)


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as box:
            for info in box.infolist():
                if not info.is_dir():
                    with box.open(info) as stream:
                        yield info.filename, stream
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            plain = tar.extractfile(member) if member.isfile() else None
            if plain:
                yield member.name, plain


def python_lines(folder: Path) -> tuple[int, int]:
    """How many Python files a folder holds, and how many lines they have."""
    files = list(folder.rglob("*.py"))
    return len(files), sum(path.read_bytes().count(b"\n") for path in files)


def main(argv: list[str] | None = None) -> int:
    """Fetches the named projects, or all, and prints their sizes."""
    parser = argparse.ArgumentParser(description="fetch the real projects of the corpus")
    parser.add_argument("names", nargs="*", help="names in projects.toml (default: all)")
    arguments = parser.parse_args(argv)
    failed = 0
    total = 0
    try:
        wanted = projects(arguments.names)
    except FetchError as error:
        print(error, file=sys.stderr)
        return 2
    for project in wanted:
        try:
            folder = fetch(project, sys.stderr if sys.stderr.isatty() else None)
        except (FetchError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
            print(f"{project.name} {project.version}: {error}", file=sys.stderr)
            failed += 1
            continue
        files, lines = python_lines(folder)
        total += lines
        print(f"{project.name:<28} {project.version:<10} {files:>6,} files {lines:>10,} lines", flush=True)
    print(f"{'total':<28} {'':<10} {'':>6}       {total:>10,} lines")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
