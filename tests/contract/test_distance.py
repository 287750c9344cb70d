"""How far away a cluster is, as its answers tell."""

from tests.contract.conftest import Bench


def test_the_quickest_answer_tells_how_far_away_a_cluster_is(bench: Bench) -> None:
    async def work() -> list[float]:
        target = await bench.client()
        told = [target.wire.round_trip_seconds]
        for _ in range(20):
            await target.log_ends([bench.here])
            told.append(target.wire.round_trip_seconds)
        target.wire.disconnect()
        told.append(target.wire.round_trip_seconds)
        return told

    *told, afterwards = bench.run(work)
    assert all(seconds > 0 for seconds in told)
    assert told == sorted(told, reverse=True)
    assert afterwards == 0, "another address may be nearer, or farther"
