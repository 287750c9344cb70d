"""The source is killed with -9: the map brackets, the index decides, the sheet says what can't be known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import Mode
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.estimate import Bound
from causeway.core.kernel.timestamps import rfc3339
from causeway.lab.cluster import LabCluster
from causeway.render.failover_text import sheet_text
from tests.integration.failover.command_line import CommandLine
from tests.integration.failover.stage import BASE_MS, FailoverStage

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
FLOWS = """\
clusters:
  sf: {{connection: kafka_sf}}
  nyc: {{connection: kafka_nyc}}
flows:
  {name}: {{source: sf, target: nyc, topics: [{topic}], groups: ["{topic}[.].*"], lanes: 3}}
"""


@pytest.fixture(scope="module")
def orphan(lab_clusters: LabClusterFactory, nyc: LabCluster) -> Iterator[FailoverStage]:
    """Mirrored and synced, then written on, and the source is killed."""
    made = FailoverStage(lab_clusters("doomed"), nyc, "orphans", partitions=2)
    for first in (0, 100):
        for partition in (0, 1):
            made.write([BASE_MS + n * 1_000 for n in range(first, first + 100)], partition)
        made.run()
    made.commit("synced", {0: 50, 1: 170})
    made.sync()
    made.write([BASE_MS + n * 1_000 for n in range(200, 230)])
    made.source.kill()
    yield made
    made.mirror.close()


@pytest.fixture
def by_hand(orphan: FailoverStage, tmp_path: Path) -> CommandLine:
    flows = tmp_path / "flows.yaml"
    flows.write_text(FLOWS.format(name=orphan.flow.name, topic=orphan.stem))
    return CommandLine(tmp_path, flows, {"sf": orphan.source, "nyc": orphan.target})


def test_status_shows_what_the_target_knows(orphan: FailoverStage, by_hand: CommandLine) -> None:
    looked = by_hand.run("status", orphan.flow.name)
    assert looked.returncode == 3, looked.stderr
    lines = looked.stdout.splitlines()
    assert re.fullmatch(
        rf"{orphan.flow.name}: the source sf does not answer. This command has tried since "
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, for \d+ s\.",
        lines[0],
    )
    assert lines[1].startswith("Reason: cluster sf (")
    headers = "SOURCE TARGET STATE POSITION END LAG MIRRORED REPEATS LAST RECORD AGE"
    assert lines[4].split() == headers.split()
    last_at = rfc3339(BASE_MS + 199_000)
    for partition, row in enumerate(lines[5:7]):
        told = row.split()
        assert told[0] == f"{orphan.stem}-{partition}"
        assert told[2:6] == ["waits", "200", "unknown", "unknown"]
        assert told[8] == last_at
        assert row.endswith((" ago", " ahead of this clock"))
    assert "2 partitions, lag unknown; 2 waiting; last mirrored record " in looked.stdout
    assert "nobody holds it" in looked.stdout

    told = json.loads(by_hand.run("status", orphan.flow.name, "--json").stdout)
    assert (told["error"], told["exit_code"]) == ("ClusterUnreachable", 3)
    assert (told["source_answers"], told["lag"], told["fences"]) == (False, None, [])
    assert told["source_silent"]["why"] == told["message"]
    rows = [(p["position"], p["end"], p["last_record_at"]) for p in told["partitions"]]
    assert rows == [(200, None, last_at)] * 2


def test_by_hand_from_the_sheet_to_the_rollback(
    orphan: FailoverStage, by_hand: CommandLine, tmp_path: Path
) -> None:
    failover = ("failover", orphan.flow.name)
    at = "2026-09-21T14:15:00Z"  # BASE_MS and 100 seconds
    moment = BASE_MS + 100_000
    expected = next(offset for _, offset, time_ms, _ in orphan.mirrored_records() if time_ms >= moment)

    looked = by_hand.run(*failover, "--at", at, "--dry-run", "--json", "--html", "sheet.html")

    assert looked.returncode == 0, looked.stderr
    sheet = json.loads(looked.stdout)
    assert sheet["source_answers"] is False
    assert sheet["lost_records"]["number"] is None
    assert any("can't be asked" in why for why in sheet["unknown_because"])
    assert {move["after"] for move in sheet["moves"]} == {expected}
    page = (tmp_path / "sheet.html").read_text()
    assert 'content="width=device-width' in page
    assert sheet["plan"] in page
    held = orphan.there("synced")

    done = by_hand.run(*failover, "--at", at, "--json", typed=f"{orphan.flow.name}\n")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run"]
    assert orphan.there("synced") == {0: expected, 1: expected}

    back = by_hand.run(*failover, "--rollback", run, "--yes")
    assert (back.returncode, orphan.there("synced")) == (0, held)
    assert "fence: lifted" in back.stdout


def test_a_planned_failover_is_refused_where_nothing_can_be_promised(
    orphan: FailoverStage, by_hand: CommandLine
) -> None:
    """Its sheet would say that nothing is lost."""
    refused = by_hand.run("failover", orphan.flow.name, "--planned", "--dry-run")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert (
        f"`causeway failover {orphan.flow.name} --at latest` is for a source that is gone" in refused.stderr
    )

    def nobody_is_asked(_sheet: Sheet) -> None:
        pytest.fail("the sheet was shown")

    with pytest.raises(ClusterUnreachable, match="needs sf, which can't be asked"):
        orphan.fail_over(orphan.wish(None, mode=Mode.PLANNED), consent=nobody_is_asked)
    assert orphan.fence() is None


def test_the_sheet_fits_a_terminal_and_says_once_why_the_source_is_silent(orphan: FailoverStage) -> None:
    sheet = orphan.sheet(orphan.wish(BASE_MS + 100_000))
    text = sheet_text(sheet)
    assert max(map(len, text.splitlines())) <= 100
    one_piece = " ".join(text.split())
    assert one_piece.count(sheet.source_silent) == 1
    assert one_piece.count("BY SOURCE: the source can't be asked") == 1
    assert " d " in one_piece.partition(" ago)")[0]


def test_what_the_client_says_of_it_is_no_part_of_the_reason(orphan: FailoverStage) -> None:
    sheet = orphan.sheet(orphan.wish(BASE_MS + 100_000))
    silent = {(place.source.why_not, place.source.detail) for place in sheet.places.values()}
    assert silent == {("the source can't be asked", sheet.source_silent)}


def test_latest_is_what_the_last_sync_knew_and_says_so(orphan: FailoverStage) -> None:
    records = {p: orphan.mirrored_records(p) for p in (0, 1)}
    sheet = orphan.sheet(orphan.wish(None))
    assert {m.target.partition: m.after for m in sheet.plan.moves} == {
        0: records[0][50][1],
        1: records[1][170][1],
    }
    assert {m.rereads.bound for m in sheet.plan.moves} == {Bound.AT_MOST}
    assert all("group sync of" in m.reasons[0] for m in sheet.plan.moves)
    assert sheet.lost.number is None
    assert sheet.topics[0].mirrored_until_ms == BASE_MS + 199_000
