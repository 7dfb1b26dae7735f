"""A results folder with three studies, and the commands that read it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.store import (
    FINAL_SUFFIX,
    ResultsStore,
    StoreError,
    WarmStartRecord,
    WarmTrialRecord,
    open_location,
    save_study,
)
from tests.fuzz.harness import ALLOWED, Ended, contents, fuzz
from tests.studies import STUDY, PlannedStudy, Run, WrittenStudy, make_final_record, scored, small_plan

OTHER = "other"
FINAL = STUDY + FINAL_SUFFIX
TRIALS = 10
PAGE_EVERY = 10
"""Pages take the longest: one of so many readable damages is read by a command that writes one."""

Command = list[object]

_FINAL_METRICS = ("train.loss", "test.accuracy", "test.colour_mse", "test.untrained_accuracy")


def write_studies(results: Path) -> None:
    """Write a search with a warm start, its final runs, and another search."""
    plan = small_plan(results, trials=TRIALS, metric="accuracy,colour_mse")
    taken = WarmTrialRecord(
        values=plan.space.defaults(), state="completed", epochs={2: 0.5}, value=(0.5, 90.0)
    )
    record = plan.record()
    record = record.with_search(warm_start=WarmStartRecord(studies=("older",), trials=(taken,)), seeds=1)
    location = open_location(results, writable=True)
    save_study(location, record)
    ends = ["completed"] * (TRIALS - 3) + ["stopped", "failed", "running"]
    draws = random.Random(0)
    PlannedStudy(plan).write(*(_run(end, draws) for end in ends))
    WrittenStudy(location, plan.record().model_copy(update={"name": OTHER})).write()
    final = make_final_record(
        FINAL,
        metrics=_FINAL_METRICS,
        created=record.created,
        experiment=record.experiment.model_dump(mode="json"),
        columns={"hyperparameters": record.columns.hyperparameters, "metrics": _FINAL_METRICS},
    )
    scores = {"test.accuracy": 0.6, "test.colour_mse": 90.0, "test.untrained_accuracy": 0.5}
    values = plan.space.defaults()
    runs = (Run(0, seed, values, {2: scores}, final=scores, phase="final", config="c") for seed in (1, 2))
    WrittenStudy(location, final).write(*runs)


def _run(end: str, draws: random.Random) -> Run:
    last = draws.uniform(0.4, 0.8)
    values = {"temperature": draws.uniform(0.06, 0.9), "optimizer.lr": draws.uniform(0.02, 0.2)}
    error = "the loss is nan" if end == "failed" else None
    return scored((0.3, 0.4, last), end, values=values, colour=draws.uniform(50, 150), error=error)


@dataclass
class Reader:
    """Runs the commands that read the studies, and checks how they end and that they change nothing.

    Attributes:
        results: the results folder.
        work: where the commands write.
    """

    results: Path
    work: Path

    def check(self, case: str, number: int) -> None:
        """Read the studies after a damage: some of the commands, others with each `number`.

        Where the record of the study is refused, every command must refuse it with the same words.
        """
        before = contents(self.results)
        if number % 3 == 0:
            listed = self._run(["studies", "--json"], case, allowed=[0])
            assert f'"{OTHER}"' in listed.out, f"{case}\n{listed.out}\n{listed.err}"
        refused = self._refusal()
        if refused is not None:
            ended = self._run(_turn(self.refusing(), number), case, allowed=[2])
            assert ended.error == refused, f"{case}\n{refused}\n{ended.err}"
            assert not self._not_written.exists()
        else:
            self._run(_turn(self._reading(), number), case)
            if number % PAGE_EVERY == 0:
                self._run(_turn(self._pages(), number // PAGE_EVERY), case)
            assert "\n" not in self._resumed(), case
        assert contents(self.results) == before, case

    @property
    def _not_written(self) -> Path:
        return self.work / "refused.yaml"

    def _refusal(self) -> str | None:
        try:
            ResultsStore(self.results).study(STUDY)
        except StoreError as error:
            return str(error)
        return None

    def _resumed(self) -> str:
        """Do what `sweep --resume` does before it starts Ray; return why it refuses."""
        store = ResultsStore(self.results)
        record = store.study(STUDY)
        try:
            tables = store.tables(STUDY)
            plan = plan_of(record, str(self.results))
            refuse_difference(plan, record, Expected(method="fair-cclk"))
            past = past_trials(trial_outcomes(tables.trials, record), tables.epochs, record)
            plan.new_study().restore(past)
        except InputError as error:
            return str(error)
        return ""

    def refusing(self) -> list[Command]:
        """Return the commands that must refuse a study whose record cannot be read."""
        page = self.work / "refused.html"
        return [
            ["show", STUDY],
            ["best", STUDY, "-o", self._not_written],
            ["report", STUDY, "-o", page],
            ["sensitivity", STUDY, "-o", page],
            ["run", STUDY],
            ["compact", STUDY],
            ["sweep", "fair-cclk", "--name", STUDY, "--resume"],
        ]

    def _reading(self) -> list[Command]:
        return [["show", STUDY], ["best", STUDY, "-o", self.work / "best.yaml"], ["show", FINAL]]

    def _pages(self) -> list[Command]:
        page = self.work / "page.html"
        return [
            ["report", STUDY, "-o", page, "--rows", self.work / "rows"],
            ["sensitivity", STUDY, "-o", page],
            ["report", STUDY, OTHER, "-o", page],
            ["show", STUDY, "--plot", self.work / "plot.png"],
            ["best", STUDY, "--top", "20", "--where", "accuracy>0"],
        ]

    def _run(self, command: Command, case: str, allowed: Sequence[int] = ALLOWED) -> Ended:
        return fuzz(*command, "--results", self.results, allowed=allowed, case=case)


def _turn(commands: Sequence[Command], number: int) -> Command:
    return commands[number % len(commands)]
