"""Noisy digits of HeroCon: Noisy-MNIST, and few labelled with many unlabelled ones in one or two noisy views.

Source: Zheng et al., "Contrastive Learning with Complex Heterogeneity" (KDD 2022), Sections 4.1, 4.2 and 4.4.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from contrasweep.data.facts import TransductiveSpec
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.seeds import numpy_generator, torch_generator
from contrasweep.data.sources.digits import (
    MNIST_DIGITS,
    SMALL_DIGITS,
    read_all_digits,
    read_mnist,
    read_mnist_labels,
    read_mnist_pixels,
)
from contrasweep.data.sources.folds import table_family
from contrasweep.data.spec import Split
from contrasweep.data.transductive import MultiView, TransductiveFamily

Law = Literal["uniform", "gaussian", "released"]

MNIST_MEAN = 0.13066047627384283
"""Mean of all pixels of MNIST's training images, in 0..1."""

MNIST_STD = 0.3081078039450204
"""The (population) standard deviation of these pixels."""

DIGITS_MEAN = 0.3053087185068797
"""Mean of all pixels of scikit-learn's digits, in 0..1."""

DIGITS_STD = 0.3758859119653705
"""The (population) standard deviation of these pixels."""

MNIST_LABELLED, MNIST_FOLDS = 20, 20
"""Labelled images of each digit, drawn from MNIST's test files, and the number of draws."""

DIGITS_LABELLED, DIGITS_FOLDS = 10, 10
"""Labelled images of each of scikit-learn's digits, and the number of draws."""

_CHUNK = 256


def noise_options(law: Law, level: float = 1.0) -> Mapping[str, DatasetOption]:
    """Return the options of a family of noisy images, with these defaults."""
    return {
        "noise": DatasetOption(
            "uniform in 0..1, gaussian with the pixels' mean and standard deviation, or released: "
            "gaussian with their variance as the deviation, in whole levels",
            str,
            law,
            choices=get_args(Law),
        ),
        "level": DatasetOption(
            "share of the pixels that it falls on; of released: it falls where its own value is below (0.1)",
            float,
            level,
            low=0.0,
            high=1.0,
        ),
    }


def add_noise(
    images: Tensor, options: Options, *name: str | int, mean: float = MNIST_MEAN, std: float = MNIST_STD
) -> Tensor:
    """Return noisy images: noise is added to pixels in 0..1, and the sum is clipped and rounded to 8 bits.

    Args:
        images: uint8 ``(N, C, H, W)`` on the CPU.
        options: the values of `noise_options`. The level is the probability that a pixel gets noise; the
            noise of a pixel is the same at every level at which it gets noise. The law `released` is that of
            HeroCon's code: draws of N(mean, (std^2)^2), added where they are below the level, 8 bits cut off.
        *name: the name of the random stream, such as the dataset, the split and the view.
        mean: the mean of the gaussian laws.
        std: the standard deviation of `gaussian`.

    Returns:
        uint8 of the same shape.
    """
    law, level = str(options["noise"]), float(options["level"])
    values, chances = numpy_generator("noise", law, *name), numpy_generator("noise where", *name)
    noisy = torch.empty_like(images)
    # In chunks, in the order of the draws: draws for all of MNIST at once would take 0.8 GB.
    for start in range(0, len(images), _CHUNK):
        pixels = images[start : start + _CHUNK]
        shape = tuple(pixels.shape)
        if law == "uniform":
            drawn = values.random(shape)
        else:
            drawn = values.normal(mean, std**2 if law == "released" else std, shape)
        falls = torch.from_numpy((drawn if law == "released" else chances.random(shape)) < level)
        levels = pixels + torch.where(falls, torch.from_numpy(drawn), 0.0) * 255.0
        levels = levels.clamp_(0.0, 255.0)
        noisy[start : start + _CHUNK] = levels.floor_() if law == "released" else levels.round_()
    return noisy


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


NOISY_MNIST = MNIST_DIGITS.family(
    "noisy-mnist",
    "MNIST with noise on a share of the pixels, as in HeroCon",
    lambda digits, split, options: replace(
        digits, images=add_noise(digits.pixels, options, "mnist", split, 1)
    ),
    noise_options("uniform"),
)


