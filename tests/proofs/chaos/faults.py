"""The faults of runs and their processes, each with what has to follow from it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from causeway.lab import processes
from tests.proofs.chaos.parts.processes import Member
from tests.proofs.chaos.parts.spark_runs import SparkRun
from tests.proofs.chaos.schedule import Fault

if TYPE_CHECKING:
    from tests.proofs.chaos.campaign import Campaign


def kill_workers(campaign: Campaign) -> None:
    """One or all of them: Spark gives the lane, and so the run, up."""
    run = _current(campaign)
    workers = run.workers()
    victims = workers if campaign.chance.random() < 0.5 else [campaign.chance.choice(workers)]
    _signal(victims, signal.SIGKILL)
    campaign.note(f"killed {len(victims)} of {len(workers)} workers of {run.holder}")
    _go_on_after_a_loss(campaign, run)


def kill_executor(campaign: Campaign) -> None:
    run = _current(campaign)
    victim = campaign.chance.choice(run.executors())
    _signal([victim], signal.SIGKILL)
    campaign.note(f"killed an executor of {run.holder}")
    _go_on_after_a_loss(campaign, run)


def kill_driver(campaign: Campaign) -> None:
    """The JVM, or the Python process that it drives: the other one is left for as long as it lasts."""
    run = _current(campaign)
    python = run.python_driver()
    if python is not None and campaign.chance.random() < 0.5:
        _signal([python], signal.SIGKILL)
        campaign.note(f"killed the Python driver of {run.holder}")
    else:
        run.process.send(signal.SIGKILL)
        campaign.note(f"killed the JVM of {run.holder}")
    campaign.wait(lambda: run.exit_code is not None, f"{run.holder} is gone")
    campaign.succeed(run)


def take_over(campaign: Campaign) -> None:
    campaign.replace_run("takes over")


def second_run(campaign: Campaign) -> None:
    """It has to say who holds the flow and since when; the first one goes on."""
    first = _current(campaign)
    second = campaign.launch("must be refused")
    campaign.wait_beside(lambda: second.exit_code is not None, f"{second.holder} is refused", first)
    said = f"held by {first.holder} since "
    if second.exit_code != 4 or said not in second.process.output():
        raise AssertionError(
            f"{second.holder} ended with {second.exit_code}, not with 4 and '{said}': {second.tail()}"
        )


def freeze_past_successor(campaign: Campaign) -> None:
    """The successor copies all there is; then the frozen workers wake up, and mustn't add anything."""
    old = _current(campaign)
    frozen = _freeze(campaign, old)
    if campaign.chance.random() < 0.5:
        new = campaign.launch("takes over from frozen workers", take_over=True)
    else:
        new = campaign.launch("second try beside frozen workers", run_id=old.run_id)
    campaign.run = new
    campaign.wait_beside(lambda: new.has_begun, f"{new.holder} begins", new)
    campaign.wait_until_copied()
    _wake(campaign, old, frozen)
    campaign.expect_superseded(old, new)


def freeze_past_time_out(campaign: Campaign) -> None:
    """The coordinator aborts the transactions of the frozen workers; the same run goes on when they wake."""
    run = _current(campaign)
    frozen = _freeze(campaign, run)
    campaign.wait(lambda: not campaign.open_transactions.now(), "open transactions time out")
    _wake(campaign, run, frozen)


INFLICT: dict[Fault, Callable[[Campaign], None]] = {
    Fault.WORKER_KILL: kill_workers,
    Fault.EXECUTOR_KILL: kill_executor,
    Fault.DRIVER_KILL: kill_driver,
    Fault.TAKE_OVER: take_over,
    Fault.SECOND_RUN: second_run,
    Fault.FREEZE_PAST_SUCCESSOR: freeze_past_successor,
    Fault.FREEZE_PAST_TIME_OUT: freeze_past_time_out,
}


def _current(campaign: Campaign) -> SparkRun:
    assert campaign.run is not None
    return campaign.run


def _go_on_after_a_loss(campaign: Campaign, run: SparkRun) -> None:
    """An idle worker isn't missed; with a busy one its run is lost, and the next one goes on."""
    wanted = campaign.writer.committed + 1
    campaign.wait(
        lambda: run.exit_code is not None or campaign.committed.records > wanted,
        f"{run.holder} ends or goes on",
    )
    if run.exit_code is not None:
        campaign.note(f"{run.holder} ended with {run.exit_code}")
        campaign.succeed(run)


def _freeze(campaign: Campaign, run: SparkRun) -> Sequence[Member]:
    """All of its workers, with a transaction open if that can be had within a few tries."""
    for _ in range(20):
        workers = run.workers()
        _signal(workers, signal.SIGSTOP)
        open_now = campaign.open_transactions.now()
        if open_now:
            campaign.is_hit = True
            break
        _signal(workers, signal.SIGCONT)
        time.sleep(campaign.chance.uniform(0, 0.1))
    else:
        _signal(workers, signal.SIGSTOP)
    campaign.note(f"froze {len(workers)} workers of {run.holder}, {len(open_now)} partitions in transactions")
    return workers


def _wake(campaign: Campaign, run: SparkRun, frozen: Sequence[Member]) -> None:
    _signal(frozen, signal.SIGCONT)
    campaign.note(f"woke the workers of {run.holder}")


def _signal(victims: Sequence[Member], number: signal.Signals) -> None:
    for victim in victims:
        processes.send(victim.identity, number)
