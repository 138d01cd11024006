"""What comments above kernels say of where they come from."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from tapestry.codegen.vocabulary import LONGEST_LINE, comment
from tapestry.locations import fuse_locations
from tapestry.passes.triton.host.comments import origin


def at(*places):
    return fuse_locations(
        *(FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(1)) for file, line in places)
    )


def test_each_file_is_named_once_with_its_lines():
    places = at(("a.py", 9), ("a.py", 3), ("b.py", 4), ("a.py", 9))
    assert origin("step", places) == "step, a.py:3, 9, b.py:4"


def test_members_of_a_group_on_the_same_lines_have_their_names_alone():
    whole = at(("a.py", 9), ("a.py", 3))
    assert origin("peak", at(("a.py", 3), ("a.py", 9)), whole) == "peak"
    assert origin("peak", at(("a.py", 3)), whole) == "peak, a.py:3"


def test_long_comments_are_several_lines():
    lines = comment("  " + ", ".join(f"folder/file.py:{n}" for n in range(20)))
    assert len(lines) > 1
    assert max(map(len, lines)) <= LONGEST_LINE
    assert lines[0].startswith("#   folder")
    assert all(line.startswith("#       folder") for line in lines[1:])
    # Nothing in a label ends a comment.
    assert comment("a\nimport os") == ["# a\\nimport os"]
