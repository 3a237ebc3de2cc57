"""The mutants of a module: where its code can be changed, what is left alone, and a sample drawn by a seed.

A site is a place in the code. One mutant is drawn for a site, so that a comparison, which can be changed in three ways,
weighs no more than a removed call.

Left alone is what no test can judge: annotations and unions of types, decorators, assertions (`assert_never` among
them) and `strict=True` of a `zip`, which asserts that two lists of our own are of one length, `__repr__`, log lines,
the fault points of the campaign, and constants and defaults, of fields and parameters, whose name ends with a unit of
time or size or with `entries`: they say how work is cut, and no test asserts timings. So is what another check judges,
or what cannot be changed: `daemon=True` of a thread, which `tests/test_threads.py` demands of every thread, and the
index of a cell, a list that has one item.
"""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code

from tests.mutation.mutant import ANY, Mutant, equivalents, function_at
from tests.mutation.operators import OPERATORS, Position

_TUNED = re.compile(r"^\w+_(s|ms|bytes|entries)$", re.IGNORECASE)
_LEFT_ARGUMENTS = ("strict=True", "daemon=True")
_CELLS = ("cell", "_cell", "limit", "_limit")  # lists of one item, which several objects share: of the key, of a bound
_SILENT_CALLS = ("_LOG", "_log", "point", "assert_never")  # point: of ekorn.faults


class Site(NamedTuple):
    """A place in a module, and the mutants that are possible there: names of operators, with their count before it."""

    path: str  # below src/ekorn
    position: Position
    choices: tuple[tuple[str, int], ...]


def sample(source: Path, paths: list[str], *, seed: str, size: int | None) -> list[Mutant]:
    """Draw `size` mutants from the sites of these modules, or one for every site; never a listed equivalent."""
    chance = random.Random(seed)
    sites = [site for path in paths for site in sites_of(path, (source / path).read_text())]
    chance.shuffle(sites)
    listed = {identity for identity, _reason in equivalents()}

    def counts(mutant: Mutant) -> bool:
        return mutant.identity not in listed and (*mutant.identity[:3], ANY) not in listed

    drawn: list[Mutant] = []
    for site in sites:
        if len(drawn) == size:
            break
        choices = list(site.choices)
        chance.shuffle(choices)
        possible = (make(site, choice, (source / site.path).read_text()) for choice in choices)
        chosen = next((mutant for mutant in possible if mutant and counts(mutant)), None)
        if chosen is not None:
            drawn.append(chosen)
    return drawn


def every_mutant(path: str, code: str, at: Container[int] | None = None) -> Iterator[Mutant]:
    """Make every mutant of a module, or of the sites at these lines."""
    for site in sites_of(path, code):
        for choice in site.choices if at is None or site.position[0][0] in at else ():
            if mutant := make(site, choice, code):
                yield mutant


def sites_of(path: str, code: str) -> list[Site]:
    """Find the places of a module that can be changed, in their order."""
    counts: defaultdict[str, int] = defaultdict(int)
    found: defaultdict[Position, list[tuple[str, int]]] = defaultdict(list)
    for node in ast_nodes(parso.parse(code)):
        for name, operator in OPERATORS.items():
            for position in operator.mutation_positions(node):
                if not _is_left_alone(node):
                    found[position].append((name, counts[name]))
                counts[name] += 1
    return [Site(path, position, tuple(choices)) for position, choices in sorted(found.items())]


def make(site: Site, choice: tuple[str, int], code: str) -> Mutant | None:
    """Make one mutant of a site; None when the change is not Python, or none at all."""
    name, occurrence = choice
    mutated = mutate_code(code, OPERATORS[name], occurrence)
    try:
        if mutated is None or ast.dump(ast.parse(mutated)) == _dumped(code):
            return None
    except SyntaxError:
        return None  # `if not x := y`: not every condition can be negated in place
    line = site.position[0][0]
    before, after = _changed_lines(code, mutated)
    return Mutant(site.path, line, function_at(code, line), name, before, after, mutated)


@cache
def _dumped(code: str) -> str:
    return ast.dump(ast.parse(code))


def _changed_lines(code: str, mutated: str) -> tuple[str, str]:
    """Return the lines that differ, of both, without indentation."""
    old, new = code.splitlines(), mutated.splitlines()
    first = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    last = next(i for i, (a, b) in enumerate(zip(reversed(old), reversed(new), strict=False)) if a != b)
    return _joined(old[first : len(old) - last]), _joined(new[first : len(new) - last])


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _is_left_alone(node: Any) -> bool:
    if node.type == "simple_stmt" and _is_silent_call(node.children[0]):
        return True
    if node.type == "operator" and node.value == "|" and not parso.tree.search_ancestor(node, "funcdef"):
        return True  # the union of an alias of types
    child, around = None, node
    while around is not None:
        if around.type in ("decorator", "decorators", "assert_stmt", "tfpdef"):
            return True
        if around.type == "annassign" and around.children[1] is child:
            return True
        if around.type == "funcdef" and (around.name.value == "__repr__" or (child and around.annotation is child)):
            return True
        if around.type == "if_stmt" and around.children[1].get_code().strip() == "TYPE_CHECKING":
            return True
        if around.type == "argument" and around.get_code().strip() in _LEFT_ARGUMENTS:
            return True
        if around.type == "trailer" and child is node and _is_item_of_cell(around):
            return True
        if around.type == "expr_stmt" and _is_tuning(around):
            return True
        if around.type == "param" and _TUNED.match(around.name.value):
            return True
        if _is_silent_call(around):
            return True
        child, around = around, around.parent
    return False


def _is_item_of_cell(index: Any) -> bool:
    """Return whether an index, `[0]`, is that of the only item of a cell."""
    before = index.get_previous_sibling()
    return index.children[0].value == "[" and before is not None and before.get_last_leaf().value in _CELLS


def _is_tuning(statement: Any) -> bool:
    """Return whether a statement sets a constant, or the default of a field, whose name ends with a unit."""
    name = statement.children[0].get_code().strip()
    return bool(_TUNED.match(name)) and not parso.tree.search_ancestor(statement, "funcdef")


def _is_silent_call(node: Any) -> bool:
    return node.type == "atom_expr" and node.children[0].type == "name" and node.children[0].value in _SILENT_CALLS
