"""Connected components of a graph with a long tail: a delta iteration against a bulk iteration.

Most vertices have their component after a few supersteps. A chain of vertices is at the end of the graph, along which
changes travel one vertex in each superstep. Both programs run the same number of supersteps and find the same result.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from itertools import pairwise

from ekorn.common import Configuration
from ekorn.dataset import DataSet, ExecutionEnvironment

Edge = tuple[int, int]


def graph(vertices: int, chain: int) -> list[Edge]:
    """Return a random graph with three edges for each vertex, and a chain of vertices that hangs on vertex 0."""
    chance = random.Random(1)
    edges = [(chance.randrange(vertices), chance.randrange(vertices)) for _ in range(3 * vertices)]
    tail = [0, *range(vertices, vertices + chain)]
    edges += list(pairwise(tail))
    return edges + [(b, a) for a, b in edges]


def proposals(changed: DataSet, edges: DataSet) -> DataSet:
    """Return the smallest component that the neighbours of each vertex propose."""
    sent = changed.join(edges).where(0).equal_to(0).using(lambda vertex, edge: (edge[1], vertex[1]))
    return sent.group_by(0).min(1)


def by_delta(vertices: DataSet, edges: DataSet, supersteps: int) -> DataSet:
    """Return the components: each superstep looks at the neighbours of vertices that changed."""
    iteration = vertices.iterate_delta(vertices, supersteps, 0)
    proposed = proposals(iteration.get_workset(), edges)
    improved = (
        proposed.join(iteration.get_solution_set())
        .where(0)
        .equal_to(0)
        .using_flat(lambda proposal, vertex: [proposal] if proposal[1] < vertex[1] else [])
        .with_forwarded_fields_first("*")  # as Flink's example declares it
    )
    return iteration.close_with(improved, improved)


def by_bulk(vertices: DataSet, edges: DataSet, supersteps: int) -> DataSet:
    """Return the components: each superstep looks at all vertices."""
    iteration = vertices.iterate(supersteps)
    return iteration.close_with(proposals(iteration, edges).union(iteration).group_by(0).min(1))


def expected(vertices: int, edges: list[Edge]) -> list[Edge]:
    """Return the components by union-find."""
    parent = list(range(vertices))

    def root(vertex: int) -> int:
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    for one, other in edges:
        low, high = sorted((root(one), root(other)))
        parent[high] = low
    return [(vertex, root(vertex)) for vertex in range(vertices)]


def main() -> None:
    """Run both programs on one Spark session and print their seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--vertices", type=int, default=200_000)
    parser.add_argument("--chain", type=int, default=60)
    parser.add_argument("--only", default="delta,bulk")
    options = parser.parse_args()
    edges = graph(options.vertices, options.chain)
    count = options.vertices + options.chain
    supersteps = options.chain + 1
    configuration = Configuration()
    configuration.set_string("spark.master", "local[2]")
    env = ExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.from_elements(1).collect()  # Spark starts
    seconds = {}
    programs = {"delta": by_delta, "bulk": by_bulk}
    for name in options.only.split(","):
        components = programs[name]
        vertices = env.generate_sequence(0, count - 1).map(lambda vertex: (vertex, vertex))
        started = time.perf_counter()
        found = components(vertices, env.from_collection(edges), supersteps).collect()
        seconds[name] = time.perf_counter() - started
        assert sorted(found) == expected(count, edges), f"{name} found something else"
        print(f"{name}: {seconds[name]:.1f} s", flush=True)
    ratio = seconds["bulk"] / seconds["delta"] if len(seconds) == len(programs) else None
    print(json.dumps({**seconds, "ratio": ratio, "supersteps": supersteps}))


if __name__ == "__main__":
    main()
