# Repairs slug.py, and edits a file that the contract protects.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
echo 'One more' >> fixtures/titles.txt
