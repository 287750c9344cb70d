from causeway.core.comparison import PartitionVerdict, VerifyReport
from causeway.core.identity import TopicPartition
from causeway.entrypoints.verdicts import verdict_text, verdicts


def report(**found):
    source, target = TopicPartition("orders", 0), TopicPartition("sf.orders", 0)
    return VerifyReport((PartitionVerdict(source=source, target=target, **found),))


def last_lines(**found):
    return verdict_text("f", report(**found)).split("\n\n")[1].splitlines()


def test_equal_is_said_with_the_number_of_records():
    assert last_lines(equal=1_200) == ["f: equal; 1,200 records compared equal, in order"]


def test_what_can_not_be_compared_is_said_beside_it():
    assert last_lines(equal=5, gone_on_target=3, gone_on_source=1, behind=9) == [
        "f: 4 records can't be compared, retention took them on one side",
        "f: 9 source offsets behind the last mirrored record not judged",
        "f: equal; 5 records compared equal, in order",
    ]


def test_nothing_compared_is_not_called_equal():
    assert last_lines(gone_on_target=3)[-1] == (
        "f: nothing left that can be compared; 0 records compared equal, in order"
    )


def test_machines_get_the_same_counts():
    told = verdicts("f", report(equal=5, gone_on_target=3, gone_on_source=1, behind=9))
    assert (told["records_equal"], told["records_gone"], told["offsets_behind"]) == (5, 4, 9)


def test_an_empty_selection_proves_nothing():
    empty = VerifyReport((), notes=("no topic of sf matches topics = ordrs: nothing to mirror",))
    assert empty.exit_code == 1
    assert not verdicts("f", empty)["equal"]
    assert verdict_text("f", empty).splitlines()[-2:] == [
        "f: no topic of sf matches topics = ordrs: nothing to mirror",
        "f: NOTHING WAS COMPARED; 0 records compared equal, in order",
    ]


def test_what_is_parked_was_not_compared():
    one = PartitionVerdict(source=TopicPartition("orders", 0), target=TopicPartition("sf.orders", 0), equal=1)
    told = VerifyReport((one,), parked={TopicPartition("orders", 1): "deleted"}, not_begun=2)
    assert told.exit_code == 5
    assert verdict_text("f", told).splitlines()[-3:] == [
        "NOT COMPARED orders-1: parked: deleted",
        "f: 2 partitions not begun, nothing to compare there",
        "f: equal but for 1 parked partition; 1 record compared equal, in order",
    ]
