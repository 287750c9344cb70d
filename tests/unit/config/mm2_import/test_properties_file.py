"""Java's properties files, read as Java reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.config.mm2_import.properties_file import parse_properties, read_properties
from causeway.core.kernel.errors import ConfigError


def values(text: str) -> dict[str, str]:
    return {
        key: found.value for key, found in parse_properties(text.encode("latin-1"), "x").properties.items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b c ", {"a": "b c "}),
        ("a: b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a\t=\tb", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a=b=c:d", {"a": "b=c:d"}),
        ("a=", {"a": ""}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a->b.c = d", {"a->b.c": "d"}),
        ("# x = y\n! z\n\n  # w\na=b", {"a": "b"}),
        ("a=b\\\n   c\\\n\\\n d", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=\\t\\n\\u00e9\\q\\#", {"a": "\t\n\xe9q#"}),
        ("a=\\uD83D\\uDE00", {"a": "\U0001f600"}),
        ("a=\xe9", {"a": "\xe9"}),
        ("a=b\r\nc=d\re=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=b\\", {"a": "b"}),
        ("a=\\\n# no comment", {"a": "# no comment"}),
    ],
)
def test_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert values(text) == expected


def test_lines_are_where_a_key_begins_and_the_last_of_two_counts() -> None:
    found = parse_properties(b"# head\na = 1 \\\n  2\nb = 3\na = 4\n", "x").properties
    assert {key: (each.line, each.value, each.overridden) for key, each in found.items()} == {
        "b": (4, "3", ()),
        "a": (5, "4", (2,)),
    }


@pytest.mark.parametrize("text", ["word", "= x", ": x", "a = \\u00g0", "a = \\ud83d"])
def test_what_is_no_property_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^x:2: "):
        parse_properties(f"a = b\n{text}\n".encode(), "x")


def test_a_file_that_is_not_there_or_far_too_large(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"can't be read: No such file"):
        read_properties(tmp_path / "none")
    (tmp_path / "large").write_bytes(b"#" * (1 << 20) + b"xx")
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read_properties(tmp_path / "large")
