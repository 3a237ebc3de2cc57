"""Downloads jars from Maven Central, each once.

A list names jars by checksum and by path in the repository. `jars.txt` has those of Kafka's broker.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import NamedTuple

from ekorn.errors import KafkaError

REPOSITORY = "https://repo1.maven.org/maven2/"
BROKER = Path(__file__).with_name("jars.txt")
PAUSES_S = (0.0, 1.0, 5.0, 15.0, 30.0)  # before each attempt: the network of a machine may be away for a moment


class Jar(NamedTuple):
    """A jar by its SHA-256 and its path in a Maven repository."""

    sha256: str
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def jars(listed: Path = BROKER) -> list[Jar]:
    """Return the jars of a list."""
    return [Jar(*line.split()) for line in listed.read_text(encoding="utf-8").splitlines()]


def broker_version() -> str:
    """Return the version of Kafka whose broker is in the list."""
    (version,) = (found[1] for jar in jars() if (found := re.fullmatch(r"kafka-server-([\d.]+)\.jar", jar.name)))
    return version


def download(folder: Path, repository: str = REPOSITORY, listed: Path = BROKER) -> Path:
    """Download the jars that the folder lacks, and return the folder. Processes that start together wait in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [jar for jar in jars(listed) if not (folder / jar.name).exists()]
        with ThreadPoolExecutor(8) as pool:
            problems = pool.map(lambda jar: _fetch(jar, folder, repository), missing)
            for jar, problem in zip(missing, problems, strict=True):
                if problem:
                    raise KafkaError(
                        f"cannot download {repository}{jar.path}",
                        f"{problem}; connect this machine to Maven Central, or copy the jars of {listed} into {folder}",
                    )
    return folder


def _fetch(jar: Jar, folder: Path, repository: str) -> str | None:
    """Download one jar, again and again if need be; return what went wrong the last time, if it did."""
    problem = None
    for pause_s in PAUSES_S:
        sleep(pause_s)
        problem = _fetch_once(jar, folder, repository)
        if problem is None:
            return None
    return problem


def _fetch_once(jar: Jar, folder: Path, repository: str) -> str | None:
    try:
        with urllib.request.urlopen(repository + jar.path, timeout=60) as answer:
            data = answer.read()
    except (OSError, http.client.HTTPException) as error:  # the latter: the connection ended in the middle
        return str(error)
    found = hashlib.sha256(data).hexdigest()
    if found != jar.sha256:
        return f"its SHA-256 is {found}, not {jar.sha256}"
    part = folder / f"{jar.name}.part"
    part.write_bytes(data)
    os.replace(part, folder / jar.name)
    return None
