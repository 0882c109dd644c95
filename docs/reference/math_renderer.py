"""A Sphinx extension: formulas as MathML, which browsers draw by themselves, without a script from elsewhere."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


_NAMESPACE = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", _NAMESPACE)


def mathml(tex: str, as_block: bool) -> str:
    r"""Return a formula as MathML, with the subscript of a letter that has an accent beside it.

    docutils writes `\hat q_t` as a letter between an accent above and the subscript below.
    """
    # docutils writes &ApplyFunction;, and XML has but five such names, HTML all of them
    text = re.sub(
        r"&(?!(?:amp|lt|gt|quot|apos);)\w+;", lambda name: html.unescape(name[0]), tex2mathml(tex, as_block=as_block)
    )
    formula = ElementTree.fromstring(text)
    for element in list(formula.iter(f"{{{_NAMESPACE}}}munderover")):
        letter, subscript, above = element
        if above.get("stretchy") != "false":
            continue
        accented = ElementTree.Element(f"{{{_NAMESPACE}}}mover")
        accented.extend((letter, above))
        element.tag = f"{{{_NAMESPACE}}}msub"
        element[:] = (accented, subscript)
    return ElementTree.tostring(formula, encoding="unicode")


def inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line."""
    translator.body.append(mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block(translator: HTML5Translator, node: nodes.math_block) -> None:
    r"""Write formulas on lines of their own; what `\qquad` parts may stand below each other on a narrow page."""
    formulas = (mathml(tex, as_block=True) for tex in node.astext().split(r"\qquad"))
    translator.body.append(f'<div class="math">{"".join(formulas)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
