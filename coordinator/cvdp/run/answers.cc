#include "coordinator/cvdp/run/answers.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "common/base/files.h"
#include "common/base/json_fields.h"
#include "common/base/text.h"
#include "common/contract/models_file.h"
#include "common/trace/evidence.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/run/campaign.h"
#include "coordinator/cvdp/run/dataset_file.h"
#include "coordinator/cvdp/run/results.h"

namespace proctor::cli {
namespace {
// As much as a worker takes of a model (worker/model/model.h).
constexpr std::size_t kAnswerBytes = std::size_t{16} << 20;
constexpr std::size_t kLineBytes = std::size_t{128} << 20;

std::string too_large(std::size_t bytes) {
  return fmt::format("its answer has {} MiB, more than {}", bytes >> 20, kAnswerBytes >> 20);
}

// Each line that is a mapping; the others are reported on standard error and left out.
Status read_answers(const std::string& file, Sha256& sum,
                    const std::function<bool(const cvdp::Object&)>& take) {
  const auto line = [&](const cvdp::LineFeed::Line& l) {
    const Result<cvdp::Value> value =
        l.too_long ? cvdp::invalid("the line has more than 128 MiB") : cvdp::read_json(l.text);
    const bool taken = value.ok() && value->object() != nullptr && take(*value->object());
    if (!taken)
      tell(stderr, "{}:{}: left out: {}\n", file, l.number,
           value.ok() ? "it is no stored answer" : printable(value.error().detail, 500));
    return ok_status();
  };
  return read_lines(file, kLineBytes, line, &sum);
}

// Answers that are there already: completions of a model that ran elsewhere (upstream's
// local_import), a prompt_response.jsonl, or what the runs of another prefix handed in.
// Read whole; each bounded, so that one that is too large leaves out its problem and no other.
// Source: CVDP 1.8, 2.1 (--answers), 8.6.
class StoredAnswers {
 public:
  // {"id", "completion"} a line; of an id that comes again the next one is the next sample's.
  static Result<StoredAnswers> completions(const std::string& file) {
    StoredAnswers out;
    out.source_ = file;
    Sha256 sum;
    PROCTOR_CHECK_OK(read_answers(file, sum, [&out](const cvdp::Object& line) {
      const std::string* id = cvdp::text_at(line, "id");
      const std::string* completion = cvdp::text_at(line, "completion");
      if (id == nullptr || completion == nullptr) return false;
      if (kAnswerBytes < completion->size())
        out.refuse(*id, too_large(completion->size()));
      else
        out.add(*id, out.answers_[*id].size(), cvdp::GivenText{*completion});
      return true;
    }));
    out.digest_ = sum.finish().hex();
    return out;
  }

  // prompt_response.jsonl, one answer for all samples; a prefix of upstream's or ours, sample by
  // sample; of ours what each run handed in, to the byte.
  static Result<StoredAnswers> replay(const std::string& from, std::uint32_t samples) {
    constexpr const char* kResponses = "prompt_response.jsonl";
    StoredAnswers out;
    out.source_ = from;
    const fs::path prefix(from);
    if (std::error_code ec; !fs::is_directory(prefix, ec)) {
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
            (prefix / fmt::format("sample_{}", i) / kResponses).string(), i - 1));
    }
    return out;
  }

