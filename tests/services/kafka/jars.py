"""Downloads the jars of the Kafka broker from Maven Central, once per checkout, into `.services/kafka`.

`jars.txt` names each jar by its checksum and by its path in the repository.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

REPOSITORY = "https://repo1.maven.org/maven2/"
FOLDER = Path(__file__).parents[3] / ".services" / "kafka"
_LIST = Path(__file__).with_name("jars.txt")


class Jar(NamedTuple):
    """A jar by its SHA-256 and its path in a Maven repository."""

    sha256: str
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def jars() -> list[Jar]:
    return [Jar(*line.split()) for line in _LIST.read_text().splitlines()]


def download(folder: Path = FOLDER, repository: str = REPOSITORY) -> Path:
    """Download the jars that the folder lacks, and return the folder. Processes that start together wait in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [jar for jar in jars() if not (folder / jar.name).exists()]
        with ThreadPoolExecutor(8) as pool:
            for jar, problem in zip(
                missing, pool.map(lambda jar: _fetch(jar, folder, repository), missing), strict=True
            ):
                if problem:
                    raise RuntimeError(
                        f"the tests of Kafka need {repository}{jar.path}, but {problem}; connect this machine to Maven "
                        f"Central, or copy the jars of {_LIST} into {folder}"
                    )
    return folder


def _fetch(jar: Jar, folder: Path, repository: str) -> str | None:
    """Download one jar; return what went wrong, if anything did."""
    try:
        with urllib.request.urlopen(repository + jar.path, timeout=60) as answer:
            data = answer.read()
    except OSError as error:
        return str(error)
    found = hashlib.sha256(data).hexdigest()
    if found != jar.sha256:
        return f"its SHA-256 is {found}, not {jar.sha256}"
    part = folder / f"{jar.name}.part"
    part.write_bytes(data)
    os.replace(part, folder / jar.name)
    return None
