"""Whether a topic is still the one that it was, as all nodes have it that answer."""

from uuid import UUID

from tests.contract.conftest import Bench


def test_a_topic_is_gone_if_no_node_knows_it_under_its_id(bench: Bench) -> None:
    async def work() -> list[bool]:
        target = await bench.client()
        return [
            await target.is_gone(bench.topic, bench.topic_id),
            await target.is_gone(bench.topic, UUID(int=1)),
            await target.is_gone(f"{bench.topic}-that-never-was", bench.topic_id),
        ]

    assert bench.run(work) == [False, True, True]
