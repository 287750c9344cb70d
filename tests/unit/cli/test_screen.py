"""The boundary to the screen: what is shown of strange characters, and of streams that take no more."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from causeway.cli import screen
from causeway.core.kernel.errors import BadInput


def printed(monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8") -> io.BytesIO:
    behind = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(behind, encoding, write_through=True))
    return behind


def test_control_characters_are_shown_and_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = printed(monkeypatch)
    assert screen.answer("a\x1b[31m b\rc\x9bd\u202ee\udcff\nsecond line") == ""
    assert behind.getvalue().decode() == "a\\x1b[31m b\\rc\\x9bd\\u202ee\\udcff\nsecond line\n"


def test_a_stream_of_another_character_set_is_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = printed(monkeypatch, "ascii")
    assert screen.answer("caf\u00e9") == ""
    assert behind.getvalue() == b"caf\\xe9\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_stays_json_whatever_a_name_holds(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    behind = printed(monkeypatch, encoding)
    payload = {"name": "\u00e9\x1b\x9b\u202e\udcff\n"}
    assert screen.answer_in_json(payload) == ""
    text = behind.getvalue().decode(encoding)
    assert json.loads(text) == payload
    assert all(character.isprintable() or character == "\n" for character in text)


def test_a_full_stream_says_why_and_full_progress_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as full, Path("/dev/full").open("w") as full_too:
        monkeypatch.setattr(sys, "stdout", full)
        monkeypatch.setattr(sys, "stderr", full_too)
        assert screen.answer("text") == "No space left on device"
        screen.note("text")
        screen.note("again")


def test_closed_streams_are_no_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert screen.answer("text") == ""
    screen.note("text")


def test_an_error_shows_the_beginning_of_a_long_name_and_keeps_it_whole() -> None:
    error = BadInput("flow", value="x" * 100_000, rule="isn't there", remedy="known: sf_to_nyc")
    assert str(error) == f"flow = {'x' * 60}... (100,000 characters): isn't there; known: sf_to_nyc"
    assert error.as_dict()["value"] == "x" * 100_000
    words = BadInput("y " * 5_000, value="z " * 5_000, rule="w " * 5_000, remedy="go")
    assert len(str(words)) < 1_000
