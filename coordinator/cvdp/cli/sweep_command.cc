// proctor cvdp sweep: datasets by models and agents, one run after another, as upstream's
// model_sweep.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "common/base/text.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/run/run_flags.h"
#include "coordinator/cvdp/run/run_log.h"

namespace proctor::cli {
namespace {

struct SweepFlags {
  CvdpFlags run;  // what all have in common
  std::vector<std::string> files, models, agents;
};

// As a folder is named: a model's or an image's name may be anything.
std::string folder_name(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool fits = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
                      c == '-' || c == '_' || c == '.';
    out += fits ? c : '_';
  }
  return out == "." || out == ".." ? "_" : out;
}

std::string variant_of(const std::string& file) {
  std::string out;
  const auto read = read_dataset(
      file,
      [&out](const cvdp::Record& record) {
        if (out.empty()) out = record.shape == cvdp::Shape::kAgentic ? "agentic" : "nonagentic";
        return ok_status();
      },
      Findings::kKnown);
  return read.ok() ? out : "";
}

// Problems of its report: those that are scored count by their score.
struct Passed {
  double passed = 0, total = 0;
};
Result<Passed> passed_of(const fs::path& report) {
  PROCTOR_TRY(const std::string text, read_file(report, std::size_t{256} << 20));
  PROCTOR_TRY(const cvdp::Value value, cvdp::read_json(text));
  Passed out;
  if (value.object() == nullptr) return out;
  for (const cvdp::Member& category : *value.object())
    for (const char* difficulty : {"easy", "medium", "hard"}) {
      const cvdp::Object* cell = cvdp::object_at(category.value, difficulty);
      if (cell == nullptr) continue;
      const auto add = [cell](const char* key, double& to) {
        if (const cvdp::Value* n = cell->find(key)) to += n->as_double().value_or(0);
      };
      add("Passed Problems", out.passed);
      add("Total Problems", out.total);
    }
  return out;
}

class Sweep {
 public:
  explicit Sweep(const SweepFlags& flags) : flags_(flags), prefix_(flags.run.prefix) {}

  Result<int> run() {
    if (flags_.models.empty() && flags_.agents.empty())
      return Error{Errc::kInvalid, "a sweep needs --model or --agent, each once or more"};
    PROCTOR_TRY([[maybe_unused]] const auto log, RunLog::open(prefix_ / "run.log"));
    std::vector<std::pair<std::string, bool>> contenders;  // name, is it an agent?
    for (const std::string& model : flags_.models) contenders.emplace_back(model, false);
    for (const std::string& agent : flags_.agents) contenders.emplace_back(agent, true);
    int code = kOk;
    for (const std::string& file : flags_.files)
      for (const auto& [name, is_agent] : contenders) {
        const int one_code = code_of(one(file, name, is_agent));
        code = std::max(code, one_code);
        if (one_code == kJobFailed) return code;  // stopped by hand: the rest is not begun
      }
    return code;
  }

 private:
  Result<int> one(const std::string& file, const std::string& name, bool is_agent) {
    CvdpFlags flags = flags_.run;
    flags.file = file;
    flags.prefix =
        (prefix_ / folder_name(fs::path(file).stem().string()) / folder_name(name)).string();
    if (!is_agent) flags.agent = {};
    (is_agent ? flags.agent.image : flags.model.model) = name;
    std::printf("%s, %s: in %s\n", file.c_str(), printable(name).c_str(), flags.prefix.c_str());
    PROCTOR_TRY(CvdpPlan plan, plan_of(flags));
    PROCTOR_TRY(CvdpMode mode, mode_of(flags, plan));
    plan.modes.push_back(std::move(mode));
    const fs::path first = 1 < plan.samples ? plan.prefix / "sample_1" : plan.prefix;
    PROCTOR_TRY(const CvdpOutcome outcome, run_cvdp(std::move(plan)));
    if (outcome.samples.empty()) return outcome.exit_code;
    PROCTOR_TRY(const Passed passed, passed_of(first / "report.json"));
    const double percent = passed.total == 0 ? 0 : 100 * passed.passed / passed.total;
    std::printf("%s, %s: %g of %g problems passed, %.1f %%\n", file.c_str(),
                printable(name).c_str(), passed.passed, passed.total, percent);
    cvdp::Object row;
    row.append("dataset_file", file);
    row.append("variant", variant_of(file));
    row.append("model_or_agent", name);
    row.append("work_dir", flags.prefix);
    row.append("passed", cvdp::real(passed.passed));
    row.append("total", static_cast<std::int64_t>(passed.total));
    row.append("pass_pct", cvdp::real(percent));
    rows_.emplace_back(std::move(row));
    cvdp::Object report;
    report.append("sweep", rows_);
    PROCTOR_CHECK_OK(write_file(prefix_ / "sweep_report.json",
                                cvdp::write_json(cvdp::Value(std::move(report)), 2) + "\n"));
    return outcome.exit_code;
  }

  const SweepFlags& flags_;
  fs::path prefix_;
  cvdp::Array rows_;
};

}  // namespace

void add_cvdp_sweep(Command cvdp, int& exit_code) {
  const Command command = cvdp.add_subcommand(
      "sweep", "several datasets by several models and agents",
      "Example:\n  proctor cvdp sweep a.jsonl b.jsonl -m gpt-4o -m o4-mini -g my-agent:1 --prefix "
      "sweep\n"
      "Each pair is a run of its own in PREFIX/DATASET/NAME, one after the other; "
      "PREFIX/sweep_report.json has what\npassed, of the first sample. The same command goes on "
      "where it stopped. The other options are those of run.");
  auto flags = std::make_shared<SweepFlags>();
  flags->run.prefix = "sweep";
  add_cvdp_common_flags(command, flags->run);
  add_cvdp_upstream_flags(command, flags->run);
  add_model_flags(command, flags->run.model);
  // These come several times here, or are what a sweep does not do.
  for (const char* option :
       {"FILE", "--filename", "--model", "--agent", "--agent-method", "--golden", "--no-patch",
        "--answers", "--prompts-responses-file", "--llm"})
    command.remove_option(option);
  command.add_option("FILE", flags->files, "datasets").required();
  command.add_option("-m,--model", flags->models, "a model; may be given again");
  command.add_option("-g,--agent", flags->agents, "an agent's image; may be given again");
  command.callback([=, &exit_code] { exit_code = code_of(Sweep(*flags).run()); });
}

}  // namespace proctor::cli
