"""Examples of any class, made from its annotations: every field filled, and the other ways it can be.

An example of a class has every field of that class, also one that comes tomorrow: nobody has to remember it.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

ANYTHING = "anything"
"""Each text, and so each key of a mapping that is data and no name of a field."""
VARIANTS = 8
"""Of a choice between several the first variant takes the first, and so on. In the last three whatever may be
`None` is, and texts are empty; in two of them lists are empty as well."""
SPARSE, _EMPTY, _BELOW_ZERO = range(VARIANTS - 3, VARIANTS)
_NUMBERS = {_EMPTY: 0, _BELOW_ZERO: -1}


class Exemplars:
    def __init__(self, variant: int, given: Mapping[object, object]) -> None:
        """`given`: values by their type, or by the name `Class.field`."""
        self._variant, self._given = variant, given
        self._is_sparse = variant >= SPARSE
        self._is_empty = variant > SPARSE

    def of(self, kind: object) -> object:
        if kind in self._given:
            return self._given[kind]
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if kind is None or kind is types.NoneType:
            return None
        if origin in (typing.Union, types.UnionType):
            return self._choice(arguments)
        if origin is typing.Literal:
            return self._one_of(arguments)
        if origin is not None:
            return self._collection(origin, arguments)
        if isinstance(kind, typing.NewType):
            return self.of(kind.__supertype__)
        return self._plain(kind)

    def returned_by(self, function: Callable[..., object]) -> object:
        return self.of(_hints(function)["return"])

    def _one_of(self, choices: tuple[object, ...]) -> object:
        return choices[self._variant % len(choices)]

    def _choice(self, arguments: tuple[object, ...]) -> object:
        if self._is_sparse and types.NoneType in arguments:
            return None
        return self.of(self._one_of(tuple(each for each in arguments if each is not types.NoneType)))

    def _collection(self, origin: object, arguments: tuple[object, ...]) -> object:
        assert isinstance(origin, type), origin
        if issubclass(origin, tuple) and (not arguments or arguments[-1] is not Ellipsis):
            return tuple(self.of(each) for each in arguments)
        if issubclass(origin, collections.abc.Mapping):
            key, value = (*arguments, int)[:2]  # a Counter counts
            if issubclass(origin, collections.Counter):
                return collections.Counter(() if self._is_empty else (self._key(key),))
            return {} if self._is_empty else {self._key(key): self.of(value)}
        is_abstract = origin in (collections.abc.Sequence, collections.abc.Iterable)
        made: type = tuple if is_abstract else origin
        return made(() if self._is_empty else (self.of(arguments[0]),))

    def _key(self, kind: object) -> object:
        return self.of(kind) or ANYTHING

    def _plain(self, kind: object) -> object:
        plain: dict[object, object] = {
            str: "" if self._is_sparse else ANYTHING,
            object: None if self._is_sparse else ANYTHING,
            int: _NUMBERS.get(self._variant, 1),
            float: 1.5,
            bool: not self._is_sparse and self._variant % 2 == 0,
            bytes: b"",
            UUID: UUID(int=1),
            Path: Path(ANYTHING),
        }
        if kind in plain:
            return plain[kind]
        assert isinstance(kind, type), f"no example of {kind}: give one"
        if issubclass(kind, enum.Enum):
            return self._one_of(tuple(kind))
        assert dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"), f"no example of {kind}: give one"
        return self._made(kind)

    def _made(self, kind: type) -> object:
        hints = _hints(kind)
        if dataclasses.is_dataclass(kind):
            names = [each.name for each in dataclasses.fields(kind) if each.init]
        else:
            names = list(hints)
        return kind(**{name: self._field(kind, name, hints[name]) for name in names})

    def _field(self, kind: type, name: str, hint: object) -> object:
        given = self._given.get(f"{kind.__name__}.{name}")
        return self.of(hint) if given is None else given


def _hints(of: object) -> dict[str, object]:
    return typing.get_type_hints(of)
