"""The commands of `vgpu` as a group: of a name that is no command, but a word of the documents, it says what to use."""

from difflib import get_close_matches
from typing import Any, Final

from typer.core import TyperGroup

_HISTORY: Final = (
    "the history is shown by `vgpu usage` (hours and cost), `vgpu rightsize` (what was used of what was asked for) and "
    "`vgpu dashboard` (events)"
)
ELSEWHERE: Final = {"history": _HISTORY, "events": _HISTORY}


class CommandGroup(TyperGroup):
    """The commands of `vgpu`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant. Raises a usage error of typer's."""
        if args and not get_close_matches(args[0], self.commands):
            for word in get_close_matches(args[0], ELSEWHERE, n=1):
                ctx.fail(f"No such command {args[0]!r}: {ELSEWHERE[word]}.")
        return super().resolve_command(ctx, args)
