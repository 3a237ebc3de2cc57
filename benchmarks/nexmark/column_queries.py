"""Nexmark's queries on streams of columns. A join holds rows back, so there the columns become rows, filtered before.

Results of queries with keys are updates: the last one of a key holds (`answers.KEYS`). `answers.SQL` has the queries as
SQL, which says what each of them asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.nexmark.joined import AtTheEnd, BidWithAuction, ItemOfSeller, NewSeller
from benchmarks.nexmark.streams import LONG, TEXT, TIME, TYPES, Events, row_type
from ekorn.common import Time, Types
from ekorn.datastream.columns import BatchAggregate, Count, CountDistinct, Max, Min, Sum
from ekorn.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)

WINDOW_MS = 10_000
TEN_SECONDS = Time.seconds(10)

auction, price, url, at = (pc.field(name) for name in ("auction", "price", "url", "dateTime"))
euro = price.cast(pa.decimal128(19, 0)) * pa.scalar(Decimal("0.908"))
no_long = pa.scalar(None, pa.int64())
ARROW_TYPES = {LONG: pa.int64(), TEXT: pa.string(), TIME: pa.timestamp("ms")}
day = pc.floor_temporal(at, unit="day")


def q0(events: Events) -> Any:
    return events.bids("auction", "bidder", "price", "dateTime", "extra")


def q1(events: Events) -> Any:
    bids = events.bids("auction", "bidder", "price", "dateTime", "extra")
    return bids.project("auction", "bidder", price=euro, dateTime=at, extra=pc.field("extra"))


def q2(events: Events) -> Any:
    return events.bids("auction", "price").filter(auction - pc.divide(auction, 123) * 123 == 0)


def q3(events: Events) -> Any:
    items = events.auctions("id", "seller", "category").filter(pc.field("category") == 10)
    people = events.people("id", "name", "city", "state").filter(pc.field("state").isin(["OR", "ID", "CA"]))
    return items.connect(people).key_by(_seller, _id, Types.LONG()).process(ItemOfSeller())


def q4(events: Events) -> Any:
    bids = events.bids("auction", "dateTime", "price").project(
        "dateTime", "price", id=auction, expires=_null(TIME), category=_null(LONG)
    )
    auctions = events.auctions("id", "dateTime", "expires", "category").project(
        "dateTime", "id", "expires", "category", price=_null(LONG)
    )
    columns = ("id", "dateTime", "expires", "category", "price")
    both = auctions.project(*columns).union(bids.project(*columns))
    final = both.key_by("id").aggregate(emits="last", final=FinalPrices(*columns[1:]))
    now, before = (pc.struct_field(pc.field("final"), name) for name in ("price", "before"))
    changes = final.project(
        category=pc.struct_field(pc.field("final"), "category"),
        change=now - pc.coalesce(before, 0),
        first=pc.if_else(before.is_null(), 1, 0).cast(pa.int64()),
    ).filter(pc.field("change").is_valid() & ((pc.field("change") != 0) | (pc.field("first") == 1)))
    sums = changes.key_by("category").aggregate(emits="last", total=Sum("change"), auctions=Sum("first"))
    return sums.project("category", final=pc.divide(pc.field("total"), pc.field("auctions")))


def q5(events: Events) -> Any:
    windows = SlidingEventTimeWindows.of(TEN_SECONDS, Time.seconds(2))
    counts = events.bids("auction", "dateTime", timed=True).key_by("auction").window(windows).aggregate(num=Count())
    kept = row_type(auction=LONG, num=LONG, window_end=LONG)
    most = counts.project("auction", "num", "window_end").map_batches(MostOf("num"), kept)
    return most.key_by(_window_end, Types.LONG()).process(AtTheEnd("num"))


def q7(events: Events) -> Any:
    start = pc.floor_temporal(at, 10, unit="second").cast(pa.int64())
    bids = events.bids("auction", "price", "bidder", "dateTime", "extra", timed=True)
    in_windows = bids.project("auction", "price", "bidder", "dateTime", "extra", window_end=start + WINDOW_MS)
    highest = in_windows.map_batches(MostOf("price"), in_windows.row_type)
    return highest.key_by(_window_end, Types.LONG()).process(AtTheEnd("price"))


def q8(events: Events) -> Any:
    windows = TumblingEventTimeWindows.of(TEN_SECONDS)
    people = events.people("id", "name", "dateTime", timed=True).key_by(["id", "name"]).window(windows)
    sellers = events.auctions("seller", "dateTime", timed=True).key_by("seller").window(windows)
    both = people.aggregate(count=Count()).connect(sellers.aggregate(count=Count()))
    return both.key_by(_id_and_end, _seller_and_end).process(NewSeller())


def q9(events: Events) -> Any:
    offered = {name: data_type for name, data_type in TYPES["auction"].items() if name != "id"}
    bid = {"bidder": LONG, "price": LONG, "bid_dateTime": TIME, "bid_extra": TEXT}
    columns = row_type(id=LONG, **offered, **bid)
    auctions = events.auctions().project("id", *offered, **{name: _null(data_type) for name, data_type in bid.items()})
    bids = events.bids("auction", "dateTime", "price", "bidder", "extra").project(
        id=auction,
        **{name: _null(data_type) for name, data_type in offered.items()},
        bidder=pc.field("bidder"), price=price, bid_dateTime=at, bid_extra=pc.field("extra"),
    )  # fmt: skip
    both = auctions.union(bids)
    assert both.row_type.field_names() == columns.field_names()
    best = both.key_by("id").aggregate(emits="last", won=WinningBids(*columns.field_names()[1:]))
    known = best.filter(pc.struct_field(pc.field("won"), "price").is_valid())
    of_auction = {name: pc.struct_field(pc.field("won"), name) for name in offered}
    of_bid = {name: pc.struct_field(pc.field("won"), name) for name in bid}
    return known.project("id", **of_auction, auction=pc.field("id"), **of_bid)


def q11(events: Events) -> Any:
    sessions = EventTimeSessionWindows.with_gap(TEN_SECONDS)
    return events.bids("bidder", "dateTime", timed=True).key_by("bidder").window(sessions).aggregate(bids=Count())


def q12(events: Events) -> Any:
    windows = TumblingProcessingTimeWindows.of(events.processing_window)
    return events.bids("bidder").key_by("bidder").window(windows).aggregate(bids=Count())


def q14(events: Events) -> Any:
    hour = pc.hour(at)
    night = pc.if_else((hour <= 6) | (hour >= 20), "nightTime", "otherTime")
    bids = events.bids("auction", "bidder", "price", "dateTime", "extra").project(
        "auction", "bidder", "dateTime", "extra", price=euro
    )
    return bids.filter((price > Decimal(1_000_000)) & (price < Decimal(50_000_000))).project(
        "auction", "bidder", "price",
        bidTimeType=pc.if_else((hour >= 8) & (hour <= 18), "dayTime", night),
        dateTime=at, extra=pc.field("extra"), c_counts=pc.count_substring(pc.field("extra"), pattern="c"),
    )  # fmt: skip


RANKS = {"1": price < 10_000, "2": (price >= 10_000) & (price < 1_000_000), "3": price >= 1_000_000}
PER_RANK: dict[str, Any] = {
    "total_bids": Count(), **{f"rank{n}_bids": Count(f"bidder{n}") for n in RANKS},
    "total_bidders": CountDistinct("bidder"), **{f"rank{n}_bidders": CountDistinct(f"bidder{n}") for n in RANKS},
    "total_auctions": CountDistinct("auction"), **{f"rank{n}_auctions": CountDistinct(f"auction{n}") for n in RANKS},
}  # fmt: skip


def q15(events: Events) -> Any:
    bids = _ranked(events.bids("auction", "bidder", "price", "dateTime"))
    found = bids.key_by("day").aggregate(emits="last", **PER_RANK)
    return found.project(day=_date(pc.field("day")), **{name: pc.field(name) for name in PER_RANK})


def q16(events: Events) -> Any:
    bids = _ranked(events.bids("channel", "auction", "bidder", "price", "dateTime"), "channel", "dateTime")
    found = bids.key_by(["channel", "day"]).aggregate(emits="last", last=Max("dateTime"), **PER_RANK)
    minute = pc.strftime(pc.field("last"), format="%H:%M")
    return found.project(
        "channel", day=_date(pc.field("day")), minute=minute, **{name: pc.field(name) for name in PER_RANK}
    )


def q17(events: Events) -> Any:
    bids = events.bids("auction", "price", "dateTime").project(
        "auction", "price", day=day, **{f"rank{n}": pc.if_else(rank, price, no_long) for n, rank in RANKS.items()}
    )
    found = bids.key_by(["auction", "day"]).aggregate(
        emits="last", total_bids=Count(), **{f"rank{n}_bids": Count(f"rank{n}") for n in RANKS},
        min_price=Min("price"), max_price=Max("price"), sum_price=Sum("price"),
    )  # fmt: skip
    return found.project(
        "auction", day=_date(pc.field("day")),
        **{name: pc.field(name) for name in ("total_bids", "rank1_bids", "rank2_bids", "rank3_bids")},
        min_price=pc.field("min_price"), max_price=pc.field("max_price"),
        avg_price=pc.divide(pc.field("sum_price"), pc.field("total_bids")), sum_price=pc.field("sum_price"),
    )  # fmt: skip


def q18(events: Events) -> Any:
    rest = {name: TYPES["bid"][name] for name in ("price", "channel", "url", "dateTime", "extra")}
    last = events.bids().key_by(["bidder", "auction"]).aggregate(emits="last", last=LastRow(*rest))
    return last.project("auction", "bidder", **{name: pc.struct_field(pc.field("last"), name) for name in rest})


def q20(events: Events) -> Any:
    items = events.auctions().filter(pc.field("category") == 10)
    return events.bids().connect(items).key_by(_auction, _id, Types.LONG()).process(BidWithAuction())


def q21(events: Events) -> Any:
    known = pc.utf8_lower(pc.field("channel"))
    named = pc.struct_field(pc.extract_regex(url, pattern="(?:&|^)channel_id=(?P<id>[^&]*)"), "id")
    for number, channel in enumerate(("apple", "google", "facebook", "baidu")):
        named = pc.if_else(known == channel, str(number), named)
    bids = events.bids("auction", "bidder", "price", "channel", "url")
    found = bids.project("auction", "bidder", "price", "channel", channel_id=named)
    return found.filter(pc.field("channel_id").is_valid())


def q22(events: Events) -> Any:
    bids = events.bids("auction", "bidder", "price", "channel", "url")
    parts = bids.project("auction", "bidder", "price", "channel", parts=pc.split_pattern(url, pattern="/"))
    folders = {f"dir{n}": pc.list_element(pc.field("parts"), n + 2) for n in (1, 2, 3)}
    return parts.project("auction", "bidder", "price", "channel", **folders)


QUERIES: dict[str, Callable[[Events], Any]] = {
    each.__name__: each
    for each in (q0, q1, q2, q3, q4, q5, q7, q8, q9, q11, q12, q14, q15, q16, q17, q18, q20, q21, q22)
}


def _null(data_type: Any) -> pc.Expression:
    return pc.scalar(pa.scalar(None, ARROW_TYPES[data_type]))


def _date(time: Any) -> Any:
    return pc.strftime(time, format="%Y-%m-%d")


def _ranked(bids: Any, *kept: str) -> Any:
    """Return bids with their day, and bidders and auctions in a column for each rank of the price."""
    of_rank = {
        f"{column}{n}": pc.if_else(rank, pc.field(column), no_long)
        for column in ("bidder", "auction")
        for n, rank in RANKS.items()
    }
    return bids.project(*kept, "bidder", "auction", day=day, **of_rank)


# ------------------------------------------------------------------------------------- keys of rows


def _id(row: Any) -> Any:
    return row.id


def _seller(row: Any) -> Any:
    return row.seller


def _auction(row: Any) -> Any:
    return row.auction


def _window_end(row: Any) -> Any:
    return row.window_end


def _id_and_end(row: Any) -> Any:
    return row.id, row.window_end


def _seller_and_end(row: Any) -> Any:
    return row.seller, row.window_end


# ------------------------------------------------------------------------------------- functions of batches


class MostOf:
    """Keeps the rows of a batch with the largest value of a column in their window."""

    def __init__(self, column: str) -> None:
        self._column = column

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ends, numbers = (batch.column(name).to_numpy() for name in ("window_end", self._column))
        windows, window = np.unique(ends, return_inverse=True)
        most = np.full(len(windows), np.iinfo(np.int64).min)
        np.maximum.at(most, window, numbers)
        return batch.filter(pa.array(numbers == most[window]))


UNKNOWN = np.iinfo(np.int64).max


class FinalPrices(BatchAggregate):
    """Of the key of an auction: its category, its highest price, and that price before the last batch.

    A row is an auction if it has the end of one, and otherwise a bid. Bids before their auction wait in lists.
    """

    def create(self, count: int) -> Sequence[Any]:
        begin, end, category = np.full(count, UNKNOWN), np.zeros(count, np.int64), np.zeros(count, np.int64)
        return [begin, end, category, np.full(count, -1), np.full(count, -1), np.full(count, None, object)]

    def add(self, accumulators: Sequence[Any], keys: Any, columns: Sequence[Any]) -> None:
        begin, end, category, highest, before, early = accumulators
        times, expires, categories, prices = (_longs(column) for column in columns)
        before[keys] = highest[keys]
        auction = columns[1].is_valid().to_numpy(zero_copy_only=False)
        opened = keys[auction]
        begin[opened], end[opened], category[opened] = times[auction], expires[auction], categories[auction]
        bids = np.flatnonzero(~auction)
        known = begin[keys[bids]] != UNKNOWN
        for row in bids[~known].tolist():
            early[keys[row]] = [*(early[keys[row]] or ()), (times[row], prices[row])]
        bids = bids[known]
        key, time = keys[bids], times[bids]
        fits = (begin[key] <= time) & (time <= end[key])
        np.maximum.at(highest, key[fits], prices[bids[fits]])
        for key in opened[[each is not None for each in early[opened]]].tolist():
            offers = [offer for time, offer in early[key] if begin[key] <= time <= end[key]]
            highest[key] = max([highest[key], *offers])
            early[key] = None

    def merge(self, accumulators: Sequence[Any], keys: Any, others: Sequence[Any]) -> None:
        raise TypeError("FinalPrices has no windows that merge")

    def results(self, accumulators: Sequence[Any]) -> Any:
        _, _, category, highest, before, _ = accumulators
        prices = [pa.array(each, mask=each < 0) for each in (highest, before)]
        return pa.StructArray.from_arrays([pa.array(category), *prices], ["category", "price", "before"])

    def result_type(self, columns: Sequence[Any]) -> Any:
        return row_type(category=LONG, price=LONG, before=LONG)


class WinningBids(BatchAggregate):
    """Of the key of an auction: its columns, and those of the best bid: the highest price, of equal ones the first."""

    of_bid = 4  # the last columns are those of a bid

    def create(self, count: int) -> Sequence[Any]:
        begin, end, price, time = (np.full(count, value) for value in (UNKNOWN, UNKNOWN, -1, 0))
        return [begin, end, price, time, *(np.full(count, None, object) for _ in range(3))]

    def add(self, accumulators: Sequence[Any], keys: Any, columns: Sequence[Any]) -> None:
        begin, end, highest, since, auctions, best, early = accumulators
        named = dict(zip(self.columns, columns, strict=True))
        prices, times = _longs(named["price"]), _longs(named["bid_dateTime"])
        is_auction = named["expires"].is_valid().to_numpy(zero_copy_only=False)
        rows, bids = np.flatnonzero(is_auction), np.flatnonzero(~is_auction)
        opened = keys[rows]
        begin[opened], end[opened] = _longs(named["dateTime"])[rows], _longs(named["expires"])[rows]
        _keep(auctions, opened, columns[: -self.of_bid], rows)
        unknown = begin[keys[bids]] == UNKNOWN
        for row in bids[unknown].tolist():
            bid = tuple(column[row].as_py() for column in columns[-self.of_bid :])
            early[keys[row]] = [*(early[keys[row]] or ()), (int(prices[row]), int(times[row]), bid)]
        bids = bids[~unknown]
        key, time, price = keys[bids], times[bids], prices[bids]
        better = (price > highest[key]) | ((price == highest[key]) & (time < since[key]))
        bids = bids[better & (begin[key] <= time) & (time <= end[key])]
        bids = bids[np.lexsort((times[bids], -prices[bids], keys[bids]))]
        bids = bids[np.flatnonzero(np.diff(keys[bids], prepend=-1))]  # the best one of each key
        highest[keys[bids]], since[keys[bids]] = prices[bids], times[bids]
        _keep(best, keys[bids], columns[-self.of_bid :], bids)
        for key in opened[[each is not None for each in early[opened]]].tolist():
            for price, time, bid in early[key]:
                if begin[key] <= time <= end[key] and (-price, time) < (-highest[key], since[key]):
                    highest[key], since[key], best[key] = price, time, bid
            early[key] = None

    def merge(self, accumulators: Sequence[Any], keys: Any, others: Sequence[Any]) -> None:
        raise TypeError("WinningBids has no windows that merge")

    def results(self, accumulators: Sequence[Any]) -> Any:
        *_, auctions, best, _ = accumulators
        nothing = (None,) * len(self.columns)
        rows = ((*auction, *bid) if auction and bid else nothing for auction, bid in zip(auctions, best, strict=True))
        return _structs(self.columns, rows)

    def result_type(self, columns: Sequence[Any]) -> Any:
        return row_type(**dict(zip(self.columns, columns, strict=True)))


def _keep(kept: Any, keys: Any, columns: Sequence[Any], rows: Any) -> None:
    """Put rows into the elements of their keys."""
    chosen = pa.array(rows)
    for key, row in zip(keys.tolist(), zip(*(c.take(chosen).to_pylist() for c in columns), strict=True), strict=True):
        kept[key] = row


class LastRow(BatchAggregate):
    """Of a key: the columns of its last row by `dateTime`; of rows at one time, of the one that comes last."""

    def create(self, count: int) -> Sequence[Any]:
        return [np.full(count, np.iinfo(np.int64).min), np.full(count, None, object)]

    def add(self, accumulators: Sequence[Any], keys: Any, columns: Sequence[Any]) -> None:
        last, kept = accumulators
        times = _longs(columns[self.columns.index("dateTime")])
        rows = np.lexsort((times, keys))  # stable: equal times stay in order
        rows = rows[np.flatnonzero(np.diff(keys[rows], append=-1))]
        rows = rows[times[rows] >= last[keys[rows]]]
        last[keys[rows]] = times[rows]
        _keep(kept, keys[rows], columns, rows)

    def merge(self, accumulators: Sequence[Any], keys: Any, others: Sequence[Any]) -> None:
        for key, time, row in zip(keys.tolist(), *others, strict=True):
            if time >= accumulators[0][key]:
                accumulators[0][key], accumulators[1][key] = time, row

    def results(self, accumulators: Sequence[Any]) -> Any:
        return _structs(self.columns, accumulators[1])

    def result_type(self, columns: Sequence[Any]) -> Any:
        return row_type(**dict(zip(self.columns, columns, strict=True)))


def _structs(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> pa.StructArray:
    """Return tuples as structs of events' columns."""
    types = {name: ARROW_TYPES[data_type] for kind in TYPES.values() for name, data_type in kind.items()}
    types |= {"bid_dateTime": types["dateTime"], "bid_extra": types["extra"]}
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.StructArray.from_arrays(
        [pa.array(values, types[name]) for name, values in zip(names, columns, strict=True)], list(names)
    )


def _longs(column: pa.Array) -> Any:
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
