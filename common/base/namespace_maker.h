#pragma once
// NamespaceMaker: a process in which namespaces are made, and which lives until they have been
// opened.  A thread of ours could make some of them in itself, but not all (a user namespace), and
// would be left in them.
// Owns the process; one object, one thread.  Fails with errno_error.
// Source: namespaces(7), user_namespaces(7).
#include <sys/types.h>

#include <functional>
#include <string>

#include "common/base/result.h"
#include "common/base/unique_fd.h"

namespace proctor {

class NamespaceMaker {
 public:
  NamespaceMaker() = default;
  NamespaceMaker(const NamespaceMaker&) = delete;
  NamespaceMaker& operator=(const NamespaceMaker&) = delete;
  ~NamespaceMaker();

  // `make` runs between fork and _exit: async-signal-safe calls only; 0, or an errno.
  Status begin(const char* what, const std::function<int()>& make);
  // Who is in them.
  pid_t pid() const { return pid_; }
  // "user", "net": as in /proc/PID/ns.
  Result<UniqueFd> open(const char* kind) const;

 private:
  pid_t pid_ = -1;
};

}  // namespace proctor
