"""The generator of Nexmark's events, and the files they are written to.

    python -m benchmarks.nexmark.events FOLDER [--events 5000000] [--rate 10000] [--files 2] [--json]

Of 50 events, the first is a person, the next three are auctions, and 46 are bids. Ids count from 1,000 in the order of
the events. Half of the bids go to a hot auction, the first of the newest hundred. The others go to one of the newest
hundred auctions, or to one of the next ten, which do not exist yet. Three of four bids come from a hot bidder, and
three of four auctions from a hot seller, out of the newest hundred people. The others come from one of the newest
thousand people. An auction lasts as long as 100 further auctions need on average. Prices are 10 to the power of a
uniform number from 2 to 8. Half of the bids have one of four known channels, and the others one of 10,000.

Events have the time of their number: `rate` of them in a second. Each kind has its own folder with `files` files. A
file has every `files`-th second, in order, so all files of a kind have the same range of times, and events of one
instant are in one file. The same numbers always give the same events.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

KINDS = ("person", "auction", "bid")
BASE_MS = 1_436_918_400_000  # 15 July 2015
FIRST_ID = 1_000
CATEGORIES = 5
GROUP_OF_HOT = 100
ACTIVE_PEOPLE = 1_000
AUCTIONS_IN_FLIGHT = 100
LEAD = 10  # people and auctions that are referred to before they exist
CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
SECONDS_IN_GROUP = 10  # of one row group
SEED = 17

_FIRST_NAMES = ("Ada", "Bela", "Cleo", "Dora", "Emil", "Finn", "Gita", "Hugo", "Ines", "Jon", "Kari")
_LAST_NAMES = ("Alm", "Berg", "Dahl", "Eide", "Foss", "Holm", "Lund", "Moen", "Strand")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")


def write(folder: Path, events: int, *, rate: int = 10_000, files: int = 2, as_json: bool = False) -> None:
    """Write the events into `person`, `auction` and `bid` below a folder, as Parquet or as JSON lines."""
    if rate % 50:
        raise ValueError(f"rate must be a multiple of 50, got {rate}")
    for number in range(files):
        writers = {kind: _Writer(folder / kind / f"part-{number}", as_json=as_json) for kind in KINDS}
        for second in range(number, -(-events // rate), files):
            first = second * rate
            for kind, data in batches(first, min(rate, events - first), rate).items():
                writers[kind].add(data)
        for writer in writers.values():
            writer.close()


def batches(first: int, count: int, rate: int) -> dict[str, pa.RecordBatch]:
    """Return the events with some numbers, of one second at most, by their kinds. `first` is a multiple of `rate`."""
    random = np.random.default_rng([SEED, first])
    numbers = np.arange(first, first + count)
    times = BASE_MS + numbers * 1000 // rate
    place, turn = numbers % 50, numbers // 50
    person, auction, bid = place == 0, (place > 0) & (place < 4), place >= 4
    return {
        "person": _people(random, turn[person], times[person]),
        "auction": _auctions(random, turn[auction], place[auction], times[auction], rate),
        "bid": _bids(random, turn[bid], times[bid]),
    }


def _people(random: np.random.Generator, turn: Any, times: Any) -> pa.RecordBatch:
    count = len(turn)
    names = pc.binary_join_element_wise(_one_of(random, _FIRST_NAMES, count), _one_of(random, _LAST_NAMES, count), " ")
    address = pc.binary_join_element_wise(_texts(random, count, 7, 7), _texts(random, count, 5, 5), "@")
    card = [_one_of(random, _FOUR_DIGITS, count) for _ in range(4)]
    return pa.record_batch(
        {
            "id": turn + FIRST_ID,
            "name": names,
            "emailAddress": pc.binary_join_element_wise(address, pa.scalar("com"), "."),
            "creditCard": pc.binary_join_element_wise(*card, " "),
            "city": _one_of(random, _CITIES, count),
            "state": _one_of(random, _STATES, count),
            "dateTime": _stamped(times),
            "extra": _texts(random, count, 80, 120),
        }
    )


def _auctions(random: np.random.Generator, turn: Any, place: Any, times: Any, rate: int) -> pa.RecordBatch:
    count = len(turn)
    mean_ms = max(AUCTIONS_IN_FLIGHT * 50 * 1000 // (3 * rate), 1)
    hot = turn // GROUP_OF_HOT * GROUP_OF_HOT
    first_bid, more = _prices(random, count), _prices(random, count)
    return pa.record_batch(
        {
            "id": turn * 3 + place - 1 + FIRST_ID,
            "itemName": _texts(random, count, 10, 20),
            "description": _texts(random, count, 60, 100),
            "initialBid": first_bid,
            "reserve": first_bid + more,
            "dateTime": _stamped(times),
            "expires": _stamped(times + 1 + random.integers(0, 2 * mean_ms, count)),
            "seller": np.where(random.integers(0, 4, count) > 0, hot, _active(random, turn)) + FIRST_ID,
            "category": 10 + random.integers(0, CATEGORIES, count),
            "extra": _texts(random, count, 250, 350),
        }
    )


def _bids(random: np.random.Generator, turn: Any, times: Any) -> pa.RecordBatch:
    count = len(turn)
    newest = turn * 3 + 2
    oldest = np.maximum(newest - AUCTIONS_IN_FLIGHT, 0)
    hot_auction = newest // GROUP_OF_HOT * GROUP_OF_HOT
    auction = np.where(random.random(count) < 0.5, hot_auction, random.integers(oldest, newest + 1 + LEAD))
    hot_bidder = turn // GROUP_OF_HOT * GROUP_OF_HOT + 1
    bidder = np.where(random.integers(0, 4, count) > 0, hot_bidder, _active(random, turn))
    cold = random.integers(len(HOT_CHANNELS), len(_CHANNELS), count)
    channel = pa.array(np.where(random.random(count) < 0.5, random.integers(0, len(HOT_CHANNELS), count), cold))
    return pa.record_batch(
        {
            "auction": auction + FIRST_ID,
            "bidder": bidder + FIRST_ID,
            "price": _prices(random, count),
            "channel": _CHANNELS.take(channel),
            "url": _URLS.take(channel),
            "dateTime": _stamped(times),
            "extra": _texts(random, count, 50, 80),
        }
    )


def _active(random: np.random.Generator, newest: Any) -> Any:
    return random.integers(np.maximum(newest + 1 - ACTIVE_PEOPLE, 0), newest + 1 + LEAD)


def _prices(random: np.random.Generator, count: int) -> Any:
    return np.rint(10.0 ** random.uniform(2, 8, count)).astype(np.int64)


def _one_of(random: np.random.Generator, values: Any, count: int) -> pa.Array:
    return pa.array(values).take(pa.array(random.integers(0, len(values), count)))


def _texts(random: np.random.Generator, count: int, least: int, most: int) -> pa.Array:
    """Return texts of random small letters."""
    ends = np.concatenate(([0], np.cumsum(random.integers(least, most + 1, count)))).astype(np.int32)
    letters = random.integers(ord("a"), ord("z") + 1, int(ends[-1]), np.uint8)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(letters))


def _stamped(times: Any) -> pa.Array:
    return pa.array(times).cast(pa.timestamp("ms"))


def _urls(random: np.random.Generator) -> Iterator[str]:
    folders = iter(_texts(random, 3 * (len(HOT_CHANNELS) + CHANNELS), 5, 5).to_pylist())
    for number in range(-len(HOT_CHANNELS), CHANNELS):
        url = f"https://www.nexmark.example/{next(folders)}/{next(folders)}/{next(folders)}/item.htm?query=1"
        named = number >= 0 and number % 10 > 0  # nine of ten of the many channels name themselves
        yield f"{url}&channel_id={number * 7919 % 2_147_483_647}" if named else url


_FOUR_DIGITS = pa.array([f"{number:04}" for number in range(10_000)])
_CHANNELS = pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))])
_URLS = pa.array(list(_urls(np.random.default_rng(SEED))))


class _Writer:
    """Writes batches of one kind to one file."""

    def __init__(self, path: Path, *, as_json: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path.with_suffix(".jsonl" if as_json else ".parquet")
        self._json = as_json
        self._parts: list[pa.RecordBatch] = []
        self._file: Any = None

    def add(self, data: pa.RecordBatch) -> None:
        self._parts.append(data)
        if len(self._parts) == SECONDS_IN_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        data = pa.Table.from_batches(self._parts) if self._parts else batches_table(self._path.parent.name)
        self._parts = []
        if self._json:
            self._file = self._file or self._path.open("w", encoding="utf-8")
            times = [name for name in ("dateTime", "expires") if name in data.column_names]
            for row in data.to_pylist():
                row |= {name: row[name].isoformat(timespec="milliseconds") for name in times}
                self._file.write(json.dumps(row) + "\n")
            return
        if self._file is None:
            repeated = [name for name in ("channel", "url", "city", "state") if name in data.column_names]
            self._file = pq.ParquetWriter(self._path, data.schema, compression="snappy", use_dictionary=repeated)
        self._file.write_table(data)


def batches_table(kind: str) -> pa.Table:
    """Return a table of a kind without rows."""
    return pa.Table.from_batches([batches(0, 50, 50)[kind]]).slice(0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="write JSON lines instead of Parquet")
    options = parser.parse_args()
    write(options.folder, options.events, rate=options.rate, files=options.files, as_json=options.json)


if __name__ == "__main__":
    main()
