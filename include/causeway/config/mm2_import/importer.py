"""MirrorMaker 2's properties -> what flows.yaml and the connections should say, and what becomes of each key.

Precedence is MirrorMaker's own, in dedicated mode: of a flow `A->B.key` over `key`; of a cluster `A.key` over
`key`; of a flow's consumer `A->B.source.consumer.key` over `A.consumer.key` over `A->B.consumer.key`.

Every key gets a ruling, or is refused with its line: MirrorMaker 2 passes over a misspelt key in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from causeway.config.flows_file.known_words import HIDDEN, shown_key
from causeway.config.mm2_import.connection import Connection, connection_of, is_reference
from causeway.config.mm2_import.flow import Mm2Flow, boolean_of, flow_entries
from causeway.config.mm2_import.keys import (
    FLOW_KEYS,
    WORKER_KEYS,
    Fate,
    Ruling,
    is_of_connection,
    ruling_of_cluster_key,
    ruling_of_common_key,
    ruling_of_flow_key,
)
from causeway.config.mm2_import.properties_file import PropertiesFile, Property, read_properties
from causeway.config.values.refusal import Refusal, listed, nearest
from causeway.core.kernel.errors import ConfigError

_ALIAS = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
_ARROW = "->"
_KNOWN = frozenset(FLOW_KEYS | WORKER_KEYS)


@dataclass(frozen=True, slots=True)
class KeyFate:
    """What became of one line; its value isn't here."""

    line: int
    key: str
    fate: Fate
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mm2Import:
    file: str
    clusters: tuple[Connection, ...]
    flows: tuple[Mm2Flow, ...]
    fates: tuple[KeyFate, ...]


def read_mm2(path: Path, *, shown_as: str | None = None) -> Mm2Import:
    """:raises ConfigError: it can't be read, says what nobody knows, or mirrors nothing."""
    return import_mm2(read_properties(path, shown_as=shown_as))


def import_mm2(file: PropertiesFile) -> Mm2Import:
    return _Reading(file).result()


