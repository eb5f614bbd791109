# Repairs slug.py, and has index.py import a module that is nowhere installed.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
sed -i 's/^import sys$/import sys\n\nimport seeded_markdown/' index.py
