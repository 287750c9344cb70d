"""What somebody approves at four in the morning, where it is long: 200 topics, 400 groups, 400 left alone.

What is destroyed and what isn't known stands first, and each cut says how much it leaves out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from typing import Any

import pytest

from causeway.core.failback.divergence import FailbackMode, FailbackPlan
from causeway.core.failback.rebuild_impact import PartitionImpact, Reader, RebuildImpact
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.plan import LeftAlone
from causeway.core.failover.request import Mode
from causeway.core.failover.start_offset import Answer, StartOffset
from causeway.core.kernel.estimate import Estimate, at_most, exact, unknown
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.kernel.timestamps import rfc3339
from causeway.render.failback_text import plan_text, rebuild_question
from causeway.render.failover_approval import sheet_markdown
from causeway.render.failover_html import page
from causeway.render.failover_text import headline, question_text, sheet_text, totals
from tests.support.failback_plans import cut
from tests.support.sheets import UNKNOWN_GROUP, UNKNOWN_TOPIC, loss, move, sheet_of

TOPICS, GROUPS = 200, 400
OF_GROUPS = (
    "skipped: at least 700, by up to 2 of 400 groups; read again: 79,800; to move: 400 groups; "
    "left alone: 400"
)
TOTALS = f"at least 19,730 records lost; {OF_GROUPS}"


@pytest.fixture
def sheet() -> Sheet:
    left = [LeftAlone(group=f"left-{n:03}", target=None, why="it has members") for n in range(400)]
    losses, moves = map(loss, range(TOPICS)), map(move, range(GROUPS))
    return sheet_of(tuple(losses), tuple(moves), *left)


def in_order(text: str, *parts: str) -> None:
    at = [text.find(part) for part in parts]
    assert -1 not in at, [part for part, found in zip(parts, at, strict=True) if found == -1]
    assert at == sorted(at), list(zip(parts, at, strict=True))


def unwrapped(text: str) -> str:
    return text.replace("\n  ", " ")


def names(text: str, pattern: str) -> list[str]:
    return list(dict.fromkeys(re.findall(pattern, text)))


DEAREST_TOPICS = [UNKNOWN_TOPIC, *(f"t-{n:03}" for n in range(199, 0, -1) if n != 170), "t-000"]
DEAREST_GROUPS = [UNKNOWN_GROUP, "g-005", *(f"g-{n:03}" for n in range(399, -1, -1) if n not in (390, 5))]


def test_on_a_terminal(sheet: Sheet) -> None:
    text = sheet_text(sheet)
    in_order(unwrapped(text), TOTALS, "LEFT ALONE left-000", "NOT SURE because", "TOPIC ", "GROUP ")
    lines = text.splitlines()
    assert sum(line.startswith("LEFT ALONE") for line in lines) == 40
    assert "40 of 400 shown, 360 more left alone: --json has them all" in lines
    assert [line.split()[0] for line in lines if line.startswith("t-")] == DEAREST_TOPICS[:40]
    assert "40 of 200 shown, 160 more topics: --json has them all" in lines
    by_group = [line.split()[0] for line in lines if line.startswith("g-")]
    assert by_group == DEAREST_GROUPS[:40] * 2, "the groups, and their offsets"
    assert "40 of 400 shown, 360 more groups: --json has them all" in lines
    assert "40 of 400 shown, 360 more offsets: --json has them all" in lines
    assert len(lines) < 190


def dangers(sheet: Sheet) -> tuple[str, str, str, str]:
    """What stands before the headline: on a terminal, in an approval, on a page. And below the question."""
    head, markdown = headline(sheet), sheet_markdown(sheet, "sheet.html")
    asked = question_text(sheet).rpartition("\n\n")[2]
    return (
        unwrapped(sheet_text(sheet)).partition(head)[0],
        markdown.partition("\n")[0].replace("\\", ""),
        page(sheet).partition(head)[0].partition("</h1>")[2],
        unwrapped(asked),
    )


def test_a_source_that_answers_is_a_danger_and_stands_first(sheet: Sheet) -> None:
    said = (
        "THE SOURCE ANSWERS: what is written to it from now on is lost after the fence, and isn't in these "
        "numbers. Stop its writers. If its data is good, `causeway failover sf_to_nyc --planned` loses "
        "nothing"
    )
    terminal, approval, made, asked = dangers(sheet)
    assert terminal == f"{said}\n"
    assert approval == f"**{said}**"
    assert made == f'\n<p class="loud">{escape(said)}</p>\n<p>'
    assert asked == f"{said}\n{TOTALS}"
    fenced = replace(sheet, fenced="by ops since T: why")
    assert "loses nothing, once no fence stops it\n" in dangers(fenced)[0]
    wish = replace(sheet.plan.wish, at_ms=1_763_438_580_000, safety_ms=9, clamp=True, groups=("b",))
    some = replace(sheet, plan=replace(sheet.plan, wish=wish))
    assert "`causeway failover sf_to_nyc --planned --groups=b`" in dangers(some)[0]


def test_no_other_sheet_shows_that_danger(sheet: Sheet) -> None:
    for mode in (Mode.PLANNED, Mode.HOME):
        planned = replace(sheet, plan=replace(sheet.plan, wish=replace(sheet.plan.wish, mode=mode)))
        for text in dangers(planned):
            assert "ANSWERS" not in text
    for text in dangers(replace(sheet, source_silent="killed")):
        assert "ANSWERS" not in text


def test_a_planned_sheet_says_that_starts_at_is_of_now(sheet: Sheet) -> None:
    """What is mirrored until then moves it on."""
    line = (
        "STARTS AT: as of now. Once the rest is mirrored, each group gets the record that it would read next"
    )
    assert line not in sheet_text(sheet)
    for mode in (Mode.PLANNED, Mode.HOME):
        planned = replace(sheet, plan=replace(sheet.plan, wish=replace(sheet.plan.wish, mode=mode)))
        assert line in sheet_text(planned).splitlines()


def test_what_unknown_means_stands_below_the_table_that_has_it(sheet: Sheet) -> None:
    line = "unknown: it may be any number of records; the lines NOT SURE above have the reason"
    assert line in unwrapped(sheet_text(sheet)).partition("GROUP ")[2].splitlines()
    known = replace(sheet, plan=replace(sheet.plan, moves=(move(0), move(1))))
    assert line not in unwrapped(sheet_text(known))


def test_as_what_somebody_approves(sheet: Sheet) -> None:
    text = sheet_markdown(sheet, "sheet.html")
    in_order(text, f"**{TOTALS}**", "### Left alone", "### Lost", "### What each group", "### Not sure")
    lines = text.splitlines()
    assert names(text, r"`(left-\d+)`") == [f"left-{n:03}" for n in range(25)]
    assert names(text, r"`(t-\d+)`") == DEAREST_TOPICS[:25]
    assert names(text, r"`(g-\d+)`") == DEAREST_GROUPS[:25]
    assert lines.count("25 of 400 shown, 375 more") == 2, "left alone, and groups"
    assert lines.count("25 of 200 shown, 175 more") == 1
    assert "no more than" not in text, "nothing is claimed of what isn't shown"


def test_on_a_narrow_page_no_number_and_no_moment_is_broken() -> None:
    """Its names are broken anywhere; what must stay whole says so."""
    losses = (replace(loss(1), records=at_most(1_234_567, "why"), mirrored_until_ms=1_763_438_600_000),)
    moved = replace(move(1), after=TargetOffset(9_876_543_210), reasons=("as old as 7,654,321 others",))
    text = page(sheet_of(losses, (moved,)))
    for whole in ("9,876,543,210", "7,654,321", rfc3339(1_763_438_600_000)):
        assert f'<span class="number">{whole}</span>' in text
    assert '<span class="loud">at most 1,234,567</span>' in text
    assert "td .loud, .number { white-space: nowrap; }" in text


def test_as_a_page(sheet: Sheet) -> None:
    text = page(sheet)
    in_order(
        text,
        ">at least 19,730</span> records lost<",
        OF_GROUPS,
        "Left alone (400)",
        "25 of 400 shown, 375 more",
        "left-399",
        "What is lost",
        "Every offset",
    )
    assert names(text, r"<li>(left-\d+):") == [f"left-{n:03}" for n in range(400)], "all of them, folded"
    assert names(text, r"<span>(t-\d+)</span>") == DEAREST_TOPICS
    assert names(text.partition("Every offset")[0], r"<span>(g-\d+)</span>") == DEAREST_GROUPS
    offsets = text.partition("Every offset")[2]
    assert names(offsets, r"<span>(g-\d+)</span>") == DEAREST_GROUPS
    many = replace(sheet, plan=replace(sheet.plan, moves=tuple(move(n) for n in range(2_500))))
    assert "2,000 of 2,500 shown, 500 more, all in the JSON" in page(many)


@pytest.mark.parametrize(
    ("skips", "told"),
    [
        ((exact(0), exact(0)), "skipped: 0; "),
        ((exact(3), exact(0)), "skipped: 3, by 1 of 2 groups; "),
        ((exact(3), at_most(4, "it may have read on")), "skipped: at most 7, by up to 2 of 2 groups; "),
        ((exact(0), unknown("silent")), "skipped: unknown, by up to 1 of 2 groups; "),
    ],
)
def test_who_skips_is_counted(skips: tuple[Estimate, ...], told: str) -> None:
    moves = tuple(replace(move(n), skips=skip) for n, skip in enumerate(skips))
    assert told in totals(sheet_of((loss(0),), moves))


def test_why_the_source_is_silent_stands_there_once(sheet: Sheet) -> None:
    why = "cluster sf: connection refused"
    place = StartOffset(
        at=TargetOffset(41),
        index=Answer(at=TargetOffset(41)),
        source=Answer(why_not=f"the source can't be asked: {why}"),
    )
    silent = replace(sheet, source_silent=why, places={TopicPartition("sf.t-000", 0): place})
    text = page(silent)
    assert (text.count(why), text.count("the source can") >= 40) == (1, True)


WHY = "cluster sf: " + " ".join(
    f"broker {n} of sf at 10.0.0.{n}:9092 doesn't answer: refused;" for n in range(6)
)


@pytest.fixture
def dead(sheet: Sheet) -> Sheet:
    """Of a source that was killed: each row has the same to say."""
    at_ms = sheet.made_at_ms - 18_120_000
    place = StartOffset(
        at=TargetOffset(41),
        index=Answer(at=TargetOffset(41), at_ms=at_ms),
        source=Answer(why_not="the source can't be asked", detail=WHY),
    )
    gone = unknown(f"the source can't be asked what it still has: {WHY}")
    losses = tuple(
        replace(each, records=gone, size_bytes=gone, seconds=gone, mirrored_until_ms=at_ms)
        for each in sheet.losses
    )
    by_sync = "as the group sync of 2025-11-18T04:02:00Z says"
    plan = replace(
        sheet.plan,
        wish=replace(sheet.plan.wish, at_ms=at_ms),
        moves=tuple(replace(each, reasons=(by_sync,)) for each in sheet.plan.moves),
    )
    places = {TopicPartition("sf.t-000", 0): place}
    return replace(sheet, source_silent=WHY, losses=losses, plan=plan, places=places)


def test_a_sheet_of_a_dead_source_says_each_thing_once(dead: Sheet) -> None:
    text = sheet_text(dead)
    assert max(map(len, text.splitlines())) <= 100
    one_piece = " ".join(text.split())
    assert one_piece.count("broker 5 of sf") == 1
    assert one_piece.count("BY SOURCE: the source can't be asked") == 1
    assert one_piece.count("as the group sync of") == 1
    in_order(
        text,
        "failover to 2025-11-17T23:01:20Z (5 h 2 min ago);",
        "MIRRORED UNTIL",
        "2025-11-17T23:01:20Z (5 h 2 min ago)\n",
        "ALL 200",
        "ALL 400",
        "GROUP  PARTITION   STANDS AT  STARTS AT  BY TARGET  BY SOURCE  FIRST RECORD          NOTES",
        "g-390  sf.t-000-0  -                 41  41         -          2025-11-17T23:01:20Z  1 2",
        "note 1: BY SOURCE: the source can't be asked",
        "note 2: as the group sync of 2025-11-18T04:02:00Z says",
    )


def test_a_name_of_any_length_stays_whole_within_a_terminals_width(sheet: Sheet) -> None:
    name = "".join(f"{n:03}" for n in range(83))
    long = replace(sheet, losses=(replace(sheet.losses[0], source=TopicPartition(name, 0)),))
    text = sheet_text(long)
    assert max(map(len, text.splitlines())) <= 100
    table = text.partition("TOPIC ")[2].partition("GROUP ")[0].splitlines()[1:]
    assert "".join(line.split()[0] for line in table if line).startswith(name)


def test_the_last_row_is_the_sum_of_all_rows(sheet: Sheet) -> None:
    lines = sheet_text(sheet).splitlines()
    (topics,) = [line.split() for line in lines if line.startswith("ALL 200")]
    assert " ".join(topics) == "ALL 200 200 at least 19,730 at least 19,730 unknown -"
    (groups,) = [line.split() for line in lines if line.startswith("ALL 400")]
    assert " ".join(groups) == "ALL 400 400 79,800 at least 700"


def test_json_tells_as_it_always_did(sheet: Sheet) -> None:
    told: dict[str, Any] = sheet.as_dict()
    assert [topic["topic"] for topic in told["topics"]] == [f"t-{n:03}" for n in range(TOPICS)]
    assert [group["group"] for group in told["groups"]] == [f"g-{n:03}" for n in range(GROUPS)]


def partition_price(number: int) -> PartitionImpact:
    gone = {170: unknown("compaction"), 30: exact(1_400)}.get(number, exact(0))
    held = exact(1_000 + number)
    return PartitionImpact(
        old=TopicPartition(f"t-{number:03}", 0), held=held, held_bytes=held, gone=gone, anew=exact(10)
    )


def rebuild(**changes: object) -> FailbackPlan:
    readers = [
        Reader(group=f"g-{n:03}", topics=tuple(f"t-{t:03}" for t in range(TOPICS)), is_active=n == 390)
        for n in range(GROUPS)
    ]
    price = RebuildImpact(
        source="sf",
        partitions=tuple(partition_price(n) for n in range(TOPICS)),
        readers=tuple(readers),
        written_to=tuple(f"t-{n:03}" for n in range(TOPICS)),
    )
    cuts = tuple(
        cut(old=TopicPartition(f"t-{n:03}", 0), new=TopicPartition(f"t-{n:03}", 0), tail=exact(n))
        for n in range(TOPICS)
    )
    return FailbackPlan(
        flow="sf_to_nyc",
        reverse="nyc_to_sf",
        way=FailbackMode.REBUILD,
        cuts=cuts,
        late=(),
        rebuild=replace(price, **changes),  # type: ignore[arg-type]
    )


HAS_ALL = ": `causeway failback sf_to_nyc --rebuild --dry-run --json` has them all"
DEAREST_REBUILT = ["t-170", "t-030", *(f"t-{n:03}" for n in range(199, -1, -1) if n not in (170, 30))]


def test_a_rebuild(sheet: Sheet) -> None:
    plan = rebuild()
    text = plan_text(plan)
    gone = (
        "GONE FOR GOOD at least 1,400 records of t-170, t-030: neither on the new primary nor exported "
        "(compaction); refused without --accept-loss"
    )
    in_order(
        text,
        f"plan {plan.hash}",
        "219,900 records of sf are DELETED",
        gone,
        "STILL WRITTEN TO t-000",
        f"40 of 200 shown, 160 more topics{HAS_ALL}",
        "GROUP g-390 on t-000, t-001, t-002, t-003, t-004 and 195 more: has members there: stop its",
        "GROUP g-000 on",
        f"10 of 400 shown, 390 more groups{HAS_ALL}",
        "ON sf ",
        f"25 of 200 shown, 175 more topics{HAS_ALL}",
    )
    rows = [line.split()[0] for line in text.splitlines() if line.startswith("t-")]
    assert rows == DEAREST_REBUILT[:25]
    assert len(text) < 12_000
    assert plan.rebuild is not None
    assert rebuild_question(plan, plan.rebuild, "nyc") == (
        "delete all 219,900 records of 200 topics of sf (lost permanently: at least 1,400), and mirror nyc "
        "into it"
    )


def test_who_has_accepted_a_loss_doesnt_read_that_it_is_refused() -> None:
    assert "(compaction); --accept-loss deletes them" in plan_text(rebuild(), accepts_loss=True)


def test_a_resume() -> None:
    plan = replace(
        rebuild(), way=FailbackMode.RESUME, rebuild=None, notes=tuple(f"note {n}" for n in range(100))
    )
    has_all = HAS_ALL.replace("rebuild", "resume")
    text = plan_text(plan)
    in_order(
        text,
        "19,900 were never mirrored",
        "NOTE note 0",
        f"40 of 100 shown, 60 more notes{has_all}",
        "OLD PRIMARY",
        f"25 of 200 shown, 175 more topics{has_all}",
    )
    rows = [line.split()[0] for line in text.splitlines() if line.startswith("t-")]
    assert rows == [f"t-{n:03}" for n in range(199, 174, -1)]


def test_what_isnt_known_of_a_figure_is_loud_on_the_page(sheet: Sheet) -> None:
    def loudness(figure: Estimate) -> str:
        one = replace(sheet, losses=(replace(loss(0), records=figure),))
        found: list[str] = re.findall(r'<p class="big">(<span class="loud">|)', page(one))
        return found[0]

    assert loudness(exact(0)) == ""
    assert loudness(unknown("silent")) == '<span class="loud">'