def _unlabelled_rows(options: Options) -> Tensor:
    """Return the rows of MNIST's training images to classify; the choice does not use their labels."""
    size, kept = MNIST_DIGITS.facts.train_size, int(options["unlabelled"])
    if not kept:
        return torch.arange(size)
    return torch.randperm(size, generator=torch_generator("unlabelled", "noisy-mnist"))[:kept].sort().values


def _noisy_mnist_views(name: str, summary: str, views: int, law: Law) -> TransductiveFamily:
    """Return N-MNIST in one or two views; the first is that of the dataset `noisy-mnist`."""
    mnist = MNIST_DIGITS.facts
    drawn = mnist.classes * MNIST_LABELLED

    def describe(root: Path, options: Options) -> TransductiveSpec:
        return TransductiveSpec(
            name=family.full_name(options),
            summary=summary,
            classes=mnist.classes,
            views=((1, 28, 28),) * views,
            labelled=(drawn,) * MNIST_FOLDS,
            unlabelled=(int(options["unlabelled"]) or mnist.train_size,) * MNIST_FOLDS,
            licence=mnist.licence,
            source=mnist.source,
            folder=mnist.folder,
        )

    def noisy(pixels: Tensor, split: Split, options: Options) -> tuple[Tensor, ...]:
        return tuple(add_noise(pixels, options, "mnist", split, view) for view in range(1, views + 1))

    def read(root: Path, fold: int, options: Options) -> tuple[MultiView, MultiView]:
        pool = read_mnist(root, "test")
        if options["labelled"] == "consecutive":
            rows = torch.arange(fold * drawn, (fold + 1) * drawn)
        else:
            rows = labelled_rows(pool.labels, MNIST_LABELLED, fold, "noisy-mnist")
        labelled = MultiView(noisy(pool.pixels, "test", options), pool.labels).subset(rows)
        unlabelled = MultiView(noisy(read_mnist_pixels(root, "train"), "train", options))
        return labelled, unlabelled.subset(_unlabelled_rows(options))

    first = "images to be classified, the first of a fixed order; 0: all 60,000"
    family = TransductiveFamily(
        name,
        summary,
        describe,
        lambda root, options: MNIST_DIGITS.check(name, root),
        read,
        lambda root, fold, options: read_mnist_labels(root, "train")[_unlabelled_rows(options)],
        {
            **noise_options(law),
            "labelled": DatasetOption(
                "20 of each digit, or as released: 200 consecutive images of the test files",
                str,
                "balanced",
                choices=("balanced", "consecutive"),
            ),
            "unlabelled": DatasetOption(first, int, 0, low=0, high=mnist.train_size),
        },
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


def _digits_facts(options: Options) -> Mapping[str, Any]:
    digits = SMALL_DIGITS.facts
    labelled = digits.classes * DIGITS_LABELLED
    return {
        "classes": digits.classes,
        "views": ((1, 8, 8) if options["form"] == "images" else (64,),) * int(options["views"]),
        "labelled": (labelled,) * DIGITS_FOLDS,
        "unlabelled": (digits.train_size + digits.test_size - labelled,) * DIGITS_FOLDS,
        "licence": digits.licence,
        "source": digits.source,
        "folder": None,
    }


def _read_digits(root: Path, options: Options) -> MultiView:
    digits = read_all_digits()
    count = int(options["views"])
    views = tuple(
        add_noise(digits.pixels, options, "digits", view, mean=DIGITS_MEAN, std=DIGITS_STD)
        for view in range(1, count + 1)
    )
    if options["form"] == "features":
        views = tuple(view.flatten(1).float() / 255.0 for view in views)
    return MultiView(views, digits.labels)


TWO_VIEW_DIGITS = table_family(
    name="two-view-digits",
    summary="100 labelled and 1,697 unlabelled 8 x 8 digits in two views of different noise",
    facts=_digits_facts,
    check=lambda root, options: None,
    read=_read_digits,
    labelled=lambda labels, fold: labelled_rows(labels, DIGITS_LABELLED, fold, "two-view-digits"),
    options={
        **noise_options("gaussian", level=0.5),
        "form": DatasetOption(
            "the form of a view: images of 8 x 8 pixels, or 64 features in 0..1",
            str,
            "images",
            choices=("images", "features"),
        ),
        "views": DatasetOption("views of different noise; 1: the first alone", int, 2, low=1, high=2),
    },
)
