#pragma once
// Words of rationales, for the files of RunLifecycle.  Internal to this room.
#include <string>
#include <utility>

#include "common/base/limits.h"
#include "worker/core/run_lifecycle.h"

namespace proctor {

inline std::string with_words(std::string what, const std::string& words) {
  return words.empty() ? what : std::move(what) + "; " + words;
}

// Without what differs between two times that it fails in the same way.
inline std::string cause_of(const std::string& what, const ProgramEnd& e) {
  return what + ": " +
         (e.end == ExecEnd::kTimedOut ? std::string("stopped at its time limit") : e.describe());
}

inline std::string bounded(std::string text) {
  if (limits::kDetailBytes < text.size()) text.resize(limits::kDetailBytes);
  return text;
}

}  // namespace proctor
