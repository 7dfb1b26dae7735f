"""The first section: what a study says about its parameters, in a few sentences."""

from collections.abc import Iterator, Sequence

from contrasweep.tuning.reports.page import Section
from contrasweep.tuning.sensitivity.analyse import StageSensitivity, StudySensitivity
from contrasweep.tuning.sensitivity.effects import Effect
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import RungFidelity


def summary_section(one: StudySensitivity) -> Section:
    """Return the section that opens a study's page."""
    return Section("In short", "\n\n".join(summary(one)))


def summary(one: StudySensitivity) -> list[str]:
    """Return what can be said of a study: at the first stage and at the latest, and what is open."""
    told = [stage for stage in one.stages if _told(stage)]
    ends = told[:1] + told[1:][-1:]
    return [*(_stage(one, stage) for stage in ends), *_foretold(one), *_lacking(one), *_turned(one)]


def _turned(one: StudySensitivity) -> Iterator[str]:
    """Yield why scores have a minus sign, where the page turns a metric."""
    names = dict.fromkeys((one.observations.metric, one.observations.rung_metric))
    turned = [name.removeprefix("-") for name in names if name.startswith("-")]
    if turned:
        yield (
            f"Smaller values of {_listed(turned)} are better. This page turns their sign, so that larger "
            "scores are better everywhere."
        )


def _told(stage: StageSensitivity) -> bool:
    return not isinstance(stage.effects, TooFew)


def _stage(one: StudySensitivity, stage: StageSensitivity) -> str:
    found = () if isinstance(stage.effects, TooFew) else stage.effects
    sure, perhaps = ([e for e in found if e.verdict == verdict] for verdict in ("matters", "may matter"))
    metric = stage.stage.metric
    if sure:
        said = f"{metric} depends on {_named(sure)}"
        said += f", perhaps on {_listed([e.parameter for e in perhaps])}" if perhaps else ""
        said += "; the others show no evidence" if any(e.verdict == "no evidence" for e in found) else ""
    elif perhaps:
        said = (
            f"{metric} may depend on {_named(perhaps)}, but this may be chance among {len(found)} parameters"
        )
    else:
        said = f"no parameter shows evidence of an effect on {metric}"
    return f"At {stage.stage.name}, {_reached(one, stage)}, {said}."


def _reached(one: StudySensitivity, stage: StageSensitivity) -> str:
    trials = stage.stage.known
    estimated = 0 if isinstance(trials, TooFew) else int(trials.estimated.sum())
    reached, everyone = stage.stage.reached, len(one.observations.trial)
    said = (
        f"which all {everyone} trials reached"
        if reached == everyone
        else f"which {reached} of {everyone} trials reached"
    )
    return f"{said} ({estimated} more have estimated scores)" if estimated else said


def _named(effects: Sequence[Effect]) -> str:
    first, *others = sorted(effects, key=lambda e: -e.share)
    beyond = f"{first.parameter} ({100 * first.share:.0f} % of its variance beyond what the others explain)"
    return _listed([beyond, *(f"{e.parameter} ({100 * e.share:.0f} %)" for e in others)])


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def _foretold(one: StudySensitivity) -> Iterator[str]:
    """Yield how well the first rung predicts the latest stage of which anything is known."""
    if not isinstance(one.fidelity, TooFew) and one.fidelity.links:
        first = one.fidelity.links[0].epoch
        yield _link_line([link for link in one.fidelity.links if link.epoch == first][-1])


def _link_line(link: RungFidelity) -> str:
    numbers = (
        f"rank correlation {link.estimated:.2f} (95 %: {link.estimated_low:.2f} to "
        f"{link.estimated_high:.2f}) over all trials, estimated from the {link.trials} that reached both"
    )
    if link.verdict == "too few to tell":
        return f"It is unclear how well epoch {link.epoch} predicts {link.later_name}: {numbers}."
    how = "well" if link.verdict == "safe" else "badly"
    return f"Epoch {link.epoch} predicts {link.later_name} {how}: {numbers}."


def _lacking(one: StudySensitivity) -> Iterator[str]:
    lacking = [stage for stage in one.stages if not _told(stage)]
    if len(one.stages) == 1 and lacking:
        yield f"Which parameters matter: {one.end.forest.surrogate}."
    elif lacking:
        reasons: dict[str, list[str]] = {}
        for stage in lacking:
            reasons.setdefault(_lack(stage.forest.surrogate), []).append(stage.stage.name)
        open_still = "; at ".join(f"{_listed(names)} ({lack})" for lack, names in reasons.items())
        yield f"Too few to tell what matters at {open_still}."


def _lack(lack: object) -> str:
    return lack.lack if isinstance(lack, TooFew) else ""
