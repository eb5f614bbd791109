// What a selftest says: the text, the JSON, and the last line.
#include <algorithm>
#include <utility>

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
    case Verdict::kNotTried:
      return "NOT TRIED";
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
  if (!kind.offered()) return text + "  not to be had here: " + kind.missing + "\n";
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

// The names of the cases that ended so.
std::string cases_of(const KindReport& kind, Verdict verdict) {
  std::vector<std::string> names;
  for (const KindReport::Case& c : kind.cases)
    if (c.result.verdict == verdict) names.push_back(c.name);
  return list_of(names);
}

// For the worst that was found.
std::string advice(const KindReport& kind) {
  if (!cases_of(kind, Verdict::kEscaped).empty())
    return "run no agent under it: mend, update or remove what starts it "
           "(bwrap, runc, the Docker Engine, the kernel), then try again";
  if (!cases_of(kind, Verdict::kNotEnforced).empty())
    return "run the worker as root on a host with control groups, or trust its agents";
  if (!cases_of(kind, Verdict::kError).empty()) return "see the errors above";
  return "run the worker where it sees the processes of its sandboxes";
}

}  // namespace

bool KindReport::contained() const {
  return offered() && !cases.empty() && std::ranges::all_of(cases, [](const Case& c) {
           return c.result.verdict == Verdict::kContained;
         });
}

std::string KindReport::told() const {
  if (!offered()) return kind + ": not offered here (" + missing + ")";
  if (contained()) return kind + ": every attack was contained";
  std::string text;
  for (const auto& [verdict, word] :
       {std::pair(Verdict::kEscaped, "escaped: "),
        std::pair(Verdict::kNotEnforced, "nobody keeps: "), std::pair(Verdict::kError, "errors: "),
        std::pair(Verdict::kNotTried, "not tried: ")})
    if (const std::string names = cases_of(*this, verdict); !names.empty())
      text += (text.empty() ? "" : "; ") + std::string(word) + names;
  return kind + ": " + (text.empty() ? "nothing was tried" : text) + ": " + advice(*this);
}

bool SelftestReport::untrusted_allowed() const {
  const auto offered = [](const KindReport& k) { return k.offered(); };
  const auto fit = [](const KindReport& k) { return !k.offered() || k.contained(); };
  return std::ranges::any_of(kinds, offered) && std::ranges::all_of(kinds, fit);
}

std::string SelftestReport::verdict() const {
  std::vector<std::string> good, bad;
  for (const KindReport& kind : kinds) {
    if (kind.contained()) good.push_back(kind.kind);
    if (kind.offered() && !kind.contained()) bad.push_back(kind.kind);
  }
  if (good.empty() && bad.empty()) return "no: this host offers no sandbox at all";
  if (good.empty()) return "no: this host must not run untrusted agents (" + list_of(bad) + ")";
  if (!bad.empty())
    return "no: this host must not run untrusted agents under " + list_of(bad) +
           ", which it offers; under " + list_of(good) + " it could";
  return "yes: this host may run untrusted agents under " + list_of(good);
}

std::string selftest_text(const SelftestReport& report) {
  std::string text = "user: " + std::string(report.root ? "root" : "not root") +
                     "\ncontrol groups: " + report.cgroups + "\nworkspaces: " + report.workspaces +
                     "\ndisks: " + report.disks + "\n";
  for (const KindReport& kind : report.kinds) text += text_of(kind);
  text += "\n";
  for (const KindReport& kind : report.kinds) text += kind.told() + "\n";
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
                     {"told", kind.told()},
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
