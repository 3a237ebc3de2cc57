import pytest

from tests.services.kafka.jars import download, jars


def test_a_machine_that_cannot_have_the_broker_says_so(tmp_path):
    with pytest.raises(RuntimeError, match=r"the tests of Kafka need .*jar, but .*copy the jars of"):
        download(tmp_path / "kafka", (tmp_path / "no-repository").as_uri() + "/")


def test_a_jar_with_another_checksum_is_not_taken(tmp_path):
    for jar in jars():
        path = tmp_path / "repository" / jar.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"something else")
    with pytest.raises(RuntimeError, match="its SHA-256 is"):
        download(tmp_path / "kafka", (tmp_path / "repository").as_uri() + "/")
    assert not list((tmp_path / "kafka").glob("*.jar"))
