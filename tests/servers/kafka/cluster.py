"""A cluster of three Kafka brokers on loopback, for tests in which leaders change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from confluent_kafka.admin import AdminClient

from ekorn.testing.kafka.broker import new_cluster_id
from ekorn.testing.kafka.jars import download
from tests.servers.kafka.broker import Broker, own_folder, ports_of_brokers
from tests.servers.kafka.certificates import write_certificates
from tests.servers.kafka.jars import FOLDER

T = TypeVar("T")

_WAIT_S = 60.0


class Cluster:
    """Three running brokers that elect their controller. Topics have two replicas, and outlive any one broker."""

    replicas = 2

    def __init__(self, folder: Path, libraries: Path) -> None:
        ports, cluster = ports_of_brokers(3), new_cluster_id()
        folders = [folder / f"broker-{number}" for number in range(len(ports))]
        for each in folders:
            each.mkdir()
            write_certificates(each)
        with ThreadPoolExecutor(len(ports)) as pool:
            made = [pool.submit(Broker, folders[n], libraries, cluster, ports, n) for n in range(len(ports))]
        self.brokers = [each.result() for each in made]
        self.servers = ",".join(broker.servers for broker in self.brokers)
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_until_it_answers()

    def leader(self, topic: str, partition: int = 0) -> Broker:
        """Return the broker that leads a partition. Wait for it while there is none."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

        def found() -> Broker | None:
            node = admin.list_topics(topic, timeout=60).topics[topic].partitions[partition].leader
            return self.brokers[node - 1] if node > 0 else None

        return self._wait_for(found)

    def wait_until_replicated(self, *topics: str) -> None:
        """Wait until all replicas of topics are in sync, so that any one broker may die."""
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

        def in_sync() -> bool:
            found = [admin.list_topics(topic, timeout=60).topics[topic].partitions for topic in topics]
            return all(len(each.isrs) == self.replicas for partitions in found for each in partitions.values())

        self._wait_for(in_sync)

    @staticmethod
    def _wait_for(look: Callable[[], T | None]) -> T:
        deadline = time.monotonic() + _WAIT_S
        while not (found := look()):
            assert time.monotonic() < deadline, "the brokers elect no leader, or do not replicate"
            time.sleep(0.1)
        return found

    def kill(self) -> None:
        for broker in self.brokers:
            broker.kill()


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Run a cluster in a folder of its own; remove both at the end."""
    with own_folder() as folder:
        cluster = Cluster(folder, download(FOLDER))
        try:
            yield cluster
        finally:
            cluster.kill()
