#!/bin/sh
# Without this flag (or --allowedTools) it may use no tool and ends without a change.  The user of a sandbox may be root,
# which the flag is refused to where IS_SANDBOX is not set.
exec claude -p --dangerously-skip-permissions "$PROCTOR_BRIEFING" < /dev/null
