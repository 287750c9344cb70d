"""flows.yaml as people break it: syntax, types, names, secrets in the wrong place, paths, sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tests.proofs.hostile.case import Case

_CLUSTERS = "clusters:\n  sf: {connection: kafka_sf}\n  nyc: {connection: kafka_nyc}\n"
_FLOW = f"{_CLUSTERS}flows:\n  a:\n    source: sf\n    target: nyc\n"
"""Ends with line 7."""
_CANARY = "CANARYs3cr3t"
_LONG = "x" * 5_000
_CHECK = ("flows",)

_LINES: dict[str, tuple[str, str]] = {
    "glob": ("topics: [*.orders]", r"a.yaml:8: topics: .*[Qq]uote"),
    "glob-alone": ("topics: *.orders", r"a.yaml:8: topics: .*[Qq]uote"),
    "star": ("topics: [*]", r"[Qq]uote"),
    "at": ("pool: @here", r"a.yaml:8: pool: .*quote"),
    "backtick": ("pool: `x`", r"a.yaml:8: pool: .*quote"),
    "percent": ("pool: %x", "quote"),
    "brace": ("pool: {a", "isn't YAML"),
    "bracket": ("topics: [a, b", "isn't YAML"),
    "unclosed-quote": ("pool: 'open", "isn't YAML"),
    "unclosed-double-quote": ('pool: "open', "isn't YAML"),
    "bad-escape": ('pool: "\\q"', "isn't YAML"),
    "bad-escape-x": ('pool: "\\xzz"', "isn't YAML"),
    "bad-escape-u": ('pool: "\\u12"', "isn't YAML"),
    "two-colons": ("pool: a: b", "quote"),
    "tab": ("\tpool: x", "tabs"),
    "no-blank": ("pool:x", "isn't YAML"),
    "less-indent": (" pool: x", "isn't YAML"),
    "more-indent": ("      pool: x", "isn't YAML"),
    "list-as-key": ("[a, b]: 1", "a key must be a word"),
    "map-as-key": ("{a: b}: 1", "a key must be a word"),
    "question-mark": ("? [a]\n    : b", "a key must be a word"),
    "merge": ("<<: {lanes: 1}", "is no key"),
    "second-document": ("lanes: 1\n---\nx: 1", "isn't YAML"),
    "document-end": ("lanes: 1\n...\nx: 1", "isn't YAML"),
    "twice": ("lanes: 1\n    lanes: 2", "already there, at line 8"),
    "twice-quoted": ("lanes: 1\n    'lanes': 2", "already there, at line 8"),
    "nested": (f"pool: {'[' * 40}", "12 deep"),
    "null-byte": ("pool: a\x00b", "control character"),
    "bell": ("pool: a\x07b", "control character"),
    "escape": ("pool: a\x1b[31mb", "control character"),
    "control-1": ("pool: a\x9bb", "control character"),
    "not-a-character": ("pool: a\ufffeb", "control character"),
    "surrogate": ('pool: "\\ud800"', "half a character.*; write"),
    "surrogate-low": ('pool: "\\udfff"', "half a character.*; write"),
    "surrogate-pair": ('pool: "\\ud83d\\ude00"', "half a character.*; write"),
    "surrogate-key": ('"\\ud800": 1', "half a character.*; write"),
    "surrogate-topic": ('topics: ["\\ud800"]', "half a character.*; write"),
    "surrogate-escape-long": ('pool: "\\U0000d800"', "half a character.*; write"),
    "line-separator-key": ('"a\u2028b": 1', "a.yaml:[89]"),
    "rtl-key": ('"a\u202eb": 1', "is no key of a flow"),
    "long-key": (f"{_LONG[:1000]}: 1", "is no key of a flow"),
    "long-value": (f"lanes: {_LONG}", r"5000 characters|5,000 characters"),
    "long-pool": (f"pool: {_LONG}", "250"),
    "digits-5000": (f"lanes: {'9' * 5000}", "whole number"),
    "retries-digits": (f"retries: {'9' * 5000}", "whole number"),
    "factor-digits": (f"replication.factor: {'9' * 5000}", "whole number"),
    "duration-digits": (f"run_for: {'9' * 5000}s", "duration"),
    "size-digits": (f"transaction.max.bytes: {'9' * 5000}MiB", "size"),
    "other-digits": ("lanes: ٣", "whole number"),
    "wide-digits": ("lanes: \uff13", "whole number"),
    "hex": ("lanes: 0x10", "whole number"),
    "octal": ("lanes: 0o10", "whole number"),
    "binary": ("lanes: 0b1", "whole number"),
    "underscore": ("lanes: 1_0", "whole number"),
    "sexagesimal": ("lanes: 1:30", "whole number"),
    "exponent": ("lanes: 1e2", "whole number"),
    "infinite": ("lanes: .inf", "whole number"),
    "not-a-number": ("lanes: .nan", "whole number"),
    "boolean-lanes": ("lanes: true", "whole number"),
    "lanes-list": ("lanes: [1]", "whole number"),
    "lanes-map": ("lanes: {a: 1}", "whole number"),
    "lanes-none": ("lanes:", "nothing here"),
    "topics-none": ("topics:", "nothing here"),
    "topics-text": ("topics: orders", "must be a list"),
    "topics-empty": ("topics: []", "must not be empty"),
    "topics-number": ("topics: [5]", "must be text"),
    "topics-nested": ("topics: [[a]]", "must be text"),
    "topics-map": ("topics: [{a: b}]", "must be text"),
    "topics-none-inside": ("topics: [a, ]\n    groups: [~]", "must be text"),
    "follow-yes": ("follow: yes", "true or false"),
    "follow-on": ("follow: on", "true or false"),
    "follow-number": ("follow: 1", "true or false"),
    "follow-upper": ("follow: True", "true or false"),
    "settle-no": ("settle: no", "true or false"),
    "policy-upper": ("replication.policy: PREFIX", "one of these"),
    "policy-empty": ("replication.policy: ''", "one of these"),
    "refused-unknown": ("on_refused: ignore", "one of these"),
    "retries-negative": ("retries: -1", "larger"),
    "retries-many": ("retries: 101", "smaller"),
    "lanes-zero": ("lanes: 0", "larger"),
    "lanes-many": ("lanes: 1001", "smaller"),
    "factor-zero": ("replication.factor: 0", "-1"),
    "factor-big": ("replication.factor: 32768", "-1"),
    "run-for-bare": ("run_for: 10", "duration"),
    "run-for-month": ("run_for: 10M", "10m"),
    "run-for-zero": ("run_for: 0s", "larger"),
    "run-for-week": ("run_for: 1w", "units"),
    "run-for-big": ("run_for: 999999999999d", "smaller"),
    "size-mb": ("transaction.max.bytes: 16MB", "units"),
    "size-zero": ("transaction.max.bytes: 0B", "larger"),
    "size-big": ("transaction.max.bytes: 999999999999GiB", "smaller"),
    "time-big": ("transaction.max.time: 1h", "smaller"),
    "separator-slash": ("replication.policy.separator: /", "made of"),
    "separator-blank": ("replication.policy.separator: ' '", "made of"),
    "separator-letter": ("replication.policy.separator: a", "made of"),
    "rules-without-policy": ("replication.policy.rules: [{from: a, to: b}]", "does nothing"),
    "rules-half": ("replication.policy: rules\n    replication.policy.rules: [{from: a}]", "is required"),
    "rules-more": (
        "replication.policy: rules\n    replication.policy.rules: [{from: a, to: b, c: d}]",
        "is no key of a mapping rule",
    ),
    "rules-reference": (
        "replication.policy: rules\n    replication.policy.rules: [{from: a, to: $9}]",
        "speaks of group 9",
    ),
    "failback-of-itself": ("failback_of: a", "a.yaml:8"),
    "failback-of-nobody": ("failback_of: nope", "a.yaml:8"),
    "internal-topic": ("topics: [__consumer_offsets]", "never cross"),
    "rewinds-alone": ("follow_rewinds: true", "does nothing without"),
    "follow-and-schedule": ("follow: true\n    schedule: '@daily'", "remove one"),
    "settle-and-quarantine": ("settle: true\n    on_refused: quarantine", "remove one"),
}
"""A line of a flow, and what the error says."""

_PATTERNS: dict[str, str] = {
    "*.orders": "nothing to repeat",
    "(a": "never closed",
    "a)": "closes nothing",
    "[a": "never closed",
    "[z-a]": "backwards",
    "a{3,1}": "backwards",
    "a{99999}": "",
    "a**": "repeats a repetition",
    "a++": "",
    "a\\": "escapes nothing",
    "\\b": "isn't known",
    "\\p{L}": "isn't known",
    "(?!x)a": "look-around",
    "(?=x)a": "look-around",
    "(?<=x)a": "look-around",
    "(?i)a": "",
    "(?P<n>a)": "",
    "(a)\\1": "isn't known",
    "(a{1000}){1000}": "2000 states",
    "((a{0}){9999}){9999}": "2000 states",
    "": "matches nothing",
    "a" * 1001: "1000 characters",
    "(" * 21 + "a" + ")" * 21: "20 deep",
}

_SECRETS: dict[str, str] = {
    "tag": f"pool: !{_CANARY} x",
    "tag-alone": f"pool: !{_CANARY}",
    "tag-verbatim": f"pool: !<{_CANARY}> x",
    "tag-double": f"pool: !!{_CANARY} x",
    "tag-handle": f"pool: !{_CANARY}!x y",
    "tag-in-list": f"topics: [!{_CANARY} a]",
    "tag-on-key": f"!{_CANARY} pool: x",
    "tag-percent": f"pool: !%43{_CANARY} x",
    "anchor": f"pool: &{_CANARY} x",
    "anchor-alone": f"pool: &{_CANARY}",
    "anchor-in-list": f"topics: [&{_CANARY} a]",
    "anchor-on-key": f"&{_CANARY} pool: x",
    "alias": f"pool: *{_CANARY}",
    "alias-in-list": f"topics: [*{_CANARY}]",
    "alias-as-key": f"*{_CANARY} : x",
    "merge-alias": f"<<: *{_CANARY}",
    "key": f"{_CANARY}: x",
    "key-alone": f"{_CANARY}:",
    "key-quoted": f'"{_CANARY}": x',
    "key-twice": f"{_CANARY}: x\n    {_CANARY}: y",
    "key-with-list": f"{_CANARY}: [a, b]",
    "key-with-map": f"{_CANARY}: {{lanes: 1}}",
    "key-like-one": f"lanes.{_CANARY}: x",
    "key-of-rule": f"replication.policy: rules\n    replication.policy.rules: [{{{_CANARY}: b}}]",
    "key-surrogate": f'"{_CANARY}\\ud800": x',
    "key-long": f"{_CANARY}{_LONG[:900]}: x",
    "password-key": f"sasl.password: {_CANARY}",
    "password-key-upper": f"SASL.PASSWORD: {_CANARY}",
    "secret-key": f"client_secret: {_CANARY}",
    "token-key": f"token: {_CANARY}",
    "jaas-key": f"sasl.jaas.config: {_CANARY}",
    "pem-key": f"ssl.key.pem: {_CANARY}",
    "url-value": f"pool: kafka://u:{_CANARY}@h:9092",
    "pem-value": f"pool: '-----BEGIN PRIVATE KEY----- {_CANARY}'",
    "password-value": f"pool: password={_CANARY}",
    "password-in-list": f"topics: ['password={_CANARY}']",
    "not-yaml-after": f"sasl.password: {_CANARY}: x",
    "not-yaml-before": f"sasl.password: '{_CANARY}",
    "not-yaml-brace": f"sasl.password: {{{_CANARY}",
    "directive": f"pool: x\n%{_CANARY}",
    "bad-escape": f'pool: "\\u{_CANARY}"',
    "block-header": f"pool: |{_CANARY}\n      x",
}
"""Secrets in the wrong place: none is repeated."""

_STARTS: dict[str, str] = {
    "9999-12-31T23:59:59-14:00": "future|calendar",
    "9999-12-31T23:59:59-00:01": "future|calendar",
    "9999-12-31T23:59:59Z": "future",
    "2999-01-01T00:00:00Z": "future.*; write",
    "2200-01-01T00:00:00+14:00": "future.*; write",
    "0001-01-01T00:00:00+14:00": "1970|calendar",
    "0001-01-01T00:00:00Z": "1970",
    "0000-01-01T00:00:00Z": "calendar",
    "1969-12-31T23:59:59Z": "1970",
    "2026-02-30T00:00:00Z": "calendar",
    "2025-01-01T24:00:01Z": "calendar",
    "2025-01-01T00:00:60Z": "calendar",
    "2025-01-01T00:00:00": "zone",
    "2025-01-01": "RFC 3339",
    "1767225600": "ambiguous",
    "9" * 5000: "ambiguous",
    "now": "RFC 3339",
    "EARLIEST": "RFC 3339",
    "''": "RFC 3339",
    "[]": "RFC 3339",
    "2025-01-01T00:00:00+24:00": "calendar|zone",
    "2025-01-01T00:00:00+00:60": "calendar|zone",
    "2025-01-01T00:00:00.0000000000Z": "RFC 3339",
    "10000-01-01T00:00:00Z": "RFC 3339",
}

_SCHEDULES: dict[str, str] = {
    "@daily": r"schedule: .*quote it.*\"@daily\"",
    "@continuous": r"schedule: .*quote it",
    "@reboot": r"schedule: .*quote it",
    "*/5 * * * *": r"schedule: .*quote it",
    "* * * * *": r"schedule: .*quote it",
    "'0 0 31 2 *'": "never",
    "'0 0 30 2 *'": "never",
    "'0 0 30,31 2 *'": "never",
    "'0 0 31 4 *'": "never",
    "'0 0 31 4,6,9,11 *'": "never",
    "'0 0 31 feb *'": "never",
    "'0 0 31 2/12 *'": "never",
    "'60 * * * *'": "0 to 59",
    "'* 24 * * *'": "0 to 23",
    "'* * 32 * *'": "1 to 31",
    "'* * * 13 *'": "1 to 12",
    "'* * * * 8'": "0 to 7",
    "'* * * *'": "5 fields",
    "'* * * * * *'": "5 fields",
    "''": "5 fields",
    "'@reboot'": "preset",
    "'@DAILY'": "preset",
    "'*/0 * * * *'": "step",
    "'9-5 * * * *'": "backwards",
    "'a * * * *'": "minute",
    "'1,,2 * * * *'": "minute",
    "'-1 * * * *'": "minute",
    "'L * * * *'": "minute",
    "'* * L * *'": "day of the month",
    "'* * ? * *'": "day of the month",
    "'* * * * mon#1'": "weekday|day of the week",
    "5": "must be text",
    "'" + "9" * 5000 + " * * * *'": "minute",
}

_GOOD_SCHEDULES = (
    "'0 0 29 2 *'",
    "'0 0 31 2 1'",
    "'0 0 31 * *'",
    "'0 0 31 1,2 *'",
    "'0 0 30 4 *'",
    "'@daily'",
)

_WHOLE: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "is empty"),
    "comment": ("# x\n", "is empty"),
    "blank": ("\n\n \n", "is empty"),
    "list": ("- a\n", "keys and values"),
    "text": ("hello\n", "keys and values"),
    "number": ("5\n", "keys and values"),
    "json-list": ("[1, 2]", "keys and values"),
    "clusters-only": (_CLUSTERS, "is required"),
    "flows-only": ("flows: {}\n", "is required"),
    "flows-empty": (f"{_CLUSTERS}flows: {{}}\n", "must not be empty"),
    "flows-list": (f"{_CLUSTERS}flows: [a]\n", "keys and values"),
    "clusters-list": ("clusters: [a]\nflows: {}\n", "keys and values"),
    "clusters-text": ("clusters: a\nflows: {}\n", "keys and values"),
    "flow-none": (f"{_CLUSTERS}flows:\n  a:\n", "nothing here"),
    "flow-text": (f"{_CLUSTERS}flows:\n  a: x\n", "keys and values"),
    "key-more": (f"{_FLOW}version: 1\n", "is no key of this file"),
    "utf-16": (_FLOW.encode("utf-16"), "UTF-8"),
    "utf-32": (_FLOW.encode("utf-32"), "UTF-8"),
    "latin-1": (_FLOW.encode() + b"    pool: caf\xe9\n", "a.yaml:8 = byte 0xe9.*UTF-8"),
    "surrogate-bytes": (_FLOW.encode() + b"    pool: \xed\xa0\x80\n", "UTF-8"),
    "over-long": (_FLOW.encode() + b"    pool: \xc0\xaf\n", "UTF-8"),
    "binary": (bytes(range(256)), "UTF-8|control"),
    "zeros": (b"\0" * 4096, "control"),
    "gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "UTF-8|control"),
    "too-large": (b"#" * ((1 << 20) + 1), "1 MiB"),
    "bomb": ("a0: &a0 [x]\n" + "".join(f"a{n}: [*a0, *a0]\n" for n in range(30)), "anchors"),
    "colon": (":\n", "a.yaml:1"),
    "dashes": ("---\n---\n", "a.yaml"),
    "percent": ("%YAML 9.9\n---\na: b\n", "a.yaml"),
    "tag-directive": ("%TAG ! tag:x,2000:\n---\n!x a: b\n", "a.yaml"),
    "same-connection": (
        "clusters:\n  sf: {connection: kafka_x}\n  nyc: {connection: kafka_x}\n"
        "flows:\n  a: {source: sf, target: nyc}\n",
        "same connection",
    ),
    "same-connection-case": (
        "clusters:\n  sf: {connection: kafka_x}\n  nyc: {connection: KAFKA_X}\n"
        "flows:\n  a: {source: sf, target: nyc}\n",
        "AIRFLOW_CONN_KAFKA_X",
    ),
    "unknown-alias": (f"{_CLUSTERS}flows:\n  a: {{source: sff, target: nyc}}\n", "did you mean sf"),
    "itself": (f"{_CLUSTERS}flows:\n  a: {{source: sf, target: sf}}\n", "is the source too"),
    "long-alias": (f"clusters:\n  {_LONG[:900]}: {{connection: x}}\nflows: {{}}\n", "1 to 60"),
    "long-source": (f"{_CLUSTERS}flows:\n  a: {{source: '{_LONG}', target: nyc}}\n", "alias under clusters"),
    "long-flow": (f"{_CLUSTERS}flows:\n  {_LONG[:900]}: {{source: sf, target: nyc}}\n", "1 to 60"),
    "many-aliases": (
        "clusters:\n"
        + "".join(f"  cluster_number_{n}: {{connection: kafka_{n}}}\n" for n in range(300))
        + "flows:\n  a: {source: nope, target: cluster_number_1}\n",
        "alias under clusters",
    ),
    "cycle": (
        f"{_CLUSTERS}flows:\n  a: {{source: sf, target: nyc, replication.policy: identity}}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity}\n",
        "is a cycle",
    ),
}

_NAMES = ("A", "a-b", "a b", "a.b", "é", "a/b", "../x", "", " ", "a\tb", "{{x}}", "$(id)", "x" * 61, "a\\nb")

_BIG: dict[str, tuple[str, tuple[int, ...]]] = {
    "topics": ("topics: [" + ", ".join(f"orders-payments-eu-{n}" for n in range(25_000)) + "]", (0,)),
    "topics-dots": ("topics: [" + ", ".join(f"eu.orders.payments.{n}" for n in range(25_000)) + "]", (0,)),
    "topics-identity": (
        "replication.policy: identity\n    topics:\n"
        + "".join(f"      - orders-payments-eu-{n}\n" for n in range(20_000)),
        (0,),
    ),
    "groups": ("groups: [" + ", ".join(f"group-of-payments-{n}" for n in range(25_000)) + "]", (0,)),
    "wrong-all": ("topics: [" + ", ".join(["5"] * 60_000) + "]", (2,)),
    "keys": ("".join(f"k{n}: 1\n    " for n in range(40_000)), (2,)),
    "one-word": ("pool: " + "p" * 900_000, (2,)),
    "colons": ("pool: '://" + ":" * 900_000 + "'", (2,)),
    "schemes": ("pool: '" + "://a:" * 180_000 + "'", (2,)),
    "blanks": ("pool:" + " " * 900_000 + "x", (0, 2)),
    "quotes": ("pool: '" + "''" * 400_000 + "'", (2,)),
    "escapes": ('pool: "' + "\\x41" * 200_000 + '"', (2,)),
    "comments": ("#\n" * 400_000, (0, 2)),
    "folded": ("pool: >\n" + "      x\n" * 100_000, (2,)),
}
"""Up to 1 MiB: an answer has to come in seconds."""


def _fifo(folder: Path) -> None:
    os.mkfifo(folder / "fifo")


def _loop(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")


_PATHS: dict[str, tuple[str, str]] = {
    "missing": ("nope.yaml", "No such file"),
    "missing-folder": ("nope/a.yaml", "No such file"),
    "folder": (".", "regular file"),
    "fifo": ("fifo", "regular file"),
    "zero": ("/dev/zero", "regular file"),
    "null": ("/dev/null", "regular file"),
    "full": ("/dev/full", "regular file"),
    "tty": ("/dev/tty", "regular file|No such device"),
    "below-a-file": ("include/flows.yaml/x", "Not a directory"),
    "loop": ("loop", "[Ss]ymbolic links"),
    "dangling": ("dangling", "No such file"),
    "long": ("x" * 5_000, "name too long"),
    "long-folder": ("/".join(["x" * 200] * 30), "name too long"),
    "null-character": ("a\0b", "can't be read|null"),
    "empty": ("", "--file.*; "),
    "blank": (" ", "names no file|No such file"),
    "escape": ("a\x1b[31m", "No such file"),
    "line-end": ("a\nb", "No such file"),
    "not-utf-8": ("a\udcff\udcfe", "No such file"),
    "tilde": ("~/flows.yaml", "No such file"),
    "url": ("https://example.org/flows.yaml", "No such file"),
    "memory": ("/proc/self/mem", "can't be read|UTF-8|larger"),
}


def _cases() -> Iterator[Case]:
    for name, (line, says) in _LINES.items():
        yield _case(f"line-{name}", f"{_FLOW}    {line}\n", says)
    for number, (pattern, says) in enumerate(_PATTERNS.items()):
        for key in ("topics", "topics.exclude", "groups", "groups.exclude", "config.properties.exclude"):
            text = f"{_FLOW}    {key}: [fine, {_single_quoted(pattern)}]\n"
            yield _case(f"pattern-{number}-{key}", text, says)
    for name, line in _SECRETS.items():
        yield _case(f"secret-{name}", f"{_FLOW}    {line}\n", "a.yaml:", hides=(_CANARY,))
        yield _case(f"secret-{name}-json", f"{_FLOW}    {line}\n", "a.yaml:", "--json", hides=(_CANARY,))
    yield from _time_cases()
    yield from _whole_cases()
    yield from _path_cases()


def _time_cases() -> Iterator[Case]:
    for number, (start, says) in enumerate(_STARTS.items()):
        yield _case(f"start-{number}", f"{_FLOW}    start: {start}\n", says)
    for number, (schedule, says) in enumerate(_SCHEDULES.items()):
        yield _case(f"schedule-{number}", f"{_FLOW}    schedule: {schedule}\n", says)
    for number, schedule in enumerate(_GOOD_SCHEDULES):
        yield _case(f"schedule-good-{number}", f"{_FLOW}    schedule: {schedule}\n", "is valid", codes=(0,))


def _whole_cases() -> Iterator[Case]:
    for name, (whole, says) in _WHOLE.items():
        yield _case(f"whole-{name}", whole, says)
    yield _case("whole-byte-order-mark", b"\xef\xbb\xbf" + _FLOW.encode(), "is valid", codes=(0,))
    yield _case("whole-windows-lines", _FLOW.replace("\n", "\r\n"), "is valid", codes=(0,))
    for number, name in enumerate(_NAMES):
        flow = f'{_CLUSTERS}flows:\n  "{name}": {{source: sf, target: nyc}}\n'
        yield _case(f"flow-name-{number}", flow, "a.yaml" if "\t" in name else "1 to 60")
    for name, (line, codes) in _BIG.items():
        yield _case(f"big-{name}", f"{_FLOW}    {line}\n", "", codes=codes, seconds=150)


def _path_cases() -> Iterator[Case]:
    for name, (path, says) in _PATHS.items():
        yield Case(name=f"path-{name}", argv=(*_CHECK, "--file", path), says=(says,), prepare=_made)
        yield Case(
            name=f"path-{name}-plan", argv=("plan", "sf_to_nyc", "--file", path), says=(says,), prepare=_made
        )
        if "\0" not in path and path:
            yield Case(
                name=f"path-{name}-variable",
                argv=(*_CHECK, "--json"),
                says=(says,),
                prepare=_made,
                environment={"CAUSEWAY_FLOWS": path},
            )


def _made(folder: Path) -> None:
    _fifo(folder)
    _loop(folder)


def _single_quoted(text: str) -> str:
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text) + '"'


def _case(
    name: str,
    text: str | bytes,
    says: str,
    *more: str,
    codes: tuple[int, ...] = (2,),
    hides: tuple[str, ...] = (),
    seconds: float = 30.0,
) -> Case:
    return Case(
        name=f"file-{name}",
        argv=(*_CHECK, "--file", "a.yaml", *more),
        files={"a.yaml": text},
        codes=codes,
        says=(says,) if says else (),
        hides=hides,
        seconds=seconds,
    )


CASES: tuple[Case, ...] = tuple(_cases())
