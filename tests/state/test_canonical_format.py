"""The canonical format of keyed state: a payload that is not whole is refused by the name of its file."""

import pytest

from ekorn.errors import CorruptFileError
from ekorn.state.canonical_format import TableEntries, decode_file, encode_payloads
from ekorn.state.snapshots import StateInfo
from ekorn.state.state_files import write_state
from ekorn.storage.memory import MemoryFiles


@pytest.fixture
def payload():
    """A payload with the chunks of two states."""
    first, second = (TableEntries(StateInfo(name, "value"), ["a", "b"], [1, 2], ["c"], full=False) for name in "xy")
    (payload,) = encode_payloads([first, second])
    return payload


def decoded(payload):
    store = MemoryFiles()
    return list(decode_file(store, write_state(store, "shared/7-v0-s0-a1.0-00ff", payload, 0), "count"))


def test_a_whole_payload_is_read_back(payload):
    found = decoded(payload)
    for name in "xy":
        chunks = [chunk for chunk in found if chunk.name == name]
        assert {chunk.kind for chunk in chunks} == {"value"}
        assert [key for chunk in chunks for key in chunk.keys] == ["a", "b"]
        assert [value for chunk in chunks for value in chunk.values] == [1, 2]
        assert [key for chunk in chunks for key in chunk.gone] == ["c"]


def test_a_payload_that_is_cut_anywhere_or_followed_by_bytes_is_refused(payload):
    chunks = len(decoded(payload))
    for end in range(5, len(payload)):
        try:
            found = decoded(payload[:end])
        except CorruptFileError as error:
            assert "shared/7-v0-s0-a1.0-00ff" in str(error) and "operator count" in str(error)
        else:
            assert len(found) < chunks  # cut between two chunks: the size of the file reveals that
    for extra in (b"\0", b"\0" * 7, b"\0" * 8, b"\xff" * 40):
        with pytest.raises(CorruptFileError):
            decoded(payload + extra)
