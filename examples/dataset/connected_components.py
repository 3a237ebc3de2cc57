"""The connected components of a graph, by a delta iteration.

    python examples/dataset/connected_components.py

Every vertex begins with its own number as its component. A vertex whose component became smaller tells its neighbours,
and each superstep looks at those neighbours alone. The graph has a few large components and a long chain: after some
supersteps only the chain still changes, one vertex at a time.
"""

from __future__ import annotations

from ekorn.dataset import ExecutionEnvironment

VERTICES = 400
CHAIN = 12  # vertices at the end of a chain, where changes travel one vertex in each superstep


def edges() -> list[tuple[int, int]]:
    """Return the edges: vertex n is connected with n + 3, but not across a multiple of 100; the chain is apart."""
    spread = [(n, n + 3) for n in range(VERTICES - 3) if n // 100 == (n + 3) // 100]
    chain = [(VERTICES + n, VERTICES + n + 1) for n in range(CHAIN - 1)]
    return spread + chain


def components(max_supersteps: int = 100) -> list[tuple[int, int]]:
    """Run the program and return each vertex with the smallest vertex of its component."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    both_ways = env.from_collection(edges()).flat_map(lambda edge: [edge, (edge[1], edge[0])])
    vertices = env.generate_sequence(0, VERTICES + CHAIN - 1).map(lambda vertex: (vertex, vertex))
    iteration = vertices.iterate_delta(vertices, max_supersteps, 0)
    proposed = (
        iteration.get_workset()
        .join(both_ways)
        .where(0)
        .equal_to(0)
        .using(lambda changed, edge: (edge[1], changed[1]))
        .group_by(0)
        .reduce(min)
    )
    improved = (
        proposed.join(iteration.get_solution_set())
        .where(0)
        .equal_to(0)
        .using_flat(lambda proposal, vertex: [proposal] if proposal[1] < vertex[1] else [])
    )
    return sorted(iteration.close_with(improved, improved).collect())


def main() -> None:
    """Print the size of each component."""
    sizes: dict[int, int] = {}
    for _, component in components():
        sizes[component] = sizes.get(component, 0) + 1
    for component, size in sorted(sizes.items()):
        print(f"component of vertex {component}: {size} vertices")


if __name__ == "__main__":
    main()
