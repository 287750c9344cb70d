"""Texts of flows.yaml, no longer than they have to be."""

from __future__ import annotations

from collections.abc import Sequence


def flows_yaml(*flows: str, clusters: Sequence[str] = ("sf", "nyc")) -> str:
    """Each flow in one line, `NAME: {...}`; each cluster with a connection that is called after it."""
    lines = ["clusters:", *(f"  {name}: {{connection: kafka_{name}}}" for name in clusters)]
    return "\n".join([*lines, "flows:", *(f"  {flow}" for flow in flows), ""])


ONE_FLOW = flows_yaml("sf_to_nyc: {source: sf, target: nyc, topics: [orders]}")
