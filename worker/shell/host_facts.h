#pragma once
// What a manifest says about the machine an attempt runs on (R045, R070, R077).  Reads the host's
// files; package versions once per process.  Thread-safe.  What cannot be read is left out.
#include <map>
#include <string>
#include <vector>

#include "common/base/files.h"

namespace proctor {
struct HostFacts {
  std::string cpu_class, memory_class;  // "x86_64, 2 cores", "8 GiB"
  std::string kernel, os;
};
HostFacts host_facts();

// Of this run of the kernel: what was written under another one may have been lost in part.
// "unknown" where it cannot be told, which no two have in common.
std::string kernel_boot();

// Versions of the interpreters, compilers and package managers among the host's Debian packages,
// which a bubblewrap sandbox shows; under "dpkg" also the digest of the list of all packages, so
// that two hosts with the same one are the same.  Empty where there is no dpkg.
const std::map<std::string, std::string>& host_packages();
// The same from the text of /var/lib/dpkg/status.
std::map<std::string, std::string> packages_of(std::string_view dpkg_status);

// The version of a toolchain's folder, without running anything of it: first line of VERSION (Go),
// `version` of pyvenv.cfg (Python), else the name of the folder it resolves to ("3.11.7",
// "stable-x86_64-unknown-linux-gnu").
std::string toolchain_version(const fs::path& folder);

// What a bubblewrap sandbox shows of this host, in words that change when it is changed by the
// usual ways: a package, something put into /usr/local or into one of these toolchains.
std::vector<std::string> shown_host(const std::vector<fs::path>& toolchains);
}  // namespace proctor
