"""Records on their way into a shuffle by key."""

from typing import Any

from ekorn.batch.plan.record_keys import FieldKeys
from ekorn.batch.tasks.exits import KeyedExit


def test_a_key_keeps_its_partition_when_the_keys_become_too_many_to_be_remembered():
    leaving = KeyedExit("by key", FieldKeys(((0,),)), 3)
    leaving.begin()
    chunks: list[list[Any]] = [
        [(f"key-{n}", n) for n in range(first, first + 10_000)] for first in range(0, 120_000, 10_000)
    ]
    chunks.append([*((n, n) for n in range(5)), ("key-7", -1)])  # not all are texts

    def distributed(chunk: list[Any]) -> list[list[Any]]:
        buckets: list[list[Any]] = [[], [], []]
        leaving.distribute(chunk, buckets)
        return buckets

    before = [distributed(chunk) for chunk in chunks]
    after = [distributed(chunk) for chunk in chunks]
    assert before == after
    assert [sum(map(len, buckets)) for buckets in after] == [len(chunk) for chunk in chunks]
