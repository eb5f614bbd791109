#include "coordinator/cvdp/run/model.h"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "common/base/json.h"
#include "common/contract/models_file.h"
#include "coordinator/cvdp/cli/output.h"
#include "coordinator/cvdp/dataset/prompt.h"
#include "coordinator/cvdp/run/answers.h"

namespace proctor::cli {
namespace {

constexpr const char* kOpenAi = "https://api.openai.com/v1";
constexpr const char* kUpstreamsKey = "OPENAI_USER_KEY";

Json method_json(const std::string& name, const std::string& model, const ModelFlags& flags) {
  Json out = {{"name", name}, {"kind", "single_shot"}};
  if (model.empty()) return out;
  out["model"] = model;
  out["attempts"] = flags.retries + 1;
  out["max_output_tokens"] = flags.max_output_tokens;
  out["call_timeout"] = std::to_string(flags.timeout_seconds) + "s";
  if (!flags.provider.empty()) out["provider"] = flags.provider;
  return out;
}

Result<cvdp::SingleShotTask> asked(const cvdp::Record& record, std::uint32_t /*from*/,
                                   std::uint32_t /*to*/) {
  PROCTOR_TRY(cvdp::Prompt prompt, cvdp::prompt_for(record));
  cvdp::SingleShotTask out;
  out.expected = std::move(prompt.expected);
  out.system = std::move(prompt.system);
  out.user = std::move(prompt.user);
  return out;
}

CvdpMode asking(const ModelFlags& flags) {
  CvdpMode out{flags.model, "model", "", false};
  const Json method = method_json(out.method, flags.model, flags);
  out.single_shot = {method.dump(), "model " + method.dump(), asked, true};
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
    if (!flags.url.empty()) return Error{Errc::kInvalid, "either --model-url or --model-program"};
    return Json{{"program", flags.program}};
  }
  Json out = {{"url", flags.url.empty() ? std::string(kOpenAi) : flags.url}};
  if (!flags.key_variable.empty() && !flags.key_file.empty())
    return Error{Errc::kInvalid, "either --model-key-variable or --model-key-file"};
  if (!flags.key_variable.empty()) out["key_variable"] = flags.key_variable;
  if (!flags.key_file.empty()) out["key_file"] = fs::absolute(flags.key_file).string();
  // Upstream's key is for upstream's place alone.
  const bool named = !flags.url.empty() || out.contains("key_variable") || out.contains("key_file");
  if (!named) {
    if (std::getenv(kUpstreamsKey) == nullptr)
      return Error{Errc::kInvalid,
                   "no way to the model: --model-url, --model-program, --models, or a key in the "
                   "variable OPENAI_USER_KEY for " +
                       std::string(kOpenAi)};
    out["key_variable"] = kUpstreamsKey;
  }
  return out;
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
    return Error{Errc::kInvalid, "--model and --answers exclude each other"};
  if (is_local(flags.model) && flags.responses_file.empty())
    return Error{Errc::kInvalid, "--model " + flags.model + " needs --prompts-responses-file"};
  if (!is_local(flags.model) && !flags.responses_file.empty())
    return Error{Errc::kInvalid,
                 "--prompts-responses-file goes with --model local_export or local_import"};
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
    PROCTOR_TRY([[maybe_unused]] const ModelsFile models, load_models(plan.models_file));
    return ok_status();
  }
  PROCTOR_TRY(const Json access, access_of(flags));
  Json models = Json::object();
  for (const std::string& name : asked) models[name] = access;
  plan.models_text = Json{{"models", models}}.dump(1) + "\n";
  PROCTOR_TRY([[maybe_unused]] const ModelsFile sound, parse_models(plan.models_text));
  return ok_status();
}

Result<int> export_prompts(const CvdpPlan& plan, const std::string& file) {
  PROCTOR_TRY(const LastLines last, last_lines(plan.dataset.file, plan.dataset.selection));
  PROCTOR_TRY(OutputFile out, OutputFile::open(file));
  std::size_t written = 0;
  PROCTOR_TRY(const cvdp::DatasetSummary summary,
              read_dataset(plan.dataset.file, [&](const cvdp::Record& record) -> Status {
                if (!last.holds(record) || !plan.dataset.selection.holds(record))
                  return ok_status();
                const Result<cvdp::Prompt> prompt = cvdp::prompt_for(record);
                if (!prompt.ok()) {
                  std::fprintf(stderr, "%s: left out: %s\n", record.id.text.c_str(),
                               prompt.error().detail.c_str());
                  return ok_status();
                }
                cvdp::Object line;
                line.append("id", record.id.text);
                line.append("prompt", prompt->system + "\n\n" + prompt->user);
                line.append("system", prompt->system);
                line.append("user", prompt->user);
                ++written;
                return out.write(cvdp::write_json(cvdp::Value(std::move(line))) + "\n");
              }));
  PROCTOR_CHECK_OK(out.close());
  std::printf("%zu prompts in %s\n", written, file.c_str());
  return summary.errors == 0 ? kOk : kBadInput;
}

}  // namespace proctor::cli
