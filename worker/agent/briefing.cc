#include "worker/agent/briefing.h"

#include "common/base/result.h"

namespace proctor {
namespace {

std::string_view words(CheckKind kind) {
  switch (kind) {
    case CheckKind::kBuild:
      return "the build";
    case CheckKind::kStatic:
      return "static analysis";
    case CheckKind::kUnit:
      return "unit tests";
    case CheckKind::kIntegration:
      return "integration tests";
    case CheckKind::kScript:
      return "a script";
  }
  PROCTOR_ASSERT(false);
}

void list(std::string& out, std::string_view title, const std::vector<std::string>& globs) {
  if (globs.empty()) return;
  out += title;
  for (const std::string& glob : globs) out += "\n  - " + glob;
  out += "\n";
}

}  // namespace

std::string briefing_text(const Contract& contract, const NetworkAccess& network,
                          std::chrono::milliseconds wall, const Caps& caps,
                          std::string_view model_at) {
  std::string out = "# Task\n\n";
  if (!contract.title.empty()) out += contract.title + "\n\n";
  out += contract.briefing;
  if (!out.ends_with('\n')) out += "\n";
  out +=
      "\n# Acceptance\n\nYour change to /workspace is taken as a patch and judged in a fresh "
      "checkout by:\n";
  for (const Check& check : contract.checks) {
    out += "- " + check.id + " (" + std::string(words(check.kind)) + ")\n";
  }
  list(out, "Put back before acceptance, whatever you do to them:", contract.policy.protected_);
  list(out, "You may change only:", contract.policy.writable);
  out += "\n# Limits\n\n- wall clock: " + std::to_string(wall.count() / 1000) + " s\n";
  for (const Cap cap : kCaps) {
    const auto value = cap_value(caps, cap);
    if (!value || cap == Cap::kUsd || cap == Cap::kWall) continue;
    out += "- " + std::string(to_string(cap)) + ": " + format_cap(cap, value) + "\n";
  }
  out += "- network: ";
  if (network.filtered())
    out += "only " + describe(network) + ", through the proxy in $https_proxy and $http_proxy";
  else
    out += network.open ? "available" : "none";
  if (!model_at.empty())
    out += std::string(network.any() ? ", and" : ", but for") + " the model at $" +
           std::string(model_at);
  out += "\n";
  return out;
}

}  // namespace proctor
