#include "worker/gateway/call_evidence.h"

#include <utility>

#include "common/base/digest.h"

namespace proctor {
namespace {

// The digest under which it lies; `ok` false: there was no room.
std::string keep(GatewaySession::Shared& shared, std::string_view text, std::string& whole,
                 bool& ok) {
  const std::string stored = shared.redacted(text);
  const std::string digest = sha256(stored).hex();
  ok = shared.hooks.keep(digest, stored) && ok;
  whole += stored;
  return digest;
}

}  // namespace

void keep_request(GatewaySession::Shared& shared, const std::string& body, const BodyPeek& peek,
                  CallRecord& r) {
  r.digest = sha256(body).hex();
  bool ok = true;
  std::string whole;
  for (const JsonSpan& piece : pieces_of(body.size(), peek.cuts))
    r.pieces.push_back(
        keep(shared, std::string_view(body).substr(piece.at, piece.size), whole, ok));
  if (whole != body) r.stored_digest = sha256(whole).hex();
  if (kPiecesListed < r.pieces.size()) {
    std::string list, ignored;
    for (const std::string& digest : r.pieces) list += digest + "\n";
    r.pieces_list = keep(shared, list, ignored, ok);
  }
  r.kept = ok;
  for (const PeekedResult& result : peek.results) {
    if (kToolCallsMax <= r.results.size()) break;
    if (!shared.is_first_result(result.id)) continue;
    const auto said = std::string_view(body).substr(result.content.at, result.content.size);
    r.results.push_back({result.id, "", sha256(said).hex(), said.size()});
  }
}

void keep_answer(GatewaySession::Shared& shared, const std::string& body, CallRecord& r) {
  r.answer_bytes = body.size();
  bool ok = true;
  std::string whole;
  r.answer_digest = keep(shared, body, whole, ok);
  r.answer_kept = ok;
  if (whole == body) return;
  r.answer_stored_digest = std::exchange(r.answer_digest, sha256(body).hex());
}

void strike_out(std::string& text, const std::string& secret) {
  if (secret.empty()) return;
  for (std::size_t at = text.find(secret); at != std::string::npos; at = text.find(secret, at + 3))
    text.replace(at, secret.size(), "***");
}

std::vector<ToolTold> told_of(const std::vector<ToolCall>& calls) {
  std::vector<ToolTold> out;
  for (const ToolCall& c : calls)
    out.push_back({c.id, c.name, sha256(c.arguments).hex(), c.arguments.size()});
  return out;
}

}  // namespace proctor
