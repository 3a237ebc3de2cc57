"""Keys at the bounds of what may be sent, and queries whose keys, jobs and slots are not as they should be."""

from __future__ import annotations

import datetime
import decimal
import struct
from concurrent.futures import Future
from typing import Any

import pytest

from ekorn.driver.queries.plain_values import DEEPEST, MOST_ITEMS, decode_list, encode_list
from ekorn.driver.queries.query_routing import PendingValues, _key_groups
from ekorn.driver.queries.query_server import QueryServer
from ekorn.driver.queries.query_wire import encode_query
from ekorn.errors import QueryRefused, UnknownJob
from ekorn.keygroups import key_group


def nested(levels: int) -> Any:
    """A key that is not packed, in so many lists."""
    found: Any = "x"
    for _ in range(levels):
        found = [found, None]
    return found


FITS = {
    "levels": nested(DEEPEST),
    "a set": frozenset(range(256)),
    "a number": 1 << (8 * 1_023 - 1),
    "a negative number": -(1 << (8 * 1_024 - 2)),
    "a decimal": decimal.Decimal("1." + "5" * 1_022),
}
TOO_MUCH = {
    "levels": (nested(DEEPEST + 1), f"more than {DEEPEST} levels"),
    "a set": (frozenset(range(257)), "a frozenset of 257 items; at most 256"),
    "a number": (1 << (8 * 1_024), "an int of 1025 bytes; at most 1024"),
    "a decimal": (decimal.Decimal("1." + "5" * 1_023), "a Decimal of 1025 characters; at most 1024"),
}


@pytest.mark.parametrize("key", FITS.values(), ids=FITS)
def test_a_key_at_a_bound_arrives(key: Any) -> None:
    assert decode_list(encode_list([key, None])) == [key, None]


