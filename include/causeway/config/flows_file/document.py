"""A YAML file as plain values, with the line of each.

Invariants: only strings, booleans, integers, floats, None, lists and dictionaries come out; no tag
builds an object; no alias, so a small file stays small in memory; no key twice, so the last one can't
win in silence. Words are read as YAML 1.2 reads them: `no`, `010` and `12:30` are text here, never
False, 8 and 750, and the field's own rule then accepts or refuses them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from causeway.config.flows_file.known_words import shown_key
from causeway.config.flows_file.yaml_mistakes import not_yaml
from causeway.config.values.regular_file import read_regular
from causeway.core.kernel.errors import ConfigError

LARGEST_BYTES = 1 << 20
DEEPEST = 12
FieldPath = tuple[str | int, ...]
_NAMES_DEPTH = 1

_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]{1,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Document:
    """What the file says (`content`), and at which line each field begins."""

    name: str
    content: object
    lines: dict[FieldPath, int]

    def place(self, field: FieldPath) -> str:
        """`flows.yaml:12: flows.a.topics[0]`; a missing field has the line of what should hold it."""
        place = f"{self.name}:{self.line(field)}"
        return f"{place}: {spell(field)}" if field else place

    def line(self, field: FieldPath) -> int:
        while field and field not in self.lines:
            field = field[:-1]
        return self.lines.get(field, 1)


def spell(field: FieldPath) -> str:
    """`flows.a.topics[0]`; names of flows and clusters are people's own, other keys may be secrets."""
    text = ""
    for depth, step in enumerate(field):
        if isinstance(step, int):
            text += f"[{step}]"
            continue
        word = step if depth == _NAMES_DEPTH else shown_key(step)
        text += f".{word}" if depth else word
    return text


def read_document(path: Path, *, shown_as: str | None = None) -> Document:
    """:raises ConfigError: the file isn't there, isn't text, is too big, or isn't the YAML that we accept."""
    name = shown_as or str(path)
    remedy = "name the file with --file, or go to the project's folder"
    return parse_document(read_regular(path, LARGEST_BYTES, shown_as=name, remedy=remedy), name)


def parse_document(raw: bytes, name: str) -> Document:
    text = _decode(raw, name)
    lines: dict[FieldPath, int] = {}
    try:
        node = _Loader(text, name).get_single_node()
        if node is None:
            rule, remedy = "the file is empty", "begin with `clusters:` and `flows:`"
            raise ConfigError(f"{name}:1", rule=rule, remedy=remedy)
        return Document(name, _plain(node, (), lines, name), lines)
    except yaml.reader.ReaderError as reason:
        line = text.count("\n", 0, reason.position) + 1
        raise ConfigError(f"{name}:{line}", rule="holds a control character", remedy="remove it") from None
    except yaml.MarkedYAMLError as reason:
        raise not_yaml(reason, text, name) from None


def _decode(raw: bytes, name: str) -> str:
    if len(raw) > LARGEST_BYTES:
        raise ConfigError(name, rule="must not be larger than 1 MiB", remedy="is it the right file?")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = raw.count(b"\n", 0, reason.start) + 1
        raise ConfigError(
            f"{name}:{line}",
            value=f"byte 0x{raw[reason.start]:02x} at position {reason.start}",
            rule="the file must be UTF-8",
            remedy="save it as UTF-8",
        ) from None
    for number, line_text in enumerate(text.splitlines(), start=1):
        if "\t" in line_text[: len(line_text) - len(line_text.lstrip())]:
            raise ConfigError(
                f"{name}:{number}", rule="must be indented by spaces, not tabs", remedy="use spaces"
            )
    return text


class _Loader(yaml.SafeLoader):
    """Composes nodes only; refuses what makes YAML surprising before it is built."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self._name, self._depth = name, 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        place = f"{self._name}:{event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError(
                place,  # its name isn't repeated: it may be a password that somebody forgot to quote
                value="*..." if isinstance(event, yaml.AliasEvent) else "&...",
                rule="anchors and aliases are not accepted",
                remedy='write it out; quote a pattern, and a glob like *.orders is written ".*\\.orders"',
            )
        if event.tag is not None:
            raise ConfigError(
                place, value="!...", rule="tags are not accepted", remedy="remove it or quote the text"
            )
        self._depth += 1
        if self._depth > DEEPEST:
            raise ConfigError(place, rule=f"is nested more than {DEEPEST} deep", remedy="close a bracket")
        node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[arg-type]
        self._depth -= 1
        return node


def _plain(node: yaml.Node, field: FieldPath, lines: dict[FieldPath, int], name: str) -> object:
    lines.setdefault(field, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, field, lines, name)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*field, index), lines, name) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    _refuse_half_characters(node, name)
    return _scalar(node)


def _mapping(
    node: yaml.MappingNode, field: FieldPath, lines: dict[FieldPath, int], name: str
) -> dict[str, object]:
    content: dict[str, object] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = key_node.value
        if not isinstance(key_node, yaml.ScalarNode) or not isinstance(key, str):
            raise ConfigError(
                f"{name}:{line}", rule="a key must be a word", remedy="quote it if it is meant as text"
            )
        _refuse_half_characters(key_node, name)
        if key in content:
            raise ConfigError(
                f"{name}:{line}: {spell((*field, key))}",
                rule=f"the key is already there, at line {lines[(*field, key)]}",
                remedy="keep one of the two",
            )
        lines[(*field, key)] = line
        content[key] = _plain(value_node, (*field, key), lines, name)
    return content


def _refuse_half_characters(node: yaml.ScalarNode, name: str) -> None:
    """An escape such as \\ud800 makes what no file, no broker and no terminal can hold."""
    if any("\ud800" <= character <= "\udfff" for character in node.value):
        raise ConfigError(
            f"{name}:{node.start_mark.line + 1}",
            rule="holds half a character (\\ud800 to \\udfff)",
            remedy="write the character itself",
        )


def _scalar(node: yaml.ScalarNode) -> object:
    text: str = node.value
    if node.style is not None:  # quoted, so text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
