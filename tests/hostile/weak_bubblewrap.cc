#include "tests/hostile/weak.h"

namespace proctor::testing {
namespace {

// Words are taken from the front and given back at the end, so that each is looked at once.
constexpr const char* kScript = R"(#!/bin/sh
left=$#
take() { left=$((left - $1)); }
while [ 0 -lt $left ]; do
  word=$1
  shift
  take 1
  case "$word $1" in
@CHANGES@
  *) set -- "$@" "$word" ;;
  esac
done
exec @REAL@ "$@"
)";

std::string all_but(const char* name) {
  std::string words;
  for (const char* other : {"user", "ipc", "net", "uts", "pid", "cgroup"})
    if (std::string(other) != name) words += std::string(" --unshare-") + other;
  return "  '--unshare-all '*) set -- \"$@\"" + words + " ;;\n";
}

}  // namespace

WeakKind weak_bubblewrap() {
  const std::string drop_two = " shift; take 1 ;;\n";
  WeakKind kind{"bubblewrap", "bwrap", "runc runsc"};
  kind.script = kScript;
  kind.weaknesses = {
      // One's own /proc is mounted for one's own pid namespace only.
      {"no pid namespace", "the pid namespace is the host's",
       all_but("pid") +
           "  '--as-pid-1 '*) ;;\n"
           "  '--proc /proc') shift; take 1; set -- \"$@\" --ro-bind /proc /proc ;;\n"},
      {"no ipc namespace", "the ipc namespace is the host's", all_but("ipc")},
      {"no filter", "there is no filter of system calls", "  '--seccomp '*)" + drop_two},
      {"the host's network", "the net namespace is the host's",
       "  '--unshare-all '*) set -- \"$@\" --unshare-all --share-net ;;\n"},
      {"a writable root", "its root can be written", "  '--remount-ro /')" + drop_two},
      {"capabilities", "capabilities are kept",
       "  '--cap-drop ALL') shift; take 1; set -- \"$@\" --cap-add ALL ;;\n"},
      // The last words about mounts, so that they hold beneath all others.
      {"the host's files", "/ of the host is to be seen at /srv",
       "  '--remount-ro /') shift; take 1; set -- \"$@\" --ro-bind / /srv --remount-ro / ;;\n"},
      {"a folder of the host", "/mnt of the host can be written",
       "  '--remount-ro /') shift; take 1; set -- \"$@\" --bind /mnt /mnt --remount-ro / ;;\n"},
  };
  return kind;
}

}  // namespace proctor::testing
