"""Pickled state whose classes changed between a checkpoint and its restore."""

import pickle
import re
import sys
from collections import Counter, namedtuple
from dataclasses import dataclass
from decimal import Decimal

import pytest

from ekorn.common import Row
from ekorn.errors import StateMigrationError
from ekorn.functions.state.state_descriptors import ListStateDescriptor, ValueStateDescriptor
from ekorn.state.declared import Described, declare, merged
from ekorn.state.evolution.pickled_classes import Noting
from tests.state.backends import BACKENDS
from tests.state.evolving import INTO, MODULE, program, restored, snapshot_of


@pytest.fixture(autouse=True)
def no_program_stays_behind():
    yield
    sys.modules.pop(MODULE, None)


# ------------------------------------------------------------------------------- dataclasses and named tuples, untyped


HEADS = {
    "dataclass": "@dataclass",
    "frozen": "@dataclass(frozen=True)",
    "slots": "@dataclass(slots=True)",
    "frozen with slots": "@dataclass(frozen=True, slots=True)",
}


def define(head, fields):
    lines = "\n".join(f"    {line}" for line in fields.split("; ")) if fields else "    pass"
    return program(f"{head}\nclass Visit:\n{lines}\n" if head else f"class Visit(NamedTuple):\n{lines}\n").Visit


def reborn(head, old_fields, values, new_fields, *, wrap=lambda visit: visit, declared=None, backends=("heap", "heap")):
    """Save an instance of a class, change the class, and restore the instance."""
    before = BACKENDS[backends[0]]()
    before.cell[0] = "key"
    visit = define(head, old_fields)
    before.state(ValueStateDescriptor("state", visit if declared else None)).update(wrap(visit(**values)))
    saved = snapshot_of(before)
    visit = define(head, new_fields)
    after = restored(saved, backends[1])
    after.cell[0] = "key"
    return after.state(ValueStateDescriptor("state", visit if declared else None)).value()


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("head", [*HEADS.values(), None], ids=[*HEADS, "named tuple"])
@pytest.mark.parametrize("backends", INTO, ids="-".join)
def test_the_fields_of_a_class_may_change(head, declared, backends):
    found = reborn(
        head,
        "url: str; hits: int; gone: str",
        {"url": "/", "hits": 3, "gone": "x"},
        "hits: float; url: str; by: str = 'nobody'",
        declared=declared,
        backends=backends,
    )
    assert type(found) is sys.modules[MODULE].Visit
    assert (found.url, found.hits, found.by) == ("/", 3.0, "nobody")
    assert not hasattr(found, "gone")
    assert type(found.hits) is float
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_new_field_with_a_factory_has_a_value_of_its_own_in_every_instance(head):
    visits = reborn(
        head, "url: str", {"url": "/"}, "url: str; tags: list = field(default_factory=list)", wrap=lambda v: [v, v]
    )
    visits[0].tags.append("seen")
    assert [visit.tags for visit in visits] == [["seen"], []]


@pytest.mark.parametrize("head", [*HEADS.values(), None], ids=[*HEADS, "named tuple"])
def test_a_class_may_get_its_first_field_and_lose_its_last(head):
    assert reborn(head, "", {}, "n: int = 1").n == 1
    assert not hasattr(reborn(head, "n: int = 1", {}, ""), "n")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda v: [v],
        lambda v: {"k": (1, [v])},
        lambda v: Row(a=v),
        lambda v: (1, v),
        lambda v: {("k", v.url): v},
        lambda v: Counter({v.url: 1}) and [{v.url: [v]}],
    ],
)
def test_instances_are_found_wherever_they_are(wrap):
    found = reborn("@dataclass(frozen=True)", "url: str", {"url": "/"}, "url: str; n: int = 7", wrap=wrap)
    assert "n=7" in repr(found)


def test_classes_inside_classes_change_each_in_their_way():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    old = program(
        """
        @dataclass
        class Address:
            street: str
        @dataclass
        class Person:
            name: str
            at: Address
            former: list[Address]
        """
    )
    state = before.state(ValueStateDescriptor("state"))
    state.update(old.Person("a", old.Address("here"), [old.Address("there")]))
    saved = snapshot_of(before)
    new = program(
        """
        @dataclass
        class Address:
            town: str = "?"
            street: str = ""
        @dataclass
        class Person:
            at: Address
            former: list[Address]
        """
    )
    after = restored(saved)
    after.cell[0] = "key"
    found = after.state(ValueStateDescriptor("state")).value()
    assert found == new.Person(new.Address("?", "here"), [new.Address("?", "there")])


def test_inherited_fields_count():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    old = program("@dataclass\nclass Base:\n    a: int\n@dataclass\nclass Visit(Base):\n    b: int\n")
    before.state(ValueStateDescriptor("state")).update(old.Visit(1, 2))
    saved = snapshot_of(before)
    new = program(
        "@dataclass\nclass Base:\n    c: int\n    a: int\n@dataclass\nclass Visit(Base):\n    b: int\n    d: int = 4\n"
    )
    after = restored(saved)
    after.cell[0] = "key"
    with pytest.raises(StateMigrationError, match="Visit has a new field 'c' of type int without a default"):
        after.state(ValueStateDescriptor("state"))
    new = program(
        "@dataclass\nclass Base:\n    c: int = 3\n    a: int = 0\n@dataclass\nclass Visit(Base):\n    b: int = 0\n"
    )
    assert after.state(ValueStateDescriptor("state")).value() == new.Visit(3, 1, 2)


