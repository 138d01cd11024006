"""Entries of the cache: whole or not there, whatever happens to their files."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from tapestry.diagnostics import UsageError
from tapestry.logs import configure
from tapestry.store import Store, cache_directory, find_store, key_of

KEY = key_of({"program": "p"})
ANSWER = {"module": [1, 2.5, "three", None], "more": {"a": True}}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "kind")


def test_what_is_written_is_read(store):
    assert store.read(KEY) is None
    store.write(KEY, ANSWER)
    assert store.read(KEY) == ANSWER
    assert store.read(key_of({"program": "q"})) is None


def _entry(store: Store) -> Path:
    store.write(KEY, ANSWER)
    (path,) = store.folder.iterdir()
    return path


def test_every_flipped_byte_is_noticed(store):
    path = _entry(store)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert store.read(KEY) is None, place
    store.write(KEY, ANSWER)
    assert store.read(KEY) == ANSWER


def test_every_truncation_is_noticed(store):
    path = _entry(store)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert store.read(KEY) is None, length
    path.write_bytes(whole + b" ")
    assert store.read(KEY) is None


def test_an_entry_under_another_name_is_none(store):
    path = _entry(store)
    other = key_of({"program": "q"})
    path.rename(path.with_name(f"{other}.json"))
    assert store.read(other) is None


def test_what_others_can_write_to_is_none(store):
    path = _entry(store)
    path.chmod(0o666)
    assert store.read(KEY) is None
    path.chmod(0o600)
    assert store.read(KEY) == ANSWER


def test_a_folder_in_the_place_of_an_entry_is_none(store):
    path = _entry(store)
    path.unlink()
    path.mkdir()
    assert store.read(KEY) is None
    store.write(KEY, ANSWER)  # cannot replace it, and says nothing
    assert list(store.folder.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_to_keeps_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = Store(blocked / "kind")
    store.write(KEY, ANSWER)
    assert store.read(KEY) is None


def test_a_write_that_is_interrupted_leaves_nothing(store, monkeypatch):
    def fail(*_paths):
        raise KeyboardInterrupt

    monkeypatch.setattr("tapestry.store.os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        store.write(KEY, ANSWER)
    assert list(store.folder.iterdir()) == []


def _write_often(folder: str, number: int) -> int:
    """Write one entry and read it, over and over; how often it was not whole."""
    store = Store(Path(folder))
    wrong = 0
    for _ in range(200):
        store.write(KEY, {"by": number, "cells": [number] * 500})
        found = store.read(KEY)
        wrong += found is None or found["cells"] != [found["by"]] * 500
    return wrong


def test_processes_write_at_once(tmp_path):
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(_write_often, [str(tmp_path)] * 2, range(2))) == [0, 0]
    assert len(list(tmp_path.iterdir())) == 1


def test_what_was_not_used_for_longest_goes(tmp_path):
    store = Store(tmp_path, limit=4000)
    keys = [key_of({"number": number}) for number in range(5)]
    for number, key in enumerate(keys[:4]):
        store.write(key, {"cells": "x" * 850})
        os.utime(tmp_path / f"{key}.json", (number, number))
    assert store.read(keys[0]) is not None  # and is used now
    store.write(keys[4], {"cells": "x" * 850})
    assert [store.read(key) is not None for key in keys] == [True, False, False, True, True]


def test_files_of_processes_that_are_no_more_go(store):
    store.write(KEY, ANSWER)
    old, new = store.folder / "old.partial", store.folder / "new.partial"
    old.write_text("")
    new.write_text("")
    os.utime(old, (1, 1))
    store.write(KEY, ANSWER)
    assert not old.exists()
    assert new.exists()


def test_it_is_said_what_was_found(store, capsys):
    configure("cache")
    try:
        store.read(KEY)
        path = _entry(store)
        store.read(KEY)
        path.write_bytes(b"")
        store.read(KEY)
    finally:
        configure("")
    lines = capsys.readouterr().err.splitlines()
    said = ["not there", "found", "damaged, as its digest says"]
    assert lines == [f"tapestry.cache: kind {KEY[:12]}: {what}" for what in said]


@pytest.mark.parametrize(
    ("switch", "kept"),
    [("0", False), ("1", True), ("", True), ("aot,rules", True), ("aot", False)],
)
def test_kinds_are_switched_off(switch, kept, tmp_path, monkeypatch):
    monkeypatch.setenv("TAPESTRY_CACHE", switch)
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path))
    assert (find_store("rules") is not None) == kept


@pytest.mark.parametrize("switch", ["/some/path", "aot,kernels", "true"])
def test_a_kind_that_there_is_not_is_an_error(switch, monkeypatch):
    """Else nothing would be kept, silently."""
    monkeypatch.setenv("TAPESTRY_CACHE", switch)
    with pytest.raises(UsageError, match=r"TAPESTRY_CACHE=.*: no kind .*; there is aot, ") as found:
        find_store("aot")
    assert found.value.hint == "1 keeps all, 0 nothing; TAPESTRY_CACHE_DIR says where"


def test_all_that_is_kept_can_be_listed():
    with pytest.raises(KeyError, match="kernels"):
        find_store("kernels")


def test_where_files_are_kept_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path / "kept"))
    assert cache_directory("triton") == tmp_path / "kept" / "triton"


def test_a_place_that_cannot_be_written_to_is_passed_over(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = cache_directory("triton")
    assert found.is_relative_to(tmp_path)
    found.parent.chmod(0o777)  # now anybody can put kernels there
    with pytest.raises(OSError, match="can be written to"):
        cache_directory("triton")
    monkeypatch.setenv("TAPESTRY_CACHE", "1")
    assert find_store("aot") is None


def test_no_entry_is_executed(store):
    """Entries are JSON: what was pickled is damaged."""
    path = _entry(store)
    path.write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")
    assert store.read(KEY) is None
