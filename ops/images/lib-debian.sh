# Shell helpers for the image programs of this folder.  Source it; it runs nothing by itself.
# Needs: say, fail (functions), cache (a folder), root.
#
#   debian_tarball SUITE   path of a tar of a minimal Debian system, debootstrapped from the mirror
#                          that this machine installs from itself; kept in $cache, made once

# The first http mirror of the machine's own sources, in either format, that is not the security one.
mirror_of_this_machine() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
    awk '/^deb[ \t]/ { for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) { print $i; break } }
         /^URIs:/    { for (i = 2; i <= NF; i++) print $i }' |
    grep -v -e security -e '#' | grep -m 1 -e '/debian/*$'
}

debian_tarball() {
  tarball=$cache/debian-$1-minbase.tar
  if [ ! -s "$tarball" ]; then
    mirror=$(mirror_of_this_machine) || fail "no Debian mirror in this machine's apt sources"
    say "debootstrap $1 (about a minute)"
    boot=$(mktemp -d "$cache/debootstrap.XXXXXX")
    debootstrap --variant=minbase "$1" "$boot/root" "$mirror" >"$boot/log" 2>&1 || {
      tail -n 20 "$boot/log" >&2
      rm -rf --one-file-system "$boot"
      fail "debootstrap failed"
    }
    rm -rf "$boot/root/var/cache/apt/archives" "$boot/root/var/lib/apt/lists"
    mkdir -p "$boot/root/var/cache/apt/archives/partial" "$boot/root/var/lib/apt/lists/partial"
    tar -C "$boot/root" --numeric-owner --one-file-system -cf "$boot/rootfs.tar" .
    mv "$boot/rootfs.tar" "$tarball"
    rm -rf --one-file-system "$boot"
  fi
  echo "$tarball"
}
