"""Kafka and PostgreSQL beside a campaign: a schedule's topics and tables, their input over time, and their faults."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg
from confluent_kafka import KafkaError, Message, Producer

from tests.campaign.jobs import ALL_KINDS, verify
from tests.campaign.places import ENOUGH, Places
from tests.campaign.schedules import Act, Schedule
from tests.servers import postgres
from tests.servers.kafka.broker import Broker
from tests.servers.kafka.topics import add_partitions, create_topic, wait_until_nothing_is_open
from tests.servers.postgres import PostgresServer

PAUSE_S = 2.5  # of a broker
OUTPUT_PARTITIONS = 2
FOREVER = {"retention.ms": "-1"}  # the time of a number is the number: long ago
LOOK_S = 0.5  # between two looks at the output of a job that has no end
STEP_S = 0.05


@dataclass(frozen=True)
class Services:
    """The services that run; schedules use them one after the other."""

    kafka: Broker | None = None
    postgres: PostgresServer | None = None


class SharedServices:
    """The topics and tables of one schedule."""

    def __init__(self, schedule: Schedule, folder: Path, services: Services, per_second: float) -> None:
        self._schedule = schedule
        self._folder = folder
        self._services = services
        self._per_second = per_second
        self._open = ExitStack()
        self._feeder: Feeder | None = None
        self._next_look_s = 0.0
        self.places = Places(output=schedule.sink)
        if services.postgres is not None and "postgres" in schedule.services:
            self._make_tables(services.postgres)
        if services.kafka is not None and "kafka" in schedule.services:
            self._make_topics(services.kafka)
        self.places.write(folder)

    def _make_tables(self, server: PostgresServer) -> None:
        database = self._open.enter_context(server.database())
        with server.connect(database) as connection:
            connection.execute("CREATE TABLE lines (stream TEXT, line TEXT)")
            connection.execute("CREATE TABLE numbers (id BIGINT PRIMARY KEY)")
            if not self._schedule.grows:
                connection.execute(
                    "INSERT INTO numbers SELECT generate_series(0, %s::bigint)", (self._schedule.records - 1,)
                )
        url = f"{server.url(database)}?user={postgres.USER}&password={postgres.PASSWORD}"
        self.places = Places(output=self.places.output, database=url)
        if self._schedule.source == "table" and self._schedule.grows:
            self._feeder = Feeder(self._schedule.records, self._per_second, TableInput(server, database))

    def _make_topics(self, broker: Broker) -> None:
        self.places = Places(self.places.output, self.places.database, broker.servers, prefix=self._folder.name)
        if self._schedule.source == "topic":
            create_topic(broker, self.places.numbers, self._schedule.partitions)
            topic = TopicInput(broker, self.places.numbers, self._schedule.partitions)
            self._feeder = Feeder(self._schedule.records, self._per_second, topic)
        if self._schedule.sink == "topic":
            for name in ALL_KINDS[self._schedule.kind].expected(self._schedule.records):
                create_topic(broker, self.places.topic_of(name), OUTPUT_PARTITIONS, **FOREVER)

    def attend(self) -> None:
        """Begin to write the input when the job runs; order its end when its output is complete, if it has no other."""
        if self._feeder is None:
            return
        self._feeder.begin()
        if self._feeder.error is not None:
            raise self._feeder.error
        if not self._schedule.grows or not self._feeder.is_done or time.monotonic() < self._next_look_s:
            return
        self._next_look_s = time.monotonic() + LOOK_S
        if not (self._folder / ENOUGH).exists():
            found = verify(self._schedule.kind, self._schedule.records, self._folder / "out")
            if not found.lost:
                (self._folder / ENOUGH).touch()

    def perform(self, act: Act) -> bool:
        """Perform an act against a service; return whether it had an effect."""
        kafka, database = self._services.kafka, self._services.postgres
        match act.what:
            case "pause-broker":
                assert kafka is not None
                with kafka.paused():
                    time.sleep(PAUSE_S)
            case "restart-broker":
                assert kafka is not None
                kafka.kill()
                kafka.start()
            case "restart-database":
                assert database is not None
                database.stop()
                database.start()
            case "add-partition":
                assert self._feeder is not None and isinstance(self._feeder.input, TopicInput)
                return self._feeder.input.add_partition()
            case _:
                raise AssertionError(act.what)
        return True

    def settle(self) -> None:
        """Wait until the transactions of the finished job have ended."""
        if self._schedule.sink == "topic":
            for name in ALL_KINDS[self._schedule.kind].expected(self._schedule.records):
                wait_until_nothing_is_open(self.places.brokers, self.places.topic_of(name))

    def close(self) -> None:
        if self._feeder is not None:
            self._feeder.end()
        self._open.close()


class Feeder:
    """Writes the numbers to an input, over time, on a thread."""

    def __init__(self, records: int, per_second: float, into: TopicInput | TableInput) -> None:
        self.input = into
        self.is_done = False
        self.error: BaseException | None = None
        self._records = records
        self._per_second = per_second
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin, unless that was done."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._feed, daemon=True)
            self._thread.start()

    def _feed(self) -> None:
        try:
            self._write_all()
        except BaseException as error:  # raised where the campaign attends
            self.error = error

    def _write_all(self) -> None:
        step = max(1, int(self._per_second * STEP_S))
        for first in range(0, self._records, step):
            self.input.write(range(first, min(first + step, self._records)), self._over)
            if self._over.wait(STEP_S):
                return
        self.is_done = True

    def end(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()


class TopicInput:
    """A topic that the numbers go to, round its partitions."""

    def __init__(self, broker: Broker, topic: str, partitions: int) -> None:
        self._broker = broker
        self._topic = topic
        self._partitions = partitions
        # Each number is written once, however often the broker goes away.
        self._producer = Producer({"bootstrap.servers": broker.servers, "enable.idempotence": True, "log_level": 0})

    def write(self, numbers: range, over: threading.Event) -> None:
        for number in numbers:
            self._producer.produce(
                self._topic, str(number), partition=number % self._partitions, on_delivery=_must_be_delivered
            )
        while self._producer.flush(1.0) and not over.is_set():
            pass

    def add_partition(self) -> bool:
        add_partitions(self._broker, self._topic, self._partitions + 1)
        while (
            len(self._producer.list_topics(self._topic, timeout=60).topics[self._topic].partitions) == self._partitions
        ):
            time.sleep(0.02)
        self._partitions += 1
        return True

    def _known(self) -> int:
        return len(self._producer.list_topics(self._topic, timeout=60).topics[self._topic].partitions)


def _must_be_delivered(error: KafkaError | None, message: Message) -> None:
    assert error is None, f"the campaign cannot write its input: {error}"


class TableInput:
    """A table that the numbers go to."""

    def __init__(self, server: PostgresServer, database: str) -> None:
        self._server = server
        self._database = database

    def write(self, numbers: range, over: threading.Event) -> None:
        while not over.is_set():
            try:
                with self._server.connect(self._database) as connection:
                    connection.execute(
                        "INSERT INTO numbers SELECT generate_series(%s::bigint, %s::bigint) ON CONFLICT DO NOTHING",
                        (numbers[0], numbers[-1]),
                    )
                return
            except psycopg.OperationalError:  # the server restarts; rows that it has are not inserted again
                over.wait(STEP_S)
