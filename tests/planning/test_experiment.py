import math
import pickle
from typing import Any

import pytest
from pydantic import ValidationError

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment, parse_experiment, setting_names

BASE = Experiment(
    method="infonce", dataset="digits", hyperparameters={"temperature": 0.1, "negatives": "all"}
)


def _refused(content: object) -> str:
    with pytest.raises(InputError) as refused:
        parse_experiment(content)
    return str(refused.value)


def _with(**settings: Any) -> dict[str, Any]:
    return {"method": "infonce", "dataset": "digits", **settings}


@pytest.mark.parametrize(
    ("settings", "given", "nearest"),
    [
        ({"optimiser": {}}, "'optimiser'", "optimizer'"),
        ({"epoch": 3}, "'epoch'", "epochs'"),
        ({"optimizer": {"learning_rate": 1}}, "'optimizer.learning_rate'", "lr'"),
        ({"optimizer": {"weight_decy": 1}}, "'optimizer.weight_decy'", "weight_decay'"),
        ({"views": {"mincrop": 0.1}}, "'views.mincrop'", "min_crop'"),
        ({"encoder": {"nme": "lenet5"}}, "'encoder.nme'", "name'"),
        ({"head": {"widht": 3}}, "'head.widht'", "width'"),
        ({"schedule": {"warmup": 1}}, "'schedule.warmup'", "warmup_epochs'"),
        ({"validation": {"fration": 0.1}}, "'validation.fration'", "fraction'"),
        ({"probes": {"max_step": 3}}, "'probes.max_step'", "max_steps'"),
    ],
)
def test_an_unknown_key_at_any_level_is_named_with_its_nearest(
    settings: dict[str, Any], given: str, nearest: str | None
) -> None:
    message = _refused(_with(**settings))
    assert f"unknown setting {given}" in message
    assert "Known there: " in message
    assert ("Did you mean" in message) == (nearest is not None)
    if nearest is not None:
        assert nearest in message.split("Did you mean ")[1].split("?")[0]


def test_every_unknown_key_is_named() -> None:
    message = _refused(_with(epoch=3, optimizer={"rate": 1}))
    assert "'epoch'" in message
    assert "'optimizer.rate'" in message


@pytest.mark.parametrize("missing", ["method", "dataset"])
def test_what_has_to_be_said_is_asked_for(missing: str) -> None:
    content = _with()
    del content[missing]
    assert _refused(content) == f"setting {missing!r} is missing"


def test_a_word_that_is_not_allowed_is_told_with_those_that_are_and_the_nearest() -> None:
    allowed = "must be 'lars', 'larc', 'sgd', 'adam' or 'adamw', given 'adamm'. Did you mean 'adam'?"
    assert _refused(_with(optimizer={"name": "adamm"})) == f"setting 'optimizer.name': {allowed}"


@pytest.mark.parametrize("content", [None, [], "infonce", 3])
def test_only_a_mapping_describes_an_experiment(content: object) -> None:
    assert "mapping of settings" in _refused(content)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("method", 3),
        ("epochs", 0),
        ("epochs", 2.5),
        ("epochs", "many"),
        ("epochs", None),
        ("epochs", True),
        ("batch_size", 1),
        ("seed", 0.5),
        ("seed", -1),  # the store numbers replicates from 0
        ("views.min_crop", 0.0),
        ("views.min_crop", 1.2),
        ("views.min_crop", math.nan),
        ("views.max_crop", math.inf),
        ("views.flip", -0.1),
        ("views.flip", 1.1),
        ("optimizer.name", "adamax"),
        ("optimizer.ema", 1.0),
        ("optimizer.clip_norm", -1.0),
        ("optimizer.decay_norm_and_bias", 0.5),
        ("optimizer.lr", 0),
        ("optimizer.lr", -0.1),
        ("optimizer.lr", math.nan),
        ("optimizer.lr", math.inf),
        ("optimizer.lr", "fast"),
        ("optimizer.lr", True),
        ("optimizer.momentum", 1.0),
        ("optimizer.momentum", math.nan),
        ("optimizer.weight_decay", -1e-4),
        ("optimizer.trust", 0),
        ("optimizer.norm_and_bias_lr_factor", 0),
        ("optimizer.exclude_norm_and_bias", "perhaps"),
        ("schedule.name", "linear"),
        ("schedule.warmup_epochs", -1),
        ("schedule.final_fraction", 1.5),
        ("validation.fraction", 0.6),
        ("validation.fraction", -0.1),
        ("head.width", 0),
        ("head.hidden", 0),
        ("encoder.name", 5),
        ("probes.penalty", -1),
        ("probes.max_steps", 0),
        ("probes.epoch_rows", 0),
    ],
)
def test_a_value_out_of_place_is_named_with_its_path(path: str, value: object) -> None:
    section, _, field = path.partition(".")
    content = _with(**{section: {field: value} if field else value})
    message = _refused(content)
    assert f"setting {path!r}: " in message
    assert f"given {value!r}" in message
    with pytest.raises(InputError, match="given"):
        BASE.with_values({path: value})


