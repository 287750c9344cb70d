"""`causeway import-mm2 FILE`: MirrorMaker 2's file becomes flows.yaml; with --adopt, its position ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causeway.cli.request import Request, deployment_of
from causeway.cli.written_files import NewFile, check_places, write_all
from causeway.core.kernel.errors import BadInput, CausewayError, ConfigError, UnknownName
from causeway.render.outcome import Outcome
from causeway.render.tables import table

if TYPE_CHECKING:
    from causeway.config.mm2_import.flow import Mm2Flow
    from causeway.config.mm2_import.importer import Mm2Import
    from causeway.usecases.takeover.run import PartitionTaken, TakenOver

PARKED = 5
_BECAUSE = "taken over from MirrorMaker 2"


def add_import(add: Any) -> None:
    importing = add(
        "import-mm2",
        import_mm2,
        "take over from MirrorMaker 2: first its file, then its positions",
        has_flow=False,
    )
    importing.add_argument(
        "properties", metavar="PROPERTIES", help="MirrorMaker 2's file, as in dedicated mode"
    )
    importing.add_argument(
        "--connections",
        metavar="PATH",
        help="write the clusters' connections to this file, with secrets (mode 600)",
    )
    importing.add_argument("--overwrite", action="store_true", help="replace files that exist")
    importing.add_argument(
        "--adopt",
        action="store_true",
        help="continue where MirrorMaker 2 stopped, on its mirrors; needs flows.yaml",
    )
    importing.add_argument("--flow", metavar="FLOW", help="with --adopt: only this flow")
    importing.add_argument("--dry-run", action="store_true", help="show what would be done; write nothing")


def import_mm2(request: Request) -> Outcome:
    from causeway.config.mm2_import.importer import read_mm2

    given = Path(request.options.properties)
    found = read_mm2(given, shown_as=request.options.properties)
    if request.options.adopt:
        return _adopt(request, found)
    if request.options.flow is not None:
        raise BadInput(
            "--flow", rule="is for --adopt: a file is taken over as a whole", remedy="leave it out"
        )
    return _write_files(request, found)


# the files


def _write_files(request: Request, found: Mm2Import) -> Outcome:
    from causeway.config.mm2_import.yaml_text import connections_env, flows_yaml

    options = request.options
    flows_file = _flows_file(request)
    text = flows_yaml(found)
    places = {"--file" if options.file else "flows.yaml": flows_file}
    files = [NewFile(flows_file, text, 0o644)]
    if options.connections is not None:
        _refuse_empty("--connections", options.connections)
        places["--connections"] = Path(options.connections)
        files.append(NewFile(Path(options.connections), connections_env(found), 0o600))
    names = [str(file.path) for file in files]
    check_places(places, may_replace=options.overwrite, inputs={"PROPERTIES": Path(options.properties)})
    if not options.dry_run:
        write_all(files)
    payload = {
        "file": found.file,
        "flows": [flow.name for flow in found.flows],
        "connections": [cluster.connection_id for cluster in found.clusters],
        "wrote": [] if options.dry_run else names,
        "flows.yaml": text,
        "keys": [{"line": f.line, "key": f.key, "fate": f.fate, "why": f.why} for f in found.fates],
    }
    lines = _import_lines(request, found, text, names)
    return Outcome(payload=payload, text="\n".join(lines))


def _flows_file(request: Request) -> Path:
    from causeway.cli.locate import find_flows_file

    if request.options.file is not None:
        _refuse_empty("--file", request.options.file)
    try:
        return find_flows_file(request.options.file, request.environ, request.directory)
    except ConfigError:
        return request.directory / "include" / "flows.yaml"


def _refuse_empty(option: str, path: str) -> None:
    if not path.strip():
        raise BadInput(option, value=path, rule="names no file", remedy="name one, or leave the option out")


def _import_lines(request: Request, found: Mm2Import, text: str, files: list[str]) -> Iterator[str]:
    from causeway.config.mm2_import.keys import Fate

    for fate in (Fate.TAKEN, Fate.HARMLESS, Fate.NOT_TAKEN):
        rows = [(each.line, each.key, each.why) for each in found.fates if each.fate is fate]
        if rows:
            yield f"{fate}:\n{table(('LINE', 'KEY', 'WHAT BECOMES OF IT'), rows)}\n"
    if request.options.dry_run:
        yield text
        yield f"nothing was written; it would be: {', '.join(files)}"
    else:
        yield f"wrote {', '.join(files)}"
    names = ", ".join(cluster.connection_id for cluster in found.clusters)
    if request.options.connections is None:
        yield (
            f"connections {names}: add --connections PATH for a file that holds them, secrets too, "
            "or make them in Airflow, of type kafka"
        )
    lacking = [c.connection_id for c in found.clusters if any(not each.is_harmless for each in c.not_here)]
    if lacking:
        yield f"look at {', '.join(lacking)} before you go on: not all of it could be taken over (above)"
    yield (
        "then: `causeway flows --connections`, stop MirrorMaker 2, "
        f"`causeway import-mm2 {request.options.properties} --adopt --dry-run`, then without --dry-run"
    )


# its position


def _adopt(request: Request, found: Mm2Import) -> Outcome:
    if request.options.connections is not None or request.options.overwrite:
        raise BadInput("--adopt", rule="writes no files", remedy="write them first, without --adopt")
    done: list[TakenOver] = []
    try:
        for ours, theirs in _both(request, found):
            done.append(_take_over(request, ours, theirs))
    except CausewayError:
        for each in done:  # what is done stays done, and is reported
            request.progress("\n".join(_taken_over_lines(each, dry_run=request.options.dry_run)))
        raise
    lines = [line for each in done for line in _taken_over_lines(each, dry_run=request.options.dry_run)]
    is_whole = not any(each.of("refused") for each in done)
    payload = {"dry_run": request.options.dry_run, "flows": [_as_dict(each) for each in done]}
    return Outcome(payload=payload, text="\n".join(lines), exit_code=0 if is_whole else PARKED)


def _both(request: Request, found: Mm2Import) -> list[tuple[str, Mm2Flow]]:
    """Flows of flows.yaml, and MirrorMaker 2's between the same clusters."""
    flows = deployment_of(request).flows
    wanted = request.options.flow
    pairs: list[tuple[str, Mm2Flow]] = []
    for theirs in found.flows:
        names = [n for n, f in flows.items() if (f.source, f.target) == (theirs.source, theirs.target)]
        if wanted is not None:
            names = [name for name in names if name == wanted]
        if len(names) > 1:
            raise BadInput(
                f"flows {', '.join(names)}",
                rule=f"all go from {theirs.source} to {theirs.target}",
                remedy="say which one takes over, with --flow",
            )
        pairs += [(name, theirs) for name in names]
    if not pairs:
        raise UnknownName(
            "flow",
            value=wanted,
            rule="no flow of flows.yaml goes between the clusters of one of MirrorMaker 2's",
            remedy=f"write it: `causeway import-mm2 {request.options.properties}`",
        )
    return pairs


