"""What workers are asked to run: a trial of a plan as a request that can be sent."""

from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.search import Proposal
from contrasweep.tuning.store import Location, StudyRecord, WarmStartRecord
from contrasweep.tuning.trials.trial import TrialRequest


def without_earlier_studies(record: StudyRecord) -> StudyRecord:
    """Return the record without the trials of a warm start: only the search needs them.

    They may be a megabyte, and each request has the record.
    """
    lean = record.require_search().model_copy(update={"warm_start": WarmStartRecord()})
    return record.model_copy(update={"search": lean})


def request_of(plan: SweepPlan, record: StudyRecord, location: Location, proposal: Proposal) -> TrialRequest:
    """Return what a worker is asked to run.

    Args:
        plan: the plan of the sweep.
        record: what workers get of its study's record.
        location: the results folder.
        proposal: the trial.

    Raises:
        InputError: the values of the trial give no experiment.
    """
    return TrialRequest(
        location=location,
        study=record,
        trial=proposal.number,
        experiment=plan.experiment_of(proposal.values),
        values=proposal.values,
        flush_at=frozenset(plan.rungs),
        data_root=plan.data_root,
        cpus=plan.resources.cpus,
        seeds=plan.search.seeds,
        workers=plan.resources.workers,
        gpus=plan.resources.gpus,
        keeps_encoder=plan.search.keep_weights > 0,
    )
