"""All triangles of a graph: three people who know each other.

    python examples/dataset/triangles.py

Edges point from the vertex with fewer neighbours to the one with more. A vertex then has few edges that begin at it, so
that few pairs of them must be looked up, also if some vertex has very many neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ekorn.dataset import DataSet, ExecutionEnvironment

VERTICES = 40


def edges() -> list[tuple[int, int]]:
    """Return pairs of vertices, the lower number first."""
    found = {(a, (a * a + 3 * step) % VERTICES) for a in range(VERTICES) for step in range(1, 5)}
    return sorted({(min(pair), max(pair)) for pair in found if pair[0] != pair[1]})


def triangles(edge_set: DataSet) -> DataSet:
    """Return the triangles of a graph, whose edges are given once each."""
    degrees = edge_set.flat_map(lambda edge: [(edge[0], 1), (edge[1], 1)]).group_by(0).sum(1)
    with_first = edge_set.join(degrees).where(0).equal_to(0).using(lambda edge, degree: (*edge, degree[1]))
    with_both = with_first.join(degrees).where(1).equal_to(0).using(lambda edge, degree: (*edge, degree[1]))
    pointed = with_both.map(lambda edge: edge[:2] if (edge[2], edge[0]) < (edge[3], edge[1]) else (edge[1], edge[0]))
    open_ones = pointed.group_by(0).reduce_group(_pairs_of_ends)
    known = edge_set.map(lambda edge: (min(edge), max(edge)))
    closed = open_ones.join(known).where(1, 2).equal_to(0, 1)
    return closed.using(lambda found, _: tuple(sorted(found)))


def _pairs_of_ends(group: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Yield a vertex with each pair of vertices that its edges lead to."""
    found = list(group)
    for (start, one), (_, other) in combinations(found, 2):
        yield start, min(one, other), max(one, other)


def main() -> None:
    """Print the number of triangles, and the first few."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    found = sorted(triangles(env.from_collection(edges())).collect())
    print(f"{len(found)} triangles among {len(edges())} edges, the first: {found[:4]}")


if __name__ == "__main__":
    main()
