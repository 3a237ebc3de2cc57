"""Functions of keyed streams that both forms of the queries use: those which hold a side back until the other is there.

A stream of columns becomes rows before them. Where that pays, the queries in columns filter and aggregate first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from ekorn.common import Row, Types
from ekorn.datastream import KeyedCoProcessFunction, KeyedProcessFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor


class OnePerKey(KeyedCoProcessFunction, ABC):
    """Joins the one row of a key on the right to all rows of the key on the left; early rows on the left wait."""

    def open(self, runtime_context: Any) -> None:
        self._one = runtime_context.get_state(ValueStateDescriptor("one", Types.PICKLED_BYTE_ARRAY()))
        self._early = runtime_context.get_list_state(ListStateDescriptor("early", Types.PICKLED_BYTE_ARRAY()))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        one = self._one.value()
        if one is None:
            self._early.add(value)
        else:
            yield self.joined(value, one)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        self._one.update(value)
        for early in self._early.get():
            yield self.joined(early, value)
        self._early.clear()

    @abstractmethod
    def joined(self, many: Any, one: Any) -> Any:
        """Return the result of a row on the left and the one on the right."""


class ItemOfSeller(OnePerKey):
    """q3: name, city and state of the seller, and the id of the auction."""

    def joined(self, many: Any, one: Any) -> Any:
        return one.name, one.city, one.state, many.id


class BidWithAuction(OnePerKey):
    """q20: the bid with its auction."""

    def joined(self, many: Any, one: Any) -> Any:
        return (*many, *(value for name, value in one.as_dict().items() if name != "id"))


class WinningBid(KeyedCoProcessFunction):
    """Emits the best bid of an auction so far: the highest price, and of equal prices the first.

    The first input has auctions and the second bids. Only bids from the beginning to the end of the auction count.
    """

    def open(self, runtime_context: Any) -> None:
        self._auction = runtime_context.get_state(ValueStateDescriptor("auction", Types.PICKLED_BYTE_ARRAY()))
        self._best = runtime_context.get_state(ValueStateDescriptor("best", Types.PICKLED_BYTE_ARRAY()))
        self._early = runtime_context.get_list_state(ListStateDescriptor("early", Types.PICKLED_BYTE_ARRAY()))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        self._auction.update(value)
        for bid in self._early.get():
            yield from self._offered(value, bid)
        self._early.clear()

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        auction = self._auction.value()
        if auction is None:
            self._early.add(value)
        else:
            yield from self._offered(auction, value)

    def _offered(self, auction: Any, bid: Any) -> Iterator[Any]:
        if not auction.dateTime <= bid.dateTime <= auction.expires:
            return
        best = self._best.value()
        if best is None or bid.price > best.price or (bid.price == best.price and bid.dateTime < best.dateTime):
            self._best.update(bid)
            yield from self.better(auction, bid, best)

    def better(self, auction: Any, bid: Any, before: Any) -> Iterator[Any]:
        """q9: the auction with its bid."""
        yield (*auction, *bid)


class FinalPrice(WinningBid):
    """q4: the category of an auction, and its price with what it was before."""

    def better(self, auction: Any, bid: Any, before: Any) -> Iterator[Any]:
        if before is None or bid.price != before.price:
            yield auction.category, bid.price, None if before is None else before.price


class MeanPrice(KeyedProcessFunction):
    """q4: the mean of the last prices of all auctions of a category, as a whole number."""

    def open(self, runtime_context: Any) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        category, price, before = value
        total, count = self._sum.value() or (0, 0)
        total, count = total + price - (before or 0), count + (before is None)
        self._sum.update((total, count))
        yield category, total // count


class AtTheEnd(KeyedProcessFunction):
    """Keeps, for a window as the key, the rows with the largest value of a column, and emits them at its end."""

    def __init__(self, column: str) -> None:
        self._column = column

    def open(self, runtime_context: Any) -> None:
        self._most = runtime_context.get_state(ValueStateDescriptor("most", Types.LONG()))
        self._rows = runtime_context.get_list_state(ListStateDescriptor("rows", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: Any) -> None:
        number, most = value[self._column], self._most.value()
        if most is None or number > most:
            self._most.update(number)
            self._rows.clear()
        if most is None or number >= most:
            self._rows.add(value)
        if most is None:
            ctx.timer_service().register_event_time_timer(ctx.get_current_key() - 1)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        for row in self._rows.get():
            yield Row(*(value for name, value in row.as_dict().items() if name != "window_end"))
        self._rows.clear()
        self._most.clear()


class NewSeller(KeyedCoProcessFunction):
    """q8: people of a window who also open an auction in it. Keys are (id, end of the window)."""

    def open(self, runtime_context: Any) -> None:
        self._name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
        self._sells = runtime_context.get_state(ValueStateDescriptor("sells", Types.BOOLEAN()))

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value.window_end - 1)
        self._name.update(value.name)
        if self._sells.value():
            yield value.id, value.name, value.window_start

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value.window_end - 1)
        name = self._name.value()
        if name is not None and not self._sells.value():
            yield value.seller, name, value.window_start
        self._sells.update(True)

    def on_timer(self, timestamp: int, ctx: Any) -> None:
        self._name.clear()
        self._sells.clear()