CLASS_REFUSALS = {
    "no default": ("n: int", "n: int; m: str", "Visit has a new field 'm' of type str without a default"),
    "another type": ("n: int", "n: str", "evolving_program.Visit.n: was int and is str"),
    "a narrower type": ("n: float", "n: int", "evolving_program.Visit.n: was float and is int"),
    "deep inside": (
        "n: list[int] = field(default_factory=list)",
        "n: list[str] = field(default_factory=list)",
        "Visit.n.an element: was int and is str",
    ),
    "other keys": (
        "n: dict[str, int] = field(default_factory=dict)",
        "n: dict[int, int] = field(default_factory=dict)",
        "Visit.n: was MAP(str, int) and is MAP(int, int): the keys of a map cannot change",
    ),
}


@pytest.mark.parametrize("change", CLASS_REFUSALS)
def test_a_class_may_not_change_like_this(change):
    old, new, reason = CLASS_REFUSALS[change]
    values = {} if "=" in old else {"n": 1}
    with pytest.raises(StateMigrationError, match=re.escape(reason)):
        reborn("@dataclass", old, values, new)


@pytest.mark.parametrize(
    ("old", "value", "new", "expected"),
    [
        ("int", 1, "Optional[int]", 1),
        ("Optional[int]", None, "Optional[float]", None),
        ("Optional[int]", 2, "Optional[float]", 2.0),
        ("Optional[int]", 3, "float", 3.0),
        ("bool", True, "int", True),
        ("int", 1, "Any", 1),
        ("'not a type at all'", 1, "str", 1),
        ("dict[str, int]", {"a": 1}, "dict[str, float]", {"a": 1.0}),
        ("tuple[int, str]", (1, "a"), "tuple[float, str]", (1.0, "a")),
        ("Annotated[int, 'hits']", 1, "int", 1),
        ("list[Optional[int]]", [1, None], "list[Optional[float]]", [1.0, None]),
        ("int | str", "x", "int", "x"),
    ],
)
def test_an_annotation_may_change_like_this(old, value, new, expected):
    found = reborn("@dataclass", f"n: {old}; m: int = 0", {"n": value}, f"n: {new}").n
    assert found == expected and type(found) is type(expected)


def test_none_is_refused_where_a_field_can_no_longer_be_empty():
    with pytest.raises(StateMigrationError, match=r"Visit\.n: holds None, which int cannot hold"):
        reborn("@dataclass", "n: Optional[int]", {"n": None}, "n: int")


def test_a_class_that_did_not_change_costs_nothing():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    visit = define("@dataclass", "url: str")
    before.state(ValueStateDescriptor("state")).update(visit("/"))
    after = restored(snapshot_of(before))
    kept = after.heap.by_name["state"].data["key"]
    after.state(ValueStateDescriptor("state"))
    assert after.heap.by_name["state"].data["key"] is kept
    assert f'"{MODULE}:Visit": [["url", "str"]]' in after.infos()[0].schema


def test_a_class_that_is_gone_is_named():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ListStateDescriptor("visits")).add(define("@dataclass", "url: str")("/"))
    saved = snapshot_of(before)
    program("Other = 1")
    with pytest.raises(StateMigrationError) as refused:
        restored(saved).state(ListStateDescriptor("visits"))
    assert "state 'visits' of operator 'count'" in str(refused.value)
    assert (
        f"values contain instances of {MODULE}.Visit, which no longer exists: module {MODULE!r} has no 'Visit'"
    ) in str(refused.value)
    assert "make 'Visit' in that module an alias of the class that replaced it" in str(refused.value)
    sys.modules.pop(MODULE)
    with pytest.raises(StateMigrationError, match=f"module '{MODULE}' cannot be imported"):
        restored(saved).state(ListStateDescriptor("visits"))


@pytest.mark.parametrize("declared", [False, True])
def test_a_class_that_moved_leaves_its_name_behind(declared):
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    visit = define("@dataclass", "url: str")
    before.state(ValueStateDescriptor("state", visit if declared else None)).update(visit("/"))
    saved = snapshot_of(before)
    new = program("@dataclass\nclass PageView:\n    url: str\n    n: int = 1\nVisit = PageView\n")
    after = restored(saved)
    after.cell[0] = "key"
    found = after.state(ValueStateDescriptor("state", new.PageView if declared else None)).value()
    assert found == new.PageView("/", 1)


def test_a_declared_class_cannot_become_another():
    before = BACKENDS["heap"]()
    old = program("@dataclass\nclass Visit:\n    url: str\n@dataclass\nclass PageView:\n    url: str\n")
    before.state(ValueStateDescriptor("state", old.Visit))
    with pytest.raises(StateMigrationError, match=f"was {MODULE}.Visit and is {MODULE}.PageView"):
        restored(snapshot_of(before)).state(ValueStateDescriptor("state", old.PageView))


