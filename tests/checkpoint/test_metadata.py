"""Metadata: every field survives a round trip, and every damage is detected."""

import json
import zlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.checkpoint.metadata import CheckpointMetadata, OperatorMetadata, assemble
from ekorn.checkpoint.metadata_file import decode_metadata, encode_metadata
from ekorn.errors import CorruptFileError
from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import InFlightFiles, KeyedFiles, OperatorSnapshot, StateFile, StateInfo, StoredInput
from ekorn.storage.memory import MemoryFiles
from tests.checkpoint.checkpoint_values import JOB, graph, metadata, snapshots, texts, vertex

files = st.one_of(
    st.binary(max_size=20).map(lambda b: StateFile(size=len(b), crc32=zlib.crc32(b), inline=b)),
    st.builds(
        StateFile,
        size=st.integers(0, 2**40),
        crc32=st.integers(0, 2**32 - 1),
        path=st.from_regex(r"(shared|chk-[0-9])/[0-9a-z-]{1,8}", fullmatch=True),
    ),
)
infos = st.one_of(  # the state of an operator cannot expire
    st.builds(StateInfo, name=texts, kind=st.just("value"), type_text=texts, ttl=st.booleans()),
    st.builds(StateInfo, name=texts, kind=st.just("list-union"), type_text=texts, ttl=st.just(False)),
)


in_flight = st.builds(
    InFlightFiles,
    inputs=st.lists(
        st.builds(StoredInput, texts, st.integers(0, 3), st.none() | texts, st.integers(0, 3)), max_size=2
    ).map(tuple),
    files=st.lists(files, max_size=2).map(tuple),
    size_bytes=st.integers(0, 2**40),
)


@st.composite
def operators(draw, number):
    parallelism = draw(st.integers(1, 4))
    maximum = draw(st.integers(parallelism, 128))
    uid, name = draw(st.none() | texts), draw(texts)

    def snapshot():
        first = draw(st.integers(0, maximum - 1))
        keyed = KeyedFiles(first, draw(st.integers(first, maximum - 1)), tuple(draw(st.lists(files, max_size=3))))
        if draw(st.booleans()):
            keyed = replace(keyed, format="rocksdb", names=tuple(f"{i:06}.sst" for i in range(len(keyed.files))))
        return OperatorSnapshot(
            operator_id=f"{number:032x}",
            uid=uid,
            name=name,
            keyed=keyed if draw(st.booleans()) else None,
            operator_state=draw(st.none() | files),
            states=tuple(draw(st.lists(infos, max_size=3))),
            in_flight=draw(st.none() | in_flight),
        )

    subtasks = tuple(snapshot() if draw(st.booleans()) else None for _ in range(parallelism))
    states = {info.name: info for s in subtasks if s for info in s.states}
    return OperatorMetadata(
        operator_id=f"{number:032x}",
        uid=uid,
        name=name,
        parallelism=parallelism,
        max_parallelism=maximum,
        subtasks=subtasks,
        finished=tuple(draw(st.booleans()) for _ in range(parallelism)),
        states=tuple(states.values()),
    )


@st.composite
def anything(draw):
    return CheckpointMetadata(
        checkpoint_id=draw(st.integers(0, 2**50)),
        job_id=draw(texts),
        job_name=draw(texts),
        timestamp_ms=draw(st.integers(-(2**60), 2**60)),
        operators=tuple(draw(operators(number)) for number in range(draw(st.integers(0, 3)))),
        kind=draw(st.sampled_from(["checkpoint", "savepoint"])),
        term=draw(st.integers(0, 100)),
    )


@given(anything())
def test_metadata_reads_back_as_written(value):
    assert decode_metadata(encode_metadata(value), "m") == value


@pytest.fixture
def encoded():
    job = graph(vertex(0, "source", source=True), vertex(1, "count", "sink", parallelism=2))
    return encode_metadata(metadata(job, MemoryFiles(), 7, inline_threshold=15))


def refused(data):
    with pytest.raises(CorruptFileError) as caught:
        decode_metadata(data, "job/chk-7/_metadata")
    assert "job/chk-7/_metadata" in str(caught.value)
    return str(caught.value)


def test_a_flipped_bit_is_found_wherever_it_is(encoded):
    for position in range(len(encoded)):
        flipped = bytearray(encoded)
        flipped[position] ^= 1 << (position % 8)
        refused(bytes(flipped))


