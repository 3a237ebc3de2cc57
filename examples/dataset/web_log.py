"""Well-ranked pages about some words that nobody visited in a year: three inputs, a join and a co-group.

    python examples/dataset/web_log.py

The co-group calls its function for every page that is either wanted or visited. The pages with an empty second group
are the answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from ekorn.dataset import DataSet, ExecutionEnvironment

WORDS = ("editors", "oscillations", "convection")
LEAST_RANK = 40
YEAR = 2007


class Rank(NamedTuple):
    """How well a page is ranked."""

    rank: int
    url: str


class Visit(NamedTuple):
    """Somebody looked at a page."""

    url: str
    year: int


def documents() -> list[tuple[str, str]]:
    """Return the addresses and texts of pages."""
    chance = random.Random(5)
    fill = ["paper", "glass", "water"]
    return [(f"url_{number}", " ".join(chance.sample([*WORDS, *fill], 4))) for number in range(200)]


def ranks() -> list[Rank]:
    """Return the ranks of all pages."""
    chance = random.Random(6)
    return [Rank(chance.randrange(100), url) for url, _ in documents()]


def visits() -> list[Visit]:
    """Return some visits."""
    chance = random.Random(8)
    return [Visit(f"url_{chance.randrange(200)}", chance.choice([2006, 2007, 2008])) for _ in range(200)]


def forgotten(pages: DataSet, ranking: DataSet, log: DataSet) -> DataSet:
    """Return the ranks of the pages with two of the words and a high rank, which had no visit in the year."""
    about = pages.filter(lambda page: sum(word in page[1].split() for word in WORDS) >= 2).project(0)
    high = ranking.filter(lambda rank: rank.rank > LEAST_RANK)
    wanted = about.join(high).where(0).equal_to("url").using(lambda _, rank: rank)
    visited = log.filter(lambda visit: visit.year == YEAR)
    return wanted.co_group(visited).where("url").equal_to("url").using(_without_visit)


def _without_visit(wanted: Iterator[Rank], visited: Iterator[Visit]) -> Iterator[Rank]:
    if next(visited, None) is None:
        yield from wanted


def main() -> None:
    """Print the best forgotten pages."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    inputs = [env.from_collection(each) for each in (documents(), ranks(), visits())]
    for rank, url in sorted(forgotten(*inputs).collect(), reverse=True)[:5]:
        print(f"{rank:>3}  {url}")


if __name__ == "__main__":
    main()
