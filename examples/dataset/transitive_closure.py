"""All pairs of places between which there is a way, by a bulk iteration that ends when it finds no more.

    python examples/dataset/transitive_closure.py

Each superstep extends the ways found so far by one road. The roads come from outside the iteration and never change.
"""

from __future__ import annotations

from collections.abc import Iterator

from ekorn.dataset import ExecutionEnvironment

ROADS = [
    ("harbour", "market"),
    ("market", "mill"),
    ("mill", "bridge"),
    ("bridge", "market"),
    ("bridge", "farm"),
    ("farm", "forest"),
    ("castle", "village"),
]

Way = tuple[str, str]


def unknown(found: Iterator[Way], known: Iterator[Way]) -> Iterator[Way]:
    """Yield a way that the last superstep did not know."""
    if not list(known):
        yield from found


def ways(max_supersteps: int = 50) -> list[Way]:
    """Run the program and return all ways, by road or by a row of roads."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    roads = env.from_collection(ROADS)
    iteration = roads.iterate(max_supersteps)
    longer = iteration.join(roads).where(1).equal_to(0).using(lambda way, road: (way[0], road[1]))
    found = iteration.union(longer).distinct(0, 1)
    new = found.co_group(iteration).where(0, 1).equal_to(0, 1).using(unknown)
    return sorted(iteration.close_with(found, new).collect())


def main() -> None:
    """Print where each place leads to."""
    leads_to: dict[str, list[str]] = {}
    for start, end in ways():
        leads_to.setdefault(start, []).append(end)
    for start, ends in leads_to.items():
        print(f"{start:>8} -> {', '.join(ends)}")


if __name__ == "__main__":
    main()
