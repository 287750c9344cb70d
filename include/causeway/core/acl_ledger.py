"""The list of ACLs that a flow created on its target: records of the flows topic, one per pattern of topics.

A record holds all that stands on one pattern, so the newest one of each key is the list; an empty one says
that nothing is left. Invariant: an ACL is written here before it is created, and taken out after it was
removed. Whatever happens in between, none that Causeway made is taken for somebody else's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from causeway.core.acls import Acl

Ledger = Mapping[str, frozenset[Acl]]
"""By pattern: `prefixed/sf.`, `literal/sf.orders`."""


def entries(ledger: Ledger) -> frozenset[Acl]:
    return frozenset(acl for acls in ledger.values() for acl in acls)


def changed_patterns(
    ledger: Ledger, *, add: Iterable[Acl] = (), remove: Collection[Acl] = ()
) -> dict[str, frozenset[Acl]]:
    """Those patterns whose list becomes another one, with the whole new list."""
    after = {pattern: set(acls) - set(remove) for pattern, acls in ledger.items()}
    for acl in add:
        after.setdefault(pattern_of(acl), set()).add(acl)
    return {
        pattern: frozenset(acls)
        for pattern, acls in sorted(after.items())
        if acls != ledger.get(pattern, frozenset())
    }


def pattern_of(acl: Acl) -> str:
    return f"{acl.pattern}/{acl.topic}"


def as_value(pattern: str, acls: Iterable[Acl]) -> dict[str, object]:
    rules = [[acl.principal, acl.host, acl.operation, acl.permission] for acl in sorted(acls)]
    return {"pattern": pattern, "rules": rules}


def parse_value(value: Mapping[str, object]) -> tuple[str, frozenset[Acl]]:
    """:raises ValueError: | :raises KeyError: not a record of this ledger."""
    pattern = str(value["pattern"])
    kind, _, topic = pattern.partition("/")
    if kind not in ("literal", "prefixed") or not topic or not isinstance(value["rules"], list):
        raise ValueError(pattern)
    return pattern, frozenset(_acl(topic, kind, rule) for rule in value["rules"])


def _acl(topic: str, kind: str, rule: object) -> Acl:
    if not isinstance(rule, list) or len(rule) != 4 or not all(isinstance(part, str) for part in rule):
        raise ValueError(rule)
    principal, host, operation, permission = rule
    if permission not in {"Allow", "Deny"}:
        raise ValueError(permission)
    return Acl(
        topic,
        "prefixed" if kind == "prefixed" else "literal",
        principal,
        host,
        operation,
        "Allow" if permission == "Allow" else "Deny",
    )
