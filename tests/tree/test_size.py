"""The core only gets smaller: what is new is a plugin's."""

from tests.tree.measure import code_lines, files, protocols

# code lines, without blanks, comments and docstrings; lower it with what goes
CORE = 15_240
# most of them say what objects of other libraries have; a part has one class for its kind
PROTOCOLS = 32


def test_the_core_has_no_more_code():
    assert sum(map(code_lines, files())) <= CORE, "a plugin can hold what is new, or something old can go"


def test_the_core_has_no_more_protocols():
    assert protocols()[0] <= PROTOCOLS, "name the member in the class of its kind, with a default"
