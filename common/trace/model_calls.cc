#include "common/trace/model_calls.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/json_fields.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/trace/event.h"

namespace proctor {
namespace {
constexpr std::size_t kHex = 64;
constexpr std::size_t kIndexBytes = std::size_t{64} << 20;

std::size_t whole_lines(std::string_view text) {
  const std::size_t end = text.rfind('\n');
  return end == std::string_view::npos ? 0 : end + 1;
}

bool write_at(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}
}  // namespace

Result<SegmentIndex> parse_segment_index(std::string_view text) {
  SegmentIndex out;
  std::uint64_t end = 0;
  text = text.substr(0, whole_lines(text));
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    std::string_view line = take_until(text, '\n');
    const auto wrong = [&](const char* what) {
      return Error{Errc::kCorrupt, "line " + std::to_string(number) + ": " + what};
    };
    const std::string_view digest = line.substr(0, std::min(line.size(), kHex));
    if (!Digest::from_hex(digest).ok()) return wrong("no digest");
    line.remove_prefix(digest.size());
    SegmentPlace place;
    if (!take_word(line, " ") || !take_number(line, place.offset) || !take_word(line, " ") ||
        !take_number(line, place.bytes) || !line.empty())
      return wrong("expected DIGEST OFFSET LENGTH");
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    if (place.offset != end || place.bytes == 0 || kMost < place.bytes)
      return wrong("does not follow the line before");
    end += place.bytes;
    if (kSegmentsMax <= out.size()) return wrong("too many");
    if (!out.emplace(digest, place).second) return wrong("a digest for the second time");
  }
  return out;
}

Result<SegmentWriter> SegmentWriter::open(fs::path run_dir, std::uint64_t bytes_max) {
  SegmentWriter out(std::move(run_dir), bytes_max);
  std::error_code ec;
  if (!fs::exists(out.dir_ / kSegmentIndexFile, ec)) return out;
  PROCTOR_TRY(const std::string text, read_file(out.dir_ / kSegmentIndexFile, kIndexBytes));
  PROCTOR_TRY(out.known_, parse_segment_index(text));
  out.index_end_ = whole_lines(text);
  for (const auto& [digest, place] : out.known_)
    out.end_ = std::max(out.end_, place.offset + place.bytes);
  return out;
}

bool SegmentWriter::begin() {
  if (segments_.valid()) return true;
  if (!make_dirs(dir_ / kSaidDir).ok()) return false;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  constexpr mode_t kMode = 0644;
  UniqueFd segments(::open((dir_ / kSegmentsFile).c_str(), kFlags, kMode));
  UniqueFd index(::open((dir_ / kSegmentIndexFile).c_str(), kFlags, kMode));
  if (!segments.valid() || !index.valid()) return false;
  if (::ftruncate(segments.get(), static_cast<off_t>(end_)) != 0 ||
      ::ftruncate(index.get(), static_cast<off_t>(index_end_)) != 0)
    return false;
  segments_ = std::move(segments);
  index_ = std::move(index);
  return true;
}

bool SegmentWriter::put(const std::string& digest, std::string_view bytes) {
  if (known_.contains(digest)) return true;
  if (bytes.empty() || kSegmentsMax <= known_.size() || bytes_max_ < end_ + bytes.size())
    return false;
  if (!begin() || !write_at(segments_.get(), bytes, end_)) return false;
  const std::string line =
      digest + " " + std::to_string(end_) + " " + std::to_string(bytes.size()) + "\n";
  if (!write_at(index_.get(), line, index_end_)) return false;
  known_.emplace(digest, SegmentPlace{end_, bytes.size()});
  end_ += bytes.size();
  index_end_ += line.size();
  return true;
}

