"""Settings of Sphinx: ``make docs`` builds the site from the pages in this folder and from the docstrings."""

import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from gcnsl.version import __version__

project = "gcnsl"
author = "The gcnsl maintainers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name for it
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 100
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Shapes"]
napoleon_use_ivar = True  # an attribute is described once

html_theme = "pydata_sphinx_theme"
html_title = "gcnsl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "gcnsl"},
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "getting-started": []}

copybutton_prompt_text = "$ "  # where a block shows what a command prints, only the command is copied


SIMPLER = {
    r"\\dots(?![a-z])": r"\\ldots",
    r"\\[bB]ig(?![a-z])": "",
    r"\\tfrac(\d)(\d)": r"\\tfrac{\1}{\2}",
    r"\\(hat|tilde) (\w)": r"{{}\\\1 \2}",  # an index goes to the right of it, not below
}
"""What the converter does not know or gets wrong, as patterns, and what is written instead."""


def mathml(tex: str, **options: bool) -> str:
    """Convert a formula from LaTeX to MathML, which browsers show without a script from elsewhere."""
    for pattern, simpler in SIMPLER.items():
        tex = re.sub(pattern, simpler, tex)
    return latex2mathml.tex2mathml(tex, **options)


def write_inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def write_block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a displayed formula; with several lines they are aligned at ``&``."""
    tex = node.astext()
    if "\\\\" in tex and "\\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    writer.body.append(writer.starttag(node, "div", CLASS="formula"))
    writer.body.append(mathml(tex, as_block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Register the two writers of formulas."""
    app.add_html_math_renderer("mathml", inline_renderers=(write_inline, None), block_renderers=(write_block, None))


html_math_renderer = "mathml"
