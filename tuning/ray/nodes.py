"""What trials need of a node: packages, plug-ins, the results folder, the dataset, the file of weights.

All nodes are asked before any trial. A node that comes later is asked when its first trial begins there; if
not even our code can be imported there, the driver asks all nodes again (`lacking_anywhere`).
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError, RuntimeEnvSetupError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from contrasweep.data import DatasetMissing, Share, check_available, take_share
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning.plugin_changes import refuse_absent_behind
from contrasweep.tuning.planning.weights import refuse_other_file
from contrasweep.tuning.provenance import plugins_by_addition
from contrasweep.tuning.ray.watch import last_line
from contrasweep.tuning.store import Location, StoreUnavailable
from contrasweep.tuning.store.filesystem import ONCE
from contrasweep.tuning.store.layout import heartbeat_path
from contrasweep.tuning.trials.trial import TrialRequest

ANSWER_SECONDS = 300.0
"""How long the nodes may take to answer: a node that is new starts processes and imports torch first."""

IMPORTED = ("contrasweep.tuning.ray.worker", "contrasweep.tuning.ray.final_worker")
"""The modules of what Ray runs on a node: it must have all packages that they import."""


class NodeLacks(StoreUnavailable):
    """A node lacks what a trial needs. The trial is not at fault: it can go on where nothing is lacking."""


def live_nodes() -> list[dict[str, Any]]:
    """Return Ray's description of each living node of the cluster that this process is connected to."""
    found: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return [node for node in found if node["Alive"]]


@dataclass(frozen=True)
class Needs:
    """What a worker must find on its node.

    Attributes:
        location: the results folder.
        experiment: names the plug-ins, the dataset, and the encoder's file of weights.
        versions: those of the study's record, which say what each plug-in adds.
        data_root: the folder of the datasets.
    """

    location: Location
    experiment: Experiment
    versions: Mapping[str, str]
    data_root: Path | None


Answer = str | RayError | None
"""What `complaint_about` says on a node, or why no process there could say it."""

Ask = Callable[[Needs, str], dict[str, Answer]]
"""Ask every node; return the answers by the nodes' names."""


def refuse_blind_nodes(needs: Needs, ask: Ask | None = None) -> None:
    """Refuse a cluster in which a node lacks what trials need, or does not answer.

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
    blind = [f"node {name}: {_in_words(answer)}" for name, answer in found.items() if answer is not None]
    if blind:
        raise InputError(f"not every node can run trials. {'; '.join(blind)}")


def lacking_anywhere(needs: Needs, study: str, ask: Ask | None = None) -> str | None:
    """Return which node lacks what trials of a running study need, and what; None if none is known to.

    A worker that starts on a node without torch, say, cannot tell: it dies before our code is imported. To be
    asked when a worker has died before it began. A node that died meanwhile, or is silent, lacks nothing.
    """
    found = (ask or _ask_all)(needs, heartbeat_path(study))
    return next((_refusal(name, told) for name, told in found.items() if isinstance(told, str)), None)


def complaint_about(needs: Needs, marker: str) -> str | None:
    """Return what this node lacks; None if it has all, and finds the file `marker` in the results folder."""
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
        refuse_absent_behind(needs.experiment, plugins_by_addition(needs.versions))
        check_available(needs.experiment.dataset, needs.data_root)
        refuse_other_file(needs.experiment.encoder)
    except (InputError, DatasetMissing) as error:
        return str(error)
    return None


def _look(needs: Needs, marker: str) -> str | None:
    """Return what this node lacks; raise ImportError if it is a package."""
    for module in IMPORTED:
        import_module(module)
    return complaint_about(needs, marker)


def _ask_all(needs: Needs, marker: str) -> dict[str, Answer]:
    nodes = [node for node in live_nodes() if node["Resources"].get("CPU")]
    # One retry: a worker that dies at its start, on a full machine, says nothing about its node.
    remote: Any = ray.remote(num_cpus=0, max_retries=1)(_look)
    asked = {
        node["NodeID"]: remote.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote(needs, marker)
        for node in nodes
    }
    ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWER_SECONDS)
    answers = {node: _answer(reference) for node, reference in asked.items()}
    there = {node["NodeID"] for node in live_nodes()}  # a node that has left meanwhile gets no trials
    return {
        f"{node['NodeManagerAddress']} ({node['NodeID'][:6]})": answers[node["NodeID"]]
        for node in nodes
        if node["NodeID"] in there
    }


def _answer(reference: Any) -> Answer:
    try:
        answer: str | None = ray.get(reference, timeout=0)
    except (RayTaskError, RuntimeEnvSetupError) as error:
        return f"contrasweep cannot be used there: {last_line(str(error))}"
    except RayError as error:
        return error
    return answer


def _in_words(answer: str | RayError) -> str:
    if isinstance(answer, GetTimeoutError):
        return f"it did not answer within {ANSWER_SECONDS:g} s"
    if isinstance(answer, RayError):
        return f"a worker died there before it could look ({type(answer).__name__})"
    return answer


def _refusal(name: str, complaint: str) -> str:
    return f"node {name} cannot run trials: {complaint}"


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
    return Needs(request.location, request.experiment, request.study.versions, request.data_root)


def refuse_this_node(request: TrialRequest) -> None:
    """Refuse to run a trial in this process if its node lacks what the trial needs.

    The study's heartbeat is the marker: its driver wrote it before any trial began.

    Raises:
        NodeLacks: names the node, and what it lacks.
    """
    complaint = complaint_about(needs_of(request), heartbeat_path(request.study.name))
    if complaint is not None:
        address: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        raise NodeLacks(_refusal(address, complaint))


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