Result<SegmentReader> SegmentReader::open(const fs::path& run_dir) {
  const fs::path index = run_dir / kSegmentIndexFile;
  std::error_code ec;
  if (!fs::exists(index, ec)) return SegmentReader({}, {});
  PROCTOR_TRY(const std::string text, read_file(index, kIndexBytes));
  Result<SegmentIndex> known = parse_segment_index(text);
  if (!known.ok()) return in_context(kSegmentIndexFile, known.error());
  UniqueFd fd(::open((run_dir / kSegmentsFile).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno_error(kSegmentsFile, errno);
  std::uint64_t end = 0;
  for (const auto& [digest, place] : *known) end = std::max(end, place.offset + place.bytes);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(kSegmentsFile, errno);
  if (static_cast<std::uint64_t>(status.st_size) < end)
    return Error{Errc::kCorrupt, std::string(kSegmentsFile) + ": shorter than its index says"};
  return SegmentReader(std::move(fd), std::move(known).value());
}

Result<std::string> SegmentReader::read(std::string_view digest) const {
  const auto it = index_.find(digest);
  if (it == index_.end())
    return Error{Errc::kNotFound, "no piece " + printable(digest, kHex) + " is kept"};
  std::string out(static_cast<std::size_t>(it->second.bytes), '\0');
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t n = ::pread(fd_.get(), out.data() + at, out.size() - at,
                              static_cast<off_t>(it->second.offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error{Errc::kCorrupt, std::string(kSegmentsFile) + ": ends within a piece"};
    at += static_cast<std::size_t>(n);
  }
  if (sha256(out).hex() != digest)
    return Error{Errc::kCorrupt, std::string(kSegmentsFile) + ": a piece is not what its digest " +
                                     std::string(digest) + " says"};
  return out;
}

constexpr std::size_t kPiecesMax = 200'000;  // of one body

std::uint64_t count_in(const Json& payload, const char* member) {
  const auto it = payload.find(member);
  if (it == payload.end() || !it->is_number_integer()) return 0;
  if (it->is_number_unsigned()) return it->get<std::uint64_t>();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(it->get<std::int64_t>(), 0));
}

std::string text_in(const Json& payload, const char* member) {
  const auto it = payload.find(member);
  return it != payload.end() && it->is_string() ? it->get<std::string>() : "";
}

Result<std::vector<std::string>> pieces_in(const Json& request, const SegmentReader& reader) {
  std::vector<std::string> out;
  if (const std::string list = text_in(request, "pieces_list"); !list.empty()) {
    PROCTOR_TRY(const std::string lines, reader.read(list));
    std::string_view rest = lines;
    while (!rest.empty() && out.size() < kPiecesMax) out.emplace_back(take_until(rest, '\n'));
    return out;
  }
  const auto it = request.find("pieces");
  if (it == request.end() || !it->is_array())
    return Error{Errc::kNotFound, "what was said was not kept"};
  for (const Json& piece : *it)
    if (piece.is_string()) out.push_back(piece.get<std::string>());
  return out;
}

Result<TracedModels> read_models(const fs::path& run_dir) {
  TracedModels all;
  std::vector<TracedCall>& out = all.calls;
  std::string why;                            // of the alert before
  std::map<std::uint64_t, std::size_t> open;  // by number
  std::uint32_t life = 0;
  std::uint64_t listed = 0;  // refusals of this life
  PROCTOR_CHECK_OK(each_event(run_dir, [&](const TraceEvent& event) {
    if (event.type == "gateway.open") {
      ++life;
      open.clear();
      listed = 0;
    }
    if (event.type == "gateway.closed") {
      const std::uint64_t refused = count_in(event.payload, "refused");
      all.unlisted.all += refused - std::min(refused, std::exchange(listed, 0));
      all.unlisted.wrong_tokens += count_in(event.payload, "wrong_tokens");
      all.unlisted.unknown_routes += count_in(event.payload, "unknown_routes");
    }
    if (event.type == "meter" && text_in(event.payload, "action") == "llm_request")
      all.metered +=
          event.payload.contains("answer") && event.payload["answer"].contains("granted_micros");
    if (event.type == "monitor.alert") why = text_in(event.payload, "why");
    if (event.type == "monitor.intervention" && event.payload.contains("breaker"))
      all.trips.push_back(
          {event.seq, text_in(event.payload, "breaker"), text_in(event.payload, "action"), why});
    const bool begins = event.type == "model.request", ends = event.type == "model.response";
    const bool refused = event.type == "model.refused";
    if (!begins && !ends && !refused) return;
    listed += refused ? 1 : 0;
    const std::uint64_t number = count_in(event.payload, "call");
    auto at = open.find(number);
    if (begins || at == open.end()) {
      at = open.insert_or_assign(number, out.size()).first;
      TracedCall& call = out.emplace_back();
      call.life = life;
      call.number = number;
    }
    TracedCall& call = out[at->second];
    (begins ? call.request_seq : call.end_seq) = event.seq;
    (begins ? call.request : ends ? call.response : call.refused) = event.payload;
  }));
  return all;
}

Result<std::vector<TracedCall>> read_model_calls(const fs::path& run_dir) {
  PROCTOR_TRY(TracedModels all, read_models(run_dir));
  return std::move(all.calls);
}

Result<std::string> request_body(const TracedCall& call, const SegmentReader& reader) {
  if (call.request.is_null()) return Error{Errc::kNotFound, "it was refused before it was kept"};
  PROCTOR_TRY(const std::vector<std::string> pieces, pieces_in(call.request, reader));
  std::string out;
  for (const std::string& piece : pieces) {
    PROCTOR_TRY(const std::string bytes, reader.read(piece));
    out += bytes;
  }
  return out;
}

Result<std::string> answer_body(const TracedCall& call, const SegmentReader& reader) {
  if (call.response.is_null()) return Error{Errc::kNotFound, "it has no answer"};
  const std::string stored = text_in(call.response, "stored_digest");
  return reader.read(stored.empty() ? text_in(call.response, "digest") : stored);
}

// Recordings of calls (cassettes).

namespace {
Digest digest_of(const CassetteCall& call) {
  const std::string request = call.request();
  return sha256(std::to_string(request.size()) + " " + request + call.answer);
}

struct CassetteHead {
  std::uint64_t calls = 0;
};
void fields(auto& v, Is<CassetteHead> auto& h) {
  v.follows("proctor_cassette", 1);
  v("calls", h.calls);
}

struct CassettePiece {
  std::string text{};
};
void fields(auto& v, Is<CassettePiece> auto& p) {
  v("piece", p.text);
}

struct CassetteLine {
  std::uint64_t number = 0;
  CassetteCall call{};
  std::vector<std::uint64_t> request{}, answer{};  // pieces
  Digest digest{};
};
void fields(auto& v, Is<CassetteLine> auto& l) {
  v("call", l.number);
  v("run", l.call.run);
  v("route", l.call.route);
  v("model", l.call.model);
  v("status", l.call.status);
  v.require(200 <= l.call.status && l.call.status <= 599, "status", "expected 200 to 599");
  v("streamed", l.call.streamed, kLater);
  v("request", l.request);
  v("answer", l.answer);
  v("digest", l.digest);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  Result<std::vector<CassetteCall>> read() {
    PROCTOR_TRY(const Json first, next());
    const Result<CassetteHead> head = from_json<CassetteHead>(first);
    if (!head.ok()) return wrong("expected {\"proctor_cassette\":1,\"calls\":N}");
    std::vector<CassetteCall> out;
    while (!rest_.empty()) {
      PROCTOR_TRY(const Json line, next());
      if (line.contains("piece")) {
        Result<CassettePiece> piece = from_json<CassettePiece>(line);
        if (!piece.ok()) return wrong(piece.error().detail);
        pieces_.push_back(std::move(piece->text));
        continue;
      }
      PROCTOR_TRY(CassetteCall call, call_of(line, out.size() + 1));
      if (kCassetteCalls <= out.size()) return wrong("too many calls");
      out.push_back(std::move(call));
    }
    if (out.size() != head->calls)
      return wrong("holds " + std::to_string(out.size()) + " calls where its first line says " +
                   std::to_string(head->calls));
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
  Result<std::vector<std::string>> texts(const std::vector<std::uint64_t>& numbers,
                                         const char* member) {
    std::vector<std::string> out;
    for (const std::uint64_t n : numbers) {
      if (pieces_.size() <= n) return wrong(std::string(member) + ": no such piece");
      // A line of a few bytes may name a piece a million times.
      bytes_ += pieces_[n].size() + 1;
      if (4 * kCassetteBytes < bytes_) return Error{Errc::kExhausted, "a recording of 1 GiB"};
      out.push_back(pieces_[n]);
    }
    return out;
  }
  Result<CassetteCall> call_of(const Json& json, std::size_t number) {
    Result<CassetteLine> line = from_json<CassetteLine>(json);
    if (!line.ok()) return wrong(line.error().detail);
    if (line->number != number) return wrong("call: expected " + std::to_string(number));
    CassetteCall& call = line->call;
    PROCTOR_TRY(call.pieces, texts(line->request, "request"));
    PROCTOR_TRY(const std::vector<std::string> answer, texts(line->answer, "answer"));
    for (const std::string& piece : answer) call.answer += piece;
    if (line->digest != digest_of(call))
      return wrong("digest: not that of request and answer: the recording was edited");
    return std::move(call);
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
  std::string out;
  const auto add = [&out](const auto& line) { out += to_json(line).dump() + "\n"; };
  add(CassetteHead{calls.size()});
  std::map<std::string, std::uint64_t, std::less<>> known;
  const auto piece = [&](const std::string& text) {
    const auto [it, added] = known.try_emplace(text, known.size());
    if (added) add(CassettePiece{text});
    return it->second;
  };
  for (const CassetteCall& call : calls) {
    CassetteLine line{.number = static_cast<std::uint64_t>(&call - calls.data()) + 1, .call = call};
    if (!is_utf8(call.request()) || !is_utf8(call.answer))
      return Error{Errc::kInvalid,
                   "call " + std::to_string(line.number) + " of the recording is no UTF-8"};
    for (const std::string& text : call.pieces) line.request.push_back(piece(text));
    if (!call.answer.empty()) line.answer.push_back(piece(call.answer));
    line.digest = digest_of(call);
    add(line);
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
