# Repairs slug.py, and leaves a blank at the end of a line.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
sed -i 's/^import sys$/import sys /' index.py
