"""`python -m irees` is the command `irees`."""

from irees.tools.main import main

raise SystemExit(main())
