#!/bin/sh
# Without the flag (or --allowedTools) Claude Code may use no tool, changes nothing and ends with 0.  It refuses the flag to
# root, which agents are in some sandboxes, unless IS_SANDBOX is set, as it is here.
exec claude -p --dangerously-skip-permissions "$PROCTOR_BRIEFING" < /dev/null
