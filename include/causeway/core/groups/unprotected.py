"""Groups that returned to the source and that no mirror's commit protects on the target yet: who, why, what
makes it right.

Only what a group sync has committed there follows the group on the source. Until one has reached a group, a
failover whose source is silent starts it where it stood when it returned to the source, or doesn't move it at
all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from causeway.core.groups.sync_rules import Held, is_mirrors_word
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.kernel.plurals import counted, some


@dataclass(frozen=True, slots=True)
class Unprotected:
    waiting: tuple[str, ...] = ()
    """Groups that hold what they held there when they returned: the next sync replaces that."""
    own: tuple[str, ...] = ()
    """Groups that read there, or have committed there by themselves: a sync leaves them alone."""

    @property
    def is_nothing(self) -> bool:
        return not (self.waiting or self.own)

    def as_dict(self) -> dict[str, object]:
        return {"waiting": list(self.waiting), "own": list(self.own)}


def find_unprotected(
    flow: str,
    held: Held,
    left: Held,
    checkpoints: Mapping[str, Mapping[TopicPartition, TargetOffset]],
    active: Collection[str],
) -> Unprotected:
    """`held`, `active`: on the target. `left`: when they returned. A checkpoint is a mirror's word, too."""
    waiting, own = set[str](), {group for group, offsets in held.items() if offsets and group in active}
    for group, offsets in held.items():
        for tp, at in offsets.items():
            if left.get(group, {}).get(tp) == at:
                waiting.add(group)
            elif not is_mirrors_word(flow, at, checkpoints.get(group, {}).get(tp)):
                own.add(group)
    return Unprotected(tuple(sorted(waiting - own)), tuple(sorted(own)))


def findings_of(flow: str, found: Unprotected) -> list[tuple[str, str]]:
    """What is wrong, and the remedy."""
    sync = f"`causeway groups {flow} --sync`"
    said: list[tuple[str, str]] = []
    if found.waiting:
        groups = _groups_named(found.waiting)
        what = (
            f"{groups}: on the target each still holds the offsets from when it returned to "
            "the source, and no group sync has replaced them: if the source were lost now, records that the "
            "group has read since would be read again"
        )
        said.append((what, f"{sync} protects them"))
    if found.own:
        groups = _groups_named(found.own)
        what = (
            f"{groups}: each reads on the target, or has committed offsets there itself, so a "
            "group sync leaves it alone, and `failover --at latest` doesn't move it"
        )
        way = (
            "if it should read on the source: stop its consumers on the target, delete its offsets there "
            f"(`kafka-consumer-groups --delete-offsets`), then {sync}"
        )
        said.append((what, way))
    return said


def unprotected_lines(flow: str, found: Unprotected) -> list[str]:
    return [f"NOT PROTECTED {what}; {way}" for what, way in findings_of(flow, found)]


def _groups_named(groups: Sequence[str]) -> str:
    return f"{counted(len(groups), 'group')} ({some(groups)})"
