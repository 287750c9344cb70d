from typing import Any

from causeway.core.kernel.identity import TopicPartition
from causeway.core.verify.report import PartitionVerdict, VerifyReport
from causeway.render.verify import verdict_text, verdicts


def report(**found: Any) -> VerifyReport:
    source, target = TopicPartition("orders", 0), TopicPartition("sf.orders", 0)
    return VerifyReport((PartitionVerdict(source=source, target=target, **found),))


def last_lines(**found: Any) -> list[str]:
    return verdict_text("f", report(**found)).split("\n\n")[1].splitlines()


def test_equal_is_reported_with_the_number_of_records() -> None:
    assert last_lines(equal=1_200) == ["f: equal; 1,200 records compared equal, in order"]


def test_what_can_not_be_compared_is_reported_beside_it() -> None:
    assert last_lines(equal=5, gone_on_target=3, gone_on_source=1, behind=9) == [
        "f: 4 records can't be compared, retention took them on one side",
        "f: 9 source offsets after the last mirrored record not judged",
        "f: equal; 5 records compared equal, in order",
    ]


def test_nothing_compared_is_not_called_equal() -> None:
    assert last_lines(gone_on_target=3)[-1] == (
        "f: nothing left that can be compared; 0 records compared equal, in order"
    )


def test_machines_get_the_same_counts() -> None:
    told = verdicts("f", report(equal=5, gone_on_target=3, gone_on_source=1, behind=9))
    assert (told["records_equal"], told["records_gone"], told["offsets_behind"]) == (5, 4, 9)


def test_an_empty_selection_proves_nothing() -> None:
    empty = VerifyReport((), notes=("no topic of sf matches topics = ordrs: nothing to mirror",))
    assert empty.exit_code == 1
    assert not verdicts("f", empty)["equal"]
    assert verdict_text("f", empty).splitlines()[-2:] == [
        "f: no topic of sf matches topics = ordrs: nothing to mirror",
        "f: NOTHING WAS COMPARED; 0 records compared equal, in order",
    ]


def test_what_is_parked_was_not_compared() -> None:
    one = PartitionVerdict(source=TopicPartition("orders", 0), target=TopicPartition("sf.orders", 0), equal=1)
    told = VerifyReport((one,), parked={TopicPartition("orders", 1): "deleted"}, not_begun=2)
    assert told.exit_code == 5
    assert verdict_text("f", told).splitlines()[-3:] == [
        "NOT COMPARED orders-1: parked: deleted",
        "f: 2 partitions not begun, nothing to compare there",
        "f: equal but for 1 parked partition; 1 record compared equal, in order",
    ]


def test_what_was_compared_how_is_reported() -> None:
    def one(name: str, **counted: Any) -> PartitionVerdict:
        return PartitionVerdict(source=TopicPartition(name, 0), target=TopicPartition(name, 0), **counted)

    compacted = one("a", equal=7, is_by_map=True, cleaned_on_source=2, cleaned_on_target=3)
    lines = verdict_text("f", VerifyReport((compacted, one("b", equal=1_000)))).splitlines()
    assert lines[-2:] == [
        "f: compaction took 2 mirrored records on the source, and 3 on the target: "
        "a later record of the key follows, or the key is deleted on both sides",
        "f: equal; 1,007 records compared equal, in order; 7 of them in pairs that the offset map names, "
        "in order",
    ]
    partitions = verdicts("f", VerifyReport((compacted,)))["partitions"]
    assert isinstance(partitions, list)
    told = partitions[0]
    assert (told["compared"], told["cleaned_on_source"], told["cleaned_on_target"]) == (
        "by the offset map",
        2,
        3,
    )


def test_a_flow_that_rests_says_so_before_its_verdict() -> None:
    rests = VerifyReport(report(equal=5, is_by_map=True, never_crossed=4).partitions, rests="b leads")
    assert verdict_text("f", rests).splitlines()[-3:] == [
        "f: 4 records only on the source: they were never mirrored, and a failback exported them "
        "(TOPIC.diverged.TIME)",
        "f: RESTS: b leads; only what it had mirrored by then is compared, not what others wrote since",
        "f: equal; 5 records compared equal, in pairs that the offset map names, in order",
    ]
    assert (verdicts("f", rests)["rests"], verdicts("f", rests)["never_crossed"]) == ("b leads", 4)
