# Repairs slug.py, and asks for a namespace of mounts.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
unshare --mount true || true
