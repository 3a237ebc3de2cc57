"""What a mutant may change: operators of Cosmic Ray, and a few of our own for what it leaves alone.

Cosmic Ray replaces operators, numbers and conditions. It removes no statement, so a forgotten
`fsync` would be no mutant: `RemoveCall` and `RemoveAssignment` are for that. Replacements that fail with a `TypeError`
in every test (`+` by `<<`) are left out, because a score made of them says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import parso
from cosmic_ray.exceptions import CosmicRayTestingException
from cosmic_ray.operators import (
    binary_operator_replacement,
    boolean_replacer,
    break_continue,
    comparison_operator_replacement,
    number_replacer,
    unary_operator_replacement,
    zero_iteration_for_loop,
)
from cosmic_ray.operators.operator import Operator
from parso.python.tree import Keyword, Name

Position = tuple[tuple[int, int], tuple[int, int]]

_REPLACED = (
    *("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt"),
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
    *("Add_Sub", "Sub_Add", "Mul_FloorDiv", "FloorDiv_Mul", "Div_Mul", "Mod_FloorDiv", "Pow_Mul"),
    *("LShift_RShift", "RShift_LShift", "BitOr_BitAnd", "BitAnd_BitOr", "BitXor_BitOr"),
    *("Delete_Not", "Delete_USub"),
)


class RemoveCall(Operator):
    """Replace a statement that is a call by `pass`."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "simple_stmt" and node.children[0].type == "atom_expr":
            call = node.children[0]
            if call.children[-1].type == "trailer" and call.children[-1].children[0].value == "(":
                yield call.start_pos, call.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return _without_first(node)

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class RemoveAssignment(Operator):
    """Replace an assignment to an attribute or an item by `pass`, except while an object is made."""

    _MAKERS = ("__init__", "__post_init__", "__setstate__")

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "simple_stmt" and node.children[0].type == "expr_stmt":
            statement = node.children[0]
            function = parso.tree.search_ancestor(node, "funcdef")
            if (
                statement.children[0].type == "atom_expr"
                and function is not None
                and function.name.value not in self._MAKERS
            ):
                yield statement.start_pos, statement.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        return _without_first(node)

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapMembership(Operator):
    """Replace `in` by `not in`, and the reverse."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comparison" and node.children[1].get_code().split()[-1:] == ["in"]:
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        is_in = node.children[1].get_code().split() == ["in"]
        node.children[1] = parso.parse(" not in" if is_in else " in")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class NegateFilter(Operator):
    """Negate the condition of a comprehension."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[1] = parso.parse(f" not ({node.children[1].get_code().strip()})")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class SwapMinMax(Operator):
    """Replace a call of `min` by one of `max`, and the reverse."""

    _OTHER = {"min": "max", "max": "min"}

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "name" and node.value in self._OTHER and _is_called(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = self._OTHER[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class ReplaceException(Operator):
    """Replace an exception that is caught by one that nothing raises. Cosmic Ray's own fails at `except a.B`."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        for caught in _caught(node):
            yield caught.start_pos, caught.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        caught = _caught(node)[index]
        siblings = caught.parent.children
        prefix = caught.get_first_leaf().prefix
        siblings[siblings.index(caught)] = Name(CosmicRayTestingException.__name__, caught.start_pos, prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


def _caught(clause: Any) -> list[Any]:
    if clause.type != "except_clause":
        return []
    caught = clause.children[1]
    if caught.type != "atom":
        return [caught]
    inside = caught.children[1]
    return inside.children[::2] if inside.type == "testlist_comp" else [inside]


def _is_called(name: Any) -> bool:
    call = name.parent
    return call.type == "atom_expr" and call.children[0] is name and call.children[1].children[0].value == "("


def _without_first(statement: Any) -> Any:
    removed = statement.children[0]
    statement.children[0] = Keyword("pass", removed.start_pos, removed.get_first_leaf().prefix)
    return statement


def _chosen() -> Iterator[Operator]:
    for operator in chain(
        comparison_operator_replacement.operators(),
        binary_operator_replacement.operators(),
        unary_operator_replacement.operators(),
    ):
        if operator.__name__.partition("Operator_")[2] in _REPLACED:
            yield operator()
    yield from (
        boolean_replacer.AddNot(),
        boolean_replacer.ReplaceTrueWithFalse(),
        boolean_replacer.ReplaceFalseWithTrue(),
        boolean_replacer.ReplaceAndWithOr(),
        boolean_replacer.ReplaceOrWithAnd(),
        break_continue.ReplaceBreakWithContinue(),
        break_continue.ReplaceContinueWithBreak(),
        number_replacer.NumberReplacer(),
        zero_iteration_for_loop.ZeroIterationForLoop(),
    )
    yield from (RemoveCall(), RemoveAssignment(), SwapMembership(), NegateFilter(), SwapMinMax(), ReplaceException())


OPERATORS: dict[str, Operator] = {type(operator).__name__: operator for operator in _chosen()}
