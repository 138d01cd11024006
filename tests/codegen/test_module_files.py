"""Printed modules as files: named by content, written whole, never trusted when damaged."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tapestry.codegen import module_files
from tapestry.codegen.module_files import load_kernels, write_module
from tapestry.diagnostics import TapestryError
from tapestry.store import trim

SOURCE = "VALUE = 3\n"


def test_equal_sources_share_a_file(tmp_path):
    first, second = write_module(SOURCE, tmp_path), write_module(SOURCE, tmp_path)
    assert first == second
    assert write_module("VALUE = 4\n", tmp_path) != first
    assert len(list(tmp_path.iterdir())) == 2


def test_a_damaged_file_is_written_again(tmp_path):
    path = write_module(SOURCE, tmp_path)
    for damage in (b"VALUE", b"\xff\xfe\x00"):
        path.write_bytes(damage)
        assert write_module(SOURCE, tmp_path) == path
        assert path.read_text() == SOURCE


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_paths):
        raise KeyboardInterrupt

    monkeypatch.setattr("tapestry.codegen.module_files.os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_module(SOURCE, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_is_none_to_write_to(tmp_path, monkeypatch):
    """The file is elsewhere then; where there is no room either, that is said."""
    own = module_files.tempfile.mkstemp

    def mkstemp(*, dir, suffix):  # noqa: A002 - its name
        if full in (None, dir):
            raise OSError(28, "No space left on device")
        return own(dir=dir, suffix=suffix)

    monkeypatch.setattr(module_files.tempfile, "mkstemp", mkstemp)
    full = tmp_path
    path = write_module(SOURCE, tmp_path)
    assert path.parent != tmp_path
    assert path.read_text() == SOURCE
    full = None
    with pytest.raises(TapestryError, match="cannot be written to a file: No space left"):
        write_module("VALUE = 5\n", tmp_path)


def test_what_was_not_used_for_longest_goes_where_there_is_much(tmp_path, monkeypatch):
    """Of the cache alone: a folder of the caller's may hold anything."""
    monkeypatch.setenv("TAPESTRY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module_files, "_TRIMMING", "0123456789abcdef")
    monkeypatch.setattr(module_files, "trim", lambda folder: trim(folder, 100))
    sources = [f"VALUE = '{n:030}'\n" for n in range(4)]
    paths = [write_module(sources[0])]
    os.utime(paths[0], (1, 1))
    paths.append(write_module(sources[1]))
    os.utime(paths[1], (2, 2))
    assert write_module(sources[0]) == paths[0]
    assert paths[0].stat().st_mtime > 2
    paths += map(write_module, sources[2:])
    assert [path.exists() for path in paths][1] is False
    assert paths[-1].read_text() == sources[-1]
    own = tmp_path / "own"
    own.mkdir()
    assert all(write_module(source, own).exists() for source in sources)
    assert len(list(own.iterdir())) == 4


def test_threads_share_the_folder_for_temporary_files(monkeypatch):
    """Where one had made another, its files would be gone."""
    monkeypatch.setattr(module_files, "_folders", {})
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: module_files.temporary_folder(), range(64)))
    assert len(found) == 1
    assert found.pop().is_dir()


def test_a_module_is_loaded_once(tmp_path):
    path = write_module(SOURCE, tmp_path)
    assert load_kernels(path).VALUE == 3
    assert load_kernels(path) is load_kernels(path)
