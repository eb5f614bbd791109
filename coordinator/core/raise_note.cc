#include "coordinator/core/raise_note.h"

#include "common/base/json.h"

namespace proctor {

Note note_of(const BudgetRaised& r) {
  const Json detail = {{"by", r.by},         {"from", r.from.micros()}, {"name", r.name},
                       {"reason", r.reason}, {"scope", r.scope.raw()},  {"to", r.to.micros()}};
  return {r.at, kNoteBudgetRaised, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

Result<BudgetRaised> raise_of(std::string_view detail, WallTime at) {
  const auto wrong = [](const std::string& what) {
    return Error{Errc::kCorrupt, "budget_raised: " + what};
  };
  const Result<Json> parsed = parse_json(detail);
  if (!parsed.ok()) return wrong(parsed.error().detail);
  if (!parsed->is_object() || parsed->size() != 6) return wrong("not the object that is written");
  for (const char* key : {"by", "name", "reason"})
    if (!parsed->contains(key) || !(*parsed)[key].is_string())
      return wrong(std::string(key) + " is not a text");
  for (const char* key : {"from", "scope", "to"})
    if (!parsed->contains(key) || !(*parsed)[key].is_number_unsigned() ||
        static_cast<std::uint64_t>(kLedgerMax.micros()) < (*parsed)[key].get<std::uint64_t>())
      return wrong(std::string(key) + " is not an amount");
  const Json& j = *parsed;
  const auto amount = [&](const char* key) {
    return MicroUsd::from_micros(j[key].get<std::int64_t>());
  };
  const auto scope = j["scope"].get<std::uint64_t>();
  if (UINT32_MAX < scope) return wrong("scope is not an envelope");
  BudgetRaised out;
  out.scope = ScopeId(static_cast<std::uint32_t>(scope));
  out.name = j["name"].get<std::string>();
  out.from = amount("from");
  out.to = amount("to");
  out.reason = j["reason"].get<std::string>();
  out.by = j["by"].get<std::string>();
  out.at = at;
  return out;
}

Status raise_cap(std::vector<ScopeSpec>& scopes, const BudgetRaised& r) {
  const std::string what = "journal: the raise of " + r.name + " to " + format_usd_exact(r.to);
  if (scopes.size() <= r.scope.raw() || scopes[r.scope.raw()].name != r.name)
    return Error{Errc::kCorrupt, what + " is of an envelope that is not there"};
  ScopeSpec& scope = scopes[r.scope.raw()];
  if (scope.cap != r.from || r.to <= r.from)
    return Error{Errc::kCorrupt, what + " begins at " + format_usd_exact(r.from) +
                                     ", but the cap was " + format_usd_exact(scope.cap)};
  scope.cap = r.to;
  return ok_status();
}

}  // namespace proctor
