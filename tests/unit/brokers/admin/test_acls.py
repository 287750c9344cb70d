"""What is asked of an authorizer, of whom, and in which portions; real ones are asked in
`integration/test_upkeep_rights.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.brokers.admin.acls import AclChanges, topic_acls
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, NotAuthorized
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.state.acl import Acl

NYC = ClusterEndpoint("nyc", {"bootstrap.servers": "127.0.0.1:1"})
DENIED = NotAuthorized("cluster nyc", rule="no right")


def acl(number: int, permission: str = "Allow") -> Acl:
    return Acl(f"t{number:05}", "literal", "User:amy", "*", "Read", permission)  # type: ignore[arg-type]


def asked(rules: Sequence[Acl], *refused: Acl) -> tuple[list[list[Acl]], dict[Acl, CausewayError]]:
    """The portions that a broker gets to see which refuses these rules, and what it leads to."""
    portions: list[list[Acl]] = []

    def broker(portion: Sequence[Acl]) -> dict[Acl, CausewayError]:
        portions.append(list(portion))
        return {each: DENIED for each in portion if each in refused}

    changes = AclChanges(NYC)
    changes._create = broker  # type: ignore[method-assign, assignment]
    return portions, asyncio.run(changes.create(rules))


def test_thousands_of_rules_go_in_portions_and_in_order() -> None:
    rules = [acl(number) for number in range(2_500)]
    portions, refused = asked(rules)
    assert [len(portion) for portion in portions] == [1_000, 1_000, 500]
    assert [each for portion in portions for each in portion] == rules
    assert refused == {}
    assert asked([]) == ([], {})


def test_what_a_denial_would_deny_is_not_allowed_without_it() -> None:
    deny, allow = [acl(1, "Deny"), acl(2, "Deny")], [acl(1), acl(2)]
    portions, refused = asked([*deny, *allow], deny[1])
    assert portions == [deny]
    assert refused == dict.fromkeys([deny[1], *allow], DENIED)
    portions, refused = asked([*deny, *allow], allow[0])
    assert portions == [deny, allow]
    assert refused == {allow[0]: DENIED}


class Brokers:
    """Each with an answer of its own to DescribeAcls: an error, or the principals that may read `orders`."""

    endpoint = NYC

    def __init__(self, *answers: Code | list[str]) -> None:
        self._answers = answers

    def nodes(self) -> list[int]:
        return list(range(len(self._answers)))

    async def send(self, request: Any, node: int) -> Any:
        answer = self._answers[node]
        if isinstance(answer, Code):
            return SimpleNamespace(error_code=answer, resources=[])
        rules = [
            SimpleNamespace(principal=f"User:{who}", host="*", operation=3, permission_type=3)
            for who in answer
        ]
        orders = SimpleNamespace(resource_type=2, resource_name="orders", pattern_type=3, acls=rules)
        return SimpleNamespace(error_code=0, resources=[orders])

    def not_authorized(self, code: int, resource: str, operation: Any) -> CausewayError:
        return DENIED


def readers(*answers: Code | list[str]) -> set[str] | None:
    found = asyncio.run(topic_acls(Brokers(*answers)))  # type: ignore[arg-type]
    return None if found is None else {each.principal for each in found}


def test_what_one_broker_still_knows_is_not_gone() -> None:
    """One that is cut off from its controllers tells what was true earlier."""
    assert readers(["amy"], ["amy", "bob"], []) == {"User:amy", "User:bob"}


def test_while_one_broker_has_no_authorizer_there_is_none() -> None:
    """They are restarted one by one; its list isn't empty, it has none."""
    assert readers(["amy"], Code.SECURITY_DISABLED) is None
    assert readers(Code.SECURITY_DISABLED, ["amy"]) is None
    assert readers(Code.SECURITY_DISABLED) is None


def test_what_may_not_be_seen_is_no_empty_list() -> None:
    with pytest.raises(NotAuthorized):
        readers(["amy"], Code.CLUSTER_AUTHORIZATION_FAILED)
