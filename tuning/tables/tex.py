"""Text of our tables as LaTeX."""

from collections.abc import Sequence

_ALPHABET = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi - pi rho - sigma tau upsilon "
    "phi chi psi omega"
)
"""The small Greek letters in their order from U+03B1; `-` where LaTeX has no command."""

_CAPITALS = ("gamma", "delta", "theta", "lambda", "xi", "pi", "sigma", "upsilon", "phi", "psi", "omega")
_SMALL = {chr(0x3B1 + place): name for place, name in enumerate(_ALPHABET.split()) if name != "-"}
_MATHEMATICS = {
    **_SMALL,
    **{letter.upper(): name.capitalize() for letter, name in _SMALL.items() if name in _CAPITALS},
    **{"\u03f5": "epsilon", "\u03d5": "phi", "\u00b5": "mu"},
    **{"±": "pm", "≤": "le", "≥": "ge", "≠": "ne", "≈": "approx", "\u00d7": "times", "∞": "infty"},
    **{"→": "to", "↑": "uparrow", "↓": "downarrow"},
}
_TEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{letter: f"$\\{name}$" for letter, name in _MATHEMATICS.items()},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "\u2212": "$-$",
}


def tex(text: str) -> str:
    """Return text escaped for LaTeX; Greek letters, arrows and signs become mathematics."""
    return "".join(_TEX.get(letter, letter) for letter in text)


def tex_row(cells: Sequence[str]) -> str:
    """Return a row of a `tabular`."""
    row = " & ".join(map(tex, cells))
    # The end of the row above would read a star or a bracket as an argument of its own.
    return f"{'{}' if row.startswith(('*', '[')) else ''}{row} \\\\"
