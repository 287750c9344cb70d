"""pydantic's findings -> one ConfigError: the first in the file's order, with its line, rule and fix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.config.flows_file.document import Document, FieldPath
from causeway.config.flows_file.mirror_maker import INSTEAD
from causeway.config.flows_file.model import ClusterModel, FileModel, FlowModel, RuleModel, known_keys
from causeway.config.values.refusal import Refusal, suggestion
from causeway.core.kernel.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_LONGEST_VALUE = 80
_DURATIONS = frozenset({"run_for", "retry_delay", "transaction.max.time"})
_SIZES = frozenset({"transaction.max.bytes"})
_PLAIN = {
    "bool_type": ("must be true or false", "write true or false, without quotes"),
    "int_type": ("must be a whole number", "write it in digits, without quotes"),
    "string_type": ("must be text", "put it into quotes"),
    "list_type": ("must be a list", 'write it as in [orders, "payments-.*"]'),
    "dict_type": ("must hold keys and values", "indent them under it, as in `key: value`"),
    "model_type": ("must hold keys and values", "indent them under it, as in `key: value`"),
    "too_short": ("must not be empty", "name at least one, or leave the key out for its default"),
    "string_too_short": ("must not be empty", "write it or leave the key out"),
}
_EXAMPLES = {
    "connection": "write connection: kafka_sf, the id of an Airflow connection",
    "source": "write source: and a cluster's alias",
    "target": "write target: and a cluster's alias",
    "from": 'write {from: "orders-(.*)", to: "eu.orders-$1"}',
    "to": 'write {from: "orders-(.*)", to: "eu.orders-$1"}',
    "clusters": "write clusters: and under it sf: {connection: kafka_sf}",
    "flows": "write flows: and under it a flow with source and target",
}


def explain(findings: ValidationError, document: Document) -> ConfigError:
    errors = sorted(findings.errors(include_url=False), key=lambda found: document.line(_field(found)))
    error = _explain_one(errors[0], document)
    if len(errors) > 1:
        others = ", ".join(sorted({f"line {document.line(_field(found))}" for found in errors[1:6]}))
        error = ConfigError(
            error.what,
            value=error.value,
            rule=error.rule,
            remedy=f"{error.remedy}; {len(errors) - 1} more in this file ({others})".removeprefix("; "),
        )
    return error


def shown(value: object) -> object:
    """A scalar as the message shows it; None for what is too big to show, or nothing."""
    if isinstance(value, dict | list) or value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"


def _field(found: ErrorDetails) -> FieldPath:
    return tuple(found["loc"])


def _explain_one(found: ErrorDetails, document: Document) -> ConfigError:
    field = _field(found)
    place = document.place(field)
    if found["type"] == "extra_forbidden":
        return _unknown_key(field, place)
    if found["type"] == "missing":
        key = str(field[-1])
        return ConfigError(place, rule="is required", remedy=_EXAMPLES.get(key, ""))
    rule, remedy = _rule(found, str(field[-1]) if field else "")
    if found["input"] is None:
        rule, remedy = f"{rule}; there is nothing here", remedy or "write it or leave the key out"
    return ConfigError(place, value=shown(found["input"]), rule=rule, remedy=remedy)


def _rule(found: ErrorDetails, key: str) -> tuple[str, str]:
    context = found.get("ctx", {})
    refusal = context.get("error")
    if isinstance(refusal, Refusal):
        return refusal.rule, refusal.remedy
    if found["type"] in _PLAIN:
        return _PLAIN[found["type"]]
    return _limit(found, context, key)


def _limit(found: ErrorDetails, context: dict[str, Any], key: str) -> tuple[str, str]:
    unit = " s" if key in _DURATIONS else " bytes" if key in _SIZES else ""
    match found["type"]:
        case "greater_than_equal":
            return f"must be {context['ge']:g}{unit} or more", "write a larger one"
        case "less_than_equal":
            return f"must be {context['le']:g}{unit} or less", "write a smaller one"
        case "string_too_long":
            return f"must not be longer than {context['max_length']} characters", "write a shorter one"
        case "literal_error":
            return f"must be {str(context['expected']).replace(chr(39), '')}", "write one of these"
    return found["msg"], ""


def _unknown_key(field: FieldPath, place: str) -> ConfigError:
    key = str(field[-1])
    holder, model = _holder(field)
    if key in INSTEAD:
        return ConfigError(
            place, rule=f"is MirrorMaker 2's, and no key of {holder} here", remedy=INSTEAD[key]
        )
    return ConfigError(place, rule=f"is no key of {holder}", remedy=suggestion(key, known_keys(model)))


def _holder(field: FieldPath) -> tuple[str, type[ClusterModel | FlowModel | FileModel | RuleModel]]:
    if len(field) == 1:
        return "this file", FileModel
    if "replication.policy.rules" in field[:-1]:
        return "a mapping rule", RuleModel
    return ("a flow", FlowModel) if field[0] == "flows" else ("a cluster", ClusterModel)
