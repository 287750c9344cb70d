import pickle

import pytest

from causeway.core.kernel import errors
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable, ConfigError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CausewayError)]
EXIT_CODES = {
    "CausewayError": 6,
    "BadInput": 2,
    "ConfigError": 2,
    "UnknownName": 2,
    "UnfitTarget": 2,
    "StalePlan": 2,
    "ClusterTrouble": 3,
    "ClusterUnreachable": 3,
    "AuthenticationFailed": 3,
    "NotAuthorized": 3,
    "IncompatibleBroker": 3,
    "NotTheOwner": 4,
    "FlowHeld": 4,
    "FlowFenced": 4,
    "Superseded": 4,
    "ProtocolFault": 6,
    "NewerFormat": 6,
}


def test_each_kind_ends_the_process_with_the_code_that_the_tree_says() -> None:
    assert {kind.__name__: kind.exit_code for kind in KINDS} == EXIT_CODES
    for name in EXIT_CODES:
        assert name in (errors.__doc__ or "") + "CausewayError"


def test_only_an_unreachable_cluster_is_worth_a_second_try() -> None:
    assert [kind for kind in KINDS if kind.retriable] == [ClusterUnreachable]


def test_a_message_names_the_thing_its_value_the_rule_and_the_remedy() -> None:
    assert str(ConfigError("lanes", value=0, rule="must be 1 or more", remedy="write 16")) == (
        "lanes = 0: must be 1 or more; write 16"
    )
    assert str(ConfigError("lanes", rule="is missing")) == "lanes: is missing"
    assert str(ConfigError("lanes", remedy="write 16")) == "lanes; write 16"
    assert str(ConfigError("lanes", value="")) == "lanes = "


@pytest.mark.parametrize(
    "value", ["a\nb", "a\r\nb", "\x1b[31mred", "a\u2028b", "a\0b", "\u202eabc", "\ud800"]
)
@pytest.mark.parametrize("part", ["what", "value", "rule", "remedy"])
def test_a_message_is_one_printable_line_whatever_its_parts_hold(part: str, value: str) -> None:
    error = ConfigError(**({"what": "topic"} | {part: value}))
    assert str(error).isprintable()
    assert len(str(error).splitlines()) == 1
    assert str(error).encode()


def test_a_value_that_is_no_text_is_shown_as_one() -> None:
    assert str(ConfigError("key", value=b"\xff\n")) == r"key = b'\xff\n'"
    assert ConfigError("key", value=b"\xff").as_dict()["value"] == r"b'\xff'"


def test_text_that_people_write_stays_as_it_is() -> None:
    assert str(ConfigError("topic", value="bücher→日本")) == "topic = bücher→日本"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_keeps_its_facts_on_the_way_from_an_executor(kind: type[CausewayError]) -> None:
    error = kind("topic", value={"a": 1}, rule="must not", remedy="leave it")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (again.what, again.value, again.rule, again.remedy) == ("topic", {"a": 1}, "must not", "leave it")
    assert (str(again), again.as_dict()) == (str(error), error.as_dict())


def test_facts_are_fields() -> None:
    assert ConfigError("lanes", value=0, rule="must", remedy="do").as_dict() == {
        "error": "ConfigError",
        "what": "lanes",
        "value": "0",
        "rule": "must",
        "remedy": "do",
    }
    assert ConfigError("lanes").as_dict()["value"] is None
