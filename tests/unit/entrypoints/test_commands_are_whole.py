"""A command that a message names can be typed as it stands, and does what the message promises."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from causeway.core.comparison import PartitionVerdict, VerifyReport
from causeway.core.errors import BadInput
from causeway.core.identity import TopicPartition
from causeway.entrypoints import flow_verbs
from causeway.entrypoints.failback_ways import flow_back
from causeway.entrypoints.verdicts import verdict_text
from causeway.flows.failback.logbook import still_mirrors

FORWARD: Any = SimpleNamespace(
    name="sf_to_nyc", source="sf", target="nyc", failback_of="", failback="nyc_to_sf"
)
BACK: Any = SimpleNamespace(name="nyc_to_sf", source="nyc", target="sf", failback_of="sf_to_nyc", failback="")
ORDERS = TopicPartition("orders", 0)


def test_who_is_home_already_is_not_sent_away_again() -> None:
    refused = str(still_mirrors(FORWARD))
    assert "failover" not in refused
    assert "`causeway next sf_to_nyc`" in refused


def test_the_way_back_has_no_way_back_and_names_the_options_of_the_right_one() -> None:
    with pytest.raises(BadInput, match="`causeway failback sf_to_nyc` with --resume, --rebuild or --home"):
        flow_back(SimpleNamespace(flows={}), BACK)  # type: ignore[arg-type]


def test_the_whole_is_proved_by_the_forward_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    place = SimpleNamespace(partition=0, source_next=5, target_next=6)
    entry: Any = SimpleNamespace(
        places=(place,), how="adopt", by="amy", at_ms=0, because="failback b1", is_of_failback=True
    )
    report = VerifyReport((PartitionVerdict(source=ORDERS, target=ORDERS, set_by_hand=entry),))
    assert "`causeway verify sf_to_nyc --all`" in verdict_text("sf_to_nyc", report)
    assert "`causeway verify sf_to_nyc --all`" in verdict_text("nyc_to_sf", report, forward="sf_to_nyc")

    monkeypatch.setattr(flow_verbs, "opened", lambda _request: (None, BACK, None, None))
    request: Any = SimpleNamespace(options=SimpleNamespace(all=True))
    with pytest.raises(BadInput, match="`causeway verify sf_to_nyc --all` compares both directions"):
        flow_verbs.verify(request)
