"""Whether the nodes of a cluster can see what trials need: the results folder and the dataset."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import NodeDiedError, TaskUnschedulableError, WorkerCrashedError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from contrasweep.data import DatasetMissing
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.objectives.datasets import check_files
from contrasweep.tuning.ray.cluster import live_nodes
from contrasweep.tuning.store import Location
from contrasweep.tuning.store.filesystem import ONCE


@dataclass(frozen=True)
class Needs:
    """What a worker needs to find where it runs."""

    location: Location
    dataset: str
    data_root: Path | None


Ask = Callable[[Needs, str], dict[str, str | None]]
"""Of every node, by its name, what `complaint_about` says there."""


def refuse_blind_nodes(needs: Needs, ask: Ask | None = None) -> None:
    """Refuse a cluster with a node that cannot see what the driver sees.

    Raises:
        InputError: it names the nodes, and what each lacks.
        OSError: the results folder cannot be written.
    """
    marker = f"_seen-{uuid.uuid4().hex[:12]}"
    needs.location.write(marker, b"")
    try:
        found = (ask or _ask_all)(needs, marker)
    finally:
        needs.location.delete(marker)
    blind = [f"{node}: {complaint}" for node, complaint in found.items() if complaint is not None]
    if blind:
        raise InputError(f"not every node can run trials. {'; '.join(blind)}")


def complaint_about(needs: Needs, marker: str) -> str | None:
    """Return what this node lacks, or None: it finds the marker in the results folder, and the dataset."""
    location = replace(needs.location, retry=ONCE)
    try:
        location.read(marker)
    except OSError as error:
        why = "a local folder of another machine" if isinstance(error, FileNotFoundError) else str(error)
        return (
            f"the results folder {location.uri} cannot be seen from there ({why}); "
            "use s3://, or a folder on shared storage"
        )
    try:
        check_files(needs.dataset, needs.data_root)
    except (InputError, DatasetMissing) as error:
        return str(error)
    return None


def _ask_all(needs: Needs, marker: str) -> dict[str, str | None]:
    nodes = [node for node in live_nodes() if node["Resources"].get("CPU")]
    # Asked again once: a worker that dies as it starts, on a full machine, says nothing about its node.
    remote: Any = ray.remote(num_cpus=0, max_retries=1)(complaint_about)
    asked = {
        node["NodeID"]: remote.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote(needs, marker)
        for node in nodes
    }
    answers = {node: _answer(reference) for node, reference in asked.items()}
    there = {node["NodeID"] for node in live_nodes()}  # one that left meanwhile takes no trials
    return {
        f"node {node['NodeManagerAddress']} ({node['NodeID'][:6]})": answers[node["NodeID"]]
        for node in nodes
        if node["NodeID"] in there
    }


def _answer(reference: Any) -> str | None:
    try:
        answer: str | None = ray.get(reference)
    except (NodeDiedError, TaskUnschedulableError, WorkerCrashedError) as error:
        return f"a worker died there before it could look ({type(error).__name__})"
    return answer
