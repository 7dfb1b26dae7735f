"""Few labelled digits and many unlabelled ones, in one or two noisy views: N-MNIST and N-MNIST-2v of HeroCon.

Source: Zheng et al., "Contrastive Learning with Complex Heterogeneity" (KDD 2022), Sections 4.2 and 4.4.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor

from contrasweep.data.multiview import MultiView
from contrasweep.data.seeds import torch_generator
from contrasweep.data.sources.digits import always_there, digits_spec, read_all_digits
from contrasweep.data.sources.mnist import (
    LICENCE,
    MNIST_FOLDER,
    SOURCE,
    TRAIN_COUNTS,
    check_mnist,
    read_mnist,
    read_mnist_labels,
    read_mnist_pixels,
)
from contrasweep.data.sources.noisy import Law, Noise, noise_of, noise_options
from contrasweep.data.spec import DatasetOption, Options
from contrasweep.data.transductive import TransductiveFamily, TransductiveSpec

MNIST_LABELLED = 20
"""Labelled images of each digit, drawn from MNIST's test files."""

DIGITS_LABELLED = 10
"""Labelled images of each of scikit-learn's digits."""

DIGITS_MEAN = 0.3053087185068797
"""Mean of all pixels of scikit-learn's digits, in 0..1."""

DIGITS_STD = 0.3758859119653705
"""The (population) standard deviation of these pixels."""

_MNIST_FOLDS = 20
_DIGITS_FOLDS = 10


def labelled_rows(labels: Tensor, per_class: int, fold: int, name: str) -> Tensor:
    """Return the rows of one draw of ``per_class`` objects of each class, ascending.

    Draws do not overlap.

    Args:
        labels: int64 ``(N,)``.
        per_class: objects of each class.
        fold: the number of the draw, from 0.
        name: the name of the random stream.

    Raises:
        ValueError: a class has too few objects for that many draws.
    """
    start = fold * per_class
    drawn = []
    for label in torch.unique(labels).tolist():
        members = (labels == label).nonzero().flatten()
        if len(members) < start + per_class:
            raise ValueError(
                f"draw {fold} of {per_class} objects of class {label} needs {start + per_class}, "
                f"there are {len(members)}"
            )
        order = torch.randperm(len(members), generator=torch_generator("labelled", name, label))
        drawn.append(members[order[start : start + per_class]])
    return torch.cat(drawn).sort().values


def _noisy(pixels: Tensor, noise: Noise, views: int, *name: str) -> tuple[Tensor, ...]:
    return tuple(noise.add(pixels, *name, view) for view in range(1, views + 1))


_UNLABELLED_OPTION: Mapping[str, DatasetOption] = MappingProxyType(
    {
        "unlabelled": DatasetOption(
            "images to be classified, the first of a fixed order; 0: all 60,000",
            int,
            0,
            low=0,
            high=sum(TRAIN_COUNTS),
        )
    }
)


def _unlabelled_rows(options: Options) -> Tensor:
    """Return the rows of MNIST's training images to classify; the choice does not use their labels."""
    size, kept = sum(TRAIN_COUNTS), int(options["unlabelled"])
    if not kept:
        return torch.arange(size)
    return torch.randperm(size, generator=torch_generator("unlabelled", "noisy-mnist"))[:kept].sort().values


