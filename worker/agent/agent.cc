#include "worker/agent/agent.h"
#include "common/base/words.h"

#include <algorithm>
#include <utility>

namespace proctor {
namespace {
constexpr auto kCheckNames =
    each_once(std::to_array<Word<CheckKind>>({{"the build", CheckKind::kBuild},
                                              {"static analysis", CheckKind::kStatic},
                                              {"unit tests", CheckKind::kUnit},
                                              {"integration tests", CheckKind::kIntegration},
                                              {"a script", CheckKind::kScript}}));

void list(std::string& out, std::string_view title, const std::vector<std::string>& globs) {
  if (globs.empty()) return;
  out += title;
  for (const std::string& glob : globs) out += "\n  - " + glob;
  out += "\n";
}
}  // namespace

std::string briefing_text(const Contract& contract, const NetworkAccess& network,
                          std::chrono::milliseconds wall, const Caps& caps,
                          std::string_view model_at) {
  std::string out = "# Task\n\n";
  if (!contract.title.empty()) out += contract.title + "\n\n";
  out += contract.briefing;
  if (!out.ends_with('\n')) out += "\n";
  out +=
      "\n# Acceptance\n\nYour change to /workspace is taken as a patch and judged in a fresh "
      "checkout by:\n";
  for (const Check& check : contract.checks) {
    out += "- " + check.id + " (" + std::string(word_in(kCheckNames, check.kind)) + ")\n";
  }
  list(out, "Put back before acceptance, whatever you do to them:", contract.policy.protected_);
  list(out, "You may change only:", contract.policy.writable);
  out += "\n# Limits\n\n- wall clock: " + std::to_string(wall.count() / 1000) + " s\n";
  for (const Cap cap : kCaps) {
    const auto value = cap_value(caps, cap);
    if (!value || cap == Cap::kUsd || cap == Cap::kWall) continue;
    out += "- " + std::string(to_string(cap)) + ": " + format_cap(cap, value) + "\n";
  }
  out += "- network: ";
  if (network.filtered())
    out += "only " + describe(network) + ", through the proxy in $https_proxy and $http_proxy";
  else
    out += network.open ? "available" : "none";
  if (!model_at.empty())
    out += std::string(network.any() ? ", and" : ", but for") + " the model at $" +
           std::string(model_at);
  out += "\n";
  return out;
}

namespace {
constexpr const char* kBriefingAt = "/proctor/briefing";

class NoopAgent final : public Agent {
 public:
  Result<AgentReport> work(const AgentJob&, std::stop_token) override { return AgentReport{}; }
};

class ReferenceAgent final : public Agent {
 public:
  Result<AgentReport> work(const AgentJob& job, std::stop_token) override {
    const Contract& contract = job.contract;
    const auto file =
        std::find_if(contract.files.begin(), contract.files.end(),
                     [&](const ReferencedFile& f) { return f.path == contract.reference_patch; });
    if (contract.reference_patch.empty() || file == contract.files.end()) {
      return Error{Errc::kInvalid, "contract " + contract.id + " has no reference patch"};
    }
    return hand_in_patch(job.workspace, "reference patch " + file->path, file->bytes);
  }
};

// At most `bytes_max`, cut before a UTF-8 character rather than inside it.
std::string cut(const std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (0 < end && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

class CommandAgent final : public Agent {
 public:
  Result<AgentReport> work(const AgentJob& job, std::stop_token cancel) override {
    if (job.left) {
      PROCTOR_TRY(auto sandbox, job.engine.adopt(job.sandbox, job.left->command));
      return follow(job, std::move(sandbox), job.left->time, cancel);
    }
    // A container finds what its contract says, and nothing of ours.
    PROCTOR_TRY(const SandboxSpec spec, job.method.container ? job.sandbox : dressed(job));
    const std::optional<std::chrono::milliseconds> time =
        job.start_program ? job.start_program() : job.wall;
    if (!time) return AgentReport{};
    PROCTOR_TRY(auto sandbox, job.engine.open(spec));
    return follow(job, std::move(sandbox), *time, cancel);
  }

 private:
  static Result<AgentReport> follow(const AgentJob& job, std::unique_ptr<Sandbox> sandbox,
                                    std::chrono::milliseconds time, std::stop_token cancel) {
    ExecSpec exec;
    exec.command = job.method.command;
    exec.timeout = time;
    exec.stdout_file = job.logs / "stdout";
    exec.stderr_file = job.logs / "stderr";
    exec.outlives = job.outlives;
    exec.attempted = job.attempted;
    exec.see_programs = job.see_programs;
    job.on_sandbox();
    PROCTOR_TRY(const ExecOutcome outcome, sandbox->run(exec, cancel));
    job.on_tool({"shell", exec.command, outcome, exec.timeout, exec.stdout_file, exec.stderr_file});
    return AgentReport{outcome, std::move(sandbox)};
  }

  static Result<SandboxSpec> dressed(const AgentJob& job) {
    SandboxSpec spec = job.sandbox;
    const fs::path briefing_dir = job.scratch / "briefing";
    PROCTOR_CHECK_OK(make_dirs(briefing_dir));
    PROCTOR_CHECK_OK(
        write_file(briefing_dir / "briefing.md", job.briefing, Durability::kLazy, kOpenFile));
    spec.mounts.push_back({briefing_dir, kBriefingAt, false});
    for (const auto& [name, value] : job.method.variables) spec.env[name] = value;
    if (!job.method.files.empty()) {
      PROCTOR_CHECK_OK(write_referenced_files(job.scratch / "method", job.method.files));
      spec.mounts.push_back({job.scratch / "method", kMethodAt, false});
      spec.env["PROCTOR_METHOD"] = kMethodAt;
    }
    spec.env["PROCTOR_BRIEFING_FILE"] = std::string(kBriefingAt) + "/briefing.md";
    spec.env["PROCTOR_BRIEFING"] = cut(job.briefing, kBriefingVariableBytes);
    if (const auto meter = job.sandbox.env.find("PROCTOR_METER"); meter != job.sandbox.env.end())
      spec.env["PROCTOR_METER"] = meter->second;
    spec.env["PROCTOR_TASK"] = job.contract.id;
    spec.env["PROCTOR_RUN"] = job.run_name;
    spec.env["PROCTOR_REPLICATE"] = std::to_string(job.replicate);
    return spec;
  }
};
}  // namespace

std::unique_ptr<Agent> make_agent(Method::Kind kind) {
  switch (kind) {
    case Method::Kind::kNoop:
      return std::make_unique<NoopAgent>();
    case Method::Kind::kReference:
      return std::make_unique<ReferenceAgent>();
    case Method::Kind::kCommand:
      return std::make_unique<CommandAgent>();
    case Method::Kind::kSingleShot:
    case Method::Kind::kToolLoop:
    case Method::Kind::kRecorded:
      break;  // worker/model/single_shot.h, worker/shell: they need more than a job, or none
  }
  PROCTOR_ASSERT(false);
}

Result<AgentReport> hand_in_patch(Workspace& workspace, const std::string& what,
                                  const std::string& diff) {
  AgentReport report;
  if (diff.empty()) return report;
  Result<AppliedPatch> applied = workspace.apply(diff);
  if (applied.ok()) {
    report.applied = std::move(applied).value();
  } else if (applied.error().code == Errc::kInvalid) {
    report.misfit = in_context(what, std::move(applied).error()).detail;
  } else {
    return in_context(what, std::move(applied).error());
  }
  return report;
}

Status write_referenced_files(const fs::path& dir, const std::vector<ReferencedFile>& files) {
  PROCTOR_CHECK_OK(make_dirs(dir));
  for (const ReferencedFile& file : files) {
    if (!is_safe_relative(file.path)) return Error{Errc::kInvalid, "unsafe path " + file.path};
    const fs::path target = dir / file.path;
    PROCTOR_CHECK_OK(make_dirs(target.parent_path()));
    PROCTOR_CHECK_OK(write_file(target, file.bytes, Durability::kLazy, file.mode & 0777U));
  }
  return ok_status();
}
}  // namespace proctor
