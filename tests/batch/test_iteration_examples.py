"""The examples of iterations find what other methods find."""

from __future__ import annotations

import pytest

from ekorn.testing.local_run import on_local_engine
from tests.batch.example_programs import example


def test_the_components_are_those_that_a_search_finds(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("connected_components")
    neighbours: dict[int, set[int]] = {vertex: set() for vertex in range(module.VERTICES + module.CHAIN)}
    for a, b in module.edges():
        neighbours[a].add(b)
        neighbours[b].add(a)
    expected: dict[int, int] = {}
    for start in neighbours:  # in ascending order: a vertex that no search has reached is the least of its component
        pending = [] if start in expected else [start]
        while pending:
            vertex = pending.pop()
            if vertex not in expected:
                expected[vertex] = start
                pending += neighbours[vertex]
    with on_local_engine():
        assert module.components() == sorted(expected.items())
        module.main()
    assert "component of vertex 400: 12 vertices" in capsys.readouterr().out


def test_the_ranks_are_those_of_the_power_method(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("page_rank")
    links = {page: [to for to in targets if to < module.PAGES] for page, targets in module.links()}
    ranks = dict.fromkeys(links, 1 / module.PAGES)
    settled = False
    while not settled:
        new = dict.fromkeys(links, (1 - module.DAMPING) / module.PAGES)
        for page, targets in links.items():
            for to in targets:
                new[to] += module.DAMPING * ranks[page] / len(targets)
        settled = all(abs(new[page] - ranks[page]) <= module.SETTLED for page in links)
        ranks = new
    with on_local_engine():
        found = dict(module.ranks())
        module.main()
    assert found == pytest.approx(ranks)
    assert capsys.readouterr().out.startswith("page  1")


def test_the_ways_are_those_that_a_search_finds(capsys: pytest.CaptureFixture[str]) -> None:
    module = example("transitive_closure")
    expected = set()
    for start, _ in module.ROADS:
        pending = [start]
        while pending:
            place = pending.pop()
            for way in [(start, to) for origin, to in module.ROADS if origin == place]:
                if way not in expected:
                    expected.add(way)
                    pending.append(way[1])
    with on_local_engine():
        assert module.ways() == sorted(expected)
        module.main()
    assert "harbour -> bridge, farm, forest, market, mill" in capsys.readouterr().out