def _take_over(request: Request, name: str, theirs: Mm2Flow) -> TakenOver:
    from causeway.cli.request import opened, who
    from causeway.usecases.repair.set_positions import Reason
    from causeway.usecases.takeover.run import take_over

    _, flow, source, target = opened(request, name)
    return take_over(
        flow,
        theirs.places,
        source,
        target,
        Reason(by=who(), because=_BECAUSE),
        request.progress,
        dry_run=request.options.dry_run,
    )


def _taken_over_lines(done: TakenOver, *, dry_run: bool) -> Iterator[str]:
    rows = [_taken_row(each) for each in done.partitions]
    yield table(("SOURCE", "TARGET", "COMMITTED", "GOES ON AT", "OUTCOME", "WHAT WAS FOUND"), rows)
    for topic in done.left_out:
        yield f"{done.flow}: MirrorMaker 2 has mirrored {topic}, which this flow doesn't select"
    counts = {word: len(done.of(word)) for word in ("adopted", "begins", "stands", "refused")}
    summary = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    yield f"{done.flow}: {summary or 'there is nothing to take over'}{' (dry run)' if dry_run else ''}"


def _taken_row(each: PartitionTaken) -> tuple[object, ...]:
    at = each.candidate
    goes_on = "" if each.source_next < 0 else each.source_next
    return (str(at.pair.source), str(at.pair.target), at.committed, goes_on, str(each.outcome), _found(each))


def _found(each: PartitionTaken) -> str:
    place = each.place
    if place is None:
        return each.why
    parts = [f"by {place.told_by}", f"{place.compared:,} records compared"]
    committed = -1 if each.candidate.committed is None else each.candidate.committed
    if place.last is not None and place.last.source_offset > committed:
        parts.append(f"written up to {place.last.source_offset}, after the last commit")
    if place.repeated:
        parts.append(f"{place.repeated:,} are there twice, by MirrorMaker 2")
    if place.lost:
        parts.append(f"{place.lost:,} that were committed are not there: copied again")
    return "; ".join(parts)


def _as_dict(done: TakenOver) -> dict[str, object]:
    return {
        "flow": done.flow,
        "generation": done.generation,
        "left_out": list(done.left_out),
        "partitions": [
            {
                "source": str(each.candidate.pair.source),
                "target": str(each.candidate.pair.target),
                "committed": each.candidate.committed,
                "source_offset": each.source_next if each.source_next >= 0 else None,
                "target_offset": each.candidate.extent.target_end,
                "outcome": str(each.outcome),
                "compared": each.place.compared if each.place else 0,
                "repeated": each.place.repeated if each.place else 0,
                "why": _found(each),
            }
            for each in done.partitions
        ],
    }