@pytest.mark.parametrize("section", ["optimizer", "views", "hyperparameters", "encoder"])
@pytest.mark.parametrize("value", [3, None, [1]])
def test_a_section_is_a_mapping(section: str, value: object) -> None:
    assert f"setting {section!r}: " in _refused(_with(**{section: value}))


def test_crops_are_in_order() -> None:
    message = _refused(_with(views={"min_crop": 0.9, "max_crop": 0.5}))
    assert "views.min_crop 0.9 is above views.max_crop 0.5" in message
    with pytest.raises(InputError, match=r"min_crop 0\.9 is above"):
        BASE.with_values({"views.min_crop": 0.9}).with_values({"views.max_crop": 0.5})
    both = BASE.with_values({"views.min_crop": 0.9}).with_values(
        {"views.max_crop": 0.95, "views.min_crop": 0.3}
    )
    assert (both.views.min_crop, both.views.max_crop) == (0.3, 0.95)


@pytest.mark.parametrize("value", [[1], None, {"a": 1}])
def test_a_hyperparameter_is_a_plain_value_and_the_error_says_so_once(value: object) -> None:
    message = _refused(_with(hyperparameters={"lam": value}))
    assert "hyperparameters.lam" in message
    assert message.count("given") == 1


def test_hyperparameters_keep_their_types() -> None:
    given: dict[str, Any] = {"a": True, "b": 1, "c": 1.0, "d": "1"}
    kept = parse_experiment(_with(hyperparameters=given)).hyperparameters
    assert {name: type(value) for name, value in kept.items()} == {
        name: type(value) for name, value in given.items()
    }


def test_an_experiment_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        BASE.epochs = 3
    with pytest.raises(ValidationError, match="frozen"):
        BASE.optimizer.lr = 0.5


def test_its_maker_s_mapping_is_not_its_own() -> None:
    given: dict[str, Any] = {"temperature": 0.1}
    made = Experiment(method="infonce", dataset="digits", hyperparameters=given)
    before = made.identity()
    given["temperature"] = 0.9
    assert made.identity() == before


