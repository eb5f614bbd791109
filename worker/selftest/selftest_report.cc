// What a selftest says: the text, the JSON, and the last line.
#include <algorithm>

#include "worker/selftest/selftest.h"

namespace proctor {
namespace {

using Verdict = ContainmentResult::Verdict;

std::string_view word_of(Verdict v) {
  switch (v) {
    case Verdict::kContained:
      return "contained";
    case Verdict::kEscaped:
      return "ESCAPED";
    case Verdict::kNotEnforced:
      return "NOT ENFORCED";
    case Verdict::kError:
      return "ERROR";
  }
  return "?";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string text_of(const KindReport& kind) {
  constexpr std::size_t kName = 22, kWord = 14;
  std::string text = "\nsandbox " + kind.kind + "\n";
  if (!kind.missing.empty()) return text + "  not to be had here: " + kind.missing + "\n";
  std::string limits;
  for (const auto& [limit, keeper] : kind.limits)
    limits += (limits.empty() ? "" : ", ") + limit + " by " +
              (keeper == "none" ? std::string("NOBODY") : keeper);
  text += "  limits: " + limits + "\n";
  for (const KindReport::Case& c : kind.cases) {
    text += "  " + padded(c.name, kName) + padded(std::string(word_of(c.result.verdict)), kWord) +
            c.promise + "\n";
    if (!c.result.detail.empty()) text += padded("", kName + 2) + c.result.detail + "\n";
  }
  return text;
}

}  // namespace

bool KindReport::contained() const {
  return missing.empty() && !cases.empty() && std::ranges::all_of(cases, [](const Case& c) {
           return c.result.verdict == Verdict::kContained;
         });
}

bool SelftestReport::untrusted_allowed() const {
  return std::ranges::any_of(kinds, [](const KindReport& k) { return k.contained(); });
}

std::string SelftestReport::verdict() const {
  std::vector<std::string> good, bad;
  for (const KindReport& kind : kinds) {
    if (kind.contained()) good.push_back(kind.kind);
    if (kind.missing.empty() && !kind.contained()) bad.push_back(kind.kind);
  }
  if (good.empty() && bad.empty()) return "no: this host offers no sandbox at all";
  if (good.empty()) return "no: this host must not run untrusted agents (" + list_of(bad) + ")";
  return "yes: this host may run untrusted agents under " + list_of(good) +
         (bad.empty() ? "" : ", but not under " + list_of(bad));
}

std::string selftest_text(const SelftestReport& report) {
  std::string text = "user: " + std::string(report.root ? "root" : "not root") +
                     "\ncontrol groups: " + report.cgroups + "\nworkspaces: " + report.workspaces +
                     "\ndisks: " + report.disks + "\n";
  for (const KindReport& kind : report.kinds) text += text_of(kind);
  return text + "\n" + report.verdict() + "\n";
}

Json selftest_json(const SelftestReport& report) {
  Json kinds = Json::array();
  for (const KindReport& kind : report.kinds) {
    Json cases = Json::array();
    for (const KindReport::Case& c : kind.cases)
      cases.push_back({{"name", c.name},
                       {"promise", c.promise},
                       {"verdict", word_of(c.result.verdict)},
                       {"detail", c.result.detail},
                       {"ms", c.result.took.count()}});
    kinds.push_back({{"kind", kind.kind},
                     {"missing", kind.missing},
                     {"limits", kind.limits},
                     {"contained", kind.contained()},
                     {"cases", std::move(cases)}});
  }
  return {{"root", report.root},
          {"control_groups", report.cgroups},
          {"workspaces", report.workspaces},
          {"disks", report.disks},
          {"kinds", std::move(kinds)},
          {"ms", report.took.count()},
          {"untrusted_agents", report.untrusted_allowed()},
          {"verdict", report.verdict()}};
}

}  // namespace proctor
