"""`import-mm2`: MirrorMaker 2's file as people break it, and where its answers must not be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.proofs.hostile.case import Case, make_device

_CANARY = "CANARYs3cr3t"
_MM2 = """\
clusters = sf, nyc
sf.bootstrap.servers = sf-1:9092
nyc.bootstrap.servers = nyc-1:9092
sf->nyc.enabled = true
sf->nyc.topics = orders
"""
"""Five lines."""
_IMPORT = ("import-mm2", "mm2.properties", "--file", "new.yaml")

_LINES: dict[str, tuple[str, str]] = {
    "misspelt": ("sf->nyc.topcs = a", "mm2.properties:6: sf->nyc.topcs: .*did you mean topics"),
    "unknown": ("nonsense = a", "is no key of MirrorMaker 2"),
    "unknown-of-cluster": ("sf.nonsense = a", "is no key of MirrorMaker 2"),
    "flow-key-of-cluster": ("sf.topics = a", "is read by nobody there"),
    "other-cluster": ("sf->paris.enabled = true", "`clusters` doesn't"),
    "both-others": ("a->b.enabled = true", "`clusters` doesn't"),
    "three": ("sf->nyc->sf.enabled = true", "`clusters` doesn't"),
    "no-value": ("justaword", "isn't `key = value`"),
    "no-key": ("= x", "isn't `key = value`"),
    "unicode": ("a\\u12 = x", "four hexadecimal digits"),
    "half": ("a\\ud800 = x", "half a character"),
    "half-value": ("sf->nyc.groups = \\udfff", "half a character"),
    "boolean": ("sf->nyc.emit.checkpoints.enabled = yes", "true or false"),
    "enabled": ("nyc->sf.enabled = ja", "true or false"),
    "number": ("replication.factor = two", "32767"),
    "number-zero": ("replication.factor = 0", "32767"),
    "number-digits": (f"replication.factor = {'9' * 5000}", "32767"),
    "policy": ("replication.policy.class = x.Mine", "class of your own"),
    "separator": ("replication.policy.separator = /", "made of"),
    "separator-empty": ("replication.policy.separator =", "made of"),
    "topics-empty": ("sf->nyc.topics = ,", "matches nothing"),
    "topics-bad": ("sf->nyc.topics = (a", "never closed"),
    "topics-glob": ("sf->nyc.topics = *.orders", "nothing to repeat"),
    "topics-long": (f"sf->nyc.topics = {'a' * 5000}", "1000 characters"),
    "topics-internal": ("sf->nyc.topics = __consumer_offsets", "never cross"),
    "topics-look": ("sf->nyc.topics = (?!a)b", "look-around"),
    "groups-bad": ("sf->nyc.groups = [a", "never closed"),
    "start": ("sf.consumer.auto.offset.reset = none", "earliest or latest"),
    "defaults": ("use.defaults.from = both", "source or target"),
    "reference": ("sf->nyc.topics = ${file:/x:topics}", "config provider"),
    "reference-clusters": ("clusters = ${env:X}", "config provider"),
    "cycle": (
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
        "nyc->sf.enabled = true",
        "is a cycle",
    ),
    "clusters-one": ("clusters = sf", "two aliases or more"),
    "clusters-twice": ("clusters = sf, sf", "two aliases or more"),
    "clusters-empty": ("clusters =", "two aliases or more"),
    "clusters-case": ("clusters = sf, SF, nyc", "both would be connection kafka_sf"),
    "clusters-dash": ("clusters = s-f, s_f, nyc", "both would be connection kafka_s_f"),
    "clusters-blank": ("clusters = s f, nyc", "two aliases or more"),
    "clusters-dot": ("clusters = s.f, nyc", "two aliases or more"),
    "clusters-long": (f"clusters = {'a' * 61}, nyc", "two aliases or more"),
    "clusters-third": ("clusters = sf, nyc, paris", "how to reach cluster paris"),
    "off": ("sf->nyc.enabled = false", "no flow is enabled"),
}
"""A sixth line; the last of two that say the same counts."""

_SECRETS: dict[str, str] = {
    "key": f"{_CANARY} = x",
    "key-alone": f"{_CANARY}",
    "key-of-cluster": f"sf.{_CANARY} = x",
    "key-of-flow": f"sf->nyc.{_CANARY} = x",
    "key-arrow": f"sf->{_CANARY}.enabled = true",
    "key-arrow-left": f"{_CANARY}->nyc.enabled = true",
    "key-dots": f"{_CANARY}.x.y = z",
    "key-like": f"topics.{_CANARY} = z",
    "key-long": f"{_CANARY * 60} = z",
    "continued": f'sf.sasl.jaas.config = x \\\n  y\n{_CANARY}";',
    "login-word": f"sf.sasl.jaas.config = {_CANARY}\nnonsense = 1",
    "pair": f"password={_CANARY}",
    "half": f"{_CANARY}\\ud800 = x",
    "escape": f"{_CANARY}\\u12 = x",
}

_WHOLE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "has no line `clusters"),
    "comment": ("# x\n! y\n", "has no line `clusters"),
    "xml": ("<a>\n</a>\n", "isn't `key = value`|no line"),
    "json": ('{"clusters": ["a"]}\n', "no line|isn't"),
    "yaml": ("clusters:\n  sf: {connection: x}\n", "aliases|isn't"),
    "zeros": (b"\0" * 100, "isn't `key = value`"),
    "binary": (bytes(range(256)), "isn't|no line"),
    "utf-16": (_MM2.encode("utf-16"), "isn't|no line"),
    "byte-order-mark": (b"\xef\xbb\xbf" + _MM2.encode(), "no line `clusters"),
    "too-large": (b"#" * ((1 << 20) + 1), "1 MiB"),
    "no-servers": ("clusters = sf, nyc\nsf->nyc.enabled = true\n", "how to reach cluster sf"),
    "no-flow": (_MM2.replace("sf->nyc.enabled = true\n", ""), "no flow is enabled"),
    "only-clusters": ("clusters = sf, nyc", "how to reach"),
}

_PROPERTIES: dict[str, str] = {
    "nope.properties": "No such file",
    ".": "regular file",
    "fifo": "regular file",
    "/dev/zero": "regular file",
    "/dev/null": "regular file",
    "": "regular file|No such file",
    "x" * 5_000: "name too long",
    "a\0b": "is no path",
    "loop": "symbolic links",
    "fifo/x": "Not a directory",
    "a\x1b[31m\nb": "No such file",
    "\udcff": "No such file",
}

_TARGETS: dict[str, str] = {
    "folder": "isn't a regular file",
    "fifo": "isn't a regular file",
    "device": "isn't a regular file",
    "mm2.properties/x": "Not a directory",
    "mm2.properties": "is the file of PROPERTIES too",
    "./mm2.properties": "is the file of PROPERTIES too",
    "folder/../mm2.properties": "is the file of PROPERTIES too",
    "link": "is the file of PROPERTIES too",
    "loop": "[Ss]ymbolic links|can't be",
    "y" * 5_000: "name too long",
    "folder/" + "y" * 300: "name too long",
    "a\0b": "can't be",
    "": "names no file",
    " ": "names no file",
}
"""Where nothing may be written, whatever --overwrite says."""


def _made(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    make_device(folder / "device")
    (folder / "loop").symlink_to("loop")
    (folder / "link").symlink_to("mm2.properties")
    (folder / "folder").mkdir()


def _with_files(folder: Path) -> None:
    _made(folder)
    (folder / "old.yaml").write_text("old")
    (folder / "to-old").symlink_to("old.yaml")


def _cases() -> Iterator[Case]:
    for name, (line, says) in _LINES.items():
        yield _case(f"line-{name}", f"{_MM2}{line}\n", says)
    for name, line in _SECRETS.items():
        yield _case(f"secret-{name}", f"{_MM2}{line}\n", "mm2.properties:[0-9]+")
        yield _case(f"secret-{name}-json", f"{_MM2}{line}\n", "mm2.properties:[0-9]+", "--json")
    for name, (whole, says) in _WHOLE.items():
        yield _case(f"whole-{name}", whole, says)
    for number, (path, says) in enumerate(_PROPERTIES.items()):
        for more in ((), ("--dry-run",), ("--adopt",)):
            yield Case(
                name=f"import-properties-{number}{''.join(more)}",
                argv=("import-mm2", path, "--file", "new.yaml", *more),
                says=(says,),
                prepare=_made,
            )
    yield from _target_cases()
    yield from _both_or_none()


def _target_cases() -> Iterator[Case]:
    for number, (path, says) in enumerate(_TARGETS.items()):
        for more in ((), ("--overwrite",), ("--overwrite", "--dry-run")):
            yield Case(
                name=f"import-file-{number}-{len(more)}",
                argv=("import-mm2", "mm2.properties", "--file", path, *more),
                files={"mm2.properties": _MM2},
                says=(says,),
                prepare=_made,
            )
            yield Case(
                name=f"import-connections-{number}-{len(more)}",
                argv=(*_IMPORT, "--connections", path, *more),
                files={"mm2.properties": _MM2},
                says=(says,),
                prepare=_made,
            )


def _both_or_none() -> Iterator[Case]:
    same = {
        "same": ("same", "same"),
        "same-dotted": ("same", "./same"),
        "same-below": ("folder/same", "folder/../folder/same"),
        "same-link": ("old.yaml", "to-old"),
        "link-same": ("to-old", "old.yaml"),
    }
    for name, (file, connections) in same.items():
        for more in ((), ("--overwrite",), ("--overwrite", "--dry-run")):
            yield Case(
                name=f"import-{name}-{len(more)}",
                argv=("import-mm2", "mm2.properties", "--file", file, "--connections", connections, *more),
                files={"mm2.properties": _MM2},
                says=("is the file of --file too|is there already",),
                prepare=_with_files,
            )
    for name, argv in {
        "there": ("--file", "old.yaml"),
        "there-second": ("--file", "new.yaml", "--connections", "old.yaml"),
        "there-dry": ("--file", "old.yaml", "--dry-run"),
        "there-default": (),
    }.items():
        yield Case(
            name=f"import-{name}",
            argv=("import-mm2", "mm2.properties", *argv),
            files={"mm2.properties": _MM2},
            says=("is there already; add --overwrite",),
            prepare=_with_files,
        )
    for name, argv, says in (
        ("adopt-connections", ("--adopt", "--connections", "c"), "writes no files"),
        ("adopt-overwrite", ("--adopt", "--overwrite"), "writes no files"),
        ("flow-alone", ("--flow", "sf_to_nyc"), "is for --adopt"),
        ("adopt-unknown", ("--adopt", "--flow", "nope"), "nope"),
    ):
        yield Case(
            name=f"import-{name}",
            argv=("import-mm2", "mm2.properties", *argv),
            files={"mm2.properties": _MM2},
            says=(says,),
        )
    for number, (first, second) in enumerate((("new.yaml", "new.env"), ("old.yaml", "new.env"))):
        yield Case(  # the second file doesn't fit any more
            name=f"import-full-disk-{number}",
            shell=f"ulimit -f 4; causeway import-mm2 mm2.properties --overwrite --file {first} "
            f"--connections {second}",
            files={"mm2.properties": f"{_MM2}ssl.key.password = {'x' * 9_000}\nsecurity.protocol = SSL\n"},
            says=("new.env: can't be written: .*nothing was written",),
            hides=("xxxxxxxxxx",),
            prepare=_with_files,
        )
    yield Case(
        name="import-through-a-link",
        argv=("import-mm2", "mm2.properties", "--file", "to-old", "--overwrite"),
        files={"mm2.properties": _MM2},
        codes=(0,),
        prepare=_with_files,
        leaves=("old.yaml",),
    )


def _case(name: str, text: str | bytes, says: str, *more: str) -> Case:
    return Case(
        name=f"import-{name}",
        argv=(*_IMPORT, "--connections", "new.env", *more),
        files={"mm2.properties": text},
        says=(says,),
        hides=(_CANARY,),
    )


CASES: tuple[Case, ...] = tuple(_cases())