def test_with_values_returns_another_experiment() -> None:
    identity = BASE.identity()
    changed = BASE.with_values(
        {"optimizer.lr": 0.5, "temperature": 0.3, "lam": 2.0, "epochs": 7, "views.flip": 0, "head.hidden": 12}
    )
    assert BASE.identity() == identity
    assert (changed.optimizer.lr, changed.epochs, changed.views.flip, changed.head.hidden) == (
        0.5,
        7,
        0.0,
        12,
    )
    assert changed.hyperparameters == {"temperature": 0.3, "negatives": "all", "lam": 2.0}
    assert changed.optimizer.momentum == BASE.optimizer.momentum
    assert BASE.with_values({}) == BASE


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("optimiser.lr", "optimizer.lr"),
        ("view.flip", "views.flip"),
        ("seed.x", "seed"),
        ("optimizer.lrr", "optimizer.lr"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_the_nearest(path: str, nearest: str) -> None:
    with pytest.raises(InputError) as refused:
        BASE.with_values({path: 1})
    assert f"unknown setting {path!r}" in str(refused.value)
    assert nearest in str(refused.value).replace(path, "")


def test_values_are_read_by_the_same_paths() -> None:
    assert BASE.value("optimizer.lr") == BASE.optimizer.lr
    assert BASE.value("temperature") == 0.1
    assert BASE.value("epochs") == BASE.epochs
    changed = BASE.with_values({"optimizer.lr": 0.5, "temperature": 0.3, "epochs": 7})
    assert [changed.value(path) for path in ("optimizer.lr", "temperature", "epochs")] == [0.5, 0.3, 7]
    for path in ("optimizer.rate", "lam", "epochs.x"):
        with pytest.raises(InputError, match=f"unknown setting {path!r}"):
            BASE.value(path)


def test_every_setting_name_can_be_read_and_set() -> None:
    names = setting_names(BASE)
    assert {"temperature", "optimizer.lr", "epochs", "seed", "views.min_crop"} <= set(names)
    assert not {"method", "dataset", "hyperparameters", "optimizer"} & set(names)
    for name in names:
        assert BASE.with_values({name: BASE.value(name)}) == BASE


@pytest.mark.parametrize(
    "changed",
    [
        {"optimizer.lr": 0.11},
        {"temperature": 0.2},
        {"lam": 1.0},
        {"epochs": 11},
        {"views.flip": 0.25},
        {"views.padding": 4},
        {"optimizer.ema": 0.9},
        {"optimizer.clip_norm": 1.0},
        {"optimizer.decay_norm_and_bias": False},
        {"optimizer.name": "larc", "optimizer.larc_clip": False},
        {"optimizer.name": "lars", "optimizer.norm_and_bias_lr_factor": 0.5},
        {"validation.seed": 1},
        {"probes.penalty": 0.0},
        {"head.hidden": 84},
        {"encoder.name": "small-conv"},
        {"method": "fair-cclk"},
        {"dataset": "mnist"},
    ],
)
def test_every_setting_but_the_seed_is_in_the_identity(changed: dict[str, Any]) -> None:
    assert BASE.with_values(changed).identity() != BASE.identity()


@pytest.mark.parametrize(
    ("changed", "identity"),
    [
        ({}, "0a45abfced8f9de4"),
        ({"views.padding": 0}, "0a45abfced8f9de4"),
        ({"optimizer.ema": 0.0, "optimizer.decay_norm_and_bias": True}, "0a45abfced8f9de4"),
        ({"optimizer.larc_clip": True, "optimizer.norm_and_bias_lr_factor": 1.0}, "0a45abfced8f9de4"),
        (
            {
                "method": "fair-cclk",
                "dataset": "colour-digits",
                "hyperparameters": {
                    "kernel": "rbf",
                    "sigma2": 3000.0,
                    "lam": 1.0,
                    "temperature": 0.2,
                    "weights": "released",
                },
                "epochs": 3,
                "batch_size": 32,
                "views.size": 8,
                "views.blur": 0.0,
                "encoder.name": "small-conv",
                "head.hidden": 12,
                "optimizer.name": "lars",
                "schedule.warmup_epochs": 1,
                "probes.classifier": "knn",
            },
            "e45fcbcf50694013",
        ),
    ],
)
def test_identities_are_those_of_earlier_versions(changed: dict[str, Any], identity: str) -> None:
    """Stored rows are recognised by them, also by a version with more settings (`ADDED_LATER`)."""
    assert BASE.with_values(changed).identity() == identity


def test_replicates_share_their_identity() -> None:
    assert BASE.with_values({"seed": 17}).identity() == BASE.identity()


def test_the_identity_does_not_depend_on_order_or_spelling() -> None:
    one = parse_experiment(_with(hyperparameters={"a": 1.0, "b": "x"}, epochs=5, seed=1))
    other = parse_experiment({"seed": 2, "epochs": 5, "hyperparameters": {"b": "x", "a": 1.0}} | _with())
    assert one.identity() == other.identity()
    written = parse_experiment(BASE.model_dump(mode="json"))
    assert written.identity() == BASE.identity()
    assert (
        BASE.with_values({"optimizer.lr": 1}).identity() == BASE.with_values({"optimizer.lr": 1.0}).identity()
    )


def test_an_experiment_travels() -> None:
    assert pickle.loads(pickle.dumps(BASE)) == BASE
    assert parse_experiment(BASE.model_dump(mode="json")) == BASE
