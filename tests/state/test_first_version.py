"""Keyed state of format version 1: its tables are read without running anything that they name."""

import datetime
import decimal
import enum
import os
import pickle
import subprocess
import uuid
import zlib
from collections import namedtuple
from dataclasses import dataclass
from subprocess import Popen

import cloudpickle
import pytest

from ekorn.common import Duration, Row
from ekorn.errors import CorruptFileError
from ekorn.state.canonical_format import decode_file
from ekorn.state.snapshots import StateFile
from ekorn.storage.memory import MemoryFiles


@dataclass(frozen=True)
class Key:
    name: str


@dataclass(frozen=True, slots=True)
class Slotted:
    name: str


class Colour(enum.Enum):
    RED = 1


Point = namedtuple("Point", "x y")
OldName = Key


def payload_of(table):
    return len(table).to_bytes(4, "little") + table


def read(payload):
    file = StateFile(len(payload), zlib.crc32(payload), inline=payload)
    return list(decode_file(MemoryFiles(), file, "'count' (uid 'u1')"))


KEYS = [
    "text",
    (1, 2.5, None, True, b"x", frozenset({1})),
    1 + 2j,
    range(3),
    decimal.Decimal("1.5"),
    datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
    datetime.date(2024, 1, 2),
    datetime.timedelta(1),
    uuid.UUID(int=7),
    Row(name="a", age=1),
    Duration.of_millis(7),
    Key("a"),
    Slotted("a"),
    Colour.RED,
    Point(1, 2),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: type(key).__name__)
def test_the_keys_of_programs_are_read(key):
    table = ("name", "value", [key], [bytearray(b"kept")], [key])
    assert read(payload_of(pickle.dumps(table, pickle.HIGHEST_PROTOCOL))) == [table]


def test_an_enum_is_read_from_every_version_of_python():
    """Some versions pickle a member as an attribute of its class."""
    module = __name__.encode()
    table = b"(Vname\nVvalue\n(lcbuiltins\ngetattr\n(c%b\nColour\nVRED\ntRa(lI1\na(lt." % module
    assert read(payload_of(table)) == [("name", "value", [Colour.RED], [1], [])]


def test_a_class_is_found_under_an_alias():
    table = b"(Vname\nVvalue\n(lc%b\nOldName\n(Va\ntRa(lI1\na(lt." % __name__.encode()
    assert read(payload_of(table)) == [("name", "value", [Key("a")], [1], [])]


MODULE = __name__
HOSTILE = {
    "a command": ("os", "system"),
    "a command by its own module": ("posix", "system"),
    "a process": ("subprocess", "Popen"),
    "evaluation": ("builtins", "eval"),
    "imports": ("builtins", "__import__"),
    "attributes of anything": ("operator", "attrgetter"),
    "code by value": ("cloudpickle.cloudpickle", "_make_function"),
    "a module that the program imported": (MODULE, "os.system"),
    "a class that the program imported": (MODULE, "Popen"),
    "the inside of a function": (MODULE, "read.__globals__"),
    "a function of ekorn": ("ekorn.state.rocksdb.instance_files", "shutil.rmtree"),
    "the inside of a function of ekorn": ("ekorn.common.types", "make_row.__globals__"),
}
assert os.name and subprocess.Popen is Popen and cloudpickle.dumps  # this module has the names


@pytest.mark.parametrize("name", HOSTILE)
def test_a_table_that_names_anything_else_is_refused_with_file_and_operator(name, tmp_path):
    module, attribute = HOSTILE[name]
    mark = tmp_path / "mark"
    # Protocol 4: names with dots are followed into objects.
    text = b"\x8c%c%b\x8c%c%b" % (len(module), module.encode(), len(attribute), attribute.encode())
    argument = f"touch {mark}".encode()
    call = b"\x80\x04" + text + b"\x93\x8c%c%b\x85R." % (len(argument), argument)
    with pytest.raises(CorruptFileError) as caught:
        read(payload_of(call))
    said = str(caught.value)
    assert "inline state" in said and "'count' (uid 'u1')" in said and f"names {module}.{attribute}" in said
    assert not mark.exists()


def test_getattr_finds_members_of_enums_alone():
    table = b"(Vname\nVvalue\n(lcbuiltins\ngetattr\n(c%b\nKey\nV__init__\ntRa(lI1\na(lt." % __name__.encode()
    with pytest.raises(CorruptFileError, match="not a member of an enum"):
        read(payload_of(table))


def test_a_chunk_whose_length_reads_as_the_magic_of_the_second_version_is_still_of_the_first():
    with pytest.raises(CorruptFileError, match=r"a chunk of 1263354196 bytes at 4 runs past the end"):
        read(b"EKOK" + pickle.dumps(("name", "value", [], [], []), pickle.HIGHEST_PROTOCOL))