@dataclass
class _Reading:
    file: PropertiesFile
    aliases: tuple[str, ...] = ()
    fates: dict[str, tuple[Property, Ruling]] = field(default_factory=dict)

    def result(self) -> Mm2Import:
        self.aliases = self._aliases()
        for found in self.file.properties.values():
            self.fates[found.key] = (found, self._ruling(found))
        clusters = tuple(self._connection(alias) for alias in self.aliases)
        flows = tuple(self._flows())
        if not flows:
            raise ConfigError(
                self.file.name,
                rule="no flow is enabled",
                remedy="write A->B.enabled = true, with aliases of clusters",
            )
        return Mm2Import(
            file=self.file.name,
            clusters=clusters,
            flows=flows,
            fates=tuple(sorted(self._key_fates(), key=lambda f: f.line)),
        )

    def _aliases(self) -> tuple[str, ...]:
        said = self.file.properties.get("clusters")
        if said is None:
            raise ConfigError(
                self.file.name,
                rule="has no line `clusters = ...`",
                remedy="is it connect-mirror-maker.sh's file? name the clusters' aliases: clusters = A, B",
            )
        self._refuse_reference(said)
        aliases = [each.strip() for each in said.value.split(",") if each.strip()]
        self._refuse_twins(said, aliases)
        bad = next((each for each in aliases if not _ALIAS.fullmatch(each)), None)
        if bad is not None or len(set(aliases)) < max(len(aliases), 2):
            raise ConfigError(
                self.file.place(said),
                value=said.value[:200],
                rule="must be two aliases or more, each once, of 1 to 60 letters, digits, _ and -",
                remedy="mirrors' names begin with the alias: write such a flow by hand, with mapping rules",
            )
        return tuple(aliases)

    def _refuse_twins(self, said: Property, aliases: list[str]) -> None:
        """`A` and `a`, or `a-b` and `a_b`, would be one connection, and so one cluster."""
        by_id: dict[str, str] = {}
        for alias in aliases:
            twin = by_id.setdefault(connection_id(alias), alias)
            if twin != alias:
                raise ConfigError(
                    self.file.place(said),
                    value=f"{twin}, {alias}"[:200],
                    rule=f"both would be connection {connection_id(alias)}"[:300],
                    remedy="rename one of the two in a copy of the file, its mirrors too",
                )

    def _ruling(self, found: Property) -> Ruling:
        key = found.key
        prefix, _, inner = key.partition(".")
        if _ARROW in prefix:
            source, _, target = prefix.partition(_ARROW)
            if source not in self.aliases or target not in self.aliases:
                has = listed(self.aliases)
                raise self._unknown_key(found, f"names a cluster that `clusters` doesn't; it has {has}", [])
            ruling, known = ruling_of_flow_key(inner), FLOW_KEYS
        elif prefix in self.aliases:
            ruling, known = _ruling_of_own(inner), WORKER_KEYS
            if ruling is None and ruling_of_flow_key(inner) is not None:
                raise self._unknown_key(
                    found, "is read by nobody there: MirrorMaker 2 reads it of flows only", []
                )
        else:
            ruling, known, inner = _ruling_of_all(key), FLOW_KEYS | WORKER_KEYS, key
        if ruling is None:
            raise self._unknown_key(found, "is no key of MirrorMaker 2", list(known), inner)
        if ruling.fate is Fate.TAKEN:
            self._refuse_reference(found, is_connection=is_of_connection(inner))
        return ruling.of(found.value)

    def _unknown_key(self, found: Property, rule: str, known: list[str], inner: str = "") -> ConfigError:
        close = nearest(inner, known) if known else None
        hint = f"did you mean {close}? " if close else ""
        return ConfigError(
            f"{self.file.name}:{found.line}: {self._key_shown(found.key)}",
            rule=rule,
            remedy=f"{hint}correct it, or remove the line: it does nothing",
        )

    def _key_shown(self, key: str) -> str:
        """What of a key that nobody knows may be repeated: it may be a password, at the front of its line."""
        prefix, dot, inner = key.partition(".")
        aliases = prefix.split(_ARROW)
        if len(aliases) > 1 or prefix in self.aliases:
            ours = all(alias in self.aliases or nearest(alias, self.aliases) for alias in aliases)
            return f"{prefix if ours else HIDDEN}{dot}{shown_key(inner, _KNOWN)}"
        return shown_key(key, _KNOWN)

    def _refuse_reference(self, found: Property, *, is_connection: bool = False) -> None:
        if is_reference(found.value) and not is_connection:
            raise ConfigError(
                self.file.place(found),
                rule="is a reference to a config provider, which isn't resolved here",
                remedy="write the value itself into a copy of the file",
            )

    def _connection(self, alias: str) -> Connection:
        common = {key: found for key, found in self.file.properties.items() if is_of_connection(key)}
        own = {
            key.removeprefix(f"{alias}."): found
            for key, found in self.file.properties.items()
            if key.startswith(f"{alias}.") and is_of_connection(key.removeprefix(f"{alias}."))
        }
        if "bootstrap.servers" not in common | own:
            raise ConfigError(
                self.file.name,
                rule=f"doesn't say how to reach cluster {alias}",
                remedy=f"write {alias}.bootstrap.servers",
            )
        made = connection_of(alias, connection_id(alias), common | own)
        for found, why in made.taken:
            self._rule(found, Ruling(Fate.TAKEN, why))
        for each in made.not_here:
            self._rule(each.found, Ruling(Fate.HARMLESS if each.is_harmless else Fate.NOT_TAKEN, each.why))
        return made

    def _flows(self) -> Iterator[Mm2Flow]:
        for source in self.aliases:
            for target in self.aliases:
                if source != target and self._is_enabled(source, target):
                    flow = flow_entries(self.file, source, target)
                    for found, why in flow.taken:
                        self._rule(found, Ruling(Fate.TAKEN, why))
                    yield flow

    def _is_enabled(self, source: str, target: str) -> bool:
        said = self.file.properties
        found = said.get(f"{source}{_ARROW}{target}.enabled") or said.get("enabled")
        if found is None:
            return False
        try:
            is_on = boolean_of(found)
        except Refusal as refusal:
            place = self.file.place(found)
            raise ConfigError(
                place, value=found.value[:80], rule=refusal.rule, remedy=refusal.remedy
            ) from None
        self._rule(found, Ruling(Fate.TAKEN, f"flow {source}{_ARROW}{target} is {'on' if is_on else 'off'}"))
        return is_on

    def _rule(self, found: Property, ruling: Ruling) -> None:
        """One line may say something to several clusters or flows: all of it is reported."""
        _, before = self.fates[found.key]
        if before.fate is ruling.fate and before.why and ruling.why not in before.why:
            ruling = Ruling(ruling.fate, f"{before.why}; {ruling.why}")
        elif before.fate is Fate.NOT_TAKEN and before.why:
            ruling = before
        self.fates[found.key] = (found, ruling)

    def _key_fates(self) -> Iterator[KeyFate]:
        for key, (found, ruling) in self.fates.items():
            why = ruling.why or "no flow that is enabled reads it"
            yield KeyFate(found.line, key, ruling.fate if ruling.why else Fate.HARMLESS, why)
            for line in found.overridden:
                yield KeyFate(
                    line, key, Fate.HARMLESS, f"line {found.line} says it again, and the last one counts"
                )


def connection_id(alias: str) -> str:
    return f"kafka_{alias.lower().replace('-', '_')}"


def _ruling_of_own(inner: str) -> Ruling | None:
    return _CONNECTION if is_of_connection(inner) else ruling_of_cluster_key(inner)


def _ruling_of_all(key: str) -> Ruling | None:
    if key == "clusters":
        return Ruling(Fate.TAKEN, "clusters")
    return _CONNECTION if is_of_connection(key) else ruling_of_common_key(key)


_CONNECTION = Ruling(Fate.TAKEN, "")
