"""The ranks of pages that link to each other, by a bulk iteration that ends when the ranks settle.

    python examples/dataset/page_rank.py

Each superstep hands the rank of a page to the pages it links to, in equal parts. The iteration ends when no rank has
changed by more than a small amount. The pages and their links stay the same: they are put into an index once.
"""

from __future__ import annotations

from ekorn.dataset import ExecutionEnvironment

PAGES = 30
DAMPING = 0.85
SETTLED = 1e-4


def links() -> list[tuple[int, list[int]]]:
    """Return each page with the pages it links to. Low numbers are linked to more often."""
    return [(page, sorted({(page * page + 3 * n) % (page + 2) for n in range(1, 4)})) for page in range(PAGES)]


def ranks(max_supersteps: int = 60) -> list[tuple[int, float]]:
    """Run the program and return the rank of each page."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    known = {page for page, _ in links()}
    pages = env.from_collection([(page, [target for target in to if target in known]) for page, to in links()])
    initial = pages.map(lambda page: (page[0], 1.0 / PAGES))
    iteration = initial.iterate(max_supersteps)
    shared = (
        iteration.join(pages)
        .where(0)
        .equal_to(0)
        .using_flat(lambda rank, page: [(page[0], 0.0), *[(to, rank[1] / len(page[1])) for to in page[1]]])
    )
    new_ranks = (
        shared.group_by(0)
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .map(lambda rank: (rank[0], (1 - DAMPING) / PAGES + DAMPING * rank[1]))
    )
    changed = (
        new_ranks.join(iteration)
        .where(0)
        .equal_to(0)
        .using_flat(lambda new, old: [new[0]] if abs(new[1] - old[1]) > SETTLED else [])
    )
    return sorted(iteration.close_with(new_ranks, changed).collect())


def main() -> None:
    """Draw a bar for each of the best pages."""
    for page, rank in sorted(ranks(), key=lambda found: -found[1])[:10]:
        print(f"page {page:>2}  {rank:.4f}  {'#' * int(rank * 200)}")


if __name__ == "__main__":
    main()
