"""Streams that are full, closed or of another kind: no verb ends because nobody can read its progress."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proofs.hostile.case import Case
from tests.proofs.hostile.player import FLOW

_NO_PROGRESS = {"full": "2>/dev/full", "closed": "2>&-", "gone": "2> >(true)"}
_REFUSED = ("plan nope", "run nope", "failover sf_to_nyc --at nope", "nope", "lab up --nodes 9")


def _cases() -> Iterator[Case]:
    for word, redirection in _NO_PROGRESS.items():
        for number, line in enumerate(_REFUSED):
            yield Case(
                name=f"stderr-{word}-refused-{number}",
                shell=f"causeway {line} {redirection}",
                is_silent=True,
            )
        yield Case(
            name=f"stderr-{word}-listing", shell=f"causeway flows {redirection}", codes=(0,), says=(FLOW,)
        )
        yield Case(
            name=f"stderr-{word}-verbose",
            shell=f"causeway flows --connections --verbose {redirection}",
            codes=(0,),
            says=(FLOW,),
        )
        for verb in ("plan", "verify", "doctor", "status", "groups", "drift"):
            yield Case(
                name=f"stderr-{word}-{verb}",
                shell=f"causeway {verb} {FLOW} {redirection}",
                codes=(0,),
                says=(FLOW,),
                needs_mirror=True,
                is_silent=True,
            )
        yield Case(
            name=f"stderr-{word}-run",
            shell=f"causeway run {FLOW} --until-caught-up {redirection}",
            codes=(0,),
            says=("caught up",),
            needs_mirror=True,
            writes=True,
            is_slow=True,
            is_silent=True,
            seconds=120,
        )
    yield from _full_output()
    yield from _closed_input()


def _full_output() -> Iterator[Case]:
    says = ("standard output", "No space left on device")
    for line in ("flows", "flows --json", "flows --connections"):
        yield Case(name=f"stdout-full-{line}", shell=f"causeway {line} >/dev/full", says=says)
    for verb in ("plan", "status", "groups", "drift", "status --json", "verify", "doctor"):
        word, *more = verb.split()
        yield Case(
            name=f"stdout-full-{verb}",
            shell=f"causeway {word} {FLOW} {' '.join(more)} >/dev/full",
            says=says,
            needs_mirror=True,
        )
    for line in ("--help", "run --help", "--version"):
        yield Case(name=f"stdout-full-{line}", shell=f"causeway {line} >/dev/full", says=says)
    yield Case(name="stdout-full-refused", shell="causeway plan nope >/dev/full", says=("nope",))
    yield Case(name="stdout-full-refused-json", shell="causeway plan nope --json >/dev/full", says=("nope",))
    yield Case(name="both-full-refused", shell="causeway plan nope --json >/dev/full 2>&1", is_silent=True)
    yield Case(name="both-full", shell="causeway flows >/dev/full 2>&1", is_silent=True)
    yield Case(name="stdout-closed", shell="causeway flows >&-", codes=(0,))
    yield Case(name="stdout-closed-json", shell="causeway plan nope --json >&-", is_silent=True)
    yield Case(name="all-closed", shell="causeway flows <&- >&- 2>&-", codes=(0,))
    yield Case(name="stdout-gone", shell="causeway flows | true", codes=(0,))
    yield Case(name="help-gone", shell="causeway --help | true", codes=(0,))
    for encoding in ("ascii", "latin-1", "utf-16"):
        yield Case(
            name=f"stdout-{encoding}",
            shell="causeway flows >/dev/null",
            environment={"PYTHONIOENCODING": encoding},
            codes=(0,),
        )
    yield Case(
        name="ascii-json-refused",
        shell="causeway plan café --json | grep -q 'caf.u00e9'; exit ${PIPESTATUS[1]}",
        environment={"PYTHONIOENCODING": "ascii"},
        codes=(0,),
    )


def _closed_input() -> Iterator[Case]:
    yield Case(name="stdin-closed-translate", shell=f"causeway translate {FLOW} <&-", says=("orders:0:123",))
    yield Case(
        name="stdin-empty-translate", shell=f"causeway translate {FLOW} </dev/null", says=("orders:0:123",)
    )
    yield Case(
        name="stdin-write-only",
        shell=f"causeway translate {FLOW} 0>x",
        says=("standard input",),
        leaves=("x",),
    )


CASES: tuple[Case, ...] = tuple(_cases())
