"""The download of Kafka's jars: a network that is away for a moment fails no test."""

import hashlib
import http.client
import io
import urllib.request

import pytest

from ekorn.errors import KafkaError
from ekorn.testing.kafka.jars import PAUSES_S, download, jars

JAR = b"a jar"


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """What the repository is asked for, and the pauses before, which take no time."""
    found = []
    monkeypatch.setattr("ekorn.testing.kafka.jars.sleep", found.append)
    return found


@pytest.fixture
def listed(tmp_path):
    (tmp_path / "list").write_text(f"{hashlib.sha256(JAR).hexdigest()} org/one.jar\n")
    return tmp_path / "list"


def test_a_machine_that_cannot_have_the_broker_says_so(tmp_path, seen, listed):
    with pytest.raises(KafkaError, match=r"cannot download .*one\.jar: .*copy the jars of"):
        download(tmp_path / "kafka", (tmp_path / "no-repository").as_uri() + "/", listed)
    assert seen == list(PAUSES_S)


def test_a_jar_with_another_checksum_is_not_taken(tmp_path):
    for jar in jars():
        path = tmp_path / "repository" / jar.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"something else")
    with pytest.raises(KafkaError, match="its SHA-256 is"):
        download(tmp_path / "kafka", (tmp_path / "repository").as_uri() + "/")
    assert not list((tmp_path / "kafka").glob("*.jar"))


def test_a_jar_that_cannot_be_had_at_first_is_asked_for_again(monkeypatch, tmp_path, seen, listed):
    failures = iter([OSError("no route to host"), http.client.IncompleteRead(b"a")])
    answers = iter([b"half of it", JAR])

    def urlopen(url, timeout):
        seen.append(url)
        for failure in failures:
            raise failure
        return io.BytesIO(next(answers))

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    folder = download(tmp_path / "jars", "https://maven/", listed)
    assert (folder / "one.jar").read_bytes() == JAR
    assert seen == [each for pause_s in PAUSES_S[:4] for each in (pause_s, "https://maven/org/one.jar")]
