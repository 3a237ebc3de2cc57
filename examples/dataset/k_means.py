"""Points in clusters: a bulk iteration that moves the centres to the means of the points near them.

    python examples/dataset/k_means.py

The centres are a broadcast variable: every subtask reads all of them in each superstep, and the points stay where they
are.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple

from ekorn.dataset import DataSet, ExecutionEnvironment
from ekorn.datastream import RuntimeContext
from ekorn.datastream.functions import MapFunction

SUPERSTEPS = 12


class Point(NamedTuple):
    """A point of the plane."""

    x: float
    y: float


class Centre(NamedTuple):
    """A centre and its number."""

    number: int
    x: float
    y: float


def points() -> list[Point]:
    """Return points around three places, the same in every run."""
    chance = random.Random(7)
    places = [(0.0, 0.0), (10.0, 1.0), (4.0, 8.0)]
    return [Point(chance.gauss(x, 1), chance.gauss(y, 1)) for x, y in places for _ in range(60)]


def first_centres() -> list[Centre]:
    """Return where the centres begin."""
    return [Centre(number, *point) for number, point in enumerate(points()[::60])]


class NearestCentre(MapFunction):
    """Gives each point the number of the nearest centre, and the count 1 for the mean."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._centres: list[Centre] = runtime_context.get_broadcast_variable("centres")

    def map(self, value: Point) -> tuple[int, float, float, int]:
        nearest = min(self._centres, key=lambda each: math.dist((each.x, each.y), value))
        return nearest.number, value.x, value.y, 1


def clustered() -> list[Centre]:
    """Run the program and return the centres."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    data = env.from_collection(points())
    centres = env.from_collection(first_centres())
    iteration = centres.iterate(SUPERSTEPS)
    return sorted(iteration.close_with(moved(data, iteration)).collect())


def moved(data: DataSet, centres: DataSet) -> DataSet:
    """Return the means of the points that are nearest to each centre."""
    near = data.map(NearestCentre()).with_broadcast_set(centres, "centres")
    sums = near.group_by(0).reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]))
    return sums.map(lambda found: Centre(found[0], found[1] / found[3], found[2] / found[3]))


def main() -> None:
    """Print the centres."""
    for centre in clustered():
        print(f"cluster {centre.number} around ({centre.x:.1f}, {centre.y:.1f})")


if __name__ == "__main__":
    main()
