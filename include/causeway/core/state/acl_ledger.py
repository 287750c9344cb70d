"""The list of ACLs that a flow created on its target: records of the flows topic.

Each ACL has entries of its own, so that two syncs at once add to the list and not over one another; and
what is taken out is one entry, named by its place, never one that was written since. Invariant: an ACL is
entered here before it is created, and taken out after it was removed. Whatever happens in between, none
that Causeway made is taken for somebody else's.

Known limits: rules have no owner. One that an administrator adds letter by letter, after a sync has entered
it and died before it added it, is Causeway's by this list. And an entry whose ACL neither side has is
taken out: a sync that has just entered it again, and is about to create it, looks whether its entry stands
once it has; in the moment after that look it could go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from causeway.core.state.acl import Acl
from causeway.core.state.flow_log import as_record

Ledger = Mapping[Acl, int]
"""With the place of the newest entry."""


def entered(ledger: Ledger, acl: Acl, at: int) -> dict[Acl, int]:
    return {**ledger, acl: at}


def taken_out(ledger: Ledger, acl: Acl, at: int) -> Ledger:
    """Without the entry at that place; a newer one stands."""
    if ledger.get(acl) != at:
        return ledger
    left = dict(ledger)
    del left[acl]
    return left


def key_of(acl: Acl) -> str:
    return json.dumps(_as_list(acl), separators=(",", ":"))


def as_value(acl: Acl) -> dict[str, object]:
    return {"acl": _as_list(acl)}


def parse_acl(value: Mapping[str, object]) -> Acl:
    """:raises ValueError: | :raises KeyError: not a record of this ledger."""
    rule = value["acl"]
    if not isinstance(rule, list) or len(rule) != 6 or not all(isinstance(part, str) for part in rule):
        raise ValueError(rule)
    topic, pattern, principal, host, operation, permission = rule
    if not topic or pattern not in ("literal", "prefixed") or permission not in ("Allow", "Deny"):
        raise ValueError(rule)
    return Acl(topic, pattern, principal, host, operation, permission)


def acl_record(flow: str, acl: Acl) -> tuple[bytes, bytes]:
    """The flow is about to create it."""
    key, body = as_record("acl", flow, as_value(acl))
    return key + f"/{key_of(acl)}".encode(), body


def acl_gone_record(flow: str, acl: Acl, *, entry: int) -> tuple[bytes, bytes]:
    """That entry of it is over; a newer one isn't, and keeps its key."""
    key, body = as_record("acl_gone", flow, {**as_value(acl), "entry": entry})
    return key + f"/{entry}".encode(), body


def _as_list(acl: Acl) -> list[str]:
    return [acl.topic, acl.pattern, acl.principal, acl.host, acl.operation, acl.permission]
