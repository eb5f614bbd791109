# Repairs slug.py, and leaves the markers of a merge in the README.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
{
  printf '<<<<<<< ours\n'
  cat README.md
  printf '=======\nslug(title) names a page.\n>>>>>>> theirs\n'
} > merged
mv merged README.md
