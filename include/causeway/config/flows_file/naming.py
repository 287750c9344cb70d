"""The naming policy that a flow's keys describe, and what is wrong with them."""

from __future__ import annotations

from causeway.config.flows_file.document import Document
from causeway.config.flows_file.model import FlowModel
from causeway.core.kernel.errors import ConfigError
from causeway.core.model.naming import (
    IdentityNaming,
    NamingPolicy,
    NamingRule,
    PrefixNaming,
    RuleNaming,
    is_legal,
)
from causeway.core.model.pattern_groups import capturer

_POLICY, _RULES = "replication.policy", "replication.policy.rules"
_SEPARATOR = "replication.policy.separator"


def naming_of(flow: FlowModel) -> NamingPolicy:
    match flow.policy:
        case "identity":
            return IdentityNaming(flow.source)
        case "rules":
            return RuleNaming(tuple(NamingRule(rule.pattern, rule.to) for rule in flow.rules), flow.source)
    return PrefixNaming(flow.source, flow.separator)


def check_naming(name: str, flow: FlowModel, document: Document) -> None:
    """:raises ConfigError: keys that say nothing together, prefixes that are ambiguous, a bad rule."""
    _check_separator(name, flow, document)
    if (flow.policy == "rules") != bool(flow.rules):
        missing = flow.policy == "rules"
        raise ConfigError(
            document.place(("flows", name, _POLICY if missing else _RULES)),
            value=flow.policy if missing else None,
            rule=f"needs {_RULES}" if missing else f"does nothing with {_POLICY}: {flow.policy}",
            remedy='write replication.policy.rules: [{from: "orders-(.*)", to: "eu.orders-$1"}]'
            if missing
            else f"remove it, or write {_POLICY}: rules",
        )
    for index, rule in enumerate(naming.rules if isinstance(naming := naming_of(flow), RuleNaming) else ()):
        _check_rule(document.place(("flows", name, _RULES, index, "to")), rule)


def _check_separator(name: str, flow: FlowModel, document: Document) -> None:
    place = document.place(("flows", name, _SEPARATOR))
    if flow.policy != "prefix" and "separator" in flow.model_fields_set:
        raise ConfigError(
            place, value=flow.separator, rule=f"does nothing with {flow.policy} naming", remedy="remove it"
        )
    for alias in (flow.source, flow.target):
        if flow.policy == "prefix" and flow.separator in alias:
            raise ConfigError(
                place,
                value=flow.separator,
                rule=f"is part of the alias {alias}: prefixes would be ambiguous, and cycles invisible",
                remedy='write "."',
            )


def _check_rule(place: str, rule: NamingRule) -> None:
    groups = capturer(rule.pattern).groups
    beyond = next((number for number in rule.references if number > groups), None)
    if beyond is not None:
        raise ConfigError(
            place,
            value=rule.to,
            rule=f"speaks of group {beyond}, and {rule.pattern} has {groups}",
            remedy="put what it should hold into ( ), or write ${1}0 for a 0 after group 1",
        )
    if rule.own_text and not is_legal(f"a{rule.own_text}"):
        raise ConfigError(
            place,
            value=rule.to,
            rule="holds what no topic's name may: only letters, digits, '.', '_' and '-', and $1, $2, ...",
            remedy="remove it",
        )
