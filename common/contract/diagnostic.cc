#include "common/contract/diagnostic.h"

#include "common/base/git_program.h"
#include "common/base/limits.h"
#include "common/base/text.h"

namespace proctor {

std::string to_string(const Diagnostic& d) {
  const auto safe = [](const std::string& s) {
    return printable(redact_urls(s), limits::kDetailBytes);
  };
  std::string out = safe(d.file) + ":" + std::to_string(d.at.line) + ":" +
                    std::to_string(d.at.column) + ": " +
                    (d.field.empty() ? "document" : safe(d.field)) + ": found " + safe(d.found) +
                    ", expected " + safe(d.expected);
  if (!d.suggestion.empty()) out += " (did you mean \"" + safe(d.suggestion) + "\"?)";
  return out;
}

void Diagnostics::add(Diagnostic diagnostic) {
  ++count_;
  if (kept_.size() < kKept) kept_.push_back(std::move(diagnostic));
}

std::string Diagnostics::text() const {
  std::string out;
  for (const Diagnostic& d : kept_) out += to_string(d) + "\n";
  if (kept_.size() < count_) out += "... and " + std::to_string(count_ - kept_.size()) + " more\n";
  return out;
}

}  // namespace proctor
