#pragma once
// `proctor-worker selftest [--json]`: prints the report.  0: untrusted agents may run here, 1: not,
// 2: bad use, 4: it could not be tried.

namespace proctor {

int selftest(int argc, char** argv);

}  // namespace proctor
