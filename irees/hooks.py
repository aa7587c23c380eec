"""What a caller has the pipeline call while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A cached program is read without xDSL.
    from xdsl.dialects.builtin import ModuleOp

    from irees.dialects.flow import ExecutableOp

Listener = Callable[[str, "ModuleOp", float], None]
Announcement = Callable[[str, "ModuleOp"], None]
Ready = Callable[["ModuleOp", "ExecutableOp"], None]


@dataclass(frozen=True)
class Hooks:
    """The callbacks of a run of the pipeline. They may change the module."""

    before: Announcement | None = None
    """Called before each pass with its name and the module."""
    listener: Listener | None = None
    """Called after each pass with its name, the module and its run time in seconds."""
    after: Listener | None = None
    """Called after each phase with its name, the module and 0."""
    ready: Ready | None = None
    """Called with the program and one of its executables, once all passes of a phase ran on it."""
    restarted: Callable[[], None] | None = None
    """Called when a pass failed and the pipeline starts over on the original module."""

    @property
    def observe(self) -> bool:
        """Whether a callback observes passes or phases: such a run is not cached."""
        return any(each is not None for each in (self.before, self.listener, self.after))

    def restart(self) -> None:
        """Says that the pipeline starts over."""
        if self.restarted is not None:
            self.restarted()


NO_HOOKS = Hooks()
