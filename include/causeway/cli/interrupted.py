"""The last line of a verb that Ctrl-C or SIGTERM ended: whether anything was done, and what goes on.

Whatever has begun to write says itself what it leaves and how to go on.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from causeway import interruption

_NOTHING = "nothing was written"
_READERS = frozenset({"drift", "flows", "next", "plan", "status", "translate", "upstreams", "verify"})
_BY_HAND = frozenset(
    {"accept-gap", "adopt", "fence", "lift", "maintain", "reconcile", "recover", "restart-topic"}
)
_OF_VERBS = {
    "doctor": "nothing stays on the clusters",
    "drill": "no group was moved, and no clone stays",
    "run": "what was committed stays, and the next run goes on from there",
    "sync": "what was changed stays; the same command does the rest",
    "groups": "what was committed stays; the same command does the rest",
    "heartbeat": "a heartbeat may have been written, and that is all",
    "lab": "`causeway lab status` shows what runs; the same command goes on",
}


def last_line(stop: KeyboardInterrupt, options: Namespace | None) -> str:
    """What the use case itself says comes first: it knows."""
    return f"causeway: interrupted; {str(stop) or interruption.left() or _left(options)}"


def _left(options: Namespace | None) -> str:
    if options is None:
        return "nothing was done"
    verb, writes = options.VERB, not getattr(options, "dry_run", False)
    if verb in _READERS or not writes or (verb == "groups" and not options.sync):
        return _NOTHING
    if verb in _BY_HAND:
        return f"`causeway status {options.flow}` shows what was done; the same command goes on with it"
    if verb in ("failover", "failback"):
        return f"`causeway next {options.flow}` shows what was done, and how to go on"
    if verb == "import-mm2" and options.adopt:
        return "`causeway status` of its flows shows what was adopted; the same command does the rest"
    return _OF_VERBS.get(verb, "look at what it writes: all of its files are there, or none")


@contextmanager
def nothing_done_yet(what_stays: str) -> Iterator[None]:
    """`what_stays`: what somebody may fear for. Only around what says, once it writes, what it leaves."""
    try:
        yield
    except KeyboardInterrupt as stop:
        done = str(stop) or interruption.left()
        raise KeyboardInterrupt(done or f"nothing was done: {what_stays}") from None
