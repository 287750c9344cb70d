"""Files that somebody named: asked about before anything runs, written whole or not at all."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from causeway.core.kernel.errors import BadInput
from causeway.usecases.report_files import asked_path, write_file, write_report_file
from tests.proofs.hostile.case import make_device

_OPTION = "--report"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_path_that_is_free_is_tried_out_and_left_free(tmp_path: Path) -> None:
    assert asked_path(_OPTION, str(tmp_path / "below" / "r.json")) == tmp_path / "below" / "r.json"
    assert names_in(tmp_path) == []
    assert asked_path(_OPTION, None) is None


@pytest.mark.parametrize("kind", ["folder", "link", "broken link", "fifo", "device"])
def test_what_is_there_and_no_file_is_never_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "r.json"
    match kind:
        case "folder":
            path.mkdir()
        case "link":
            (tmp_path / "another").write_text("kept")
            path.symlink_to("another")
        case "broken link":
            path.symlink_to("nowhere")
        case "fifo":
            os.mkfifo(path)
        case "device":
            make_device(path)
    before = path.lstat()
    with pytest.raises(BadInput, match=f"{_OPTION} = .*: is a .*; name a file"):
        asked_path(_OPTION, str(path))
    with pytest.raises(BadInput, match="is a "):
        write_report_file({"a": 1}, path)
    assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)


def test_a_file_that_is_there_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "below" / "r.json"
    write_report_file({"a": 1}, path)
    write_report_file({"a": 2}, path)
    assert json.loads(path.read_text()) == {"a": 2}
    assert names_in(path.parent) == ["r.json"]


def test_a_name_as_long_as_the_file_system_takes_has_room_for_its_draft(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    assert asked_path(_OPTION, str(path)) == path
    write_file("text", path, _OPTION)
    assert names_in(tmp_path) == [path.name]
    with pytest.raises(BadInput, match="too long"):
        asked_path(_OPTION, str(tmp_path / ("x" * 256)))


def test_no_draft_stays_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *_: object, **__: object) -> int:
        self.touch()
        raise OSError(28, "No space left on device")

    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BadInput, match=r"can't be written: No space left on device; name another file"):
        asked_path(_OPTION, str(tmp_path / "r.json"))
    with pytest.raises(BadInput, match="No space left on device; what was done stays done"):
        write_file("text", tmp_path / "r.json", "--html")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("given", ["", " ", "a\nb", "\x1b[31m", "below/", "/etc/passwd/x", "/proc/x"])
def test_no_path_at_all(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=_OPTION) as refusal:
        asked_path(_OPTION, given)
    assert refusal.value.remedy
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_that_is_there_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    path.chmod(mode)
    write_file("new", path, _OPTION)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.write_text("x")
    write_file("new", tmp_path / "r.json", _OPTION)
    assert (tmp_path / "r.json").stat().st_mode == usual.stat().st_mode


def test_it_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that goes down between the two would leave an empty file."""
    path, synced = tmp_path / "r.json", list[tuple[str, bool]]()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append((Path(f"/proc/self/fd/{descriptor}").readlink().name, path.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_file("text", path, _OPTION)
    (draft, was_there), (folder, is_there) = synced
    assert draft.startswith(".causeway-draft-")
    assert (was_there, folder, is_there) == (False, tmp_path.name, True)
