#pragma once
// Which program starts containers from a bundle: runc, which the Docker Engine uses too, or crun;
// or runsc, whose containers have a kernel of their own in user space (runsc.h). Blocking; any
// thread. Source: "runtime command line interface" of the OCI; runc(8), crun(1), runsc flags(1).
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

// By what `crun --version` says: does it keep a container's control group after its end (`--keep`,
// since 1.15), where what was used is read?
bool crun_keeps(std::string_view version);

inline constexpr const char* kRunc = "runc";
inline constexpr const char* kRunsc = "runsc";

// `wanted`: "runc", "crun", "runsc", or empty: runc, and crun where there is no runc.
// kInvalid: another name; kUnavailable: none that works, with what would help.
Result<fs::path> find_oci_runtime(const std::string& wanted);

}  // namespace proctor
