"""What drift and sync found and did, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from causeway.core.kernel.plurals import counted
from causeway.render.tables import table

if TYPE_CHECKING:
    from causeway.core.kernel.errors import CausewayError
    from causeway.core.topics.setting_drift import SettingDrift
    from causeway.usecases.upkeep.sync import Drift, Synced

_SETTINGS = ("MIRROR", "SETTING", "SOURCE", "TARGET", "CHANGE", "WHY")
_ACLS = ("CHANGE", "ACL", "WHY")


def drift_payload(flow: str, drift: Drift) -> dict[str, object]:
    return {
        "flow": flow,
        "would_change": drift.would_change,
        "topics": len(drift.mirrors.there),
        "settings": [_setting(each) for each in drift.settings.drifts],
        "acls": _acls(drift),
        "errors": [error.as_dict() for error in _errors(drift)],
    }


def sync_payload(flow: str, synced: Synced) -> dict[str, object]:
    return {
        "flow": flow,
        "dry_run": synced.is_dry_run,
        "settings": [_setting(each) for each in synced.settings],
        "acls_created": [str(acl) for acl in synced.created],
        "acls_removed": [str(acl) for acl in synced.removed],
        "left": drift_payload(flow, synced.drift)["settings"],
        "errors": [error.as_dict() for error in (*_errors(synced.drift), *synced.refused)],
    }


def drift_lines(flow: str, drift: Drift) -> list[str]:
    changes = sum(each.change != "leave" for each in drift.settings.drifts)
    left = len(drift.settings.drifts) - changes
    lines = _tables(drift)
    lines += [f"NOT SEEN {error}" for error in _errors(drift)]
    topics = counted(len(drift.mirrors.there), "topic")
    said = f"{flow}: {topics}; {counted(changes, 'setting')} to change, {left} differ and stay"
    return [*lines, f"{said}; {_acl_words(drift)}; nothing was written"]


def sync_lines(flow: str, synced: Synced) -> list[str]:
    lines = _tables(synced.drift)
    lines += [f"NOT SEEN {error}" for error in _errors(synced.drift)]
    lines += [f"REFUSED {error}" for error in synced.refused]
    done = "would change" if synced.is_dry_run else "changed"
    said = f"{flow}: {done} {len(synced.settings)} settings"
    if synced.drift.acls.plan is None:
        said += f"; {_acl_words(synced.drift)}"
    else:
        said += f", {len(synced.created)} ACLs added and {len(synced.removed)} removed"
    return [*lines, f"{said}; nothing was written" if synced.is_dry_run else said]


def exit_code(errors: Iterable[CausewayError], otherwise: int = 0) -> int:
    return max((error.exit_code for error in errors), default=otherwise)


def errors_of(found: Drift | Synced) -> tuple[CausewayError, ...]:
    """What couldn't be seen, or was refused."""
    from causeway.usecases.upkeep.sync import Synced

    return (*_errors(found.drift), *found.refused) if isinstance(found, Synced) else _errors(found)


def _errors(drift: Drift) -> tuple[CausewayError, ...]:
    return (*drift.settings.unseen, *([drift.acls.error] if drift.acls.error else []))


def _tables(drift: Drift) -> list[str]:
    """Only those that have a row, each with an empty line after it."""
    settings = [
        (each.mirror, each.setting, each.source_value, each.target_value, each.change, each.why)
        for each in drift.settings.drifts
    ]
    acls = _acl_rows(drift)
    lines = [table(_SETTINGS, settings), ""] if settings else []
    return [*lines, table(_ACLS, acls), ""] if acls else lines


def _acl_rows(drift: Drift) -> list[tuple[str, str, str]]:
    plan = drift.acls.plan
    if plan is None:
        return []
    return [
        *(("add", str(acl), "the source has it") for acl in plan.to_create),
        *(("remove", str(acl), "Causeway added it, and the source has it no more") for acl in plan.to_remove),
        *(("leave", str(acl), why) for acl, why in plan.left_behind),
    ]


def _acl_words(drift: Drift) -> str:
    plan = drift.acls.plan
    if plan is None:
        return f"ACLs not looked at: {drift.acls.note or 'a right is missing'}"
    there = f"{plan.in_place} as they should be"
    return f"{len(plan.to_create)} ACLs to add, {len(plan.to_remove)} to remove, {there}"


def _acls(drift: Drift) -> dict[str, object] | None:
    plan = drift.acls.plan
    if plan is None:
        return None
    return {
        "to_create": [str(acl) for acl in plan.to_create],
        "to_remove": [str(acl) for acl in plan.to_remove],
        "in_place": plan.in_place,
        "left_behind": [{"acl": str(acl), "why": why} for acl, why in plan.left_behind],
    }


def _setting(drift: SettingDrift) -> dict[str, object]:
    return {
        "topic": drift.topic,
        "mirror": drift.mirror,
        "setting": drift.setting,
        "source": drift.source_value,
        "target": drift.target_value,
        "change": drift.change,
        "why": drift.why,
    }
