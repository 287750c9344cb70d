"""Signals are noted when they come, and obeyed where nothing is half done."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway import interruption
from causeway.brokers.transport.connection import Network
from causeway.interruption import at_once, check, is_due, listening, was_asked, whole
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.source_may_be_gone import noted_if_interrupted

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture
def heard() -> Iterator[None]:
    with listening():
        yield


def press(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


def test_nobody_who_does_not_listen_is_changed() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    check()
    with at_once(), whole(), listening(), listening():
        pass
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before
    assert not was_asked()


@BOTH
def test_what_was_ignored_from_the_start_stays_ignored(number: int) -> None:
    """By nohup, or by a shell that started the command with & in a script."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with listening():
            press(number)
            assert not was_asked()
            assert signal.getsignal(number) is signal.SIG_IGN
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@BOTH
def test_it_is_raised_at_the_next_safe_place_and_once(
    heard: None, number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    press(number)
    assert was_asked()
    with pytest.raises(KeyboardInterrupt):
        check()
    check()
    press(number)
    press(number)
    check()
    assert capfd.readouterr().err == (
        "causeway: cleaning up, which takes 30 s at most; Ctrl-C changes nothing now\n"
    )


def test_what_is_whole_is_not_cut_and_who_asked_is_heard_after_it(heard: None) -> None:
    with whole():
        with whole():
            press()
        with at_once():
            check()
    with pytest.raises(KeyboardInterrupt):
        check()


def test_what_waits_for_long_is_ended_at_once(heard: None) -> None:
    began = time.monotonic()
    threading.Timer(0.1, press).start()
    with pytest.raises(KeyboardInterrupt), at_once():
        time.sleep(30)
    assert time.monotonic() - began < 2


def test_who_asked_before_a_long_wait_is_not_held_up_by_it(heard: None) -> None:
    press()
    with pytest.raises(KeyboardInterrupt), at_once():
        pytest.fail("it waits")


def test_where_no_safe_place_comes_it_is_raised_all_the_same(
    heard: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interruption, "_LATEST_SECONDS", 0.1)
    press()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(30)


def test_an_import_is_not_broken_off(heard: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Python would end with a signal's code, though the exception was caught."""
    monkeypatch.setattr(interruption, "_LATEST_SECONDS", 0.05)
    monkeypatch.setattr(interruption, "_AGAIN_SECONDS", 0.05)
    (tmp_path / "takes_time.py").write_text("import time\ntime.sleep(0.3)\nis_whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)

    def import_and_wait() -> None:
        importlib.import_module("takes_time")
        time.sleep(30)

    press()
    with pytest.raises(KeyboardInterrupt):
        import_and_wait()
    assert sys.modules.pop("takes_time").is_whole


def test_another_thread_is_never_interrupted(heard: None) -> None:
    press()
    raised: list[bool] = []
    thread = threading.Thread(target=lambda: raised.append(is_due()))
    thread.start()
    thread.join()
    assert raised == [False]
    with pytest.raises(KeyboardInterrupt):
        check()


def test_a_loop_is_ended_between_two_steps_and_can_be_used_again(heard: None) -> None:
    """An exception inside of a step would end whatever task it struck, or nothing."""
    network, closed = Network(), list[str]()

    async def pressed() -> None:
        try:
            press()
            await network.sleep(30)
        finally:
            closed.append("work")

    async def answer() -> int:
        await network.sleep(0)
        return 7

    with pytest.raises(KeyboardInterrupt):
        network.run(pressed)
    assert (closed, network.run(answer)) == (["work"], 7)
    network.close()


def test_the_work_hears_where_it_waits_and_says_what_it_leaves(heard: None) -> None:
    network, left = Network(), list[str]()

    async def pressed() -> None:
        with noted_if_interrupted("half is done"):
            try:
                press()
                await network.sleep(30)
            except KeyboardInterrupt:
                left.append("undone")
                raise

    with pytest.raises(KeyboardInterrupt, match=r"^half is done$"):
        network.run(pressed)
    network.close()
    assert left == ["undone"]


def test_a_clean_up_that_waits_for_the_loop_is_ended(heard: None) -> None:
    network = Network()

    async def pressed() -> None:
        try:
            press()
            await network.sleep(30)
        finally:
            await network.sleep(30)

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        network.run(pressed)
    network.close()
    assert time.monotonic() - began < 10


def test_who_asks_while_a_call_blocks_is_heard_before_the_next_request(heard: None) -> None:
    network, after = Network(), list[str]()

    async def work() -> None:
        await blocking(press)
        after.append("request")

    with pytest.raises(KeyboardInterrupt):
        network.run(work)
    network.close()
    assert after == []


def test_a_clean_up_that_hangs_is_not_waited_for() -> None:
    code = (
        "import os, signal, time\n"
        "from causeway import interruption as i\n"
        "i.CLEAN_UP_SECONDS, i._LATEST_SECONDS, i._AGAIN_SECONDS = 0.4, 0.1, 0.1\n"
        "with i.listening():\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    try: i.check()\n"
        "    except KeyboardInterrupt: time.sleep(30)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=20
    )
    assert done.returncode == 130
    assert done.stderr.startswith("causeway: interrupted; the clean-up wasn't over after 30 s")
    assert len(done.stderr.splitlines()) == 1