  // One for each sample from the first to the last, counted from 1.  kNotFound: there is none, or
  // too few; kExhausted: too large, or not to be read.
  Result<std::vector<cvdp::GivenAnswer>> of(const cvdp::Record& record, std::uint32_t from,
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
                     fmt::format("{} has no answer of it for sample {}", source_, i + 1)};
      out.push_back(*it->second[at]);
    }
    return out;
  }

  // Covers everything that was read.
  const std::string& digest() const { return digest_; }

 private:
  void add(const std::string& id, std::size_t sample, cvdp::GivenAnswer answer) {
    auto& list = answers_[id];
    if (list.size() <= sample) list.resize(sample + 1);
    list[sample] = std::move(answer);
  }
  void refuse(const std::string& id, std::string why) { refused_[id] = std::move(why); }

  Status read_responses(const std::string& file, std::size_t sample) {
    Sha256 sum;
    PROCTOR_CHECK_OK(read_answers(file, sum, [this, sample](const cvdp::Object& line) {
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
  Status read_runs(const fs::path& campaign, std::uint32_t before, std::uint32_t samples) {
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

  std::string source_;
  std::map<std::string, std::vector<std::optional<cvdp::GivenAnswer>>> answers_;
  std::map<std::string, std::string> refused_;  // id -> why
  bool for_all_ = false;                        // one answer for all samples
  std::string digest_;
};

// The options of models, and the modes that they ask for.

constexpr const char* kOpenAi = "https://api.openai.com/v1";
constexpr const char* kUpstreamsKey = "OPENAI_USER_KEY";

Json method_json(const std::string& name, const std::string& model, const ModelFlags& flags) {
  JsonWriter v;
  v("name", name);
  v("kind", "single_shot");
  if (model.empty()) return v.take();
  v("model", model);
  v("attempts", flags.retries + 1);
  v("max_output_tokens", flags.max_output_tokens);
  v("call_timeout", fmt::format("{}s", flags.timeout_seconds));
  v("provider", flags.provider, kOptional);
  return v.take();
}

CvdpMode asking(const ModelFlags& flags) {
  CvdpMode out{flags.model, "model", "", false};
  const Json method = method_json(out.method, flags.model, flags);
  const auto task = [](const cvdp::Record& record, std::uint32_t /*from*/, std::uint32_t /*to*/) {
    return cvdp::prompt_for(record);
  };
  out.single_shot = {method.dump(), "model " + method.dump(), task, true};
  return out;
}

CvdpMode handing_in(const std::string& name, StoredAnswers answers) {
  CvdpMode out{name, "replay", "", false};
  const std::string digest = answers.digest();
  const auto task = [answers = std::make_shared<const StoredAnswers>(std::move(answers))](
                        const cvdp::Record& record, std::uint32_t from,
                        std::uint32_t to) -> Result<cvdp::SingleShotTask> {
    cvdp::SingleShotTask given;
    PROCTOR_TRY(given.given, answers->of(record, from, to));
    if (const auto prompt = cvdp::prompt_for(record); prompt.ok())
      given.expected = prompt->expected;
    return given;
  };
  out.single_shot = {method_json(out.method, "", {}).dump(), name + " " + digest, task, false};
  return out;
}

// One way to every model that is named; how to reach it is no part of the question.
Result<Json> access_of(const ModelFlags& flags) {
  if (!flags.program.empty()) {
    if (!flags.url.empty()) return cvdp::invalid("either --model-url or --model-program");
    return Json{{"program", flags.program}};
  }
  if (!flags.key_variable.empty() && !flags.key_file.empty())
    return cvdp::invalid("either --model-key-variable or --model-key-file");
  // Upstream's key is for upstream's place alone.
  const bool named = !flags.url.empty() || !flags.key_variable.empty() || !flags.key_file.empty();
  if (!named && std::getenv(kUpstreamsKey) == nullptr)
    return cvdp::invalid(
        "no way to the model: --model-url, --model-program, --models, or a key in the variable "
        "OPENAI_USER_KEY for {}",
        kOpenAi);
  JsonWriter v;
  v("url", flags.url.empty() ? std::string(kOpenAi) : flags.url);
  v("key_variable", named ? flags.key_variable : std::string(kUpstreamsKey), kOptional);
  v("key_file", flags.key_file.empty() ? std::string() : fs::absolute(flags.key_file).string(),
    kOptional);
  return v.take();
}

bool is_local(const std::string& model) {
  return model == kLocalExport || model == kLocalImport;
}
}  // namespace

void add_model_flags(Command command, ModelFlags& flags) {
  constexpr std::uint32_t kRetriesMost = 19;
  constexpr std::uint64_t kTokensMost = 10'000'000, kDay = 86'400;
  command.add_option("-m,--model", flags.model,
                     "a model that answers each problem once; local_export writes the prompts, "
                     "local_import takes the answers of --prompts-responses-file");
  command.add_option("--prompts-responses-file", flags.responses_file,
                     "of local_export and local_import");
  command.add_option("-a,--answers", flags.answers,
                     "replay a prompt_response.jsonl, or what the runs of a prefix handed in");
  command.add_option("--model-url", flags.url,
                     "its OpenAI-compatible endpoint, as http://127.0.0.1:8000/v1");
  command.add_option("--model-key-variable", flags.key_variable,
                     "the variable of the worker's environment that holds the key");
  command.add_option("--model-key-file", flags.key_file, "the file that holds the key");
  command
      .add_option("--model-program", flags.program,
                  "instead of an endpoint: a program that reads a JSON request and writes a JSON "
                  "answer (upstream's custom factory); its words")
      .expected(1, 64);
  command
      .add_option("--models", flags.models_file,
                  "instead: a models file (docs/single-shot.md), as workers elsewhere have it")
      .envname("PROCTOR_MODELS");
  command.add_option("--model-provider", flags.provider, "as the price table names it");
  command.add_option("--model-retries", flags.retries, "calls beside the first (3)")
      .in_range(0U, kRetriesMost)
      .envname("LLM_RETRY_COUNT");
  command
      .add_option("--max-output-tokens", flags.max_output_tokens,
                  "asked for, and what a call is reserved at (16384)")
      .in_range(std::uint64_t{1}, kTokensMost);
  command.add_option("--model-timeout", flags.timeout_seconds, "seconds for a call (60)")
      .in_range(std::uint64_t{1}, kDay)
      .envname("MODEL_TIMEOUT");
  command.add_option("--judge", flags.judge,
                     "a model that judges answers in words (categories 9 and 10)");
}

Status check_models(const ModelFlags& flags) {
  if (!flags.model.empty() && !flags.answers.empty())
    return cvdp::invalid("--model and --answers exclude each other");
  if (is_local(flags.model) && flags.responses_file.empty())
    return cvdp::invalid("--model {} needs --prompts-responses-file", flags.model);
  if (!is_local(flags.model) && !flags.responses_file.empty())
    return cvdp::invalid("--prompts-responses-file goes with --model local_export or local_import");
  return ok_status();
}

Result<std::optional<CvdpMode>> model_mode(const ModelFlags& flags, const CvdpPlan& plan) {
  std::optional<CvdpMode> out;
  PROCTOR_CHECK_OK(check_models(flags));
  if (flags.model == kLocalImport) {
    PROCTOR_TRY(StoredAnswers answers, StoredAnswers::completions(flags.responses_file));
    out = handing_in(kLocalImport, std::move(answers));
  } else if (!flags.answers.empty()) {
    PROCTOR_TRY(StoredAnswers answers, StoredAnswers::replay(flags.answers, plan.samples));
    out = handing_in("answers", std::move(answers));
  } else if (!flags.model.empty()) {
    out = asking(flags);
  }
  return out;
}

Status take_models(const ModelFlags& flags, const std::vector<GatewayModel>& agents,
                   CvdpPlan& plan) {
  std::set<std::string> asked;
  std::vector<std::string> names{flags.model, flags.judge};
  for (const GatewayModel& m : agents) names.push_back(m.name);
  for (const std::string& name : names)
    if (!name.empty() && !is_local(name)) asked.insert(name);
  if (!flags.judge.empty()) {
    plan.judge = flags.judge;
    plan.judge_method = method_json("judge", flags.judge, flags).dump();
  }
  if (asked.empty() || plan.reports_only) return ok_status();
  plan.models_file = flags.models_file;
  if (!plan.models_file.empty()) {
    PROCTOR_CHECK_OK(load_models(plan.models_file));
    return ok_status();
  }
  PROCTOR_TRY(const Json access, access_of(flags));
  Json models = Json::object();
  for (const std::string& name : asked) models[name] = access;
  plan.models_text = Json{{"models", models}}.dump(1) + "\n";
  PROCTOR_CHECK_OK(parse_models(plan.models_text));
  return ok_status();
}

Result<int> export_prompts(const CvdpPlan& plan, const std::string& file) {
  PROCTOR_TRY(OutputFile out, OutputFile::open(file));
  std::size_t written = 0;
  const auto add = [&](const cvdp::Record& record) -> Status {
    const Result<cvdp::SingleShotTask> prompt = cvdp::prompt_for(record);
    if (!prompt.ok()) {
      tell(stderr, "{}: left out: {}\n", record.id.text, prompt.error().detail);
      return ok_status();
    }
    ++written;
    return out.write(cvdp::write_json(cvdp::object_of(
                         "id", record.id.text, "prompt", prompt->system + "\n\n" + prompt->user,
                         "system", prompt->system, "user", prompt->user)) +
                     "\n");
  };
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_selected(plan.dataset.file, plan.dataset.selection, add));
  PROCTOR_CHECK_OK(out.close());
  tell(stdout, "{} prompts in {}\n", written, file);
  return summary.errors == 0 ? kOk : kBadInput;
}

// Answers in words as runs of a judging campaign.

namespace {
constexpr std::size_t kTextBytes = std::size_t{64} << 20;

// A judge needs a prompt and no files: one commit of one line for all.
Result<std::string> make_repository(const fs::path& path) {
  PROCTOR_CHECK_OK(open_contexts(path));
  PROCTOR_TRY(const auto commits,
              add_contexts(path,
                           "commit refs/heads/judging\nmark :1\n"
                           "committer cvdp <cvdp@localhost> 0 +0000\ndata 8\njudging\n"
                           "M 100644 inline README\ndata 8\njudging\n"));
  const auto made = commits.find(1);
  if (made == commits.end()) return Error{Errc::kCorrupt, "git fast-import made no commit"};
  return made->second;
}

// The marker of a folder that judges these.
constexpr const char* kCases = "cases.json";
Json marker_of(const std::vector<cvdp::JudgeCase>& cases) {
  Sha256 sum;
  for (const cvdp::JudgeCase& c : cases)
    for (const cvdp::ContractFile& f : cvdp::make_judgement(c, "", ""))
      sum.update(f.path + "\n" + f.bytes);
  return {{"cases", sum.finish().hex()}};
}

Status write_campaign(const JudgeOptions& options, const std::vector<cvdp::JudgeCase>& cases) {
  PROCTOR_CHECK_OK(remove_tree(options.folder));  // not finished: the marker comes last
  PROCTOR_CHECK_OK(make_dirs(options.folder / "contracts"));
  PROCTOR_TRY(const std::string commit,
              make_repository(fs::absolute(options.folder) / "repos/judging.git"));
  for (const cvdp::JudgeCase& c : cases)
    PROCTOR_CHECK_OK(
        write_contract(cvdp::make_judgement(c, "../repos/judging.git", commit), options.folder));
  if (!options.prices.empty()) PROCTOR_CHECK_OK(take_prices(options.prices, options.folder));
  ImportOptions one;
  one.methods = "[" + options.method + "]";
  one.global_usd = options.global_usd;
  one.run_usd = options.run_usd;
  PROCTOR_CHECK_OK(
      write_file(options.folder / "campaign.yaml", cvdp_campaign_text("judging", one)));
  return write_file(options.folder / kCases, marker_of(cases).dump() + "\n");
}

Result<bool> is_written(const JudgeOptions& options, const std::vector<cvdp::JudgeCase>& cases) {
  const Result<std::string> text = read_file(options.folder / kCases, kTextBytes);
  if (!text.ok() && text.error().code == Errc::kNotFound) return false;
  if (!text.ok()) return text.error();
  PROCTOR_TRY(const Json marker, parse_json(*text));
  if (marker == marker_of(cases)) return true;
  return Error{Errc::kConflict,
               options.folder.string() + " judged other answers: remove it to judge these"};
}

Result<cvdp::Judgement> judgement_of(const FrozenCampaign& frozen, const RunRecord& run) {
  PROCTOR_TRY(const fs::path evidence, evidence_of(frozen, run));
  const Result<std::string> text = read_file(evidence / kAnswerFile, kTextBytes);
  if (!text.ok()) return Error{Errc::kUnavailable, "the judge gave no answer"};
  PROCTOR_TRY(const cvdp::AnsweredFiles answer, cvdp::read_answer(*text));
  for (const cvdp::AnsweredFile& f : answer.files)
    if (f.path == cvdp::kJudgementFile) return cvdp::parse_judgement(f.text);
  return Error{Errc::kInvalid, "the judge's answer has no score"};
}
}  // namespace

Result<Judged> judge_answers(const JudgeOptions& options,
                             const std::vector<cvdp::JudgeCase>& cases) {
  Judged out;
  if (cases.empty()) return out;
  PROCTOR_TRY(const bool written, is_written(options, cases));
  if (!written && options.reports_only) return out;
  if (!written) PROCTOR_CHECK_OK(write_campaign(options, cases));
  if (!options.reports_only) {
    RunOptions run = options.run;
    run.folder = options.folder.string();
    out.exit_code = run_campaign(run);
    out.stopped = out.exit_code == kJobFailed;
    if (out.stopped || out.exit_code == kBadInput) return out;
  }
  PROCTOR_TRY(const FrozenCampaign frozen, load_registered(options.folder));
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  for (const RunRecord& run : report.runs)
    if (run.state == RunRecord::State::kEnded)
      out.judgements.emplace(run.name.substr(0, run.name.find('/')), judgement_of(frozen, run));
  return out;
}
}  // namespace proctor::cli
