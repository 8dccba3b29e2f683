"""The one error this package raises for what a person wrote."""


class ScenarioError(ValueError):
    """A scenario or an override that cannot be used.

    The message is one sentence that names the field, what was given, what was expected and,
    when known, the option or file it came from.

    Parameters
    ----------
    field : str
        Dotted name of the field, such as ``satcom.delay_s``.
    problem : str
        What is wrong and what was expected, to follow the field's name.
    value : object
        What was given.
    origin : str
        Where it was given: ``--set satcom.delay_s=-1`` or a path; empty for a Python caller.
    """

    def __init__(self, field: str, problem: str, value: object = None, origin: str = "") -> None:
        self.field = field
        self.problem = problem
        self.value = value
        self.origin = origin
        place = f"{origin}: " if origin else ""
        super().__init__(f"{place}{field} {problem}" if field else f"{place}{problem}")

    def __reduce__(self) -> tuple[type["ScenarioError"], tuple[str, str, object, str]]:
        return type(self), (self.field, self.problem, self.value, self.origin)

    def at(self, origin: str) -> "ScenarioError":
        """Return the same error with the option or file that it came from."""
        return ScenarioError(self.field, self.problem, self.value, origin)
