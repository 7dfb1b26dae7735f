"""`contrasweep clusters`: find without training how many attributes to build clusters from."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrasweep.names import counted, names_in
from contrasweep.tuning.cli.options import AsJson, DataRoot
from contrasweep.tuning.cli.rendering import print_json, print_rows, tell
from contrasweep.tuning.errors import InputError

if TYPE_CHECKING:
    from contrasweep.data import Clusterings, InformationCurve

_HEADINGS = {
    "information_bits": "I(Z;T), bits",
    "conditional_entropy_bits": "H(Z|T), bits",
    "rescaled_information": "rescaled I",
    "rescaled_negative_entropy": "rescaled -H",
}


def clusters(
    dataset: Annotated[
        str, typer.Argument(help="ut-zappos50k, or a .csv file: one row per image, one column per attribute.")
    ],
    top_k: Annotated[
        str | None,
        typer.Option(metavar="LOW..HIGH", help="Numbers of attributes to compare; default: all possible."),
    ] = None,
    image_column: Annotated[str, typer.Option(help="Column of the file that names the image.")] = "path",
    label_column: Annotated[str, typer.Option(help="Column of the file that holds the label.")] = "class",
    categorical: Annotated[
        str, typer.Option(metavar="NAME,...", help="Columns of the file that hold categories.")
    ] = "",
    ignore: Annotated[
        str, typer.Option(metavar="NAME,...", help="Columns of the file that are not attributes.")
    ] = "",
    data_root: DataRoot = None,
    json: AsJson = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also draw the curves: .png, .pdf or .svg.")
    ] = None,
) -> None:
    """Compare clusterings by the k attributes of highest entropy, and suggest k, without training.

    Example: contrasweep clusters ut-zappos50k --top-k 3..150 -o clusters.png
    """
    low, high = _range(top_k)
    if output is not None:
        # Imported only when something is drawn, because it imports the whole engine.
        from contrasweep.tuning.reports.matplotlib_figures import check_figure

        check_figure(output, "-o")
    try:
        found = _load(
            dataset,
            data_root,
            image_column=image_column,
            label_column=label_column,
            categorical=names_in(categorical),
            ignore=names_in(ignore),
        )
        curve = found.curve(low, high)
    except ValueError as error:
        raise InputError(str(error)) from None
    title = f"{dataset}: {counted(len(found.labels), 'image')}, {found.classes} classes"
    if output is not None:
        from contrasweep.tuning.reports.matplotlib_figures import draw_cluster_curve

        draw_cluster_curve(curve, title, output)
    if json:
        crossing = curve.crossing
        print_json(
            {
                "dataset": dataset,
                "images": len(found.labels),
                "classes": found.classes,
                "curve": _points(curve),
                "crossing": crossing and {"at": crossing.at, "k": crossing.k},
                "attributes": list(found.ranked),
            }
        )
    else:
        points = _points(curve)
        print_rows(title, [{_HEADINGS.get(name, name): one[name] for name in one} for one in points])
        tell(_verdict(curve, found.ranked))


def _range(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    ends = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", text.strip(), re.ASCII)
    if ends is None:
        raise InputError(f"--top-k takes LOW..HIGH, for example 3..150, given {text!r}")
    low, high = int(ends[1]), int(ends[2])
    if not 1 <= low <= high:
        raise InputError(f"--top-k takes LOW..HIGH with 1 <= LOW <= HIGH, given {text!r}")
    return low, high


def _load(dataset: str, data_root: Path | None, **columns: Any) -> "Clusterings":
    from contrasweep.data import CLUSTERINGS, DATASETS, load_clusterings, read_clusterings

    if dataset.endswith(".csv"):
        return read_clusterings(Path(dataset), **columns)
    if dataset.partition(":")[0] in DATASETS and dataset not in CLUSTERINGS:
        raise InputError(
            f"dataset {dataset!r} comes without attributes; give a .csv file of them, "
            f"or one of {', '.join(CLUSTERINGS)}"
        )
    if columns["categorical"] or columns["ignore"]:
        raise InputError(f"--categorical and --ignore go with a .csv file of attributes; given {dataset}")
    return load_clusterings(dataset, data_root)


def _points(curve: "InformationCurve") -> list[dict[str, Any]]:
    unknown = [None] * len(curve.ks)
    columns = {
        "k": curve.ks,
        "clusters": curve.clusters,
        "information_bits": curve.information,
        "conditional_entropy_bits": curve.conditional_entropy,
        "rescaled_information": curve.rescaled_information or unknown,
        "rescaled_negative_entropy": curve.rescaled_negative_entropy or unknown,
    }
    return [dict(zip(columns, point, strict=True)) for point in zip(*columns.values(), strict=True)]


def _verdict(curve: "InformationCurve", ranked: tuple[str, ...]) -> str:
    if curve.crossing is None:
        return "No crossing: over these k, I(Z;T) or H(Z|T) does not change, or the curves do not meet."
    at, k = curve.crossing.at, curve.crossing.k
    named = f"\nThese attributes: {', '.join(ranked[:k])}" if ranked else ""
    return f"Rescaled I and -H cross at k = {at:.1f}: take k = {k} of the {len(curve.ks)} compared.{named}"
