#include "coordinator/cvdp/run/run_flags.h"

#include <thread>

#include "coordinator/cli/campaign_run.h"
#include "coordinator/cvdp/cli/commands.h"
#include "coordinator/cvdp/dataset/transform.h"

namespace proctor::cli {
namespace {
struct Refused {
  const char* option;
  bool takes_value;
  const char* why;
};
// In upstream's order.
constexpr Refused kRefused[] = {
    {"-q,--queue-timeout", true,
     "it does nothing upstream, and no problem is dropped here; stop with Ctrl-C and go on later"},
    {"-c,--custom-factory", true,
     "a Python class of upstream's program cannot be loaded here: --model-program runs any "
     "program"},
    {"--network-name", true,
     "services have no network in common here; --external-network gives each its own"},
    {"--copilot-refine", true,
     "prompts are not rewritten during a run; proctor cvdp refine merges what a model wrote"},
};

std::string without_quotes(std::string text) {
  std::erase_if(text, [](char c) { return c == '\'' || c == '"'; });
  return text;
}
}  // namespace

void add_cvdp_common_flags(Command command, CvdpFlags& flags) {
  constexpr std::uint32_t kSamplesMost = 1000, kThreadsMost = 256, kWorkersMost = 64;
  constexpr std::uint64_t kDay = 86'400, kTebibyte = std::uint64_t{1} << 20;
  cvdp::ImportSettings& s = flags.plan.dataset.settings;
  flags.plan.dataset.global_usd = 1'000'000;  // no run is parked for the price of time
  flags.plan.slots = one_user_here() ? 1 : std::max(1U, std::thread::hardware_concurrency());
  command.add_option("FILE", flags.file, "the dataset");
  command.add_option("-f,--filename", flags.filename, "the same, as upstream names it");
  command.add_option("-p,--prefix", flags.prefix, "output folder (work)")
      .envname("BENCHMARK_PREFIX");
  add_selection(command, flags.plan.dataset.selection);
  command.add_option("-n,--n-samples", flags.plan.samples, "runs of each problem (1)")
      .in_range(1U, kSamplesMost);
  command.add_option("--workers", flags.plan.workers, "local worker processes (1)")
      .in_range(0U, kWorkersMost);
  command.add_option("-t,--threads", flags.plan.slots, "runs at a time on each of them (the cores)")
      .in_range(1U, kThreadsMost)
      .envname("BENCHMARK_THREADS");
  command.add_option("--image-sim,--oss-sim-image", s.names.oss_sim, "for __OSS_SIM_IMAGE__")
      .envname("OSS_SIM_IMAGE");
  command.add_option("--oss-pnr-image", s.names.oss_pnr, "for __OSS_PNR_IMAGE__")
      .envname("OSS_PNR_IMAGE");
  command
      .add_option("--verif-eda-image", flags.verif_eda,
                  "for __VERIF_EDA_IMAGE__; with --license-network, docker compose runs what needs "
                  "licensed tools")
      .envname("VERIF_EDA_IMAGE");
  command
      .add_option("--license-network", flags.license_network,
                  "for __LICENSE_NETWORK__: a Docker network that is there")
      .envname("LICENSE_NETWORK");
  command.add_option("--timeout", flags.harness_seconds, "seconds for a service (600)")
      .in_range(std::uint64_t{1}, kDay)
      .envname("DOCKER_TIMEOUT");
  command.add_option("--disk-quota", s.disk_mebibytes, "MiB that a problem may fill (200)")
      .in_range(std::uint64_t{1}, kTebibyte)
      .envname("DOCKER_QUOTA_THRESHOLD_MB");
  command.add_choice("--engine", flags.plan.engine,
                     "who runs harnesses: api (the Docker Engine), oci (runc, of the image store), "
                     "compose (docker compose), or auto: oci and api, compose for what they cannot",
                     {{"auto", CvdpEngine::kAuto},
                      {"api", CvdpEngine::kApi},
                      {"oci", CvdpEngine::kOci},
                      {"compose", CvdpEngine::kCompose}});
  command.add_option("--prices", flags.plan.prices, "price table of the campaign (a CSV file)")
      .existing_file();
  command.add_option("--usd", flags.plan.dataset.global_usd, "what all runs may cost (1000000)")
      .in_range(std::uint64_t{1}, std::uint64_t{1'000'000});
  command.add_option("--run-usd", flags.plan.dataset.run_usd, "what one run may cost (1.00)");
  command.add_flag("-e,--external-network", s.network, "give services and builds a network");
}

void add_cvdp_upstream_flags(Command command, CvdpFlags& flags) {
  command.add_flag("--golden,--no-llm", flags.golden, "apply the reference solutions (default)");
  command.add_flag("-d,--no-patch", flags.no_patch, "apply nothing");
  command.add_flag("-l,--llm", flags.llm,
                   "upstream's word for --agent or --model; those alone are enough");
  add_agent_flags(command, flags.agent);
  command.add_option("--agent-timeout", flags.agent_seconds, "seconds for the agent (600)")
      .in_range(std::uint64_t{1}, std::uint64_t{86'400})
      .envname("DOCKER_TIMEOUT_AGENT");
  command.add_option("-k,--k-threshold", flags.plan.k, "k of pass@k (1)").positive();
  command.add_flag("-r,--regenerate-report", flags.plan.reports_only,
                   "run nothing, make the reports again");
  const Option agentic =
      command.add_flag("--force-agentic", flags.force_agentic, "run the dataset as an agentic one");
  command.add_flag("--force-copilot", flags.force_copilot, "run the dataset as a non-agentic one")
      .excludes(agentic);
  command.add_flag("--force-agentic-include-golden", flags.plan.dataset.include_golden,
                   "show agents the reference solution");
  command.add_flag("--force-agentic-include-harness", flags.plan.dataset.include_harness,
                   "show agents src and docker-compose.yml");
  command.add_option("--repo-url", flags.plan.dataset.settings.repo_url,
                     "the repository of heavy records, instead of their own");
  command.add_option("--commit-hash", flags.plan.dataset.settings.commit_hash,
                     "their commit, instead of their own");
  for (const Refused& r : kRefused) {
    const auto refuse = [&flags, &r] {
      flags.refused.push_back(fmt::format("{}: {}", r.option, r.why));
    };
    const Option option = r.takes_value
                              ? command.add_option(
                                    r.option, [refuse](const std::string&) { refuse(); }, r.why)
                              : command.add_flag(r.option, refuse, r.why);
    option.group("upstream's, not here");
  }
}

Result<CvdpPlan> plan_of(const CvdpFlags& flags) {
  const bool model = !flags.model.model.empty() || !flags.model.answers.empty();
  const bool agent = flags.agent.any(), plain = flags.golden || flags.no_patch;
  const std::pair<bool, const char*> rules[] = {
      {flags.file.empty() == flags.filename.empty(), "expected one dataset: FILE or -f FILE"},
      {flags.golden && flags.no_patch, "--golden and --no-patch exclude each other"},
      {agent && plain, "an agent excludes --golden and --no-patch"},
      {model && plain, "--model and --answers exclude --golden and --no-patch"},
      {model && agent, "a model or an agent, not both: --model, --answers or --agent"},
      {flags.llm && !agent && !model, "--llm needs --model, --agent or --agent-method"},
      {agent && !flags.model.responses_file.empty(),
       "--prompts-responses-file does not go with an agent"},
      {flags.plan.engine == CvdpEngine::kCompose && (model || agent),
       "--engine compose runs golden and no-patch harnesses, no agents and no models"}};
  if (!flags.refused.empty()) return Error{Errc::kInvalid, flags.refused.front()};
  for (const auto& [broken, why] : rules)
    if (broken) return Error{Errc::kInvalid, why};
  CvdpPlan plan = flags.plan;
  plan.prefix = flags.prefix;
  plan.dataset.file = without_quotes(flags.file.empty() ? flags.filename : flags.file);
  plan.dataset.settings.harness_limit = std::chrono::seconds(flags.harness_seconds);
  plan.dataset.settings.agent_limit = std::chrono::seconds(flags.agent_seconds);
  plan.dataset.settings.golden_of_redacted = true;
  cvdp::ImageNames& names = plan.dataset.settings.names;
  if (!flags.verif_eda.empty()) names.verif_eda = flags.verif_eda;
  if (!flags.license_network.empty()) names.license_network = flags.license_network;
  plan.dataset.settings.licensed = !flags.verif_eda.empty() && !flags.license_network.empty();
  PROCTOR_CHECK_OK(check_agent(flags.agent));
  PROCTOR_CHECK_OK(check_models(flags.model));
  std::vector<GatewayModel> agents_models;
  if (!flags.agent.method_file.empty()) {
    PROCTOR_TRY(const Method method, load_agent_method(flags.agent.method_file));
    agents_models = method.models();
  }
  PROCTOR_CHECK_OK(take_models(flags.model, agents_models, plan));
  plan.metadata.force_agentic = flags.force_agentic;
  plan.metadata.force_agentic_include_golden = plan.dataset.include_golden;
  plan.metadata.force_agentic_include_harness = plan.dataset.include_harness;
  plan.metadata.force_copilot = flags.force_copilot;
  if (!flags.force_agentic && !flags.force_copilot) return plan;
  PROCTOR_CHECK_OK(make_private_dirs(plan.prefix));
  PROCTOR_CHECK_OK(run_transform({flags.force_agentic ? "agentic" : "copilot", plan.dataset.file,
                                  plan.prefix.string(), false}));
  plan.dataset.file =
      (plan.prefix /
       cvdp::transformed_name(fs::path(plan.dataset.file).filename().string(),
                              flags.force_agentic ? cvdp::Shape::kAgentic : cvdp::Shape::kCopilot))
          .string();
  return plan;
}

Result<CvdpMode> mode_of(const CvdpFlags& flags, const CvdpPlan& plan) {
  PROCTOR_TRY(std::optional<CvdpMode> model, model_mode(flags.model, plan));
  if (model) return *std::move(model);
  if (!flags.agent.method_file.empty()) {
    PROCTOR_TRY(Method method, load_agent_method(flags.agent.method_file));
    CvdpMode mode{"agent", method.name, "", false, method.name};
    mode.own_method = std::move(method);
    return mode;
  }
  if (flags.agent.any())
    return CvdpMode{"agent", "agent", "", false, flags.agent.image, flags.agent.given};
  if (flags.no_patch) return CvdpMode{"no-patch", "noop", "", false};
  return CvdpMode{"golden", "reference", "", true};
}
}  // namespace proctor::cli
