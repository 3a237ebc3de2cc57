"""Nexmark's queries on streams of rows: a Python function for each record, as a program of PyFlink has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from benchmarks.nexmark.column_queries import PER_RANK, TEN_SECONDS, WINDOW_MS
from benchmarks.nexmark.joined import (
    AtTheEnd,
    BidWithAuction,
    FinalPrice,
    ItemOfSeller,
    MeanPrice,
    NewSeller,
    WinningBid,
)
from benchmarks.nexmark.streams import Events
from ekorn.common import Row, Time, Types
from ekorn.datastream import KeyedProcessFunction
from ekorn.datastream.columns import Count, Max, Min, Sum
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

EURO = Decimal("0.908")
CHANNEL_ID = re.compile("(?:&|^)channel_id=([^&]*)")
CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
_LONG, _TEXT = Types.LONG(), Types.STRING()


def q0(events: Events) -> Any:
    return events.bids("auction", "bidder", "price", "dateTime", "extra").map(tuple)


def q1(events: Events) -> Any:
    bids = events.bids("auction", "bidder", "price", "dateTime", "extra")
    return bids.map(lambda bid: (bid.auction, bid.bidder, EURO * bid.price, bid.dateTime, bid.extra))


def q2(events: Events) -> Any:
    return events.bids("auction", "price").filter(lambda bid: bid.auction % 123 == 0)


def q3(events: Events) -> Any:
    items = events.auctions("id", "seller", "category").filter(lambda item: item.category == 10)
    people = events.people("id", "name", "city", "state").filter(lambda person: person.state in ("OR", "ID", "CA"))
    return (
        items.connect(people).key_by(lambda item: item.seller, lambda person: person.id, _LONG).process(ItemOfSeller())
    )


def q4(events: Events) -> Any:
    auctions = events.auctions("id", "dateTime", "expires", "category")
    both = auctions.connect(events.bids("auction", "dateTime", "price"))
    final = both.key_by(lambda item: item.id, lambda bid: bid.auction, _LONG).process(FinalPrice())
    return final.key_by(lambda change: change[0], _LONG).process(MeanPrice())


def q5(events: Events) -> Any:
    windows = SlidingEventTimeWindows.of(TEN_SECONDS, Time.seconds(2))
    counts = events.bids("auction", "dateTime", timed=True).key_by("auction").window(windows).aggregate(num=Count())
    kept = Types.ROW_NAMED(["auction", "num", "window_end"], [_LONG] * 3)
    ended = counts.map(lambda row: Row(auction=row.auction, num=row.num, window_end=row.window_end), kept)
    return ended.key_by(lambda row: row.window_end, _LONG).process(AtTheEnd("num"))


def q7(events: Events) -> Any:
    bids = events.bids("auction", "price", "bidder", "dateTime", "extra", timed=True)
    return bids.key_by(lambda bid: _end(bid.dateTime), _LONG).process(AtTheEnd("price"))


def q8(events: Events) -> Any:
    windows = TumblingEventTimeWindows.of(TEN_SECONDS)
    people = events.people("id", "name", "dateTime", timed=True).key_by(["id", "name"]).window(windows)
    sellers = events.auctions("seller", "dateTime", timed=True).key_by("seller").window(windows)
    both = people.aggregate(count=Count()).connect(sellers.aggregate(count=Count()))
    keys = (lambda person: (person.id, person.window_end)), (lambda item: (item.seller, item.window_end))
    return both.key_by(*keys).process(NewSeller())


def q9(events: Events) -> Any:
    both = events.auctions().connect(events.bids("auction", "bidder", "price", "dateTime", "extra"))
    return both.key_by(lambda item: item.id, lambda bid: bid.auction, _LONG).process(WinningBid())


def q11(events: Events) -> Any:
    sessions = EventTimeSessionWindows.with_gap(TEN_SECONDS)
    return events.bids("bidder", "dateTime", timed=True).key_by("bidder").window(sessions).aggregate(bids=Count())


def q12(events: Events) -> Any:
    windows = TumblingProcessingTimeWindows.of(events.processing_window)
    return events.bids("bidder").key_by("bidder").window(windows).aggregate(bids=Count())


def q14(events: Events) -> Any:
    return events.bids("auction", "bidder", "price", "dateTime", "extra").flat_map(_calculated)


def _calculated(bid: Any) -> Iterator[Any]:
    euro = EURO * bid.price
    if 1_000_000 < euro < 50_000_000:
        hour = bid.dateTime.hour
        kind = "dayTime" if 8 <= hour <= 18 else "nightTime" if hour <= 6 or hour >= 20 else "otherTime"
        yield bid.auction, bid.bidder, euro, kind, bid.dateTime, bid.extra, bid.extra.count("c")


PARTS = [f"{column}{n}" for column in ("bidder", "auction") for n in ("", 1, 2, 3)]
RANKED = Types.ROW_NAMED(["day", *PARTS], [_TEXT, *[_LONG] * 8])
RANKED_OF_CHANNEL = Types.ROW_NAMED(["channel", "minute", "day", *PARTS], [_TEXT, _TEXT, _TEXT, *[_LONG] * 8])


def q15(events: Events) -> Any:
    bids = events.bids("auction", "bidder", "price", "dateTime").map(lambda bid: Row(**_ranked(bid)), RANKED)
    return bids.key_by("day").aggregate(**PER_RANK)


def q16(events: Events) -> Any:
    bids = events.bids("channel", "auction", "bidder", "price", "dateTime").map(
        lambda bid: Row(channel=bid.channel, minute=bid.dateTime.strftime("%H:%M"), **_ranked(bid)), RANKED_OF_CHANNEL
    )
    return bids.key_by(["channel", "day"]).aggregate(minute=Max("minute"), **PER_RANK)


def _ranked(bid: Any) -> dict[str, Any]:
    rank = _rank(bid.price)
    of_rank = [each if n in (0, rank) else None for each in (bid.bidder, bid.auction) for n in range(4)]
    return {"day": bid.dateTime.strftime("%Y-%m-%d"), **dict(zip(PARTS, of_rank, strict=True))}


def _rank(price: int) -> int:
    return 1 if price < 10_000 else 2 if price < 1_000_000 else 3


def q17(events: Events) -> Any:
    names = ["auction", "day", "price", "rank1", "rank2", "rank3"]
    bids = events.bids("auction", "price", "dateTime").map(
        _with_ranks, Types.ROW_NAMED(names, [_LONG, _TEXT, *[_LONG] * 4])
    )
    found = bids.key_by(["auction", "day"]).aggregate(
        total_bids=Count(), **{f"rank{n}_bids": Count(f"rank{n}") for n in (1, 2, 3)},
        min_price=Min("price"), max_price=Max("price"), sum_price=Sum("price"),
    )  # fmt: skip
    return found.map(lambda row: (*tuple(row)[:-1], row.sum_price // row.total_bids, row.sum_price))


def _with_ranks(bid: Any) -> Row:
    rank, day = _rank(bid.price), bid.dateTime.strftime("%Y-%m-%d")
    of_rank = {f"rank{n}": bid.price if n == rank else None for n in (1, 2, 3)}
    return Row(auction=bid.auction, day=day, price=bid.price, **of_rank)


class Last(KeyedProcessFunction):
    """The last bid by its time; of bids at one time, the one that comes last."""

    def open(self, runtime_context: Any) -> None:
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        last = self._last.value()
        if last is None or value.dateTime >= last.dateTime:
            self._last.update(value)
            yield tuple(value)


def q18(events: Events) -> Any:
    bids = events.bids("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
    return bids.key_by(lambda bid: (bid.bidder, bid.auction)).process(Last())


def q20(events: Events) -> Any:
    items = events.auctions().filter(lambda item: item.category == 10)
    both = events.bids().connect(items).key_by(lambda bid: bid.auction, lambda item: item.id, _LONG)
    return both.process(BidWithAuction())


def q21(events: Events) -> Any:
    return events.bids("auction", "bidder", "price", "channel", "url").flat_map(_with_channel_id)


def _with_channel_id(bid: Any) -> Iterator[Any]:
    channel_id = CHANNELS.get(bid.channel.lower())
    if channel_id is None and (found := CHANNEL_ID.search(bid.url)):
        channel_id = found[1]
    if channel_id is not None:
        yield bid.auction, bid.bidder, bid.price, bid.channel, channel_id


def q22(events: Events) -> Any:
    bids = events.bids("auction", "bidder", "price", "channel", "url")
    return bids.map(lambda bid: (bid.auction, bid.bidder, bid.price, bid.channel, *bid.url.split("/")[3:6]))


def _end(time: datetime) -> int:
    ms = int(time.replace(tzinfo=UTC).timestamp() * 1000)
    return ms - ms % WINDOW_MS + WINDOW_MS


QUERIES: dict[str, Callable[[Events], Any]] = {
    each.__name__: each
    for each in (q0, q1, q2, q3, q4, q5, q7, q8, q9, q11, q12, q14, q15, q16, q17, q18, q20, q21, q22)
}
