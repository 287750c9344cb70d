"""How a soak ends, and what it tells: without brokers. The schedule is played by `test_campaign.py`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.proofs.chaos.campaign import CampaignFailed
from tests.proofs.chaos.proof import Proof, Tally
from tests.proofs.chaos.schedule import Fault
from tests.proofs.chaos.soak.soak import SIZE, Soak

_EXACT = Tally(lost=0, repeated=0, out_of_order=0, foreign=0)
_PROOF = Proof(
    records=1_234_567, repeats=89, committed=_EXACT,
    uncommitted=Tally(lost=0, repeated=89, out_of_order=0, foreign=0),
    faults={Fault.NODE_KILL: 3}, hits=2, runs=4, events=[], seconds=60.0,
)  # fmt: skip


class Ended(Soak):
    """A soak whose campaign ends as the test chooses."""

    ending: Proof | BaseException = _PROOF

    def _suffer(self, folder: Path) -> Proof:
        if isinstance(self.ending, BaseException):
            raise self.ending
        return self.ending


def ended(tmp_path: Path, ending: Proof | BaseException) -> tuple[int, dict[str, object], str]:
    soak = Ended(3600, 7, SIZE, tmp_path / "reports/soak")
    soak.ending = ending
    code = soak.play(tmp_path)
    report = tmp_path / "reports/soak"
    return (
        code,
        json.loads(report.with_suffix(".json").read_text()),
        report.with_suffix(".md").read_text(),
    )


def test_all_is_right(tmp_path: Path) -> None:
    code, found, page = ended(tmp_path, _PROOF)
    assert (code, found["verdict"], found["seed"]) == (0, "exact", 7)
    assert "| records | 1,234,567 |" in page
    assert "seen twice, and reported by the flow | 89 |" in page
    assert "`make soak HOURS=1 SEED=7`" in page


def test_anything_wrong_is_reported_and_isnt_zero(tmp_path: Path) -> None:
    code, found, page = ended(tmp_path, CampaignFailed("orders-1: 3 lost"))
    assert (code, found["verdict"], found["proof"]) == (1, "WRONG", None)
    assert "orders-1: 3 lost" in page


def test_what_was_ended_unproved_says_so(tmp_path: Path) -> None:
    code, found, page = ended(tmp_path, KeyboardInterrupt())
    assert (code, found["proof"]) == (130, None)
    assert "interrupted before anything was compared" in page


def test_the_first_ctrl_c_ends_the_schedule_the_second_everything(tmp_path: Path) -> None:
    soak = Soak(3600, 7, SIZE, tmp_path / "soak")
    before = signal.signal(signal.SIGINT, soak._end_soon)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        assert soak.asked_to_end
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
