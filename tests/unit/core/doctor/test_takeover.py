"""What doctor makes of the rights to take over from MirrorMaker 2."""

from __future__ import annotations

from causeway.core.doctor.finding import Finding, Result
from causeway.core.doctor.takeover import judge_takeover
from causeway.core.kernel.acl_vocabulary import NeededRight, Side
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.permissions.flow import inherited_right, takeover_rights
from causeway.core.takeover.mm2_mirror import MirrorMakerPlaces
from tests.support.mirroring import make_flow

FLOW = make_flow("sf_to_nyc", "orders")
PLACES = MirrorMakerPlaces(
    connector="MirrorSourceConnector",
    offsets_topic="mm2-offsets.sf.internal",
    syncs_topic="mm2-offset-syncs.nyc.internal",
    syncs_on_source=True,
    group="sf-mm2",
    is_isolated=False,
)
VIEWS: dict[Side, ClusterView] = {
    "source": ClusterView(alias="sf", cluster_id="1", principal="User:here", brokers=()),
    "target": ClusterView(alias="nyc", cluster_id="2", principal="User:there", brokers=()),
}


def judged(*lacking: NeededRight, is_done: bool = False) -> list[Finding]:
    return judge_takeover(lacking, VIEWS, is_done=is_done)


def test_all_is_well() -> None:
    (found,) = judged()
    assert (found.result, found.finding) == (Result.PASSED, "User:there may take over from MirrorMaker 2")
    assert judged(is_done=True)[0].finding == "User:there may translate offsets from before it"


def test_each_missing_right_comes_with_the_grant_of_its_side() -> None:
    rights = takeover_rights(FLOW, PLACES)
    found = judged(*rights)
    assert {each.result for each in found} == {Result.FAILED}
    assert {each.exit_code for each in found} == {3}
    principals = {"sf": "User:here", "nyc": "User:there"}
    assert [each.remedy for each in found] == [
        right.command(principals[each.where]) for right, each in zip(rights, found, strict=True)
    ]
    assert [each.where for each in found if "mm2-offset-syncs" in each.finding] == ["sf"]


def test_once_it_is_done_only_translation_suffers() -> None:
    (found,) = judged(inherited_right(FLOW), is_done=True)
    assert (found.result, found.exit_code) == (Result.WARN, 0)
    assert found.finding.endswith("translate offsets from before the takeover; the copy doesn't need it")


def test_offset_syncs_on_the_target_are_read_there() -> None:
    from dataclasses import replace

    rights = takeover_rights(FLOW, replace(PLACES, syncs_on_source=False))
    assert {right.side for right in rights} == {"target"}
