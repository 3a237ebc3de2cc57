"""Leaders of partitions and coordinators of transactions change: a cluster of brokers, of which some are killed."""

import threading
import time

import pytest
from confluent_kafka import Producer

from ekorn.common import RestartStrategies
from ekorn.testing.kits import SinkJob
from ekorn.testing.local_run import on_local_engine
from tests.connectors.kafka.with_broker.sinks import writing
from tests.servers.kafka.cluster import running_cluster
from tests.servers.kafka.topics import new_topic, values, wait_until_nothing_is_open
from tests.spark.kafka_tally import build, record, verify

PARTITIONS = 3  # of every topic: each broker leads one of them
COORDINATORS = "__transaction_state"  # the topic whose leader coordinates the transactions
PER_ROUND = 1_500


@pytest.fixture(scope="module")
def cluster():
    with running_cluster() as started:
        yield started


class Writer(threading.Thread):
    """Writes numbered records over a while. A broker that dies costs it a wait, never a record."""

    def __init__(self, cluster, topic, numbers):
        super().__init__()
        self._producer = Producer({"bootstrap.servers": cluster.servers, "enable.idempotence": True, "log_level": 0})
        self._topic = topic
        self._numbers = numbers
        self.left = None

    def run(self):
        for number in self._numbers:
            self._producer.produce(self._topic, record(number), partition=number % PARTITIONS)
            if number % 20 == 0:
                self._producer.flush()
                time.sleep(0.02)
        self.left = self._producer.flush(60)


def wait_until(client, condition):
    deadline = time.monotonic() + 90
    while not condition(client.get_progress()):
        assert not client.get_job_status().result().is_globally_terminal_state(), "the job has ended"
        assert time.monotonic() < deadline, client.get_progress()
        time.sleep(0.02)


@pytest.mark.parametrize("rounds", [1, pytest.param(6, marks=pytest.mark.soak)])
def test_leaders_and_coordinators_that_are_killed_change_no_output_and_restart_no_job(cluster, tmp_path, rounds):
    topics = (new_topic(cluster, PARTITIONS), new_topic(cluster, PARTITIONS))
    records = PER_ROUND * rounds
    env = build(
        cluster.servers, topics, records, tmp_path,
        parallelism=2, restore=None, secrets={}, settings={}, partitions=PARTITIONS,
    )  # fmt: skip
    env.set_restart_strategy(RestartStrategies.no_restart())
    with on_local_engine():
        client = env.execute_async("leaders")
    for number in range(rounds):
        writer = Writer(cluster, topics[0], range(number * PER_ROUND, (number + 1) * PER_ROUND))
        writer.start()
        wait_until(client, lambda p, n=number: p.records_read > n * PER_ROUND + 200 and p.checkpoints_completed > n)
        victim = cluster.leader(COORDINATORS) if number % 2 == 0 else cluster.leader(topics[0], number % PARTITIONS)
        victim.kill()
        writer.join()
        assert writer.left == 0
        if number + 1 < rounds:
            wait_until(client, lambda p, n=number: p.records_read == (n + 1) * PER_ROUND)
        victim.start()
        cluster.wait_until_replicated(*topics, COORDINATORS)
    client.get_job_execution_result().result()
    wait_until_nothing_is_open(cluster.servers, topics[1])
    assert verify(records, values(cluster, topics[1])) == []


def test_a_first_server_that_stands_still_keeps_no_transaction_from_its_commit(cluster):
    topic = new_topic(cluster)
    job = SinkJob(writing(cluster, topic, socket_timeout_ms="1000").build(), 1)
    job.write(0, "prepared")
    job.begin_checkpoint()
    with cluster.brokers[0].paused():
        job.complete_checkpoint()
    assert values(cluster, topic) == ["prepared"]


def test_a_job_restarts_while_a_dead_broker_is_still_named_by_the_others(cluster):
    topic = new_topic(cluster)
    job = SinkJob(writing(cluster, topic).build(), 1)
    job.write(0, "covered")
    job.checkpoint()
    job.write(0, "open")
    job.subtasks[0].writer.end_epoch()
    coordinator = cluster.leader(COORDINATORS)
    victim = next(broker for broker in cluster.brokers if broker is not coordinator)
    job.crash(1)
    victim.kill()
    try:
        job.subtasks[0].writer.end_epoch()  # asks all brokers for open transactions
        job.write(0, "after")
        job.finish()
        assert values(cluster, topic) == ["covered", "after"]
    finally:
        victim.start()
