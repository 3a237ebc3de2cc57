"""The classic programs of the DataSet API find what plain Python finds."""

from __future__ import annotations

import datetime
import math
from collections import Counter, defaultdict
from itertools import combinations

import pytest

from ekorn.dataset import ExecutionEnvironment
from ekorn.testing import on_local_engine
from tests.batch.example_programs import example


@pytest.fixture
def env() -> ExecutionEnvironment:
    return ExecutionEnvironment().set_parallelism(3)


def test_words(env, capsys):
    module = example("word_count")
    words = [word.strip(".,:;'").lower() for word in module.TEXT.split()]
    expected = sorted(Counter(words).items(), key=lambda found: (-found[1], found[0]))
    with on_local_engine():
        assert module.counted(env.from_collection(module.TEXT.splitlines())).collect() == expected
        module.main()
    assert capsys.readouterr().out.startswith("   4 to\n")


def test_words_of_a_file(tmp_path, capsys):
    module = example("word_count")
    (tmp_path / "text").write_text("b a b\n")
    with on_local_engine():
        module.main(str(tmp_path / "text"))
    assert capsys.readouterr().out == "   2 b\n   1 a\n"


def test_clusters(capsys):
    module = example("k_means")
    centres = [tuple(centre[1:]) for centre in module.first_centres()]
    for _ in range(module.SUPERSTEPS):
        near = defaultdict(list)
        for point in module.points():
            near[min(range(len(centres)), key=lambda number: math.dist(centres[number], point))].append(point)
        centres = [
            (sum(x for x, _ in near[number]) / len(near[number]), sum(y for _, y in near[number]) / len(near[number]))
            for number in range(len(centres))
        ]
    with on_local_engine():
        found = module.clustered()
        module.main()
    assert [centre.number for centre in found] == [0, 1, 2]
    for centre, (x, y) in zip(found, centres, strict=True):
        assert (centre.x, centre.y) == pytest.approx((x, y))
    assert "cluster 1 around (10.2, 1.0)" in capsys.readouterr().out


def test_triangles(env, capsys):
    module = example("triangles")
    edges = set(module.edges())
    expected = [
        three
        for three in combinations(range(module.VERTICES), 3)
        if all(pair in edges for pair in combinations(three, 2))
    ]
    with on_local_engine():
        assert sorted(module.triangles(env.from_collection(module.edges())).collect()) == expected
        module.main()
    assert capsys.readouterr().out.startswith(f"{len(expected)} triangles")


def test_reports_of_a_shop(env, capsys):
    module = example("shop_reports")
    shop = module.generated()
    day = datetime.date(1995, 7, 1)
    of_segment = {each.key for each in shop.customers if each.segment == "BUILDING"}
    worth = {}
    for order in shop.orders:
        lines = [item.revenue for item in shop.items if item.order == order.key and item.shipped > day]
        if order.customer in of_segment and order.day < day and lines:
            worth[order.key] = (order.key, sum(lines), order.day, order.priority)
    expected = sorted(worth.values(), key=lambda row: (-row[1], row[0]))[:10]
    with on_local_engine():
        found = module.unshipped_orders(env, shop, "BUILDING", day)
    assert [(*row[:1], *row[2:]) for row in found] == [(*row[:1], *row[2:]) for row in expected]
    assert [row[1] for row in found] == pytest.approx([row[1] for row in expected])

    first, last = datetime.date(1995, 4, 1), datetime.date(1995, 6, 30)
    lost: Counter[int] = Counter()
    customer_of = {order.key: order.customer for order in shop.orders if first <= order.day <= last}
    for item in shop.items:
        if item.returned and item.order in customer_of:
            lost[customer_of[item.order]] += item.revenue
    best = sorted(lost.items(), key=lambda row: (-row[1], row[0]))[:20]
    with on_local_engine():
        found = module.returns(env, shop, first, last)
        module.main()
    assert [row[0] for row in found] == [key for key, _ in best]
    assert [row[1] for row in found] == pytest.approx([revenue for _, revenue in best])
    assert "customer      returned" in capsys.readouterr().out


def test_forgotten_pages(env, capsys):
    module = example("web_log")
    visited = {visit.url for visit in module.visits() if visit.year == module.YEAR}
    about = {url for url, text in module.documents() if len(set(text.split()) & set(module.WORDS)) >= 2}
    expected = [
        rank
        for rank in module.ranks()
        if rank.rank > module.LEAST_RANK and rank.url in about and rank.url not in visited
    ]
    with on_local_engine():
        inputs = [env.from_collection(each) for each in (module.documents(), module.ranks(), module.visits())]
        assert sorted(module.forgotten(*inputs).collect()) == sorted(expected)
        module.main()
    assert len(capsys.readouterr().out.splitlines()) == 5
