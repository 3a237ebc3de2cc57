"""Programs on their way to the service: a script with the modules beside it that it imports, in one archive.

The archive of the same files is the same bytes, so its digest names the program. The service checks the digest, unpacks
nothing outside of the folder that it chose, and refuses links and archives that are too large.
"""

from __future__ import annotations

import ast
import hashlib
import io
import os
import shutil
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ekorn.errors import ConfigurationError

__all__ = ["Bundle", "digest_of", "make_bundle", "unpack"]

_MOST_FILES = 10_000
_SKIPPED = {"__pycache__"}


@dataclass(frozen=True)
class Bundle:
    """A packed program.

    Attributes:
        script: The name of the script in the archive.
        data: The archive.
        names: The files in it.
    """

    script: str
    data: bytes
    names: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the archive, in hex digits."""
        return hashlib.sha256(self.data).hexdigest()


def make_bundle(script: str, more: Iterable[str] = ()) -> Bundle:
    """Pack a script, the modules and packages beside it that it imports, and further files.

    Args:
        script: The path of the script.
        more: Files and folders to pack too, such as modules that are imported by a computed name.

    Raises:
        ConfigurationError: There is no such file.
    """
    path = Path(script)
    if not path.is_file():
        raise ConfigurationError(f"there is no program {script!r}")
    folder = path.resolve().parent
    found = {path.name: path.resolve()}
    for each in _imported(path.resolve(), folder):
        found[each.relative_to(folder).as_posix()] = each
    for name in more:
        extra = Path(name)
        if not extra.exists():
            raise ConfigurationError(f"there is no file {name!r} to pack")
        for each in _files_below(extra.resolve()):
            inside = (
                each.relative_to(folder) if each.is_relative_to(folder) else each.relative_to(extra.resolve().parent)
            )
            found[inside.as_posix()] = each
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(found.items()):
            archive.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return Bundle(path.name, packed.getvalue(), tuple(sorted(found)))


def _imported(script: Path, folder: Path) -> Iterator[Path]:
    """Return the files beside a script that it imports, directly or through others."""
    seen: set[Path] = {script}
    waiting = [script]
    while waiting:
        for name in _names_in(waiting.pop()):
            module, package = folder / f"{name}.py", folder / name
            here = [module] if module.is_file() else list(_files_below(package)) if package.is_dir() else []
            for file in here:
                if file not in seen:
                    seen.add(file)
                    yield file
                    if file.suffix == ".py":
                        waiting.append(file)


def _names_in(file: Path) -> set[str]:
    """Return the top-level names of the modules that a file imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return set()  # a file with a syntax error; Python reports it when the program runs
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def _files_below(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    for above, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        yield from (Path(above) / name for name in sorted(files) if not name.startswith("."))


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hex digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def unpack(archive: Path, folder: Path, most_bytes: int) -> None:
    """Unpack a program.

    Args:
        archive: The archive.
        folder: A new folder.
        most_bytes: How much it may be when it is unpacked.

    Raises:
        ConfigurationError: The archive is damaged, too large, or holds names that lead elsewhere.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
            if len(entries) > _MOST_FILES or sum(entry.file_size for entry in entries) > most_bytes:
                raise ConfigurationError(f"the program is larger than {most_bytes} bytes (ekorn.service.bundle-size)")
            folder.mkdir(mode=0o700)
            for entry in entries:
                _unpack_one(opened, entry, folder)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ConfigurationError(f"the program is not an archive that can be unpacked: {error}") from error


def _unpack_one(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, folder: Path) -> None:
    name = PurePosixPath(entry.filename)
    is_plain = stat.S_IFMT(entry.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
    if name.is_absolute() or ".." in name.parts or not name.parts or not is_plain or "\\" in entry.filename:
        raise ConfigurationError(f"the program holds {entry.filename[:80]!r}, which is not a file below its folder")
    target = folder.joinpath(*name.parts)
    if entry.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(entry) as source, target.open("xb") as written:
        shutil.copyfileobj(source, written)  # reads no more than the header announces, and then checks the CRC
