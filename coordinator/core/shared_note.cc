#include "coordinator/core/shared_note.h"

#include <utility>

#include "common/base/json.h"

namespace proctor {
namespace {

constexpr const char* kLeft = "left";
constexpr const char* kKnown = "known";

Error wrong(const std::string& what) {
  return {Errc::kCorrupt, std::string(kNoteShared) + ": " + what};
}

bool is_amount(const Json& j, const char* key) {
  return j.contains(key) && j[key].is_number_unsigned() &&
         j[key].get<std::uint64_t>() <= static_cast<std::uint64_t>(kLedgerMax.micros());
}

MicroUsd amount(const Json& j, const char* key) {
  return MicroUsd::from_micros(j[key].get<std::int64_t>());
}

Result<SharedMember> member_of(const Json& j) {
  for (const char* key : {"member", "name", "state"})
    if (!j.contains(key) || !j[key].is_string()) return wrong(std::string(key) + " is not a text");
  for (const char* key : {"ceiling", "spent"})
    if (!is_amount(j, key)) return wrong(std::string(key) + " is not an amount");
  SharedMember out;
  out.id = j["member"].get<std::string>();
  out.name = j["name"].get<std::string>();
  const std::string state = j["state"].get<std::string>();
  if (state != kLeft && state != kKnown) return wrong("an unknown state");
  out.state = state == kLeft ? SharedMember::State::kLeft : SharedMember::State::kUnheard;
  out.ceiling = amount(j, "ceiling");
  out.spent = amount(j, "spent");
  return out;
}

Note note(const Json& detail, WallTime at) {
  return {at, kNoteShared, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

}  // namespace

Note note_of(const SharedFact& fact, WallTime at) {
  if (const auto* own = std::get_if<SharedLimit>(&fact))
    return note({{"limit", own->limit.micros()}}, at);
  const auto& other = std::get<SharedMember>(fact);
  const bool left = other.state == SharedMember::State::kLeft;
  return note({{"ceiling", other.ceiling.micros()},
               {"member", other.id},
               {"name", other.name},
               {"spent", left ? other.spent.micros() : 0},
               {"state", left ? kLeft : kKnown}},
              at);
}

Result<SharedFact> shared_fact_of(const Note& note) {
  const Result<Json> parsed = parse_json(note.detail);
  if (!parsed.ok()) return wrong(parsed.error().detail);
  if (!parsed->is_object()) return wrong("not the object that is written");
  if (parsed->contains("limit")) {
    if (!is_amount(*parsed, "limit")) return wrong("limit is not an amount");
    return SharedFact(SharedLimit{amount(*parsed, "limit")});
  }
  PROCTOR_TRY(SharedMember member, member_of(*parsed));
  return SharedFact(std::move(member));
}

Result<SharedBook> shared_book_of(std::string self, const std::vector<Note>& notes) {
  SharedBook out(std::move(self));
  for (const Note& n : notes) {
    PROCTOR_TRY(const SharedFact fact, shared_fact_of(n));
    out.apply(fact);
  }
  return out;
}

}  // namespace proctor
