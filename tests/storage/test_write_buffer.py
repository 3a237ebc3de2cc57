"""`execution.checkpointing.write-buffer-size`: the largest write to a local file."""

import io

import pytest

from ekorn.storage import durable
from ekorn.storage.file_store import open_files


@pytest.fixture
def pieces(monkeypatch):
    """Record the sizes of all writes to files."""
    sizes = []

    class Counting(io.FileIO):
        def write(self, data):
            sizes.append(len(data))
            return super().write(data)

    def opened(file, mode, buffering=-1):
        return Counting(file, "wb") if mode == "wb" else open(file, mode)

    monkeypatch.setattr(durable, "open", opened, raising=False)
    return sizes


@pytest.mark.parametrize("buffer, expected", [(None, [95]), (40, [40, 40, 15]), (95, [95]), (1000, [95])])
def test_a_file_is_written_in_pieces_of_the_buffer_s_size(tmp_path, pieces, buffer, expected):
    for address in (str(tmp_path / "a"), f"file://{tmp_path}/b"):
        store = open_files(address, write_buffer=buffer)
        pieces.clear()
        store.below("sub").write("file", b"x" * 95)
        assert pieces == expected
        assert store.read("sub/file") == b"x" * 95
