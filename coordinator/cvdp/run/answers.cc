#include "coordinator/cvdp/run/answers.h"

#include <cstdio>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cvdp/dataset/import.h"
#include "coordinator/cvdp/run/evidence.h"
#include "coordinator/cvdp/run/parts.h"

namespace proctor::cli {
namespace {

// As much as a worker takes of a model (worker/model/model.h).
constexpr std::size_t kAnswerBytes = std::size_t{16} << 20;
constexpr std::size_t kLineBytes = std::size_t{128} << 20;

std::string too_large(std::size_t bytes) {
  return "its answer has " + std::to_string(bytes >> 20) + " MiB, more than " +
         std::to_string(kAnswerBytes >> 20);
}

// Each line that is a mapping; the others are told and left out.
Status read_lines(const std::string& file, Sha256& sum,
                  const std::function<bool(const cvdp::Object&)>& take) {
  cvdp::LineFeed lines(kLineBytes);
  const auto line = [&](const cvdp::LineFeed::Line& l) {
    const auto say = [&](const std::string& what) {
      std::fprintf(stderr, "%s:%llu: left out: %s\n", file.c_str(),
                   static_cast<unsigned long long>(l.number), what.c_str());
    };
    if (l.too_long) return say("the line has more than 128 MiB");
    const Result<cvdp::Value> value = cvdp::read_json(l.text);
    if (!value.ok()) return say(printable(value.error().detail, 500));
    if (value->object() == nullptr || !take(*value->object())) say("it is no stored answer");
  };
  PROCTOR_CHECK_OK(read_pieces(file, [&](std::string_view piece) {
    sum.update(piece);
    lines.feed(piece, line);
    return ok_status();
  }));
  lines.finish(line);
  return ok_status();
}

bool is_folder(const fs::path& path) {
  std::error_code ec;
  return fs::is_directory(path, ec);
}
bool is_there(const fs::path& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

}  // namespace

void StoredAnswers::add(const std::string& id, std::size_t sample, cvdp::GivenAnswer answer) {
  auto& list = answers_[id];
  if (list.size() <= sample) list.resize(sample + 1);
  list[sample] = std::move(answer);
}

Result<StoredAnswers> StoredAnswers::completions(const std::string& file) {
  StoredAnswers out;
  out.source_ = file;
  PROCTOR_CHECK_OK(out.read_completions(file));
  return out;
}

Status StoredAnswers::read_completions(const std::string& file) {
  Sha256 sum;
  PROCTOR_CHECK_OK(read_lines(file, sum, [this](const cvdp::Object& line) {
    const std::string* id = cvdp::text_at(line, "id");
    const std::string* completion = cvdp::text_at(line, "completion");
    if (id == nullptr || completion == nullptr) return false;
    if (kAnswerBytes < completion->size())
      refuse(*id, too_large(completion->size()));
    else
      add(*id, answers_[*id].size(), cvdp::GivenText{*completion});
    return true;
  }));
  digest_ = sum.finish().hex();
  return ok_status();
}

Status StoredAnswers::read_responses(const std::string& file, std::size_t sample) {
  Sha256 sum;
  PROCTOR_CHECK_OK(read_lines(file, sum, [this, sample](const cvdp::Object& line) {
    if (line.size() != 1) return false;
    const cvdp::Member& one = *line.begin();
    const cvdp::Object* output = cvdp::object_at(one.value, "output");
    if (output == nullptr) return false;
    cvdp::GivenFiles given;
    std::size_t bytes = 0;
    for (const cvdp::Member& m : *output) {
      const std::string* text = m.value.string();
      if (text == nullptr || !is_safe_relative(m.key)) {
        refuse(one.key, "its answer's \"" + printable(m.key) + "\" is no file of a workspace");
        return true;
      }
      bytes += text->size();
      given.files.push_back({m.key, *text});
    }
    if (kAnswerBytes < bytes)
      refuse(one.key, too_large(bytes));
    else
      add(one.key, sample, std::move(given));
    return true;
  }));
  digest_ = sha256(digest_ + sum.finish().hex()).hex();
  return ok_status();
}

// `before`: samples of the prefix that other campaigns have.
Status StoredAnswers::read_runs(const fs::path& campaign, std::uint32_t before,
                                std::uint32_t samples) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(campaign.string()));
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  for (const RunRecord& run : report.runs) {
    if (run.state != RunRecord::State::kEnded) continue;
    const std::size_t slash = run.name.find('/'), last = run.name.rfind("/r");
    const std::string id = run.name.substr(0, slash);
    const std::size_t sample = before + std::stoul(run.name.substr(last + 2));
    if (samples < sample || sample == 0) continue;
    const Result<fs::path> evidence = evidence_of(frozen, run);
    if (!evidence.ok()) continue;
    const Result<std::string> answer = read_file(*evidence / kAnswerFile, kLineBytes);
    if (answer.ok()) {
      PROCTOR_TRY(const cvdp::AnsweredFiles files, cvdp::read_answer(*answer));
      add(id, sample - 1, cvdp::GivenFiles{files.files});
    } else {
      const Result<std::string> patch =
          answer.error().code == Errc::kNotFound ? patch_of(*evidence) : answer;
      if (!patch.ok() && patch.error().code == Errc::kNotFound) continue;
      if (!patch.ok())
        refuse(id, patch.error().detail);
      else if (kAnswerBytes < patch->size())
        refuse(id, too_large(patch->size()));
      else
        add(id, sample - 1, cvdp::GivenPatch{*patch});
    }
    digest_ = sha256(digest_ + run.name + run.report.hex()).hex();
  }
  return ok_status();
}

