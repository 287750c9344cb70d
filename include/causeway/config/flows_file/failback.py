"""A flow that is the way back of another one, under the same names: what its keys may say.

It mirrors what that one mirrors, in the other direction, from where a person lets it begin; so it has no
topics and no start of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.config.flows_file.document import Document
from causeway.config.flows_file.model import FlowModel
from causeway.config.values.refusal import suggestion
from causeway.core.kernel.errors import ConfigError
from causeway.core.model.topic_filter import TopicFilter

_OF_THE_OTHER = {"topics": "topics", "topics_exclude": "topics.exclude", "start": "start"}


def failback_of(name: str, flows: Mapping[str, FlowModel]) -> str:
    """The flow that is the way back of `name`; empty: there is none."""
    return next((other for other, flow in flows.items() if flow.failback_of == name), "")


def topics_of(name: str, flows: Mapping[str, FlowModel]) -> TopicFilter:
    flow = flows[flows[name].failback_of or name]
    return TopicFilter(tuple(flow.topics), tuple(flow.topics_exclude))


def check_failbacks(flows: Mapping[str, FlowModel], document: Document) -> None:
    for name, flow in flows.items():
        if flow.failback_of is not None:
            _check(name, flow, flow.failback_of, flows, document)


def _check(
    name: str, flow: FlowModel, forward_name: str, flows: Mapping[str, FlowModel], document: Document
) -> None:
    def refuse(key: str, value: object, rule: str, remedy: str) -> ConfigError:
        return ConfigError(document.place(("flows", name, key)), value=value, rule=rule, remedy=remedy)

    forward = flows.get(forward_name)
    if forward is None or forward_name == name or forward.failback_of is not None:
        others = [each for each, found in flows.items() if each != name and found.failback_of is None]
        rule = "must be another flow of this file that is no failback itself"
        raise refuse("failback_of", forward_name, rule, suggestion(forward_name, others))
    if (flow.source, flow.target) != (forward.target, forward.source):
        rule = f"leads from {forward.source} to {forward.target}, and this flow doesn't mirror it back"
        remedy = f"write source: {forward.target} and target: {forward.source}"
        raise refuse("failback_of", forward_name, rule, remedy)
    for each, policy in ((forward_name, forward.policy), (name, flow.policy)):
        if policy != "identity":
            rule = f"is for flows that keep names, and {each} has replication.policy: {policy}"
            remedy = "write identity in both, or remove failback_of: prefixes tell what came from where"
            raise refuse("failback_of", forward_name, rule, remedy)
    first = failback_of(forward_name, flows)
    if first != name:
        raise refuse("failback_of", forward_name, f"has a failback already: {first}", "remove one of the two")
    for field, key in _OF_THE_OTHER.items():
        if field in flow.model_fields_set:
            raise refuse(key, None, f"of a failback is what {forward_name} says", "remove it")
