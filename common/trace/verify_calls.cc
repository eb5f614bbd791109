#include "common/trace/verify_calls.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/trace/evidence.h"

namespace proctor {
namespace {

constexpr std::uint64_t kEventsOfCalls = 20'000;  // of one session
// A trace may name the same pieces a million times: what is hashed in all is bounded, beyond it a
// piece is only looked for.
constexpr std::uint64_t kHashedMax = std::uint64_t{2} << 30;

}  // namespace

const SegmentReader* ModelCallAudit::reader() {
  if (!reader_ && !unreadable_) {
    Result<SegmentReader> opened = SegmentReader::open(dir_);
    unreadable_ = !opened.ok();
    if (opened.ok())
      reader_ = std::move(opened).value();
    else
      problem_(kSegmentIndexFile, opened.error().detail, 0);
  }
  return reader_ ? &*reader_ : nullptr;
}

void ModelCallAudit::on(const Event& event, std::uint64_t line) {
  if (event.type == "gateway.open") {
    open_.clear();
    charged_ = 0;
    all_listed_ = true;
    in_pieces_ = event.payload.value("pieces", Json(false)) == true;
  }
  if (event.type == "model.request") request(event.payload, line);
  if (event.type == "model.response") response(event.payload, line);
  if (event.type == "gateway.closed") closed(event.payload, line);
}

void ModelCallAudit::check_body(const std::string& claimed, const std::vector<std::string>& pieces,
                                std::uint64_t line) {
  const SegmentReader* kept = reader();
  if (kept == nullptr) return;
  std::string whole;
  for (const std::string& piece : pieces) {
    if (kHashedMax < hashed_) {
      if (!kept->has(piece))
        return problem_(kEventsFile, "no piece " + printable(piece, 64) + " is kept", line);
      continue;
    }
    const Result<std::string> bytes = kept->read(piece);
    if (!bytes.ok()) return problem_(kEventsFile, bytes.error().detail, line);
    hashed_ += 2 * bytes->size();
    whole += *bytes;
  }
  if (hashed_ <= kHashedMax && sha256(whole).hex() != claimed)
    problem_(kEventsFile, "the pieces that were kept make another text than the event says", line);
}

void ModelCallAudit::request(const Json& p, std::uint64_t line) {
  const std::uint64_t call = count_in(p, "call");
  if (!open_.insert(call).second) problem_(kEventsFile, "a call for the second time", line);
  if (kEventsOfCalls <= call) all_listed_ = false;
  if (!in_pieces_ || p.value("kept", Json(false)) != true) return;
  const SegmentReader* kept = reader();
  if (kept == nullptr) return;
  const Result<std::vector<std::string>> pieces = pieces_in(p, *kept);
  if (!pieces.ok()) return problem_(kEventsFile, pieces.error().detail, line);
  const std::string stored = text_in(p, "stored_digest");
  check_body(stored.empty() ? text_in(p, "digest") : stored, *pieces, line);
}

void ModelCallAudit::response(const Json& p, std::uint64_t line) {
  if (open_.erase(count_in(p, "call")) == 0)
    problem_(kEventsFile, "an answer to a call that was not made", line);
  charged_ += count_in(p, "charged_micros");
  if (!in_pieces_ || p.value("kept", Json(false)) != true) return;
  const std::string stored = text_in(p, "stored_digest");
  const std::string piece = stored.empty() ? text_in(p, "digest") : stored;
  check_body(piece, {piece}, line);
}

void ModelCallAudit::closed(const Json& p, std::uint64_t line) {
  if (!open_.empty()) problem_(kEventsFile, "the gateway closed while a call had no end", line);
  const std::uint64_t said = count_in(p, "charged_micros");
  if (all_listed_ && said != charged_)
    problem_(kEventsFile,
             "the gateway told " + std::to_string(said) +
                 " micro-dollars where its calls come to " + std::to_string(charged_),
             line);
}

}  // namespace proctor
