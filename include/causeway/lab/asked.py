"""What `causeway lab up` was asked for, held against what is there: a wish that can't come true is refused.

A lab that stayed silent would leave somebody testing another version, or without TLS, and not knowing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from causeway.core.kernel.errors import BadInput
from causeway.lab.record import NEWEST_KAFKA, ClusterRecord, ClusterSpec, Security

_LONGEST_NAME = 40
_NAME_RULE = f"must be ASCII letters, digits and underscores, begin with a letter, {_LONGEST_NAME} at most"
_NEEDS_NEW_DATA = ("security", "nodes")
"""What a cluster's data was made with, and can't be changed in it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """None: as the cluster was, or as labs are."""

    kafka_version: str | None = None
    security: Security | None = None
    nodes: int | None = None


def legal_names(names: Iterable[str]) -> list[str]:
    """A name is a directory, and part of an environment variable, which has capital letters only.

    :raises BadInput: one can't be that, or two would be the same.
    """
    found: dict[str, str] = {}
    for name in names:
        if not (name.isascii() and name.isidentifier() and name[0].isalpha() and len(name) <= _LONGEST_NAME):
            raise BadInput("lab cluster name", value=name, rule=_NAME_RULE, remedy="write sf,nyc")
        twin = found.get(name.upper())
        if twin is not None:
            raise BadInput(
                "lab cluster name",
                value=name,
                rule="is there twice" if twin == name else f"differs from {twin} by capital letters only",
                remedy="name each cluster once",
            )
        found[name.upper()] = name
    return list(found.values())


def spec_of(name: str, record: ClusterRecord | None, asked: Asked, *, is_up: bool) -> ClusterSpec:
    """What the cluster should be.

    :raises BadInput: it is there, and its data or its running brokers are other ones than asked for.
    """
    old = None if record is None else record.spec
    if old is not None:
        _refuse_difference(name, old, asked, is_up=is_up)
    return ClusterSpec(
        name=name,
        kafka_version=asked.kafka_version or (old.kafka_version if old else NEWEST_KAFKA),
        security=asked.security or (old.security if old else "PLAINTEXT"),
        nodes=asked.nodes or (old.nodes if old else 1),
    )


def _refuse_difference(name: str, old: ClusterSpec, asked: Asked, *, is_up: bool) -> None:
    for option, key in (("--security", "security"), ("--nodes", "nodes"), ("--kafka", "kafka_version")):
        wish, has = getattr(asked, key), getattr(old, key)
        if wish is None or wish == has:
            continue
        needs_new_data = key in _NEEDS_NEW_DATA
        if not (is_up or needs_new_data):
            continue
        state = "is up" if is_up else "has data, made"
        raise BadInput(
            option,
            value=wish,
            rule=f"cluster {name} {state} with {option} {has}, and it stays as it is",
            remedy=_way_out(is_up=is_up, needs_new_data=needs_new_data),
        )


def _way_out(*, is_up: bool, needs_new_data: bool) -> str:
    if needs_new_data:
        return (
            "leave the option out, or begin without its data: `causeway lab down --forget` deletes the data "
            "of all clusters of this lab"
        )
    assert is_up
    return "leave the option out, or stop it first: `causeway lab down` (the data stays)"
