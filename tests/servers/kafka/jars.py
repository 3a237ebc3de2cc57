"""Downloads jars of Kafka from Maven Central, once per checkout, into `.services`.

`jars.txt` names the jars of the broker by checksum and by path in the repository, `spark_jars.txt` those by which Spark
reads and writes Kafka. The latter are of the newest versions that Maven Central has; they work with Spark 4.3.
"""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import NamedTuple

REPOSITORY = "https://repo1.maven.org/maven2/"
FOLDER = Path(__file__).parents[3] / ".services" / "kafka"
SPARK_FOLDER = FOLDER.with_name("spark-kafka")
_LIST = Path(__file__).with_name("jars.txt")
SPARK_LIST = _LIST.with_name("spark_jars.txt")
PAUSES_S = (0.0, 1.0, 5.0, 15.0, 30.0)  # before each attempt: the network of a machine may be away for a moment


class Jar(NamedTuple):
    """A jar by its SHA-256 and its path in a Maven repository."""

    sha256: str
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def jars(listed: Path = _LIST) -> list[Jar]:
    return [Jar(*line.split()) for line in listed.read_text().splitlines()]


def download(folder: Path = FOLDER, repository: str = REPOSITORY, listed: Path = _LIST) -> Path:
    """Download the jars that the folder lacks, and return the folder. Processes that start together wait in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [jar for jar in jars(listed) if not (folder / jar.name).exists()]
        with ThreadPoolExecutor(8) as pool:
            for jar, problem in zip(
                missing, pool.map(lambda jar: _fetch(jar, folder, repository), missing), strict=True
            ):
                if problem:
                    raise RuntimeError(
                        f"the tests of Kafka need {repository}{jar.path}, but {problem}; connect this machine to Maven "
                        f"Central, or copy the jars of {listed} into {folder}"
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
