# Repairs slug.py, and runs the tests again and again until its time is over.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
while :; do
  python3 t/slug.t > /dev/null
  sleep 0.2
done
