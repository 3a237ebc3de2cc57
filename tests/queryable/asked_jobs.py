"""A job whose every state tells whether it is right, and a client that asks it without a pause."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from ekorn.common import Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.errors import StateNotServed, UnknownJob
from ekorn.queryable import QueryableStateClient
from tests import live_jobs

KEYS = 20
COUNT = ValueStateDescriptor("count", Types.TUPLE([Types.LONG(), Types.LONG()]))
COUNT.set_queryable("count")
RECENT = ListStateDescriptor("recent", Types.LONG())
RECENT.set_queryable("recent")


class Count(KeyedProcessFunction):
    """Keeps (count, last number) and the last three numbers of each key. The numbers of a key are `KEYS` apart."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(COUNT)
        self.recent = runtime_context.get_list_state(RECENT)

    def process_element(self, value, ctx):
        count, _ = self.count.value() or (0, 0)
        self.count.update((count + 1, value))
        self.recent.update([*self.recent.get(), value][-3:])
        yield value


def build(
    records: int, per_second: float, folder: Path, *, parallelism: int, restore: str | None = None, **keys: Any
) -> StreamExecutionEnvironment:
    """Draw the job. It writes nothing."""
    keys = {"queryable_state__enable": "true", "queryable_state__proxy__ports": "0"} | keys
    if restore is not None:
        keys["execution__state_recovery__path"] = restore
    env = live_jobs.environment(folder, parallelism=parallelism, interval_ms=100, restarts=20, **keys)
    env.set_max_parallelism(16)
    counted = live_jobs.generated(env, records, per_second).key_by(lambda n: n % KEYS, Types.LONG()).process(Count())
    counted.uid("count").filter(lambda value: False).uid("nothing").print()
    return env


class Asking(threading.Thread):
    """Asks for the states of all keys until it is told to stop."""

    def __init__(self, client: QueryableStateClient, job_id: Any) -> None:
        super().__init__(daemon=True)
        self._client, self._job_id = client, job_id
        self._ended = threading.Event()
        self.all_known = threading.Event()  # every key has been answered
        self.must_be_known = False  # from now on no key may be unknown
        self.answers = self.refusals = 0
        self.wrong: list[Any] = []

    def run(self) -> None:
        while not self._ended.is_set():
            must_be_known = self.must_be_known
            try:
                counts = self._client.get_kv_states(self._job_id, "count", range(KEYS), Types.LONG(), COUNT).result(60)
                recent = self._client.get_kv_states(self._job_id, "recent", range(KEYS), Types.LONG(), RECENT).result(
                    60
                )
            except (StateNotServed, UnknownJob):
                self.refusals += 1
                self._ended.wait(0.01)  # in one process with the driver, which is to start the job meanwhile
                continue
            except Exception as error:
                self.wrong.append(error)
                return
            self.answers += 1
            for key in range(KEYS):
                self._check(key, counts[key], recent[key], must_be_known)
            if None not in counts:
                self.all_known.set()

    def _all(self, name: str, descriptor: Any) -> list[Any]:
        return self._client.get_kv_states(self._job_id, name, range(KEYS), Types.LONG(), descriptor).result(60)

    def _check(self, key: int, count: Any, recent: Any, must_be_known: bool) -> None:
        if count is not None:
            number, last = count.value()
            if last != key + (number - 1) * KEYS:
                self.wrong.append((key, number, last))
        if recent is not None:
            found = list(recent.get())
            if found != [found[0] + n * KEYS for n in range(len(found))] or found[0] % KEYS != key:
                self.wrong.append((key, found))
        if must_be_known and (count is None or recent is None):
            self.wrong.append((key, "a key that a checkpoint has is unknown"))

    def stop(self) -> None:
        self._ended.set()
        self.join(90)
