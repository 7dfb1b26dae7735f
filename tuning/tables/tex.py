"""Text of our tables as LaTeX."""

_GREEK = {
    "sigma": "\u03c3",
    "alpha": "\u03b1",
    "lambda": "\u03bb",
    "pi": "\u03c0",
    "theta": "\u03b8",
    "epsilon": "\u03f5\u03b5",
}
_TEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{letter: f"$\\{name}$" for name, letters in _GREEK.items() for letter in letters},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "±": "$\\pm$",
    "\u2212": "$-$",
}


def tex(text: str) -> str:
    """Return text escaped for LaTeX; the papers' Greek letters become mathematics."""
    return "".join(_TEX.get(letter, letter) for letter in text)
