"""`contrasweep datasets` lists the datasets; `contrasweep datasets check NAME` examines the files of one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.plugin_places import plugin_fault
from contrasweep.plugins import WrongReturn
from contrasweep.tuning.cli.columns import Note, Row
from contrasweep.tuning.cli.completion import complete_datasets
from contrasweep.tuning.cli.errors import add_command, reporting_errors
from contrasweep.tuning.cli.options import AsJson, DataRoot
from contrasweep.tuning.cli.rendering import print_json, print_rows, remark, tell
from contrasweep.tuning.cli.usage import Group
from contrasweep.tuning.errors import one_line

if TYPE_CHECKING:
    from contrasweep.data import DatasetFamily, DatasetReport, DatasetSpec, SplitReport, TransductiveFamily

Name = Annotated[
    str,
    typer.Argument(
        help="Dataset, with its options: NAME or NAME:OPTION=VALUE,...", autocompletion=complete_datasets
    ),
]
EveryImage = Annotated[bool, typer.Option("--all", help="Decode every image instead of one per split.")]

UNUSABLE = "cannot be used"
"""What a list of datasets says of one whose plug-in is faulty: the fault, and the line of the plug-in."""

_MOST_CLASSES, _MOST_BIASES = 20, 12
"""Images are counted in a table where there are at most so many classes, and so many bias labels."""


def datasets(context: typer.Context, data_root: DataRoot = None, json: AsJson = False) -> None:
    """List the datasets, their options, and whether their files are there; `check` looks into one.

    Example: contrasweep datasets --data-root /data
    """
    # Options that are given before `check` apply to it too.
    context.obj = {"data_root": data_root, "json": json}
    if context.invoked_subcommand is not None:
        return
    remark("Looking for the files of the datasets ...")
    from contrasweep.data import DATASETS
    from contrasweep.data.root import data_root as folder_of_data

    # A folder that cannot be is the user's mistake, not a dataset that is missing.
    folder = folder_of_data(data_root)
    rows = [_row(family, folder) for family in DATASETS.values()]
    if json:
        print_json(rows)
        return
    print_rows("Datasets", [_shown(row) for row in rows])


def check(
    context: typer.Context,
    name: Name,
    data_root: DataRoot = None,
    every_image: EveryImage = False,
    json: AsJson = False,
) -> None:
    """Look into a dataset's files: counts, shapes, a decoded image, published checksums.

    For a transductive dataset, it checks that the files are there, and lists the folds.

    Example: contrasweep datasets check cifar10 --data-root /data
    """
    from contrasweep.data import TransductiveFamily, inspect_dataset, parse_dataset
    from contrasweep.tuning.errors import told_to_user

    before = context.obj
    root, as_json = data_root or before["data_root"], json or before["json"]
    with told_to_user():
        if isinstance(parse_dataset(name)[0], TransductiveFamily):
            _check_folds(name, root, every_image=every_image, as_json=as_json)
            return
        images = "every image" if every_image else "an image of each split"
        remark(f"Counting the images of {name}, and decoding {images} ...")
        report = inspect_dataset(name, root, every_image=every_image)
    if as_json:
        print_json(_content(report))
    else:
        _print(report)


def _check_folds(name: str, root: Path | None, *, every_image: bool, as_json: bool) -> None:
    """Look for the files of a transductive dataset, and print its facts."""
    from contrasweep.data import TransductiveSpec, check_available, dataset_spec

    if every_image:
        raise ValueError(f"--all goes with labelled images; {name} is transductive: it has folds of objects")
    check_available(name, root)
    spec = dataset_spec(name, root)
    assert isinstance(spec, TransductiveSpec)
    facts = {"folds": spec.folds, "labels": spec.classes}
    if as_json:
        lists = {"labelled": list(spec.labelled), "unlabelled": list(spec.unlabelled)}
        views = {"views": [list(shape) for shape in spec.views]}
        print_json({"dataset": spec.name, "licence": spec.licence, **facts, **lists, **views})
        return
    counts = {"labelled": _range(spec.labelled), "unlabelled": _range(spec.unlabelled)}
    shapes = ", ".join(" x ".join(map(str, shape)) for shape in spec.views)
    print_rows(spec.name, [{**facts, **counts, "views": shapes}])


app = typer.Typer(cls=Group, invoke_without_command=True, rich_markup_mode=None)
app.callback()(reporting_errors(datasets))
add_command(app, check)


def _row(family: "DatasetFamily | TransductiveFamily", data_root: Path | None) -> dict[str, Any]:
    name = family.form if family.needs_options else family.name
    seen = {} if family.needs_options else _seen(name, data_root)
    facts = {key: seen.get(key) for key in ("train", "test", "condition", "licence", "there", UNUSABLE)}
    options = {option: one.summary for option, one in family.options.items()}
    return {"dataset": name, "what it is": family.description, **facts, "options": options}


def _shown(row: Mapping[str, Any]) -> Row:
    """Return a dataset as a row: what it is and its options are texts below it."""
    longer = {"what it is", "options", "condition", "licence", UNUSABLE}
    notes = [Note("what it is", row["what it is"], named=False)]
    notes += [Note(name, row[name]) for name in ("condition", "licence")]
    notes += [Note("options", ", ".join(row["options"]) or None), Note(UNUSABLE, row[UNUSABLE])]
    return Row({name: value for name, value in row.items() if name not in longer}, notes=notes)


def _seen(name: str, data_root: Path | None) -> dict[str, Any]:
    """Return the facts of a dataset, and whether its files are there; of a faulty plug-in, the fault."""
    from contrasweep.data import DatasetDamaged, DatasetMissing, check_available, dataset_spec

    seen: dict[str, Any] = {}
    try:
        spec = dataset_spec(name, data_root)
        seen |= {"train": spec.train_size, "test": spec.test_size}
        seen |= {"condition": spec.condition_name, "licence": spec.licence}
        check_available(name, data_root)
    except DatasetDamaged:
        return {**seen, "there": "damaged"}
    except DatasetMissing:
        return {**seen, "there": "no"}
    except Exception as error:
        # The other datasets are listed all the same. What no plug-in is to blame for is our own fault.
        told = str(error) if isinstance(error, WrongReturn) else plugin_fault(error)
        if told is None:
            raise
        return {**seen, UNUSABLE: one_line(told)}
    return {**seen, "there": "yes"}


def _content(report: "DatasetReport") -> dict[str, Any]:
    spec = report.spec
    return {
        "dataset": spec.name,
        "classes": spec.classes,
        "licence": spec.licence,
        "checksums": list(report.checksums),
        "splits": {
            split.split: {
                "images": split.images,
                "shape": list(split.shape),
                "decoded": split.decoded,
                "mean_level": split.mean_level,
                "unlabelled": split.unlabelled,
                "class_counts": dict(zip(spec.told_classes, split.class_counts, strict=True)),
                **_group_content(spec, split),
            }
            for split in report.splits
        },
    }


def _group_content(spec: "DatasetSpec", split: "SplitReport") -> dict[str, Any]:
    """Return the images of each class by bias label; nothing without a bias."""
    if split.group_counts is None:
        return {}
    named = [dict(zip(spec.told_biases, row, strict=True)) for row in split.group_counts]
    return {"group_counts": dict(zip(spec.told_classes, named, strict=True))}


def _print(report: "DatasetReport") -> None:
    spec = report.spec
    print_rows(spec.name, [_split_row(split) for split in report.splits])
    if 0 < spec.classes <= _MOST_CLASSES:
        counts = zip(spec.told_classes, *(split.class_counts for split in report.splits), strict=True)
        names = [split.split for split in report.splits]
        rows = [{"class": name, **dict(zip(names, of, strict=True))} for name, *of in counts]
        print_rows("Images of each class", rows)
        if 0 < len(spec.told_biases) <= _MOST_BIASES:
            for split in report.splits:
                _print_groups(spec, split)
    agree = len(report.checksums)
    tell(f"{agree} files agree with their published MD5." if agree else "No checksums are published for it.")


def _print_groups(spec: "DatasetSpec", split: "SplitReport") -> None:
    if split.group_counts is None:
        return
    columns = [f"bias {name}" for name in spec.told_biases]
    rows = [
        {"class": name, **dict(zip(columns, counts, strict=True))}
        for name, counts in zip(spec.told_classes, split.group_counts, strict=True)
    ]
    print_rows(f"Images of each class by bias label, {split.split} split", rows)


def _split_row(split: "SplitReport") -> dict[str, Any]:
    counts = split.class_counts
    groups = [number for row in split.group_counts or () for number in row]
    return {
        "split": split.split,
        "images": split.images,
        "shape": " x ".join(map(str, split.shape)),
        "images of a class": f"{min(counts)} to {max(counts)}" if counts else None,
        **({"of a class and bias": f"{min(groups)} to {max(groups)}"} if groups else {}),
        "without a label": split.unlabelled,
        "decoded": split.decoded,
        "their mean level": split.mean_level,
    }


def _range(counts: Sequence[int]) -> str:
    """Return the number of objects of each fold: one number where all folds have the same."""
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"
