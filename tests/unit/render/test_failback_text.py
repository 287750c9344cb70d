"""What somebody reads before the old primary's topics are emptied."""

from __future__ import annotations

from dataclasses import replace

from causeway.core.failback.divergence import FailbackMode, FailbackPlan
from causeway.core.kernel.estimate import exact, unknown
from causeway.render.failback_text import plan_text
from tests.support.failback_plans import READER, cut, price


def told(**changes: object) -> str:
    plan = FailbackPlan(
        flow="f", reverse="b", way=FailbackMode.REBUILD, cuts=(cut(),), late=(), rebuild=price(**changes)
    )
    return plan_text(plan)


def test_the_price_of_a_rebuild_says_what_is_deleted_and_who_is_there() -> None:
    text = told(readers=(READER, replace(READER, group="audit", is_active=True)), written_to=("orders",))
    assert "9 records of sf are DELETED, and 12 are copied again; 5 were never mirrored" in text
    assert "1970-01-01T00:00:05Z" in text
    assert "GROUP billing on orders: continues where --home puts it" in text
    assert "GROUP audit on orders: has members there: stop its consumers" in text
    assert "STILL WRITTEN TO orders" in text
    assert "refused without" not in text


def test_what_would_be_lost_permanently_is_loud() -> None:
    partition = price().partitions[0]
    assert "GONE FOR GOOD 3 records" in told(partitions=(replace(partition, gone=exact(3)),))
    unread = told(partitions=(replace(partition, gone=unknown("not all was read")),))
    assert "GONE FOR GOOD unknown records" in unread
    assert (
        "of orders: neither on the new primary nor exported (not all was read); refused without --accept-loss"
        in unread
    )


def test_who_may_read_the_exports_is_named_as_far_as_anybody_knows() -> None:
    plan = FailbackPlan(flow="f", reverse="b", way=FailbackMode.RESUME, cuts=(cut(tail=exact(5)),), late=())
    assert "No group with members on the new primary is known to have read these topics" in plan_text(plan)
    text = plan_text(replace(plan, at_work=("audit", "bill\x1b[2Jing")))
    assert "a consumer that subscribes to a pattern (.*, orders.*) reads them" in text
    assert "CHECK the subscription in the configuration of the consumers of each of these groups" in text
    assert "on the new primary: audit, bill\\x1b[2Jing. If it is a pattern, stop them, or exclude" in text
    assert "EXPORTS" not in plan_text(replace(plan, cuts=(cut(tail=exact(0)),)))
