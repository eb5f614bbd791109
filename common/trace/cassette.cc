#include "common/trace/cassette.h"

#include <map>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/trace/model_calls.h"

namespace proctor {
namespace {

Digest digest_of(const CassetteCall& call) {
  const std::string request = call.request();
  return sha256(std::to_string(request.size()) + " " + request + call.answer);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  Result<std::vector<CassetteCall>> read() {
    PROCTOR_TRY(const Json head, next());
    const auto version = head.find("proctor_cassette");
    if (version == head.end() || *version != 1 || head.size() != 2 || !head.contains("calls"))
      return wrong("expected {\"proctor_cassette\":1,\"calls\":N}");
    const std::uint64_t claimed = count_in(head, "calls");
    std::vector<CassetteCall> out;
    while (!rest_.empty()) {
      PROCTOR_TRY(const Json line, next());
      if (line.contains("piece")) {
        if (line.size() != 1 || !line["piece"].is_string()) return wrong("expected a text");
        pieces_.push_back(line["piece"].get<std::string>());
        continue;
      }
      PROCTOR_TRY(CassetteCall call, call_of(line, out.size() + 1));
      if (kCassetteCalls <= out.size()) return wrong("too many calls");
      out.push_back(std::move(call));
    }
    if (out.size() != claimed)
      return wrong("holds " + std::to_string(out.size()) + " calls where its first line says " +
                   std::to_string(claimed));
    return out;
  }

 private:
  Error wrong(const std::string& what) const {
    return {Errc::kInvalid, "line " + std::to_string(line_) + ": " + what};
  }
  Result<Json> next() {
    ++line_;
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return wrong("no end of the line");
    Result<Json> line = parse_json(rest_.substr(0, end), {.bytes_max = kCassetteBytes});
    rest_.remove_prefix(end + 1);
    if (!line.ok()) return wrong(line.error().detail);
    if (!line->is_object()) return wrong("expected an object");
    return line;
  }
  Result<std::vector<std::string>> texts(const Json& line, const char* member) {
    std::vector<std::string> out;
    const auto it = line.find(member);
    if (it == line.end() || !it->is_array())
      return wrong(std::string(member) + ": expected a list of pieces");
    for (const Json& n : *it) {
      if (!n.is_number_unsigned() || pieces_.size() <= n.get<std::uint64_t>())
        return wrong(std::string(member) + ": no such piece");
      const std::string& piece = pieces_[n.get<std::size_t>()];
      // A line of a few bytes may name a piece a million times.
      bytes_ += piece.size() + 1;
      if (4 * kCassetteBytes < bytes_) return Error{Errc::kExhausted, "a recording of 1 GiB"};
      out.push_back(piece);
    }
    return out;
  }
  Result<CassetteCall> call_of(const Json& line, std::size_t number) {
    constexpr std::uint64_t kStatusMax = 599;
    CassetteCall call;
    if (count_in(line, "call") != number) return wrong("call: expected " + std::to_string(number));
    call.run = text_in(line, "run");
    call.route = text_in(line, "route");
    call.model = text_in(line, "model");
    const std::uint64_t status = count_in(line, "status");
    if (status < 200 || kStatusMax < status) return wrong("status: expected 200 to 599");
    call.status = static_cast<int>(status);
    call.streamed = line.value("streamed", Json(false)) == true;
    PROCTOR_TRY(call.pieces, texts(line, "request"));
    PROCTOR_TRY(const std::vector<std::string> answer, texts(line, "answer"));
    for (const std::string& piece : answer) call.answer += piece;
    if (text_in(line, "digest") != digest_of(call).hex())
      return wrong("digest: not that of request and answer: the recording was edited");
    return call;
  }

  std::string_view rest_;
  std::uint64_t line_ = 0, bytes_ = 0;
  std::vector<std::string> pieces_;
};

}  // namespace

std::string CassetteCall::request() const {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

Result<std::string> cassette_text(const std::vector<CassetteCall>& calls) {
  std::string out = Json{{"proctor_cassette", 1}, {"calls", calls.size()}}.dump() + "\n";
  std::map<std::string, std::size_t, std::less<>> known;
  const auto piece = [&](const std::string& text) {
    const auto [it, added] = known.try_emplace(text, known.size());
    if (added) out += Json{{"piece", text}}.dump() + "\n";
    return it->second;
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CassetteCall& call = calls[i];
    if (!is_utf8(call.request()) || !is_utf8(call.answer))
      return Error{Errc::kInvalid,
                   "call " + std::to_string(i + 1) + " of the recording is no UTF-8"};
    Json line = {{"call", i + 1},
                 {"run", call.run},
                 {"route", call.route},
                 {"model", call.model},
                 {"status", call.status},
                 {"streamed", call.streamed},
                 {"request", Json::array()},
                 {"answer", Json::array()},
                 {"digest", digest_of(call).hex()}};
    for (const std::string& text : call.pieces) line["request"].push_back(piece(text));
    if (!call.answer.empty()) line["answer"].push_back(piece(call.answer));
    out += line.dump() + "\n";
    if (kCassetteBytes < out.size())
      return Error{Errc::kExhausted, "a recording of more than 256 MiB: record fewer runs"};
  }
  return out;
}

Result<std::vector<CassetteCall>> parse_cassette(std::string_view text) {
  if (kCassetteBytes < text.size()) return Error{Errc::kExhausted, "more than 256 MiB"};
  return Reader(text).read();
}

Result<std::vector<CassetteCall>> load_cassette(const fs::path& file) {
  PROCTOR_TRY(const std::string text, read_file(file, kCassetteBytes));
  Result<std::vector<CassetteCall>> out = parse_cassette(text);
  if (!out.ok()) return in_context(file.string(), out.error());
  return out;
}

Result<RecordedCalls> record_calls(const fs::path& run_dir, const std::string& run) {
  PROCTOR_TRY(const std::vector<TracedCall> calls, read_model_calls(run_dir));
  PROCTOR_TRY(const SegmentReader reader, SegmentReader::open(run_dir));
  RecordedCalls out;
  for (const TracedCall& call : calls) {
    const std::uint64_t status = count_in(call.response, "status");
    if (call.request.is_null() || call.response.is_null() || status == 0) continue;
    const bool struck_out =
        call.request.contains("stored_digest") || call.response.contains("stored_digest");
    const Result<std::vector<std::string>> pieces = pieces_in(call.request, reader);
    Result<std::string> answer = answer_body(call, reader);
    if (count_in(call.response, "bytes") == 0) answer = std::string();
    if (struck_out || !pieces.ok() || !answer.ok()) {
      ++out.left_out;
      continue;
    }
    CassetteCall recorded;
    recorded.run = run;
    recorded.route = text_in(call.request, "route");
    recorded.model = text_in(call.request, "model");
    recorded.status = static_cast<int>(status);
    recorded.streamed = call.response.value("streamed", Json(false)) == true;
    for (const std::string& piece : *pieces) {
      PROCTOR_TRY(std::string bytes, reader.read(piece));
      recorded.pieces.push_back(std::move(bytes));
    }
    recorded.answer = std::move(answer).value();
    out.calls.push_back(std::move(recorded));
  }
  return out;
}

}  // namespace proctor
