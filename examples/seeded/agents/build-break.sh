# Repairs slug.py, and leaves index.py as no Python.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
sed -i 's/^for line in sys.stdin:/for line in sys.stdin/' index.py
