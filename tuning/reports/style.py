"""How figures look: one plotly template for a light page and for paper, one for a dark page."""

import plotly.graph_objects as go

from contrasweep.tuning.reports.colours import COLOURS, GREY

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
SEQUENTIAL = "Cividis"


def template(*, dark: bool) -> go.layout.Template:
    """Return the template for a dark or a light page; its background is the page's."""
    ink, grid, page = ("#E8E8E8", "#3A3F46", "20,23,27") if dark else ("#1B1F24", "#DDE1E6", "255,255,255")
    axis = {
        "gridcolor": grid,
        "linecolor": GREY,
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "tickcolor": GREY,
        "automargin": True,
        "title": {"standoff": 8},
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": ink},
            # Words inside a plot stay readable over its lines.
            "annotationdefaults": {"bgcolor": f"rgba({page},0.75)", "borderpad": 0},
            # From the edge of the figure: beside long labels, there is no room above the plot of a phone.
            "title": {"font": {"size": 15}, "x": 0, "xref": "container", "xanchor": "left"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(COLOURS),
            "colorscale": {"sequential": SEQUENTIAL},
            "xaxis": axis,
            "yaxis": axis,
            # At the foot: beside the plot, a legend takes half of a phone's width, and below it by a share of
            # its height, it lies over the axis where that is tall.
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
            },
            "margin": {"l": 48, "r": 20, "t": 44, "b": 40},
            "height": 420,
            "hoverlabel": {"align": "left"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": ink},
        },
        # A trace that is all colour takes its scale from here, not from the layout.
        data={kind: [{"colorscale": SEQUENTIAL}] for kind in ("heatmap", "contour", "histogram2d")},
    )