def _noisy_mnist_views(name: str, summary: str, views: int, law: Law) -> TransductiveFamily:
    """Return N-MNIST in one or two views; the first is that of the dataset `noisy-mnist`."""

    def describe(root: Path, options: Options) -> TransductiveSpec:
        return TransductiveSpec(
            name=family.full_name(options),
            summary=summary,
            classes=10,
            multi_label=False,
            views=((1, 28, 28),) * views,
            labelled=(10 * MNIST_LABELLED,) * _MNIST_FOLDS,
            unlabelled=(int(options["unlabelled"]) or sum(TRAIN_COUNTS),) * _MNIST_FOLDS,
            licence=LICENCE,
            source=SOURCE,
            folder=MNIST_FOLDER,
        )

    def read(root: Path, fold: int, options: Options) -> tuple[MultiView, MultiView]:
        noise = noise_of(options)
        pool = read_mnist(root, "test")
        rows = labelled_rows(pool.labels, MNIST_LABELLED, fold, "noisy-mnist")
        labelled = MultiView(_noisy(pool.pixels, noise, views, "mnist", "test"), pool.labels).subset(rows)
        unlabelled = MultiView(_noisy(read_mnist_pixels(root, "train"), noise, views, "mnist", "train"))
        return labelled, unlabelled.subset(_unlabelled_rows(options))

    family = TransductiveFamily(
        name,
        summary,
        describe,
        lambda root, options: check_mnist(name, root),
        read,
        lambda root, fold, options: read_mnist_labels(root, "train")[_unlabelled_rows(options)],
        {**noise_options(law), **_UNLABELLED_OPTION},
    )
    return family


NOISY_MNIST_1V = _noisy_mnist_views(
    "noisy-mnist-1v", "200 labelled and 60,000 unlabelled noisy MNIST digits in one view", 1, "uniform"
)
NOISY_MNIST_2V = _noisy_mnist_views(
    "noisy-mnist-2v",
    "200 labelled and 60,000 unlabelled MNIST digits in two views of different noise",
    2,
    "gaussian",
)

_DIGITS_OPTIONS: Mapping[str, DatasetOption] = MappingProxyType(
    {
        **noise_options("gaussian", level=0.5),
        "form": DatasetOption(
            "the form of a view: images of 8 x 8 pixels, or 64 features in 0..1",
            str,
            "images",
            choices=("images", "features"),
        ),
        "views": DatasetOption("views of different noise; 1: the first alone", int, 2, low=1, high=2),
    }
)


def _describe_digits(root: Path, options: Options) -> TransductiveSpec:
    facts = digits_spec(TWO_VIEW_DIGITS.full_name(options), TWO_VIEW_DIGITS.summary)
    shape = (1, 8, 8) if options["form"] == "images" else (64,)
    labelled = facts.classes * DIGITS_LABELLED
    return TransductiveSpec(
        name=facts.name,
        summary=facts.summary,
        classes=facts.classes,
        multi_label=False,
        views=(shape,) * int(options["views"]),
        labelled=(labelled,) * _DIGITS_FOLDS,
        unlabelled=(facts.train_size + facts.test_size - labelled,) * _DIGITS_FOLDS,
        licence=facts.licence,
        source=facts.source,
        folder=None,
    )


def _split_digits(labels: Tensor, fold: int) -> tuple[Tensor, Tensor]:
    """Return the labelled and the unlabelled rows."""
    labelled = labelled_rows(labels, DIGITS_LABELLED, fold, "two-view-digits")
    is_labelled = torch.zeros(len(labels), dtype=torch.bool)
    is_labelled[labelled] = True
    return labelled, (~is_labelled).nonzero().flatten()


def _read_digits(root: Path, fold: int, options: Options) -> tuple[MultiView, MultiView]:
    digits = read_all_digits()
    noise = noise_of(options, DIGITS_MEAN, DIGITS_STD)
    views = _noisy(digits.pixels, noise, int(options["views"]), "digits")
    if options["form"] == "features":
        views = tuple(view.flatten(1).float() / 255.0 for view in views)
    whole = MultiView(views, digits.labels)
    labelled, unlabelled = _split_digits(digits.labels, fold)
    return whole.subset(labelled), whole.subset(unlabelled).without_labels()


def _read_digits_test(root: Path, fold: int, options: Options) -> Tensor:
    labels = read_all_digits().labels
    return labels[_split_digits(labels, fold)[1]]


TWO_VIEW_DIGITS = TransductiveFamily(
    name="two-view-digits",
    summary="100 labelled and 1,697 unlabelled 8 x 8 digits in two views of different noise",
    describe=_describe_digits,
    check=always_there,
    read=_read_digits,
    read_test=_read_digits_test,
    options=_DIGITS_OPTIONS,
)
