"""Where in the protocol a fault can strike: every kind of request that a lane sends, by what it is about.

The nth one is counted from the beginning of the worker. `tests/proofs/proxy/test_matrix.py` watches a lane
from outside and refuses a protocol that sends what isn't listed here.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Literal

from tests.proofs.proxy.heads import Api, Request
from tests.proofs.proxy.proxy import Fault


class About(StrEnum):
    """What a request names."""

    NOTHING = "nothing"
    DATA = "data"
    MAP = "map"
    FLOWS = "flows"
    GROUP = "group"
    LANE = "lane"


class Setting(StrEnum):
    """What the lane finds when it begins."""

    FOLLOWS = auto()
    """Positions, a mirror with records in it, and new records on the source."""
    FRESH = auto()
    """Nothing was copied yet."""
    POSITION_LOST = auto()
    """The committed offsets have expired: the map has to tell."""
    FOREIGN_TRANSACTION = auto()
    """Another producer holds a transaction open on one partition of the mirror."""
    LEFT_OPEN = auto()
    """A dead owner left its transaction open, and the flow settles."""


Side = Literal["source", "target"]


@dataclass(frozen=True, slots=True)
class Site:
    side: Side
    api: Api
    about: About
    nth: int = 1
    when: str = ""
    setting: Setting = Setting.FOLLOWS

    def __str__(self) -> str:
        words = (self.side, self.api.name, str(self.about), self.when or f"number {self.nth}")
        return " ".join(words).replace(" ", "-").replace("_", "-").lower()


class Ending(StrEnum):
    GOES_ON = "worker goes on"
    KILLED = "worker killed"


@dataclass(frozen=True, slots=True)
class Cell:
    site: Site
    fault: Fault
    ending: Ending
    before_claim: bool = False
    """A late request comes before the next claim, not in the middle of the next transaction."""

    def __str__(self) -> str:
        fault = f"{self.fault} before the claim" if self.before_claim else str(self.fault)
        return f"{self.site}-{fault}-{self.ending}".replace(" ", "-")


_FOREIGN, _FRESH, _LOST = Setting.FOREIGN_TRANSACTION, Setting.FRESH, Setting.POSITION_LOST
_OPEN = Setting.LEFT_OPEN
_SOURCE = (
    Site("source", Api.API_VERSIONS, About.NOTHING, 1, "bootstrap"),
    Site("source", Api.API_VERSIONS, About.NOTHING, 2, "connect"),
    Site("source", Api.METADATA, About.NOTHING, 1, "bootstrap"),
    Site("source", Api.METADATA, About.DATA),
    Site("source", Api.OFFSET_FOR_LEADER_EPOCH, About.DATA, 1, "look"),
    Site("source", Api.OFFSET_FOR_LEADER_EPOCH, About.DATA, 2, "position"),
    Site("source", Api.FETCH, About.DATA, 1),
    Site("source", Api.FETCH, About.DATA, 2),
)
_LOOKING = (
    Site("target", Api.API_VERSIONS, About.NOTHING, 1, "bootstrap"),
    Site("target", Api.API_VERSIONS, About.NOTHING, 2, "connect"),
    Site("target", Api.API_VERSIONS, About.NOTHING, 3, "features"),
    Site("target", Api.METADATA, About.NOTHING, 1, "bootstrap"),
    Site("target", Api.METADATA, About.FLOWS),
    Site("target", Api.METADATA, About.DATA),
    Site("target", Api.METADATA, About.MAP),
    Site("target", Api.FIND_COORDINATOR, About.GROUP),
    Site("target", Api.LIST_OFFSETS, About.FLOWS, 1, "may run"),
    Site("target", Api.LIST_OFFSETS, About.FLOWS, 2, "may still run"),
    Site("target", Api.FETCH, About.FLOWS),
    Site("target", Api.OFFSET_FETCH, About.DATA, 1, "look"),
    Site("target", Api.PRODUCE, About.FLOWS, 1, "turn"),
    Site("target", Api.OFFSET_COMMIT, About.FLOWS, 1, "mark"),
    Site("target", Api.OFFSET_FETCH, About.FLOWS, 1, "position"),
    Site("target", Api.LIST_OFFSETS, About.DATA, 1, "look start"),
    Site("target", Api.LIST_OFFSETS, About.DATA, 2, "look end"),
    Site("target", Api.LIST_OFFSETS, About.DATA, 3, "position start"),
    Site("target", Api.LIST_OFFSETS, About.DATA, 4, "position end"),
    Site("target", Api.LIST_OFFSETS, About.DATA, 5, "last stable"),
    Site("target", Api.LIST_OFFSETS, About.DATA, 6, "new end"),
    Site("target", Api.OFFSET_FOR_LEADER_EPOCH, About.DATA, 1, "look"),
    Site("target", Api.OFFSET_FOR_LEADER_EPOCH, About.DATA, 2, "position"),
    Site("target", Api.FETCH, About.DATA, 1, "tail"),
    Site("target", Api.LIST_OFFSETS, About.MAP, 1, "rebuild", _LOST),
    Site("target", Api.FETCH, About.MAP, 1, "rebuild", _LOST),
    Site("target", Api.DESCRIBE_PRODUCERS, About.DATA, 1, "who holds", _FOREIGN),
    Site("target", Api.DESCRIBE_PRODUCERS, About.MAP, 1, "what hangs"),
)
_TRANSACTIONAL = (
    Site("target", Api.FIND_COORDINATOR, About.LANE),
    Site("target", Api.INIT_PRODUCER_ID, About.LANE, 1, "claim"),
    Site("target", Api.PRODUCE, About.DATA, 1, "first of all"),
    Site("target", Api.PRODUCE, About.DATA, 3, "in flight"),
    Site("target", Api.PRODUCE, About.DATA, 6, "second transaction"),
    Site("target", Api.PRODUCE, About.MAP),
    Site("target", Api.TXN_OFFSET_COMMIT, About.DATA, 1),
    Site("target", Api.TXN_OFFSET_COMMIT, About.DATA, 1, "position first", _FRESH),
    Site("target", Api.END_TXN, About.LANE, 1, "position first", _FRESH),
    Site("target", Api.END_TXN, About.LANE, 1),
    Site("target", Api.END_TXN, About.LANE, 2),
    Site("target", Api.TXN_OFFSET_COMMIT, About.DATA, 2),
)
_OLD_DIALECT = (
    Site("target", Api.ADD_PARTITIONS_TO_TXN, About.DATA),
    Site("target", Api.ADD_PARTITIONS_TO_TXN, About.MAP),
    Site("target", Api.ADD_OFFSETS_TO_TXN, About.LANE),
    Site("target", Api.INIT_PRODUCER_ID, About.LANE, 2, "claim again"),
)
_SETTLING = (
    Site("target", Api.DESCRIBE_TRANSACTIONS, About.LANE, 1, "what is open", _OPEN),
    Site("source", Api.DESCRIBE_CONFIGS, About.DATA, 1, "is it compacted", _OPEN),
    Site("target", Api.DESCRIBE_CONFIGS, About.DATA, 1, "is it compacted", _OPEN),
    Site("target", Api.LIST_OFFSETS, About.DATA, 3, "open from", _OPEN),
    Site("target", Api.LIST_OFFSETS, About.DATA, 4, "open to", _OPEN),
    Site("target", Api.FETCH, About.DATA, 1, "what is open", _OPEN),
    Site("source", Api.FETCH, About.DATA, 1, "beside what is open", _OPEN),
    Site("target", Api.END_TXN, About.LANE, 1, "in its place", _OPEN),
    Site("target", Api.DESCRIBE_TRANSACTIONS, About.LANE, 2, "again", _OPEN),
)
SITES_V2 = (*_SOURCE, *_LOOKING, *_TRANSACTIONAL, *_SETTLING)
SITES_V1 = (*_TRANSACTIONAL, *_OLD_DIALECT)
"""Of the old dialect what is transactional: the rest is the same code and the same answers."""
CHANGING = frozenset(
    {
        Api.INIT_PRODUCER_ID,
        Api.PRODUCE,
        Api.OFFSET_COMMIT,
        Api.ADD_PARTITIONS_TO_TXN,
        Api.ADD_OFFSETS_TO_TXN,
        Api.TXN_OFFSET_COMMIT,
        Api.END_TXN,
    }
)
"""What a request that arrives late could still change."""


def sample(sites: tuple[Site, ...], seed: int) -> tuple[Cell, ...]:
    """By the seed: each site at least once, each fault with each ending, and what finds the mutations."""
    chance = random.Random(seed)
    chosen = {cell for cell in cells(sites) if finds_a_mutation(cell)}
    for kind in chance.sample(KINDS, len(KINDS)):
        if kind not in map(kind_of, chosen):
            chosen.add(Cell(chance.choice(_fitting(kind, sites, chosen)), *kind))
    for site in sites:
        if site not in {cell.site for cell in chosen}:
            kinds = [kind for kind in KINDS if _fits(kind, site)]
            chosen.add(Cell(site, *chance.choice(kinds)))
    return tuple(cell for cell in cells(sites) if cell in chosen)


Kind = tuple[Fault, Ending, bool]
KINDS: tuple[Kind, ...] = (
    *((fault, ending, False) for fault in Fault for ending in Ending),
    *((Fault.REQUEST_LATE, ending, True) for ending in Ending),
)
"""Each fault with each ending; a late request comes before the claim, too."""


def kind_of(cell: Cell) -> Kind:
    return cell.fault, cell.ending, cell.before_claim


def _fits(kind: Kind, site: Site) -> bool:
    _, _, before_claim = kind
    return site.api in CHANGING or not before_claim


def _fitting(kind: Kind, sites: tuple[Site, ...], chosen: set[Cell]) -> list[Site]:
    """Those that have no cell yet, if there are such."""
    fitting, taken = [site for site in sites if _fits(kind, site)], {cell.site for cell in chosen}
    return [site for site in fitting if site not in taken] or fitting


def finds_a_mutation(cell: Cell) -> bool:
    """The two cells of each kind of target that `tests/proofs/chaos/mutations.md` names."""
    if cell.site.setting is not Setting.FOLLOWS or cell.ending is not Ending.GOES_ON:
        return False
    if cell.before_claim:
        return (cell.site.api, cell.site.nth) == (Api.END_TXN, 1)
    last = (cell.site.api, cell.site.nth) == (Api.TXN_OFFSET_COMMIT, 2)
    return last and cell.fault is Fault.RESPONSE_LOST


def cells(sites: tuple[Site, ...]) -> tuple[Cell, ...]:
    plain = (Cell(site, fault, ending) for site in sites for fault in Fault for ending in Ending)
    early = (
        Cell(site, Fault.REQUEST_LATE, ending, before_claim=True)
        for site in sites
        if site.api in CHANGING
        for ending in Ending
    )
    return (*plain, *early)


@dataclass(frozen=True, slots=True)
class Words:
    """How the things of one flow are written in its requests: topics by name, in fetches by id."""

    data: tuple[bytes, ...]
    map: tuple[bytes, ...]
    flows: tuple[bytes, ...]
    group: bytes
    lane: bytes

    def about(self, request: Request) -> About:
        """What it is about in the first place: the map before the data, for its records name them."""
        for about, words in ((About.MAP, self.map), (About.FLOWS, self.flows), (About.DATA, self.data)):
            if any(map(request.says, words)):
                return about
        if request.says(self.lane):
            return About.LANE
        return About.GROUP if request.says(self.group) else About.NOTHING

    def chooses(self, site: Site) -> Callable[[Request], bool]:
        return lambda request: request.head.api_key == site.api and self.about(request) is site.about
