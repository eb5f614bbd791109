# Repairs slug.py, and does nothing else.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
