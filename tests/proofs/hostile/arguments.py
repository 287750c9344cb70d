"""The arguments of each verb: missing, unknown, doubled, empty; names that no flow has."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proofs.hostile.case import Case
from tests.proofs.hostile.player import FLOW

_ON_A_FLOW: dict[str, tuple[str, ...]] = {
    "plan": (),
    "run": ("--until-caught-up",),
    "status": (),
    "verify": (),
    "groups": (),
    "doctor": (),
    "drift": (),
    "sync": (),
    "maintain": (),
    "fence": ("--because", "x"),
    "lift": ("--because", "x"),
    "drill": (),
    "failover": ("--at", "latest", "--yes"),
    "restart-topic": ("orders", "--because", "x"),
    "reconcile": ("orders", "--because", "x"),
    "adopt": ("orders", "0", "1", "--because", "x"),
    "accept-gap": ("orders", "0", "1", "2", "--because", "x"),
    "translate": ("orders:0:1",),
}
"""Verbs, and what each needs besides its flow."""
_HAS_PLACES = ("restart-topic", "reconcile", "adopt", "accept-gap", "translate")
_FLOWS = {
    "escape": "\x1b[31msf_to_nyc",
    "newline": "sf_to_nyc\nPARKED fake",
    "not-utf-8": "\udcff",
    "long": "x" * 100_000,
    "long-words": "ab " * 20_000,
    "right-to-left": "\u202esf_to_nyc",
    "path": "../../etc/passwd",
    "template": "{{ var.value.x }}",
    "upper": "SF_TO_NYC",
}


def _cases() -> Iterator[Case]:
    yield Case(name="no-verb", argv=(), says=("VERB", "--help"))
    yield Case(name="unknown-verb", argv=("stauts",), says=("stauts", "status"))
    for verb, more in _ON_A_FLOW.items():
        yield Case(name=f"{verb}-no-flow", argv=(verb,), says=(f"{verb} --help",))
        yield Case(name=f"{verb}-unknown-flow", argv=(verb, "nope", *more), says=("nope", FLOW))
        yield Case(name=f"{verb}-near-flow", argv=(verb, "sf_to_nyk", *more), says=(f"did you mean {FLOW}",))
        yield Case(name=f"{verb}-empty-flow", argv=(verb, "", *more), says=(FLOW,))
        yield Case(name=f"{verb}-unknown-option", argv=(verb, FLOW, *more, "--nope"), says=("--nope",))
    yield from _odd_words()


def _odd_words() -> Iterator[Case]:
    """Words that argument parsers trip over, before and after the verb."""
    for number, argv in enumerate(
        (
            ("adopt", FLOW, "orders", "0", "--because", "x", "--", "--"),
            ("plan", "--", "--", FLOW),
            ("lift", FLOW, "--because", "x", "--fence=--"),
            ("run", FLOW, "--run-for=--"),
            ("plan", FLOW, "--file=--"),
        )
    ):
        yield Case(name=f"lone-dashes-{number}", argv=argv, says=("--: means",))
    for verb, more in _ON_A_FLOW.items():
        yield Case(name=f"{verb}-json-before", argv=("--json", verb, "nope", *more), says=("nope", FLOW))
        yield Case(name=f"{verb}-file-before", argv=("--file", "nofile", verb, FLOW, *more), says=("nofile",))
        yield Case(
            name=f"{verb}-file-empty", argv=(verb, FLOW, *more, "--file", ""), says=("--file", "names no")
        )
        yield Case(
            name=f"{verb}-file-blank", argv=(verb, FLOW, *more, "--file=  "), says=("--file", "names no")
        )
        yield Case(name=f"{verb}-file-none", argv=(verb, FLOW, *more, "--file"), says=("--file",))
        yield Case(name=f"{verb}-json-value", argv=(verb, FLOW, *more, "--json=1"), says=("--json",))
        yield Case(name=f"{verb}-short", argv=(verb, FLOW, *more, "-x"), says=("-x",))
        if verb not in _HAS_PLACES:
            yield Case(name=f"{verb}-two-flows", argv=(verb, FLOW, "nyc_to_sf", *more), says=("nyc_to_sf",))
        for word, name in _FLOWS.items():
            yield Case(name=f"{verb}-flow-{word}", argv=(verb, name, *more), says=("flow|FLOW",))
            argv = (verb, name, *more, "--json")
            yield Case(name=f"{verb}-flow-{word}-json", argv=argv, says=("flow|FLOW",))
    yield Case(name="all-before", argv=("--verbose", "--json", "--file", "x", "flows"), says=("x",))
    yield Case(name="json-alone", argv=("--json",), says=("VERB",))
    yield Case(name="lab-no-verb", argv=("lab",), says=("VERB",))
    yield Case(name="lab-unknown-verb", argv=("lab", "upp"), says=("upp",))


CASES: tuple[Case, ...] = tuple(_cases())
