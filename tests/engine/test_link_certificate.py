"""Whether the links of a job are encrypted: the user's wish, the driver's address, what can make certificates."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.config.settings.deployment_settings import LinkSettings
from ekorn.config.settings.fields import read_settings
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.engine.slots.link_certificate import certificate_for, made_by_command, made_by_package
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.spark.driver_side.cluster import encrypts_its_own
from ekorn.errors import ConfigurationError, DeploymentError
from ekorn.graph.job_graph import JobGraph
from ekorn.links.encryption import CalledSide, EncryptedAddress
from ekorn.testing.process_engine import on_process_engine, process_engine
from ekorn.testing.slot_processes import slot_processes
from tests.live_jobs import Held, engines, environment, expected_tally, generated, tallied

ELSEWHERE = "192.0.2.7"


def certificate_file(folder: Path, mode: int = 0o600) -> str:
    made = made_by_package()
    assert made is not None
    path = folder / "ekorn.pem"
    path.write_bytes(made.pem)
    os.chmod(path, mode)
    return str(path)


def test_on_one_machine_links_stay_plain_unless_encryption_is_required() -> None:
    for host in ("127.0.0.1", "127.0.1.1", "::1"):
        assert certificate_for(LinkSettings(), host) is None
        assert certificate_for(LinkSettings("required"), host) is not None


def test_between_hosts_links_are_encrypted_unless_that_is_turned_off() -> None:
    assert certificate_for(LinkSettings(), ELSEWHERE) is not None
    assert certificate_for(LinkSettings("off"), ELSEWHERE) is None


@pytest.mark.parametrize("make", [made_by_package, made_by_command])
def test_every_job_has_a_certificate_of_its_own(make) -> None:
    one, two = make(), make()
    CalledSide(one)
    assert one.fingerprint != two.fingerprint


def test_the_first_maker_that_can_makes_the_certificate() -> None:
    made = certificate_for(LinkSettings(), ELSEWHERE, makers=(lambda: None, made_by_command))
    assert made is not None and b"PRIVATE KEY" in made.pem


@pytest.mark.parametrize(("wish", "host"), [("auto", ELSEWHERE), ("required", "127.0.0.1")])
def test_without_a_certificate_the_job_is_refused_and_the_message_says_what_to_do(wish, host: str) -> None:
    with pytest.raises(DeploymentError) as raised:
        certificate_for(LinkSettings(wish), host, makers=(lambda: None, lambda: None))
    for said in (
        "ekorn[tls]",
        "openssl req -x509",
        "ekorn.links.certificate-file",
        "ekorn.links.encryption: off",
        host,
    ):
        assert said in str(raised.value)


def test_the_users_certificate_is_used_where_links_are_encrypted(tmp_path: Path) -> None:
    path = certificate_file(tmp_path)
    made = certificate_for(LinkSettings("auto", path), ELSEWHERE, makers=())
    assert made is not None and made.pem == Path(path).read_bytes()
    assert certificate_for(LinkSettings("auto", path), "127.0.0.1", makers=()) is None


def test_a_certificate_file_that_others_can_read_or_that_holds_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ekorn.links.certificate-file.*chmod 600"):
        certificate_for(LinkSettings("required", certificate_file(tmp_path, 0o644)), ELSEWHERE)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        certificate_for(LinkSettings("required", str(tmp_path / "missing")), ELSEWHERE)
    path = certificate_file(tmp_path)
    Path(path).write_text("nothing")
    with pytest.raises(DeploymentError, match="PEM"):
        certificate_for(LinkSettings("required", path), ELSEWHERE)


def test_the_options_are_read_and_a_wrong_wish_is_refused() -> None:
    configuration = Configuration()
    assert read_settings(LinkSettings, configuration) == LinkSettings("auto", None)
    configuration.set_string("ekorn.links.encryption", "required")
    configuration.set_string("ekorn.links.certificate-file", "/a.pem")
    assert read_settings(LinkSettings, configuration) == LinkSettings("required", "/a.pem")
    configuration.set_string("ekorn.links.encryption", "sometimes")
    with pytest.raises(ConfigurationError, match=r"ekorn\.links\.encryption"):
        read_settings(LinkSettings, configuration)


def test_it_is_known_whether_spark_encrypts_its_own_connections() -> None:
    assert not encrypts_its_own({})
    assert not encrypts_its_own({"spark.network.crypto.enabled": "false"})
    assert encrypts_its_own({"spark.network.crypto.enabled": "true"})
    assert encrypts_its_own({"spark.ssl.rpc.enabled": "TRUE"})


@pytest.mark.heavy
def test_a_job_runs_over_encrypted_links_alone_and_survives_the_loss_of_a_slot(tmp_path: Path) -> None:
    env = environment(tmp_path, parallelism=2, restarts=3)
    held = Held(tmp_path, 600)
    stream = tallied(generated(env, 3_000, held), 7)
    rows = []

    def encrypted(graph: JobGraph) -> EpochSlotEngine:
        return process_engine(graph, slot_processes(graph.slot_count, links=LinkSettings("required"), registering=True))

    with engines(encrypted) as made, stream.execute_and_collect() as results:
        for row in results:
            rows.append(row)
            if len(rows) == 500:
                pool = made[0].pool
                assert isinstance(pool, RegisteringSlotPool)
                addresses = [pool.address, *(slot.address for slot in pool.slots)]
                assert all(isinstance(address, EncryptedAddress) for address in addresses)
                os.kill(made[0].slot_pids[0], signal.SIGKILL)
                held.let_go()
    assert sorted(rows) == sorted(expected_tally(3_000, 7))


def test_the_wish_of_a_program_reaches_its_links(tmp_path: Path) -> None:
    path = tmp_path / "open.pem"
    path.write_text("nothing")
    os.chmod(path, 0o644)
    refused = environment(tmp_path, ekorn__links__encryption="required", ekorn__links__certificate_file=str(path))
    refused.from_collection([1]).print()
    with on_process_engine(registering=True), pytest.raises(ConfigurationError, match="chmod 600"):
        refused.execute()
