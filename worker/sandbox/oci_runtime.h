#pragma once
// Which program starts containers from a bundle: runc, which the Docker Engine uses too, or runsc,
// whose containers have a kernel of their own in user space (runsc.h). Blocking; any thread.
// Source: "runtime command line interface" of the OCI; runc(8), runsc flags(1).
#include <string>

#include "common/base/files.h"
#include "common/base/result.h"

namespace proctor {

inline constexpr const char* kRunc = "runc";
inline constexpr const char* kRunsc = "runsc";

// `wanted`: "runc", "runsc", or empty: runc.  kInvalid: another name; kUnavailable: it is not
// there, with what would help.
Result<fs::path> find_oci_runtime(const std::string& wanted);

}  // namespace proctor
