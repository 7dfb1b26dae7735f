"""Contrasweep and what users run instead of it, on recorded learning curves, in simulated time.

    python -m benchmarks.peers [--seeds 20] [--trials 40] [--workers 2 8 64] [--recordings NAME ...]
        [--searches NAME ...] [--trees] [--earlier] [--keep FILE]
    python -m benchmarks.peers --peer-settings

The curves in `benchmarks/recorded` are of random configurations that were never stopped. Contrasweep and its
peers (`benchmarks.peers.contestants`) come as they are, and get the same epochs: those of `--trials` trials
that are not stopped, or of two for each trial at once if these are more. What a configuration scores that
nobody ran is predicted by the Gaussian process of `tuning.replay`, or with `--trees` by a forest, whose
scores jump: a search that models smooth scores has no advantage there.

`--earlier` lets all of them begin with what `--warm-start` begins with: the best configurations of a random
search of the same method on another dataset (`benchmarks/recorded/earlier`); recordings without one are left
out. `--keep docs/peers.parquet` keeps what `benchmarks.peers.page` shows. With `--searches`, ranks are among
those alone, so they are kept in a file of their own. `--peer-settings` compares the peers with themselves
under other schedulers.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import optuna
from sklearn.ensemble import ExtraTreesRegressor

from benchmarks.peers.contestants import PEER_SETTINGS, PEERS, Configuration, PeerOf
from benchmarks.peers.records import OURS, Record, Setting, Surrogate, keep, read
from contrasweep.names import did_you_mean
from contrasweep.search_spaces import Space
from contrasweep.tuning.planning.enqueued import whole_configurations
from contrasweep.tuning.planning.request import usual_scheduler
from contrasweep.tuning.planning.warm_start import MOST_FIRST
from contrasweep.tuning.replay.comparison import SHARES, SearchOf, compare
from contrasweep.tuning.replay.recording import Recording, read_recording
from contrasweep.tuning.replay.request import settings_of
from contrasweep.tuning.replay.searches import searches_of
from contrasweep.tuning.replay.simulation import Search
from contrasweep.tuning.replay.table import said_of
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.search.axes import values_of
from contrasweep.tuning.statistics import Floats

RECORDED = Path(__file__).parents[1] / "recorded"
EARLIER = {
    "cacr-colour-digits": "cacr-digits",
    "fair-cclk-colour-digits": "fair-cclk-colormnist",
    "infonce-colormnist": "infonce-colour-digits",
}
"""A search of the same method on another dataset, by recording."""


def contestants(at_once: int, first: Sequence[Configuration] = ()) -> Mapping[str, SearchOf]:
    """Return contrasweep as it comes and otherwise, its peers, and random search with and without ASHA.

    Args:
        at_once: trials at once, by which contrasweep chooses its scheduler.
        first: runs after the defaults, before what a search proposes.
    """
    default, scheduler = settings_of("curves", f"{usual_scheduler('curves', ['score'], at_once)},curves")
    (tpe,), (stopping, plain) = settings_of("tpe", "asha"), settings_of("random", "asha,none")
    own = searches_of((default, tpe, scheduler, stopping, plain), first)
    return {
        **dict(zip(OURS, (own[one.name] for one in (default, tpe, scheduler)), strict=True)),
        **begun_peers(PEERS, first),
        "random, ASHA": own[stopping.name],
        "random": own[plain.name],
    }


def begun_peers(peers: Mapping[str, PeerOf], first: Sequence[Configuration]) -> Mapping[str, SearchOf]:
    """Return peers by name, each of which begins with the defaults and with `first`."""

    def peer(of: PeerOf, workload: Workload, seed: int) -> Search:
        return of(workload.recording.space, workload.recording.epochs, seed, first=first)

    return {name: partial(peer, of) for name, of in peers.items()}


def best_elsewhere(recording: str, space: Space) -> list[Configuration]:
    """Return the configurations that `--warm-start` would run first, from a search on another dataset."""
    earlier = read_recording(RECORDED / "earlier" / f"{EARLIER[recording]}.parquet")
    best_first = np.argsort(-earlier.scores[:, -1], kind="stable")
    given = [values_of(earlier.axes, earlier.codes[place]) for place in best_first]
    defaults, *found = whole_configurations([{}, *given], space)
    return [one for one in found if one != defaults][:MOST_FIRST]


class Trees:
    """A surrogate in place of `replay.surrogate`: extremely randomised trees (Geurts et al. 2006)."""

    def __init__(self, recording: Recording) -> None:
        self._trees = ExtraTreesRegressor(200, min_samples_leaf=2, random_state=0)
        self._trees.fit(recording.columns, recording.spread_out(recording.scores))

    def predict(self, columns: Floats) -> Floats:
        return np.asarray(self._trees.predict(columns))


def print_peers(
    seeds: int,
    workers: list[int],
    trials: int,
    only: list[str],
    recordings: list[str],
    *,
    trees: bool,
    earlier: bool,
    peer_settings: bool,
    kept_in: Path | None,
) -> None:
    for name in recordings:
        workload = Workload.of(read_recording(RECORDED / f"{name}.parquet"))
        epochs = workload.recording.epochs
        first = best_elsewhere(name, workload.recording.space) if earlier else []
        surrogate = Surrogate.of(workload)
        print(f"\n{name}: {said_of(workload)}\n")
        if trees:
            workload = replace(workload, surrogate=Trees(workload.recording))  # type: ignore[arg-type]
        print("| workers | epochs | search | " + " | ".join(f"{share:.0%}" for share in SHARES), end="")
        print(" | mean rank | epochs to the best peer's end |\n|---|---|---|---|---|---|---|---|")
        for at_once in workers:
            everyone = begun_peers(PEER_SETTINGS, first) if peer_settings else contestants(at_once, first)
            searches = {one: of for one, of in everyone.items() if not only or one in only}
            # With fewer, many workers would share the budget before any trial has trained to its end.
            budget = max(trials, 2 * at_once) * epochs
            found = compare(searches, workload, workers=at_once, budget=budget, seeds=seeds)
            setting = Setting(name, at_once, budget, earlier)
            records = [Record.of(setting, surrogate, one) for one in found]
            for line in _rows(records):
                print(f"| {at_once} | {budget} | {line} |", flush=True)
            if kept_in is not None:
                keep(kept_in, records)


def _rows(records: Sequence[Record]) -> list[str]:
    best_peer = max((one.score[-1] for one in records if one.search in PEERS), default=math.inf)
    lines = []
    for one in records:
        scores = [one.after(share) for share in SHARES]
        epochs = one.epochs_to_reach(best_peer)
        cells = [
            one.search,
            *(f"{100 * mean:.1f} ± {100 * half:.1f}" for mean, half in scores),
            f"{one.rank:.2f} ({one.rank - one.rank_half:.2f} to {one.rank + one.rank_half:.2f})",
            "not reached" if epochs is None else f"{epochs:.0f}",
        ]
        lines.append(" | ".join(cells))
    return lines


def given_words() -> argparse.Namespace:
    """Return the words of the command, checked."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--searches", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8, 64])
    recorded = sorted(path.stem for path in RECORDED.glob("*.parquet"))
    parser.add_argument("--recordings", nargs="+", choices=recorded, default=recorded, metavar="NAME")
    parser.add_argument("--trees", action="store_true")
    parser.add_argument("--earlier", action="store_true")
    parser.add_argument("--peer-settings", action="store_true")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error("--seeds takes 2 or more: every mean has an interval")
    if min(given.trials, *given.workers) < 1:
        parser.error("--trials and --workers take 1 or more")
    known = PEER_SETTINGS if given.peer_settings else contestants(1)
    for name in given.searches:
        if name not in known:
            allowed = ", ".join(map(repr, known))
            parser.error(f"--searches: given {name!r}.{did_you_mean(name, known)} Allowed: {allowed}")
    if given.keep is not None and given.trees:
        parser.error("--keep keeps searches on the Gaussian process: no --trees")
    if given.keep is not None and given.peer_settings:
        parser.error("--keep keeps searches beside ours: no --peer-settings")
    others = {one.search for one in read(given.keep)} if given.keep and given.keep.exists() else set()
    if given.searches and others - set(given.searches):
        parser.error(f"{given.keep} holds other searches; give --keep another file")
    if given.earlier:
        given.recordings = [name for name in given.recordings if name in EARLIER]
    if not given.recordings:
        parser.error(f"--earlier: no earlier search is recorded for these; allowed: {', '.join(EARLIER)}")
    return given


def main() -> None:
    given = given_words()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    chosen = given.workers, given.trials, given.searches, given.recordings
    kinds = {"trees": given.trees, "earlier": given.earlier, "peer_settings": given.peer_settings}
    print_peers(given.seeds, *chosen, **kinds, kept_in=given.keep)


if __name__ == "__main__":
    main()
