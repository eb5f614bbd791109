#include "coordinator/core/gate_note.h"

#include <utility>

#include "common/base/json.h"

namespace proctor {
namespace {

Note note_of_json(WallTime at, const char* kind, const Json& detail) {
  return {at, kind, {}, {}, detail.dump(-1, Json::Utf8::kReplace)};
}

// What both have.
struct Read {
  Json detail;
  std::string stage;
  Digest digest;
};
Result<Read> read(const Note& note) {
  const auto wrong = [&](const char* what) { return Error{Errc::kCorrupt, note.kind + what}; };
  Result<Json> detail = parse_json(note.detail);
  if (!detail.ok() || !detail->is_object()) return wrong(": not an object");
  for (const char* key : {"stage", "digest"})
    if (!detail->contains(key) || !(*detail)[key].is_string())
      return wrong(": no stage, or no digest");
  const Result<Digest> digest = Digest::from_hex((*detail)["digest"].get<std::string>());
  if (!digest.ok()) return wrong(": its digest is none");
  Read out{std::move(*detail), {}, *digest};
  out.stage = out.detail["stage"].get<std::string>();
  return out;
}

}  // namespace

Note note_of(const StageChecked& f) {
  return note_of_json(f.at, kNoteStageChecked,
                      {{"stage", f.stage}, {"digest", f.digest.hex()}, {"check", f.check}});
}

Result<StageChecked> stage_checked_of(const Note& note) {
  PROCTOR_TRY(Read r, read(note));
  StageChecked out{std::move(r.stage), r.detail.value("check", Json()), r.digest, false, note.at};
  PROCTOR_TRY(out.holds, check_holds(out.check));
  const Result<std::string> text = canonical_json(out.check);
  if (!text.ok() || sha256(*text) != out.digest)
    return Error{Errc::kCorrupt, note.kind + ": its digest is another check's"};
  return out;
}

Note note_of(const StageOpened& f) {
  return note_of_json(f.at, kNoteStageOpened,
                      {{"stage", f.stage}, {"digest", f.digest.hex()}, {"by", f.by}});
}

Result<StageOpened> stage_opened_of(const Note& note) {
  PROCTOR_TRY(Read r, read(note));
  StageOpened out{std::move(r.stage), r.digest, {}, note.at};
  const auto by = r.detail.find("by");
  if (by == r.detail.end() || !by->is_array())
    return Error{Errc::kCorrupt, note.kind + ": nobody is named"};
  for (const Json& name : *by) {
    if (!name.is_string()) return Error{Errc::kCorrupt, note.kind + ": a name is none"};
    out.by.push_back(name.get<std::string>());
  }
  return out;
}

}  // namespace proctor