Result<StoredAnswers> StoredAnswers::replay(const std::string& from, std::uint32_t samples) {
  constexpr const char* kResponses = "prompt_response.jsonl";
  StoredAnswers out;
  out.source_ = from;
  const fs::path prefix(from);
  if (!is_folder(prefix)) {
    out.for_all_ = true;
    PROCTOR_CHECK_OK(out.read_responses(from, 0));
  } else if (is_there(prefix / "campaign/registration.json")) {
    PROCTOR_TRY(const CvdpAsked asked, read_asked(prefix));
    for (const CvdpPart& part : asked.parts)
      if (is_there(prefix / part.campaign / "registration.json"))
        PROCTOR_CHECK_OK(out.read_runs(prefix / part.campaign, part.from - 1, samples));
  } else if (is_there(prefix / kResponses)) {
    out.for_all_ = true;
    PROCTOR_CHECK_OK(out.read_responses((prefix / kResponses).string(), 0));
  } else {
    for (std::uint32_t i = 1; i <= samples; ++i)
      PROCTOR_CHECK_OK(out.read_responses(
          (prefix / ("sample_" + std::to_string(i)) / kResponses).string(), i - 1));
  }
  return out;
}

Result<std::vector<cvdp::GivenAnswer>> StoredAnswers::of(const cvdp::Record& record,
                                                         std::uint32_t from,
                                                         std::uint32_t to) const {
  for (const std::string& id : {record.id.text, cvdp::contract_id(record)})
    if (const auto it = refused_.find(id); it != refused_.end())
      return Error{Errc::kExhausted, it->second};
  auto it = answers_.find(record.id.text);
  if (it == answers_.end()) it = answers_.find(cvdp::contract_id(record));
  std::vector<cvdp::GivenAnswer> out;
  for (std::uint32_t i = from - 1; i < to; ++i) {
    const std::size_t at = for_all_ ? 0 : i;
    if (it == answers_.end() || it->second.size() <= at || !it->second[at])
      return Error{Errc::kNotFound,
                   source_ + " has no answer of it for sample " + std::to_string(i + 1)};
    out.push_back(*it->second[at]);
  }
  return out;
}

}  // namespace proctor::cli
