#include "coordinator/cli/foreign_forms.h"

#include <algorithm>

#include "common/base/text.h"
#include "coordinator/forms/eval_logs.h"

namespace proctor::cli {
namespace {

// A larger patch is told to be one, not copied.
constexpr std::size_t kPatchInExport = std::size_t{4} << 20;

std::string kind_word(const Method& m) {
  switch (m.kind) {
    case Method::Kind::kNoop:
      return "noop";
    case Method::Kind::kReference:
      return "reference";
    case Method::Kind::kCommand:
      return m.container ? "container" : "command";
    case Method::Kind::kSingleShot:
      return "single_shot";
    case Method::Kind::kToolLoop:
      return "tool_loop";
  }
  return "";
}

ExportFacts::OfMethod of_method(const Method& m) {
  ExportFacts::OfMethod out{m.name, kind_word(m), "", ""};
  if (const std::vector<GatewayModel> models = m.models(); !models.empty()) {
    out.model = models.front().name;
    out.developer = models.front().provider;
  }
  return out;
}

// Of the attempt that counts, which is the last one of an ended run.
std::string patch_of(const StateFolder& folder, const RunRecord& run) {
  if (run.attempts == 0) return "";
  const fs::path file = folder.attempt(run.name, AttemptNo(run.attempts)) / "patch.diff";
  Result<std::string> bytes = read_file(file, kPatchInExport);
  if (bytes.ok()) return std::move(bytes).value();
  return bytes.error().code == Errc::kNotFound
             ? ""
             : "(proctor could not read the patch: " + printable(bytes.error().detail) + ")";
}

ExportFacts facts_of(const FrozenCampaign& frozen) {
  ExportFacts out;
  const Registration& r = frozen.registration;
  out.name = r.campaign;
  out.registration = frozen_digest(r).hex();
  out.plan = r.plan.hex();
  out.tool_version = r.tool_version;
  out.registered_ms = r.at.raw();
  out.replicates = 0;
  for (const PlanStage& stage : frozen.plan.shape().stages) out.replicates += stage.replicates;
  for (const Method& m : frozen.campaign.methods) out.methods.push_back(of_method(m));
  for (const Contract& c : frozen.campaign.contracts) out.briefings[c.id] = c.briefing;
  out.caps = r.caps;
  out.patch = [folder = frozen.folder](const RunRecord& run) { return patch_of(folder, run); };
  return out;
}

}  // namespace

Result<WrittenForms> write_inspect_logs(const FrozenCampaign& frozen, const CampaignReport& report,
                                        const fs::path& into) {
  const ExportFacts facts = facts_of(frozen);
  PROCTOR_CHECK_OK(make_private_dirs(into));
  WrittenForms out;
  for (const ExportFacts::OfMethod& method : facts.methods) {
    const ExportedMethod runs = exported(facts, report, method);
    if (runs.runs.empty()) {
      out.said += printable(method.name) + ": no log, for none of its runs has ended\n";
      continue;
    }
    const std::string name = inspect_log_name(runs);
    PROCTOR_CHECK_OK(write_inspect_log(runs, into / name));
    out.files.emplace_back(name);
    out.said += (into / name).string() + "\n";
  }
  out.said += "Read them: inspect view --log-dir " + into.string() + "\n";
  return out;
}

Result<WrittenForms> write_every_eval(const FrozenCampaign& frozen, const CampaignReport& report,
                                      const fs::path& into) {
  const ExportFacts facts = facts_of(frozen);
  WrittenForms out;
  for (const ExportFacts::OfMethod& method : facts.methods) {
    const std::optional<EveryEvalFiles> files = every_eval(exported(facts, report, method));
    if (!files) {
      out.said += printable(method.name) + ": no record, for it has no rate yet\n";
      continue;
    }
    PROCTOR_CHECK_OK(make_private_dirs((into / files->record_path).parent_path()));
    PROCTOR_CHECK_OK(write_file(into / files->samples_path, files->samples));
    PROCTOR_CHECK_OK(write_file(into / files->record_path, files->record));
    out.files.emplace_back(files->samples_path);
    out.files.emplace_back(files->record_path);
    out.said += (into / files->record_path).string() + "\n";
  }
  out.said += "Fill in who made them (source_metadata) before they are published.\n";
  return out;
}

}  // namespace proctor::cli