def test_a_class_that_is_gone_does_not_matter_when_no_value_is_made_of_it_any_more():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    state = before.state(ValueStateDescriptor("state"))
    state.update(define("@dataclass", "url: str")("/"))
    state.update(["plain"])
    saved = snapshot_of(before)
    program("")
    after = restored(saved)
    after.cell[0] = "key"
    assert after.state(ValueStateDescriptor("state")).value() == ["plain"]
    assert "Visit" not in after.infos()[0].schema


def test_classes_of_values_that_were_only_restored_are_remembered():
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state")).update(define("@dataclass", "url: str")("/"))
    between = restored(snapshot_of(before))
    between.state(ValueStateDescriptor("state"))
    saved = snapshot_of(between)
    visit = define("@dataclass", "n: int = 1; url: str = ''")
    after = restored(saved)
    after.cell[0] = "key"
    assert after.state(ValueStateDescriptor("state")).value() == visit(1, "/")


def test_a_class_that_pickles_in_its_own_way_evolves_in_its_own_way():
    source = """
        @dataclass
        class Visit:
            url: str
            {more}
            def __getstate__(self):
                return {{"version": 1, "url": self.url}}
            def __setstate__(self, state):
                self.url = state["url"] + "?"
                self.n = 5
    """
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state")).update(program(source.format(more="pass")).Visit("/"))
    saved = snapshot_of(before)
    program(source.format(more="n: int"))
    after = restored(saved)
    after.cell[0] = "key"
    found = after.state(ValueStateDescriptor("state")).value()
    assert (found.url, found.n) == ("/?", 5)


def test_attributes_beside_the_fields_stay():
    visit = define("@dataclass", "url: str")
    page = visit("/")
    page.cached = "something"
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state")).update(page)
    saved = snapshot_of(before)
    define("@dataclass", "n: int = 1")
    after = restored(saved)
    after.cell[0] = "key"
    assert vars(after.state(ValueStateDescriptor("state")).value()) == {"cached": "something", "n": 1}


def test_a_class_of_a_function_is_kept_with_its_definition():
    @dataclass
    class Local:
        n: int

    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state")).update(Local(1))
    after = restored(snapshot_of(before))
    after.cell[0] = "key"
    assert after.state(ValueStateDescriptor("state")).value().n == 1
    with pytest.raises(ValueError, match="defined inside a function"):
        ValueStateDescriptor("state", Local)


def test_members_of_an_enum_that_is_gone_are_named():
    colours = program("class Colour(Enum):\n    RED = 1\n")
    before = BACKENDS["heap"]()
    before.cell[0] = "key"
    before.state(ValueStateDescriptor("state")).update(("a", colours.Colour.RED))
    saved = snapshot_of(before)
    after = restored(saved)
    after.cell[0] = "key"
    assert after.state(ValueStateDescriptor("state")).value() == ("a", colours.Colour.RED)
    program("")
    with pytest.raises(StateMigrationError, match=f"contain instances of {MODULE}.Colour, which no longer exists"):
        restored(saved).state(ValueStateDescriptor("state"))


def test_values_of_all_subtasks_are_described_together():
    first, second = declare(ValueStateDescriptor("s"), "value"), declare(ValueStateDescriptor("s"), "value")
    first.value.stored([Row(1)])
    first.value.stored(namedtuple_in_module()(1))
    second.value.stored(Decimal)
    (info,) = merged([first.saved_as(), second.saved_as()])
    assert set(Described.decode(info.schema, "s").classes) == {f"{MODULE}:Pair", "decimal:Decimal"}


def namedtuple_in_module():
    module = program("")
    module.Pair = namedtuple("Pair", "left", module=MODULE)  # type: ignore[misc]
    return module.Pair


def test_noting_pickles_as_pickle_does():
    noting = Noting()
    cyclic = []
    cyclic.append(cyclic)
    for value in ([1, "a"], {"k": (1, 2)}, Decimal("1.5"), Row(a=1), {1, 2}):
        assert pickle.loads(noting.dumps(value)) == value
    assert pickle.loads(noting.dumps(cyclic))[0].__class__ is list  # a failure does not spoil later values
    assert pickle.loads(noting.dumps([1])) == [1]
    assert set(noting.described()) == {"decimal:Decimal"}


class Unwilling:
    def __getstate__(self):
        raise LookupError("not this one")


def test_a_value_that_cannot_be_pickled_leaves_nothing_in_the_next_one():
    noting = Noting()
    with pytest.raises(LookupError, match="not this one"):
        noting.dumps([bytes(100_000), Unwilling()])
    assert noting.dumps([1]) == Noting().dumps([1])


def test_a_short_value_after_a_long_one_has_no_bytes_of_the_long_one():
    noting = Noting()
    noting.dumps(["long"] * 100)
    assert noting.dumps([1]) == Noting().dumps([1])