def test_a_cut_is_found_wherever_it_is(encoded):
    for size in [*range(100), *range(100, len(encoded), 7)]:
        refused(encoded[:size])
    refused(encoded + b" ")


def test_a_newer_format_is_refused_with_both_versions(encoded):
    message = refused(encoded.replace(b"CHECKPOINT 1 ", b"CHECKPOINT 3 ", 1))
    assert "version 3" in message
    assert "version 2" in message


def test_every_file_of_a_format_with_names_has_one(encoded):
    def change(document):
        document["operators"][0]["subtasks"][0]["keyed"] |= {"format": "rocksdb", "names": ["CURRENT", "000001.sst"]}

    assert "2 names for 1 files" in refused(forged(encoded, change))


def test_a_foreign_file_is_refused():
    assert "starts with" in refused(b"PK\x03\x04 some archive")
    assert "starts with" in refused(b"")


def forged(encoded, change):
    """Return metadata whose document was changed on purpose, with a correct checksum."""
    document = json.loads(encoded.split(b"\n", 1)[1])
    change(document)
    body = json.dumps(document).encode()
    return b"EKORN-CHECKPOINT 1 %d %08x\n" % (len(body), zlib.crc32(body)) + body


def first_file(document):
    return document["operators"][0]["subtasks"][0]["keyed"]["files"][0]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: first_file(d).update(path="../../etc/passwd"),
        lambda d: first_file(d).update(path="/etc/passwd"),
        lambda d: first_file(d).update(inline=""),
        lambda d: first_file(d).pop("path"),
        lambda d: first_file(d).update(size=-1),
        lambda d: first_file(d).update(crc32=3),
        lambda d: d.pop("job_id"),
        lambda d: d.update(kind="other"),
        lambda d: d.update(checkpoint_id="7"),
        lambda d: d.update(checkpoint_id=True),
        lambda d: d.update(operators=None),
        lambda d: d["operators"].append(d["operators"][0]),
        lambda d: d["operators"][0].update(parallelism=2),
        lambda d: d["operators"][0].update(max_parallelism=0),
        lambda d: d["operators"][0].update(finished=[1]),
        lambda d: d["operators"][0].update(finished=[0, 1]),
        lambda d: d["operators"][0]["subtasks"][0]["keyed"].update(key_groups=[0, 128]),
        lambda d: d["operators"][0]["subtasks"][0].update(states=[5]),
        lambda d: d["operators"][0]["subtasks"][0].update(states=[-1]),
        lambda d: d["operators"][0]["subtasks"][0].update(
            operator_state={"size": 1, "crc32": "00000000", "inline": "eA=="}
        ),
    ],
)
def test_a_forged_document_with_a_right_checksum_is_refused(encoded, change):
    decode_metadata(forged(encoded, lambda d: None), "m")
    assert "not metadata" in refused(forged(encoded, change))


def test_assembly_puts_every_answer_under_its_operator():
    job = graph(vertex(0, "source", source=True), vertex(1, "count", "sink", parallelism=2))
    answers = snapshots(job, MemoryFiles(), 3, finished={(0, 0)})
    result = assemble(job, job_id=JOB, checkpoint_id=3, timestamp_ms=5, snapshots=reversed(answers))
    assert [(o.uid, o.parallelism) for o in result.operators] == [("source", 1), ("count", 2), ("sink", 2)]
    assert result.operators[0].finished == (True,)
    assert result.operators[1].finished == (False, False)
    assert result.operators[2].subtasks == (answers[1].operators[1], answers[2].operators[1])
    assert result.operators[2].states == (StateInfo("count", "value"),)
    assert result.state_bytes == 5 * 30


def test_a_subtask_that_finished_before_takes_no_part_but_keeps_its_place():
    job = graph(vertex(0, "source", parallelism=2, source=True))
    answers = snapshots(job, MemoryFiles(), 3)
    result = assemble(
        job, job_id=JOB, checkpoint_id=3, timestamp_ms=5, snapshots=answers[1:], finished=frozenset({SubtaskId(0, 0)})
    )
    assert result.operators[0].finished == (True, False)
    assert result.operators[0].subtasks == (None, answers[1].operators[0])
    assert not result.operators[0].fully_finished


def test_the_file_is_legible():
    text = encode_metadata(CheckpointMetadata(7, "j", "wörd count", 5, ())).decode()
    assert text.startswith("EKORN-CHECKPOINT 1 ")
    assert '"job_name": "wörd count"' in text
