"""A job whose slots are on another host: what passes over the network is encrypted, unless the user says otherwise."""

from __future__ import annotations

import os
from typing import Literal

import pytest

from ekorn.config.settings.deployment_settings import LinkSettings
from ekorn.engine.slots.link_certificate import certificate_for
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.testing.process_engine import process_engine
from tests.live_jobs import engines, environment, until
from tests.reliability.other_host import HERE, OtherHost, other_host  # noqa: F401
from tests.sniffer import sniffing


@pytest.mark.parametrize(("encryption", "visible"), [("auto", False), ("off", True)])
def test_records_and_program_are_visible_on_the_network_only_with_encryption_off(
    encryption: Literal["auto", "off"],
    visible: bool,
    other_host: OtherHost,  # noqa: F811
) -> None:
    records, program = (f"canary-{what}-{os.urandom(8).hex()}" for what in ("records", "program"))
    certificate = certificate_for(LinkSettings(encryption), HERE)
    pool = RegisteringSlotPool(2, HERE, other_host.launch, Heartbeat(), certificate=certificate)
    env = environment(parallelism=2)
    numbers = env.from_collection([f"{records}-{n}" for n in range(500)])
    lengths = numbers.key_by(lambda text: text).map(lambda text: (text.rpartition("-")[2], len(program)))
    with (
        sniffing(other_host.interface, records.encode(), program.encode()) as sniffer,
        engines(lambda graph: process_engine(graph, pool=pool)),
    ):
        with lengths.execute_and_collect() as results:
            assert sorted(results) == sorted((str(n), len(program)) for n in range(500))
        if visible:
            until(lambda: all(sniffer.seen.values()))
        else:
            until(lambda: sniffer.packets > 20)
            assert list(sniffer.seen.values()) == [0, 0]
