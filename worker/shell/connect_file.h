#pragma once
// The coordinators that a worker is told of: by --connect, and by a file or folder that people and
// programs change while it runs.
//
//   # name   addresses, tried in order                      server key   weight  priority  secrets
//   night    tcp://10.0.0.5:7400,tcp://10.0.0.6:7400        night.pub    1       5 KEY,TOKEN
//
// The last four may be left out.  A key is Z85, or a file beside this one; `-`: --server-key.
// Secrets are those that its runs may be given, of the worker's variables, and models that they may
// call: by the variable of a model's key, or as model:NAME; `-`: none, `*` as where it is left out:
// any.
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "worker/shell/stops.h"

namespace proctor {

// "tcp://a:1,tcp://b:1".  kInvalid: none.
Result<std::vector<std::string>> addresses_of(std::string_view text);

// The lines of a file, or of all files of a folder whose names do not begin with a dot, by name.
// kInvalid with "path:line: what"; kNotFound.
Result<std::vector<Stop>> read_connect_file(const fs::path& path);

}  // namespace proctor
