"""Topics, partitions and offsets, as typed by hand: for the gap verbs and for translate."""

from __future__ import annotations

from collections.abc import Iterator

from tests.proofs.hostile.case import Case
from tests.proofs.hostile.player import FLOW

NO_NUMBERS: tuple[str, ...] = (
    *(
        "",
        " ",
        "x",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "0x10",
        "1_000",
        "1,000",
        "\u0661",
        "²",
        "1 ",
        " 1",
        "1\n",
        "\x1b[31m",
    ),
    *(
        "9" * 19,
        "9" * 20,
        "9" * 40,
        "9" * 5_000,
        "0" * 5_000 + "x",
        "9223372036854775808",
        "\udcff",
        "nan",
        "None",
    ),
    *(
        "inf",
        "0b1",
        "-",
        "1;2",
        "1-2",
        "1/2",
        "½",
        "NULL",
        "latest",
        "$(id)",
        "{{ x }}",
        "1\u202e",
        "\u200b1",
    ),
)
NO_TOPICS: dict[str, str] = {
    "unknown": "nosuch",
    "empty": "",
    "blank": " ",
    "with-blank": "a b",
    "parent": "../x",
    "slash": "a/b",
    "long": "x" * 250,
    "very-long": "x" * 100_000,
    "escape": "\x1b[31m",
    "newline": "a\nb",
    "forged": "x\nPARKED fake",
    "offsets": "__consumer_offsets",
    "blank-behind": "orders ",
    "upper": "ORDERS",
    "mirror": "sf.orders",
    "accent": "é",
    "star": "*",
    "dot": ".",
    "dots": "..",
    "with-partition": "orders-0",
    "with-colon": "orders:0",
    "template": "{{x}}",
    "not-utf-8": "\udcff",
    "null-word": "null",
    "pattern": "pay.*",
    "two": "orders,quiet",
    "right-to-left": "\u202eorders",
    "zero-width": "orders\u200b",
    "emoji": "😀",
    "quote": "'orders'",
    "dollar": "$TOPIC",
    "internal": "causeway-flows.internal",
    "not-of-the-flow": "ledger",
    "semicolon": "orders;",
}
_BECAUSE = ("--because", "x")
_TOO_LARGE = frozenset({"9" * 20, "9" * 40, "9" * 5_000, "9223372036854775808"})


def _cases() -> Iterator[Case]:
    yield from _numbers()
    yield from _topics()
    yield from _becauses()
    yield from _translations()


def _numbers() -> Iterator[Case]:
    for number, text in enumerate(NO_NUMBERS):
        after = (*_BECAUSE, "--", text)
        yield Case(
            name=f"adopt-offset-{number}", argv=("adopt", FLOW, "orders", "0", *after), says=("OFFSET",)
        )
        yield Case(
            name=f"gap-to-{number}", argv=("accept-gap", FLOW, "orders", "0", "1", *after), says=("TO",)
        )
        yield Case(
            name=f"gap-from-{number}",
            argv=("accept-gap", FLOW, "orders", "0", *after, "5"),
            says=("FROM",),
        )
        yield Case(
            name=f"adopt-partition-{number}", argv=("adopt", FLOW, "orders", *after, "1"), says=("PARTITION",)
        )
        yield Case(
            name=f"reconcile-partition-{number}",
            argv=("reconcile", FLOW, "orders", *after),
            says=("PARTITION",),
        )
        yield Case(
            name=f"lift-fence-{number}", argv=("lift", FLOW, *_BECAUSE, f"--fence={text}"), says=("--fence",)
        )


def _topics() -> Iterator[Case]:
    for word, topic in NO_TOPICS.items():
        commands = {
            "adopt": (topic, "0", "1"),
            "accept-gap": (topic, "0", "1", "2"),
            "restart-topic": (topic,),
            "reconcile": (topic,),
        }
        for verb, places in commands.items():
            yield Case(
                name=f"{verb}-topic-{word}",
                argv=(verb, FLOW, *_BECAUSE, "--", *places),
                says=("(?i)topic",),
                needs_clusters=True,
            )
            yield Case(
                name=f"{verb}-topic-{word}-dry-run",
                argv=(verb, FLOW, *_BECAUSE, "--dry-run", "--json", "--", *places),
                says=("(?i)topic",),
                needs_clusters=True,
            )


def _becauses() -> Iterator[Case]:
    texts = (
        "",
        " ",
        "\t",
        "a\nb",
        "\x1b[31m",
        "x" * 501,
        "x" * 100_000,
        "\udcff",
        "a\u202eb",
        "\u200b",
        "a\rb",
    )
    verbs = {"fence": (), "lift": (), "restart-topic": ("orders",), "adopt": ("orders", "0", "1")}
    for verb, places in verbs.items():
        for number, text in enumerate(texts):
            argv = (verb, FLOW, *places, f"--because={text}")
            yield Case(name=f"{verb}-because-{number}", argv=argv, says=("--because",))
        yield Case(name=f"{verb}-because-none", argv=(verb, FLOW, *places, "--because"), says=("--because",))
        yield Case(name=f"{verb}-no-because", argv=(verb, FLOW, *places), says=("--because",))


def _translations() -> Iterator[Case]:
    wrong = (
        *(
            "orders",
            "orders:0",
            "orders:0:",
            ":0:1",
            "orders::1",
            "orders:x:1",
            "orders:0:x",
            "orders:-1:1",
            "::",
            ":",
        ),
        *(
            "orders:0:-1",
            "orders:0:1:2",
            "orders:0:1.0",
            "orders:0:9223372036854775808",
            "orders:0:" + "9" * 5_000,
        ),
        *(
            "orders:" + "9" * 5_000 + ":1",
            "",
            " ",
            "orders 0 1",
            "orders,0,1",
            "orders:\u0661:1",
            "x" * 100_000,
            "\udcff",
        ),
        *(
            "orders:0:1\n",
            "a\nb",
            "\x1b[31m",
            "orders:0:1;orders:0:2",
            "orders:0x1:1",
            "orders:0:1e3",
            "orders:0: 1",
        ),
        *("orders:2147483648:1", "orders:9999999999:1"),
    )
    for number, text in enumerate(wrong):
        argv = ("translate", FLOW, "--", text)
        yield Case(name=f"translate-{number}", argv=argv, says=("orders:0:123",))
        if text.strip() and "\n" not in text and "\udcff" not in text:
            typed = f"orders:0:1\n{text}\n".encode()
            yield Case(
                name=f"translate-line-{number}",
                argv=("translate", FLOW),
                stdin=typed,
                says=("line 2", "orders:0:123"),
            )
    for word, typed in {
        "nothing": b"",
        "blank-lines": b"\n\n  \n",
        "not-utf-8": b"orders:0:1\n\xff\xfe\n",
        "zeros": b"\x00\x00\x00",
        "utf-16": "orders:0:1\n".encode("utf-16"),
        "last-of-many": b"orders:0:1\n" * 20_000 + b"oops\n",
    }.items():
        yield Case(
            name=f"translate-stdin-{word}", argv=("translate", FLOW), stdin=typed, says=("orders:0:123",)
        )
    yield Case(
        name="translate-forged",
        argv=("translate", FLOW, "x\nPARKED fake:0:1"),
        codes=(1, 2),
        needs_clusters=True,
        says=(r"x\\nPARKED",),
    )
    yield Case(
        name="translate-escape",
        argv=("translate", FLOW, "\x1b[31m:0:1"),
        codes=(1, 2),
        needs_clusters=True,
        says=(r"\\x1b",),
    )


CASES: tuple[Case, ...] = tuple(_cases())