@pytest.mark.parametrize(("key", "reason"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_a_key_beyond_a_bound_is_refused_by_the_client(key: Any, reason: str) -> None:
    with pytest.raises(QueryRefused, match=reason):
        encode_list([key, None])


def test_a_message_has_as_many_values_as_it_may_and_no_more() -> None:
    for most in ([0] * MOST_ITEMS, [(0, "a")] * (MOST_ITEMS // 2), [None] * MOST_ITEMS):
        assert decode_list(encode_list(list(most))) == most
    for many in ([0] * (MOST_ITEMS + 1), [(0, "a")] * (MOST_ITEMS // 2 + 1), [None, *[0] * MOST_ITEMS]):
        with pytest.raises(QueryRefused, match=f"a query has {len(many)}|a query has {2 * len(many)}"):
            encode_list(list(many))


def test_the_driver_counts_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    place = "ekorn.driver.queries.plain_values"
    too_deep, too_many = encode_list([nested(8)]), encode_list([0] * 9)
    large_set, number = encode_list([frozenset(range(9))]), encode_list([1 << 72, None])
    for name, bound, message, reason in (
        ("DEEPEST", 7, too_deep, "more than 7 levels"),
        ("MOST_ITEMS", 8, too_many, "9 values or more"),
        ("_LARGEST_SET", 8, large_set, "a frozenset of 9 items; the maximum is 8"),
        ("_LONGEST_NUMBER", 9, number, "a number of 10 bytes; the maximum is 9"),
    ):
        assert decode_list(message)
        with monkeypatch.context() as patched:
            patched.setattr(f"{place}.{name}", bound + 1)
            assert decode_list(message)
            patched.setattr(f"{place}.{name}", bound)
            with pytest.raises(QueryRefused, match=reason):
                decode_list(message)


@pytest.mark.parametrize("zone", [None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=-3), "ours")])
def test_times_arrive_with_their_zone_and_its_name(zone: Any) -> None:
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 6, zone, fold=1)
    for key in (moment, moment.timetz()):
        (found, _) = decode_list(encode_list([key, None]))
        assert found == key and (found.tzname(), found.fold) == (key.tzname(), 1)


class Zone(datetime.tzinfo):
    def utcoffset(self, _: Any) -> datetime.timedelta:
        return datetime.timedelta(hours=1)

    def dst(self, _: Any) -> None:
        return None

    def tzname(self, _: Any) -> str:
        return "Elsewhere"


def test_a_zone_with_rules_cannot_be_sent() -> None:
    with pytest.raises(QueryRefused, match="use one with a fixed offset, such as UTC"):
        encode_list([datetime.datetime(2026, 1, 2, tzinfo=Zone()), None])


def test_bytes_behind_the_end_and_parts_of_other_kinds_are_refused() -> None:
    with pytest.raises(QueryRefused, match="bytes follow its end"):
        decode_list(encode_list([1]) + b"x")
    with pytest.raises(QueryRefused, match="it has no list where b'\\?' stands"):
        decode_list(b"?" + struct.pack("<I", 0))
    with pytest.raises(QueryRefused, match="it has no value where b'\\?' stands"):
        decode_list(b"*" + struct.pack("<I", 1) + b"?")
    with pytest.raises(QueryRefused, match="a list of tuples has no columns"):
        decode_list(b"t" + struct.pack("<I", 0))


# --------------------------------------------------------------------------------------------------------- routing


class Odd:
    """A key without a form of its own."""


def test_the_key_groups_of_keys_are_those_of_a_stream() -> None:
    for keys in ([1, 2, 3], ["a", "b"], [1, "a", (2, "b")], []):
        assert _key_groups(keys, 128) == [key_group(key, 128) for key in keys]


@pytest.mark.parametrize("key", [Odd(), [1, Odd()], {1: 2}])
def test_what_no_stream_has_as_a_key_is_refused(key: Any) -> None:
    with pytest.raises(QueryRefused, match="cannot be a key: "):
        _key_groups([1, key], 128)


def server_of(*jobs: str) -> QueryServer:
    server = QueryServer.__new__(QueryServer)  # without its port
    server._jobs = dict.fromkeys(jobs)  # type: ignore[assignment]
    return server


@pytest.mark.parametrize(("jobs", "known"), [((), "none"), (("b", "a"), "a, b")])
def test_an_unknown_job_is_told_which_there_are(jobs: tuple[str, ...], known: str) -> None:
    answer = server_of(*jobs)._begin(encode_query("c", "state", [1], "live"))
    with pytest.raises(UnknownJob, match=known):
        answer.raise_error()  # type: ignore[union-attr]


def test_a_server_says_whether_jobs_are_left() -> None:
    server = server_of("a", "b")
    assert [server.remove(job) for job in ("a", "a", "b", "b")] == [True, True, False, False]


def slots(*answers: list[bytes | None]) -> list[tuple[list[int], Future[list[bytes | None]]]]:
    """Slots that have not answered yet; each is asked for as many keys as it will answer."""
    found, start = [], 0
    for values in answers:
        found.append((list(range(start, start + len(values))), Future[list[bytes | None]]()))
        start += len(values)
    return found


def test_values_are_put_where_their_keys_are() -> None:
    asked = [([2, 0], Future[list[bytes | None]]()), ([1], Future[list[bytes | None]]())]
    pending, called = PendingValues("value", 4, asked), list[int]()
    pending.add_done_callback(lambda: called.append(1))
    assert not pending.is_done
    asked[1][1].set_result([b"one"])
    assert not pending.is_done
    asked[0][1].set_result([b"two", None])
    assert pending.is_done and called == [1, 1]
    found = pending.result()
    assert (found.kind, found.values) == ("value", [None, b"one", b"two", None])


def test_values_may_be_as_large_as_an_answer_and_no_larger() -> None:
    for most_bytes, fits in ((6, True), (5, False)):
        asked = slots([b"abc"], [b"def", None])
        pending = PendingValues("value", 3, asked, most_bytes)
        asked[0][1].set_result([b"abc"])
        asked[1][1].set_result([b"def", None])
        if fits:
            assert pending.result().values == [b"abc", b"def", None]
        else:
            with pytest.raises(QueryRefused, match="6 bytes"):
                pending.result()
            assert [found.result() for _, found in asked] == [[], []], "let go of at once"


def test_a_query_without_keys_is_answered_at_once() -> None:
    called: list[int] = []
    pending = PendingValues("value", 0, [])
    pending.add_done_callback(lambda: called.append(1))
    assert called == [1] and pending.is_done and pending.result().values == []
