"""What trials need of a node: the results folder, the dataset, the file of weights.

All nodes are asked before any trial. A node that comes later is asked when its first trial begins there.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import ray
from ray.exceptions import NodeDiedError, TaskUnschedulableError, WorkerCrashedError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from contrasweep.data import DatasetMissing, Share, check_available, take_share
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import EncoderSettings
from contrasweep.tuning.planning.weights import refuse_other_file
from contrasweep.tuning.store import Location, StoreUnavailable
from contrasweep.tuning.store.filesystem import ONCE
from contrasweep.tuning.store.layout import heartbeat_path
from contrasweep.tuning.trials.trial import TrialRequest


class NodeLacks(StoreUnavailable):
    """A node lacks what a trial needs. The trial is not at fault: it can go on where nothing is lacking."""


def live_nodes() -> list[dict[str, Any]]:
    """Return Ray's description of each living node of the cluster that this process is connected to."""
    found: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in found if node["Alive"]]


@dataclass(frozen=True)
class Needs:
    """What a worker must find on its node: the results folder, the dataset, the encoder's file of weights."""

    location: Location
    dataset: str
    data_root: Path | None
    encoder: EncoderSettings = field(default_factory=EncoderSettings)


Ask = Callable[[Needs, str], dict[str, str | None]]
"""Ask every node; return the answer of `complaint_about` there, by the node's name."""


def refuse_blind_nodes(needs: Needs, ask: Ask | None = None) -> None:
    """Refuse a cluster in which a node cannot see the results folder or the dataset.

    Raises:
        InputError: names the nodes, and what each of them lacks.
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
    """Return what this node lacks, or None if it finds the marker in the results folder, and the dataset."""
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
        check_available(needs.dataset, needs.data_root)
        refuse_other_file(needs.encoder)
    except (InputError, DatasetMissing) as error:
        return str(error)
    return None


def _ask_all(needs: Needs, marker: str) -> dict[str, str | None]:
    nodes = [node for node in live_nodes() if node["Resources"].get("CPU")]
    # One retry: a worker that dies at its start, on a full machine, says nothing about its node.
    remote: Any = ray.remote(num_cpus=0, max_retries=1)(complaint_about)
    asked = {
        node["NodeID"]: remote.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote(needs, marker)
        for node in nodes
    }
    answers = {node: _answer(reference) for node, reference in asked.items()}
    there = {node["NodeID"] for node in live_nodes()}  # a node that has left meanwhile gets no trials
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


def take_share_of_node(gpus: float) -> None:
    """Take this process's share of the cores and the GPUs of its node; without a GPU there is none to take.

    `gpus` is the worker's part of a GPU. The node's GPUs are counted by Ray: torch sees the worker's only.
    """
    if gpus:
        here = ray.get_runtime_context().get_node_id()
        there = (node["Resources"].get("GPU") for node in live_nodes() if node["NodeID"] == here)
        take_share(Share(gpus, next(there, None)))


def needs_of(request: TrialRequest) -> Needs:
    """Return what a trial needs of its node."""
    experiment = request.experiment
    return Needs(request.location, experiment.dataset, request.data_root, experiment.encoder)


def refuse_this_node(request: TrialRequest) -> None:
    """Refuse to run a trial in this process if its node lacks what the trial needs.

    The study's heartbeat is the marker: its driver wrote it before any trial began.

    Raises:
        NodeLacks: names the node, and what it lacks.
    """
    complaint = complaint_about(needs_of(request), heartbeat_path(request.study.name))
    if complaint is not None:
        address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        raise NodeLacks(f"node {address} cannot run trials: {complaint}")


class TrialNowhere:
    """Stands for a trial that its node cannot run; a worker treats it as a `Trial`."""

    def __init__(self, why: NodeLacks) -> None:
        self._why = why

    def advance(self) -> NoReturn:
        """Raise what the node lacks."""
        raise self._why

    def close(self) -> None:
        """Do nothing: no file is open."""


def trial_nowhere(request: TrialRequest) -> TrialNowhere | None:
    """Return what stands for a trial that this node cannot run; None if it can."""
    try:
        refuse_this_node(request)
    except NodeLacks as error:
        return TrialNowhere(error)
    return None
