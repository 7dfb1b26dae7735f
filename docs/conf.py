"""The documentation site: `make docs` builds it from the guides, the program's help and docstrings."""

import sys
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE.parent))

from contrasweep.version import __version__  # noqa: E402
from docs.api_pages import api_pages  # noqa: E402
from docs.command_pages import command_pages  # noqa: E402

project = "contrasweep"
author = "The contrasweep founders"
copyright = author
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
# The notes are parts of the pages on the papers' tables.
exclude_patterns = ["reproduction/notes"]
# Notebooks are shown as they were executed: `make notebooks`.
nb_execution_mode = "off"
# Typographic dashes would change what one types: `--trials`.
smartquotes = False
html_theme = "furo"
html_title = f"contrasweep {__version__}"
# An indented block is what one types into a shell; all others name their language.
highlight_language = "bash"

# Links lead to headings as GitHub names them.
myst_heading_anchors = 4
# Docstrings write code in single backticks.
default_role = "code"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
# As fields of the class: a directive each would describe an attribute that has a docstring of its own twice.
napoleon_use_ivar = True
# Several classes have an attribute of one name, such as `trials`. A mention of it leads to the first one.
suppress_warnings = ["ref.python"]


def write_generated_pages(app: Sphinx) -> None:
    """Write the pages that come from the program; a page that is equal stays untouched."""
    for folder, pages in (("api", api_pages()), ("commands", command_pages())):
        (_HERE / folder).mkdir(exist_ok=True)
        for stale in {one.name for one in (_HERE / folder).iterdir()} - pages.keys():
            (_HERE / folder / stale).unlink()
        for name, text in pages.items():
            page = _HERE / folder / name
            if not page.exists() or page.read_text(encoding="utf-8") != text:
                page.write_text(text, encoding="utf-8")


class FolderLinks(SphinxTransform):
    """Leaves of a link to a folder of the repository its text: the site has pages and files, no folders."""

    default_priority = 5

    def apply(self, **_: object) -> None:
        """Go through the links of one page."""
        page = Path(self.document["source"]).parent
        for link in list(self.document.findall(pending_xref)):
            if (page / link.get("reftarget", "")).is_dir() and "/" in link.get("reftarget", ""):
                link.replace_self(nodes.inline("", "", *link.children))


def setup(app: Sphinx) -> None:
    """Connect the above to the build."""
    app.connect("builder-inited", write_generated_pages)
    app.add_transform(FolderLinks)
