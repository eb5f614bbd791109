# Repairs slug.py, and connects to an address that is documentation's (RFC 5737), without a network.
set -eu
sed -i 's/return .*/return "-".join(title.lower().split())/' slug.py
python3 - <<'END' || true
import socket

socket.create_connection(("203.0.113.7", 80), timeout=2)
END
