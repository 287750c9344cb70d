"""A Java properties file as text values, with the line of each: read as `java.util.Properties` reads it.

Values may be secrets: nothing here shows one. A key that is there twice has its last value, as in Java; the
lines that lost are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from causeway.config.values.regular_file import read_regular
from causeway.core.kernel.errors import ConfigError

LARGEST_BYTES = 1 << 20
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


@dataclass(frozen=True, slots=True)
class Property:
    key: str
    value: str = field(repr=False)
    line: int
    overridden: tuple[int, ...] = ()
    """Lines that say the same key and don't count."""


@dataclass(frozen=True, slots=True)
class PropertiesFile:
    name: str
    properties: dict[str, Property]
    """By key, in the file's order."""

    def place(self, found: Property) -> str:
        return f"{self.name}:{found.line}: {found.key}"


def read_properties(path: Path, *, shown_as: str | None = None) -> PropertiesFile:
    """:raises ConfigError: the file can't be read, or isn't a properties file."""
    name = shown_as or str(path)
    remedy = "name MirrorMaker 2's properties file"
    return parse_properties(read_regular(path, LARGEST_BYTES, shown_as=name, remedy=remedy), name)


def parse_properties(raw: bytes, name: str) -> PropertiesFile:
    if len(raw) > LARGEST_BYTES:
        raise ConfigError(name, rule="must not be larger than 1 MiB", remedy="is it the right file?")
    found: dict[str, Property] = {}
    for number, text in _logical_lines(raw.decode("latin-1")):  # Java's word for these files
        place = f"{name}:{number}"
        key, separator, value = _split(text)
        if not key or not (separator or value):
            raise ConfigError(
                place, rule="isn't `key = value`", remedy="correct the line, or begin it with #"
            )
        key, value = _unescaped(key, place), _unescaped(value, place)
        before = found.pop(key, None)
        lost = () if before is None else (*before.overridden, before.line)
        found[key] = Property(key, value, number, lost)
    return PropertiesFile(name, found)


def _logical_lines(content: str) -> Iterator[tuple[int, str]]:
    """Without comments and blank lines; a line that ends in an odd number of backslashes goes on."""
    begun, whole = 0, ""
    for number, line in enumerate(re.split(r"\r\n|\n|\r", content), start=1):
        text = line.lstrip(_BLANK)
        if not begun and (not text or text[0] in "#!"):
            continue
        begun = begun or number
        slashes = len(text) - len(text.rstrip("\\"))
        if slashes % 2:
            whole += text[:-1]
            continue
        yield begun, whole + text
        begun, whole = 0, ""
    if begun and whole:
        yield begun, whole


def _split(text: str) -> tuple[str, str, str]:
    """Key, separator, value: the key ends at the first `=`, `:` or blank that isn't escaped."""
    parts = re.match(r"((?:\\.|[^\\=: \t\f])*)([ \t\f]*[=:]?[ \t\f]*)(.*)", text, re.DOTALL)
    assert parts is not None
    return parts[1], parts[2].strip(_BLANK), parts[3]


def _unescaped(text: str, place: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[0].startswith("\\u"):
            if len(found[0]) != 6:
                raise ConfigError(
                    place, rule="\\u needs four hexadecimal digits", remedy="write \\\\u for a u"
                )
            return chr(int("0x" + found[0][2:], 0))
        return _ESCAPES.get(found[0][1:], found[0][1:])

    plain = re.sub(r"\\u[0-9A-Fa-f]{0,4}|\\.|\\$", character, text)
    try:  # Java writes what lies beyond U+FFFF as two
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ConfigError(place, rule="holds half a character", remedy="write both \\u of the pair") from None
