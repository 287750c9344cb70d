"""One command, one moment by seed: what has to be so after it."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass, field

from tests.integration.failback.stage import FailbackStage
from tests.proofs.interrupts.stage import Ended, Stage

INTERRUPTED = 130
_LONGEST_END_SECONDS = 30.0
_WAY_OUT_SECONDS = 1.0
_NOISE = ("Traceback", "Exception", "\tat ", "Error in ", "SystemError")
SECONDS = {
    "run": 9.0,
    "verify": 2.5,
    "doctor": 5.0,
    "drill": 4.0,
    "groups": 2.5,
    "sync": 2.5,
    "failover": 4.0,
    "failback": 5.0,
    "home": 8.0,
}
"""By verb: the latest moment. Where it had ended by then that is too late, now and for those that follow."""
VERBS = tuple(SECONDS)
_MOVING = ("failover", "failback", "home")
_SAYS = {
    "run": "committed stays, and the next run goes on",
    "verify": "nothing was written",
    "doctor": "nothing stays",
    "drill": "no clone stays",
    "groups": "the same command does the rest",
    "sync": "the same command does the rest",
}
_BEFORE_ANYTHING, _ALL_WAS_DONE = "nothing was done", "all was done"
_DONE = (_ALL_WAS_DONE, "the command was done;", "is done;", "has opened the way back;")


@dataclass(frozen=True, slots=True)
class Played:
    verb: str
    seed: int
    at_seconds: float
    ended: Ended
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.verb} seed {self.seed} at {self.at_seconds:.2f} s: {'; '.join(self.wrong) or 'well'}"


@dataclass
class Trials:
    """Verbs that change nothing of a flow share one; each failover and failback has its own."""

    stage: Stage
    shared: FailbackStage | None = None
    latest: dict[str, float] = field(default_factory=lambda: dict(SECONDS))

    def close(self) -> None:
        if self.shared is not None:
            self.shared.close()

    def play(self, verb: str, seed: int) -> Played:
        dice = random.Random(f"{verb} {seed}")
        number = dice.choice([signal.SIGINT, signal.SIGINT, signal.SIGTERM])
        again, known = dice.random() < 0.25, self.stage.scratch()
        while True:
            story = self._prepared(verb)
            at = dice.uniform(0, self.latest[verb])
            arguments = _arguments(verb, story)
            ended = self.stage.strike(at, number, *arguments, again=again)
            if not _was_over(ended):
                break
            self.latest[verb] = at
            self._done_with(story)
        wrong = [
            *_wrong_of(ended),
            *_unsaid(verb, ended),
            *(f"left {name}" for name in self.stage.scratch() - known),
        ]
        wrong += self._goes_on(verb, story, ended)
        self._done_with(story)
        return Played(verb, seed, at, ended, tuple(wrong))

    def _prepared(self, verb: str) -> FailbackStage:
        if verb in _MOVING:
            story = self.stage.story()
            if verb != "failover":
                story.fail_over()
                story.write_evenly(self.stage.nyc, 50)
            if verb == "home":
                story.resume()
                story.reverse.run()
            return story
        if self.shared is None:
            self.shared = self.stage.story()
        if verb == "run":
            self.shared.write_evenly(self.stage.sf, 4_000)
        return self.shared

    def _done_with(self, story: FailbackStage) -> None:
        if story is not self.shared:
            story.close()

    def _goes_on(self, verb: str, story: FailbackStage, ended: Ended) -> list[str]:
        """What stays is named, with the command that goes on; and it does."""
        if verb not in _MOVING or any(words in ended.last_line for words in _DONE):
            return []
        fence = story.fences()[0 if verb == "failover" else 1]
        said = ended.last_line
        if fence is not None and "the same command goes on" not in said:
            return [f"a fence stays ({fence}), and the last line doesn't say what goes on: {said}"]
        if fence is None and "goes on" not in said:
            return []
        done = self.stage.finish(*_arguments(verb, story))
        return [] if done.returncode == 0 else [f"it doesn't go on: {done.returncode}: {done.stderr[-500:]}"]


def _arguments(verb: str, story: FailbackStage) -> list[str]:
    flow = story.forward.flow.name
    match verb:
        case "run":
            return [verb, flow, "--until-caught-up"]
        case "groups":
            return [verb, flow, "--sync"]
        case "failover":
            return [verb, flow, "--at", "latest", "--yes"]
        case "failback":
            return [verb, flow, "--resume", "--yes"]
        case "home":
            return ["failback", flow, "--home", "--yes", "--still", "1s"]
    return [verb, flow]


def _was_over(ended: Ended) -> bool:
    """Its outcome was there, and it was only ending."""
    return not ended.was_struck or (ended.code == 0 and ended.ended_in_seconds < _WAY_OUT_SECONDS)


def _unsaid(verb: str, ended: Ended) -> list[str]:
    """Whether anything was done. Of those that move groups `_goes_on` looks whether it is true."""
    said = ended.last_line
    is_said = _SAYS.get(verb, "; ") in said or _BEFORE_ANYTHING in said or _ALL_WAS_DONE in said
    return [] if is_said else [f"doesn't say what was done: {said}"]


def _wrong_of(ended: Ended) -> list[str]:
    wrong: list[str] = []
    if ended.code != INTERRUPTED:
        wrong.append(f"exit code {ended.code}: {ended.err[-400:]}")
    if not ended.last_line.startswith("causeway: interrupted"):
        wrong.append(f"last line {ended.last_line!r}")
    if ended.err.count("causeway: interrupted") > 1:
        wrong.append("more than one last line")
    wrong += [f"{word!r} on the screen: {ended.err[-400:]}" for word in _NOISE if word in ended.err]
    if ended.ended_in_seconds > _LONGEST_END_SECONDS:
        wrong.append(f"{ended.ended_in_seconds:.0f} s until it had ended: {ended.err[-400:]}")
    wrong += [f"process {each}" for each in ended.left_processes]
    wrong += [f"file {each}" for each in ended.left_files]
    return wrong
