"""`make soak HOURS=n [SEED=n]`: the chaos, until the time is over; then it heals, drains and compares.

    python -m tests.proofs.chaos.soak.soak --hours 8 [--seed N] [--report .causeway/soak]

Writes REPORT.md, to be published, and REPORT.json. Ends with 0 if all is right, 1 if anything is wrong. A
Ctrl-C ends the schedule after the fault at work, and what has been seen by then is compared; a second one
ends everything at once, unproved (130).
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.proofs.chaos.campaign import Campaign, CampaignFailed
from tests.proofs.chaos.proof import Proof
from tests.proofs.chaos.prove import three_nodes
from tests.proofs.chaos.report import FORMAT, faults_as_json, proof_as_json, soak_page, versions
from tests.proofs.chaos.schedule import CHAOS, Size

SIZE = replace(CHAOS, records_in_front=100_000, records_per_fault=30_000)
EXACT, WRONG, INTERRUPTED = "exact", "WRONG", "interrupted before anything was compared"
_EXIT = {EXACT: 0, WRONG: 1, INTERRUPTED: 130}


@dataclass(slots=True)
class Soak:
    """`began` is by the same clock as the end."""

    seconds: float
    seed: int
    size: Size
    report: Path
    began: float = field(default_factory=time.monotonic)
    began_at: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()))
    campaign: Campaign | None = None
    asked_to_end: bool = False

    def play(self, folder: Path) -> int:
        before = signal.signal(signal.SIGINT, self._end_soon)
        proof, failure, verdict = None, "", EXACT
        try:
            proof = self._suffer(folder)
        except CampaignFailed as wrong:
            failure, verdict = str(wrong), WRONG
        except KeyboardInterrupt:
            verdict = INTERRUPTED
        finally:
            signal.signal(signal.SIGINT, before)
        found = self._found(proof, failure, verdict)
        self.report.parent.mkdir(parents=True, exist_ok=True)
        self.report.with_suffix(".json").write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")
        self.report.with_suffix(".md").write_text(soak_page(found), encoding="utf-8")
        say(f"soak: {verdict}; seed {self.seed}; {self.report.with_suffix('.md')}")
        if failure:
            say(failure)
        return _EXIT[verdict]

    def _suffer(self, folder: Path) -> Proof:
        with three_nodes(folder) as (source, target):
            self.campaign = Campaign(
                source, target, folder, self.seed, self.size, say=lambda _: None, is_over=self._is_over
            )
            return self.campaign.play()

    def _is_over(self) -> bool:
        """Asked before each fault, so progress is printed here."""
        assert self.campaign is not None
        now, at_work = time.monotonic() - self.began, self.campaign
        told = (
            f"{_clock(now)} of {_clock(self.seconds)}  {sum(at_work.counts.values())} faults, "
            f"{at_work.hits} in open transactions  {at_work.writer.committed:,} records"
        )
        say(told)
        return self.asked_to_end or now >= self.seconds

    def _end_soon(self, *_: object) -> None:
        if self.asked_to_end:
            raise KeyboardInterrupt
        self.asked_to_end = True
        say("soak: ends behind this fault, then compares; Ctrl-C again ends it at once, unproved")

    def _found(self, proof: Proof | None, failure: str, verdict: str) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "verdict": verdict,
            "seed": self.seed,
            "began": self.began_at,
            "hours_asked": round(self.seconds / 3600, 4),
            "seconds": round(time.monotonic() - self.began),
            "ended_by_hand": self.asked_to_end,
            "versions": versions(),
            "records_per_fault": self.size.records_per_fault,
            "faults": faults_as_json(self.campaign.counts) if self.campaign else {},
            "proof": proof_as_json(proof) if proof else None,
            "failure": failure,
            "events": self.campaign.events if self.campaign else [],
        }


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak", description="Chaos until the time is over, then the proof.")
    parser.add_argument("--hours", type=float, required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--report", type=Path, default=Path(".causeway/soak"))
    parser.add_argument("--records-per-fault", type=int, default=SIZE.records_per_fault)
    options = parser.parse_args(arguments)
    size = replace(SIZE, records_per_fault=options.records_per_fault)
    folder = Path(tempfile.mkdtemp(prefix="causeway-soak-"))
    say(f"soak: seed {options.seed}, {options.hours:g} hours; events in {folder / 'events.log'}")
    code = Soak(options.hours * 3600, options.seed, size, options.report).play(folder)
    if code == _EXIT[EXACT]:
        shutil.rmtree(folder)
    else:
        say(f"soak: logs and what the readers saw stay in {folder}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
