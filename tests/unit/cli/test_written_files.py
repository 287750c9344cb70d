"""Files that a person has named: all or none of them, through a link, and never half of one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from causeway.cli.written_files import NewFile, check_places, write_all
from causeway.core.kernel.errors import ConfigError


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def two(folder: Path) -> list[NewFile]:
    return [NewFile(folder / "one", "1", 0o644), NewFile(folder / "two", "2" * 100, 0o600)]


def test_both_are_written_each_with_its_mode(tmp_path: Path) -> None:
    write_all(two(tmp_path))
    assert contents(tmp_path) == {"one": "1", "two": "2" * 100}
    assert stat.S_IMODE((tmp_path / "two").stat().st_mode) == 0o600


@pytest.mark.parametrize("failing", [1, 2])
def test_a_disk_that_fills_up_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    (tmp_path / "one").write_text("old")
    calls: list[int] = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        ConfigError, match=r"can't be written: No space left on device; .*nothing was written"
    ):
        write_all(two(tmp_path))
    assert contents(tmp_path) == {"one": "old"}


def test_an_interrupt_leaves_no_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all(two(tmp_path))
    assert contents(tmp_path) == {}


def test_a_place_that_takes_no_file_keeps_the_first_from_being_written(tmp_path: Path) -> None:
    (tmp_path / "wall").write_text("x")
    with pytest.raises(ConfigError, match="can't be written: "):
        write_all([NewFile(tmp_path / "one", "1", 0o644), NewFile(tmp_path / "wall/two", "2", 0o600)])
    assert contents(tmp_path) == {"wall": "x"}


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to("old")
    check_places({"--file": tmp_path / "link"}, may_replace=True, inputs={})
    write_all([NewFile(tmp_path / "link", "new", 0o644)])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_text() == "new"


@pytest.mark.parametrize("trouble", [OSError(errno.EBUSY, "Device or resource busy"), KeyboardInterrupt()])
@pytest.mark.parametrize("was", ["old", None])
def test_one_that_can_not_take_its_name_undoes_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: BaseException, was: str | None
) -> None:
    """A container mounts single files, and nothing can take the place of such a one."""
    if was is not None:
        (tmp_path / "one").write_text(was)
        (tmp_path / "one").chmod(0o640)
    before, replace = contents(tmp_path), os.replace

    def busy(draft: str | Path, path: str | Path) -> None:
        if Path(path).name == "two":
            raise trouble
        replace(draft, path)

    monkeypatch.setattr(os, "replace", busy)
    with pytest.raises((ConfigError, KeyboardInterrupt)) as stop:
        write_all(two(tmp_path))
    assert contents(tmp_path) == before
    assert was is None or stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o640
    assert isinstance(stop.value, KeyboardInterrupt) or "busy; name another; nothing was written" in str(
        stop.value
    )


def test_an_old_file_that_can_not_be_put_back_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one").write_text("old")
    replace, calls = os.replace, list[str]()

    def once(draft: str | Path, path: str | Path) -> None:
        calls.append(Path(path).name)
        if len(calls) > 1:
            raise OSError(errno.EIO, "Input/output error")
        replace(draft, path)

    monkeypatch.setattr(os, "replace", once)
    with pytest.raises(
        ConfigError, match=r"Input/output error; .*one is the new one; what it was is in .*\.old"
    ):
        write_all(two(tmp_path))
    assert [text for name, text in contents(tmp_path).items() if name.endswith(".old")] == ["old"]
