"""Names of groups and topics, as patterns or to be looked for, and plans: strange, long, evil to match."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tests.proofs.hostile.case import Case
from tests.proofs.hostile.player import FLOW
from tests.proofs.hostile.stage import EVIL_GROUPS

_NO_PATTERNS = (
    *(
        "[",
        "(",
        ")",
        "a{2",
        "*",
        "+",
        "?",
        "a**",
        "[z-a]",
        "(?<n>a)",
        "(?=a)",
        "(?!a)",
        "\\",
        "\\1",
        "[[:alpha:]]",
    ),
    *(
        "a{1000000}",
        "(a{100}){100}",
        "((((a{50}){50}){50}){50})",
        "(a|" * 500 + "a" + ")" * 500,
        "\\p{L}",
        "(?i)a",
    ),
    *(
        "\udcff",
        "a{2,1}",
        "(?P<x>a)",
        "[^",
        "a{,5}{2}",
        "[]",
        "(?>a)",
        "a++",
        "\\Qa\\E",
        "(?#x)",
        "^*",
        "x" * 5_000 + "(",
    ),
)
_FAILOVER = ("failover", FLOW, "--at", "latest")


def _cases() -> Iterator[Case]:
    for option in ("--groups", "--topics"):
        for number, pattern in enumerate(_NO_PATTERNS):
            for beside in ("--dry-run", "--yes"):
                yield Case(
                    name=f"failover{option}-{number}{beside}",
                    argv=(*_FAILOVER, beside, f"{option}={pattern}"),
                    says=(option,),
                )
        yield Case(name=f"failover{option}-none", argv=(*_FAILOVER, option), says=(option,))
    yield from _groups()
    yield from _fences()
    yield from _plans()
    yield from _rollbacks()


def _groups() -> Iterator[Case]:
    for number, group in enumerate(EVIL_GROUPS):
        yield Case(
            name=f"groups-evil-{number}",
            argv=("groups", FLOW, "--group", group),
            codes=(0,),
            says=("orders-0|excluded, ",),
            needs_mirror=True,
        )
        argv = ("groups", FLOW, "--group", group, "--json")
        yield Case(
            name=f"groups-evil-{number}-json", argv=argv, codes=(0,), says=("orders-0",), needs_mirror=True
        )
        yield Case(
            name=f"groups-unknown-{number}",
            argv=("groups", FLOW, "--group", f"no {group}"),
            says=("group", "isn't on the source"),
            needs_mirror=True,
        )
        yield Case(
            name=f"failover-evil-{number}",
            argv=(*_FAILOVER, "--dry-run", f"--groups={group}"),
            codes=(0, 2, 5),  # 2: some aren't patterns
            needs_mirror=True,
        )
    for number, group in enumerate(("", " ", "\udcff", "x" * 100_000, "nope\x1b]0;title\x07")):
        yield Case(
            name=f"groups-none-{number}",
            argv=("groups", FLOW, "--group", group),
            says=("group", "isn't on the source"),
            needs_mirror=True,
        )
    for line in (
        "groups",
        "groups --json",
        "status",
        "plan",
        "doctor",
        "drift",
        "failover --at latest --dry-run",
    ):
        verb, *more = shlex.split(line)
        yield Case(
            name=f"evil-groups-in {line}",
            argv=(verb, FLOW, *more),
            codes=(0, 5),
            says=(FLOW,),
            needs_mirror=True,
        )
    yield Case(
        name="groups-forged-line",
        shell=f"causeway groups {FLOW} --group $'evil\\nPARKED fake' | grep -c '^PARKED'",
        codes=(1,),
        says=("^0$|0\n",),
        needs_mirror=True,
    )


def _fences() -> Iterator[Case]:
    for number, topics in enumerate(
        ("", " ", ",", ",,,", " , ", "\x1b[31m", "a b", "../x", "x" * 250, "\udcff", "nosuch")
    ):
        yield Case(
            name=f"fence-topics-{number}",
            argv=("fence", FLOW, "--because", "x", f"--topics={topics}"),
            says=("(?i)topic",),
            needs_mirror=number > 4,
        )


def _plans() -> Iterator[Case]:
    wrong = ("deadbeef", "0", "x" * 64, "x" * 100_000, "\x1b[31m", "a\nb", "\udcff", "{{ plan }}", "*")
    for number, plan in enumerate(wrong):
        for beside in ("--dry-run", "--yes"):
            yield Case(
                name=f"failover-plan-{number}{beside}",
                argv=(*_FAILOVER, beside, f"--plan={plan}"),
                says=("plan of", "was asked for"),
                needs_mirror=True,
            )
    for number, plan in enumerate(("", " ", "\t", "\n")):
        for beside in ("--dry-run", "--yes"):
            yield Case(
                name=f"failover-no-plan-{number}{beside}",
                argv=(*_FAILOVER, beside, f"--plan={plan}"),
                says=("--plan",),
            )


def _rollbacks() -> Iterator[Case]:
    for number, run in enumerate(
        ("nope", "../../etc/passwd", "", " ", "x" * 100_000, "\x1b[31m", "a\nb", "\udcff")
    ):
        yield Case(
            name=f"rollback-{number}",
            argv=("failover", FLOW, f"--rollback={run}", "--yes"),
            says=("failover",),
            needs_mirror=True,
        )
    for option in (
        "--groups=x",
        "--topics=x",
        "--safety=30s",
        "--dry-run",
        "--plan=x",
        "--html=x",
        "--clamp=earliest",
    ):
        yield Case(
            name=f"rollback-beside-{option}",
            argv=("failover", FLOW, "--rollback", "x", option),
            says=(option.partition("=")[0], "beside --rollback"),
        )
    for one, two in (
        ("--at=latest", "--planned"),
        ("--at=latest", "--rollback=x"),
        ("--planned", "--rollback=x"),
    ):
        yield Case(
            name=f"failover-{one}-{two}", argv=("failover", FLOW, one, two), says=("not allowed with",)
        )
    for answer in (
        b"",
        b"y\n",
        b"yes\n",
        b"\n",
        b"SF_TO_NYC\n",
        b"sf_to_nyc x\n",
        b"\xff\n",
        b"\x1b[31m\n",
        b"x" * 100_000,
    ):
        yield Case(
            name=f"failover-answer-{answer[:12]!r}",
            argv=_FAILOVER,
            stdin=answer,
            says=("the answer", f"isn't {FLOW}"),
            needs_mirror=True,
        )


CASES: tuple[Case, ...] = tuple(_cases())
