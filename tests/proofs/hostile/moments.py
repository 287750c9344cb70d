"""Times and durations: --at, --safety, --still, --run-for."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proofs.hostile.case import Case
from tests.proofs.hostile.player import FLOW

_AT: dict[str, str] = {
    "": "characters|must be",
    " ": "characters|must be",
    "now": "latest",
    "LATEST": "latest",
    "Latest": "latest",
    "latest ": "latest",
    "earliest": "latest",
    "yesterday": "latest",
    "04:03": "RFC 3339",
    "2025-11-18": "RFC 3339",
    "2025-11-18T04:03:00": "zone",
    "2025-11-18 04:03": "zone",
    "2025-11-18T04:03:00 CET": "short names",
    "2025-11-18T04:03:00 EST": "short names",
    "2025-11-18T04:03:00 America/Argentina": "America/Argentina",
    "2025-11-18T04:03:00 America/Indiana": "America/Indiana",
    "2025-11-18T04:03:00 Europe/": "Europe/",
    "2025-11-18T04:03:00 Europe/Nowhere": "Europe/Nowhere",
    "2025-11-18T04:03:00 Europe/../../etc/passwd": "RFC 3339|zone",
    "2025-11-18T04:03:00 posix/Europe": "posix/Europe",
    "2025-11-18T04:03:00+15:00": "offset",
    "2025-11-18T04:03:00+14:60": "offset",
    "2025-11-18T04:03:00+0100": "RFC 3339",
    "2025-11-18T04:03:00+1": "RFC 3339",
    "2025-11-18T24:00:00Z": "calendar",
    "2025-11-18T04:60:00Z": "calendar",
    "2025-11-18T23:59:60Z": "leap second",
    "2025-02-29T00:00:00Z": "calendar",
    "2025-13-01T00:00:00Z": "calendar",
    "2025-00-01T00:00:00Z": "calendar",
    "0000-01-01T00:00:00Z": "calendar",
    "0001-01-01T00:00:00Z": "1970",
    "0001-01-01T00:00:00+14:00": "1970",
    "0001-01-01T00:00:00 Asia/Tokyo": "1970",
    "1969-12-31T23:59:59Z": "1970",
    "1970-01-01T00:59:59+01:00": "1970",
    "2999-01-01T00:00:00Z": "future",
    "9999-12-31T23:59:59Z": "future",
    "9999-12-31T23:59:59.999999999Z": "future",
    "9999-12-31T23:59:59-12:00": "future",
    "9999-12-31T23:59:59-14:00": "future",
    "9999-12-31T23:59:59+14:00": "future",
    "9999-12-31T23:59:59 America/New_York": "future",
    "9999-12-31T23:59:59 Europe/Berlin": "future",
    "9999-12-31T00:00:00": "zone",
    "0001-01-01T00:00:00": "zone",
    "10000-01-01T00:00:00Z": "RFC 3339",
    "99999-01-01T00:00:00Z": "RFC 3339",
    "-2025-11-18T04:03:00Z": "--at",
    "2025-11-18T04:03:00.1234567890Z": "RFC 3339",
    "2025-03-30T02:30:00 Europe/Berlin": "never was",
    "2025-10-26T02:30:00 Europe/Berlin": "twice",
    "1763438580": "bare number",
    "1763438580000": "bare number",
    "1e9": "bare number",
    "1e999": "bare number",
    "9" * 79: "bare number",
    "9" * 5_000: "characters",
    "0": "bare number",
    "-1": "bare number|--at",
    "1_000": "bare number",
    "\u0662\u0660\u0662\u0665-11-18T04:03:00Z": "characters",
    "2025-11-18T04:\x1b[31m03:00Z": "characters",
    "2025-11-18T04:03:00\u202eZ": "characters",
    "\udcff": "characters",
    "x" * 100_000: "characters",
    "2025-W47-2T04:03:00Z": "RFC 3339",
    "2025-322T04:03:00Z": "RFC 3339",
    "P1D": "RFC 3339",
    "-1h": "RFC 3339|--at",
    "1h ago": "RFC 3339",
    "@1763438580": "RFC 3339",
    "nan": "RFC 3339",
    "inf": "RFC 3339",
    "None": "RFC 3339",
    "{{ ts }}": "RFC 3339",
    "$(date)": "RFC 3339",
    "2025-11-18T04:03:00Z; rm -rf /": "RFC 3339",
}
_NO_DURATION = (
    *(
        "",
        " ",
        "0",
        "5",
        "-5s",
        "5 s",
        "5S",
        "5sec",
        "5minutes",
        "1.5h",
        "1h30m",
        "1e3s",
        "\u0661s",
        "5s\n",
        "\x1b5s",
    ),
    *(
        "9" * 13 + "s",
        "9" * 5_000 + "s",
        "5" + "s" * 5_000,
        "5\udcff",
        "s",
        "ms",
        "+5s",
        "0x5s",
        "1_0s",
        "∞",
        "P1D",
    ),
    *(
        "5M",
        "5H",
        "5D",
        "5MS",
        "5mo",
        "5y",
        "5w",
        "latest",
        "none",
        "null",
        "$T",
        "{{ x }}",
        "5s5s",
        ".5s",
        "5.s",
    ),
)
_DURATIONS: dict[str, tuple[str, ...]] = {
    "--run-for": ("run", FLOW),
    "--safety": ("failover", FLOW, "--at", "2025-11-18T04:03:00Z", "--yes"),
    "--still": ("failover", FLOW, "--planned", "--yes"),
}
_TOO_LONG = ("999999999999d", "999999999999h", "36500d", "1000000d")


def _cases() -> Iterator[Case]:
    for number, (text, words) in enumerate(_AT.items()):
        at = ("failover", FLOW, f"--at={text}", "--dry-run" if number % 2 else "--yes")
        yield Case(name=f"at-{number}", argv=at, says=("--at", words))
    for option, argv in _DURATIONS.items():
        for number, text in enumerate(_NO_DURATION):
            yield Case(name=f"{option}-{number}", argv=(*argv, f"{option}={text}"), says=(option,))
        for text in _TOO_LONG:
            yield Case(name=f"{option}-{text}", argv=(*argv, f"{option}={text}"), says=(option, text))
    yield Case(
        name="safety-before-1970",
        argv=("failover", FLOW, "--at", "1970-01-01T00:00:30Z", "--safety", "31s", "--dry-run"),
        says=("--safety = 31s", "1970"),
    )
    yield Case(
        name="safety-of-latest",
        argv=("failover", FLOW, "--at", "latest", "--safety", "30s", "--dry-run"),
        says=("--safety",),
    )
    for text in ("0s", "999ms", "0ms", "1ms"):
        yield Case(
            name=f"still-{text}", argv=("failover", FLOW, "--planned", f"--still={text}"), says=("--still",)
        )
        yield Case(name=f"run-for-{text}", argv=("run", FLOW, f"--run-for={text}"), says=("--run-for",))
        yield Case(
            name=f"home-still-{text}",
            argv=("failback", FLOW, "--home", f"--still={text}"),
            says=("--still|failback",),
        )
    for text in ("24h1s", "25h", "86401s", "2d"):
        yield Case(name=f"run-for-{text}", argv=("run", FLOW, f"--run-for={text}"), says=("--run-for",))


CASES: tuple[Case, ...] = tuple(_cases())
