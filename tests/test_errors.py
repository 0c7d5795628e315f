"""Errors: a sentence that ends with what would be right, and an exit code."""

from expkit.errors import ExpkitError, Interruption, Problem, SpecError, unknown


def test_a_file_says_all_that_is_wrong_in_the_order_of_its_lines() -> None:
    late, early = Problem("r.yaml", 10, 1, "b", "x"), Problem("r.yaml", 9, 3, "a.b", "y")
    assert str(SpecError([late, early, late])) == "r.yaml:9:3: a.b: y\nr.yaml:10:1: b: x"


def test_an_unknown_name_suggests_the_nearest_and_lists_the_known() -> None:
    assert unknown("algorithm", "label_smoothin", ["mixup", "label_smoothing"]) == (
        "unknown algorithm 'label_smoothin'; did you mean 'label_smoothing'? there are: label_smoothing, mixup"
    )
    assert unknown("algorithm", "zzz", []) == "unknown algorithm 'zzz'; there are: none"


def test_every_error_has_an_exit_code_of_the_documented_list() -> None:
    def tree(cls: type[ExpkitError]) -> list[type[ExpkitError]]:
        return [cls, *(below for child in cls.__subclasses__() for below in tree(child))]

    assert {cls.exit_code for cls in tree(ExpkitError)} <= {1, 2, 3, 130}
    assert Interruption("stopped", 143).exit_code == 143
