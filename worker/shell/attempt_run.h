#pragma once
// AttemptRun: performs the commands of one RunLifecycle against the real world: workspaces,
// sandboxes, the recorder.  It decides nothing; what a step's result means is the lifecycle's.
// Owns the attempt's scratch folder; leaves the finished run directory in it.  Blocking; one
// object, one slot thread.  Whatever fails outside becomes a StepFailed, also a trace that can no
// longer be written: a run without evidence is invalid, never a guess (R055, R095).
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/folder_tree.h"
#include "common/contract/bundle.h"
#include "common/contract/campaign.h"
#include "common/trace/model_calls.h"
#include "common/trace/payloads.h"
#include "common/trace/recorded_run.h"
#include "common/wire/messages.h"
#include "worker/agent/agent.h"
#include "worker/core/run_lifecycle.h"
#include "worker/gateway/gateway_session.h"
#include "worker/sandbox/host_lack.h"
#include "worker/services/service_group.h"
#include "worker/shell/attempt_meter.h"
#include "worker/shell/built_images.h"
#include "worker/shell/checkpoint.h"
#include "worker/shell/coordinators.h"
#include "worker/shell/engines.h"
#include "worker/shell/host_room.h"
#include "worker/shell/phase_network.h"
#include "worker/shell/run_events.h"
#include "worker/shell/run_tools.h"
#include "worker/shell/safety_watch.h"
#include "worker/workspace/setup_layer.h"
#include "worker/workspace/workspace.h"

namespace proctor {
// All that one attempt is made of.  Shared with its neighbours and never changed.
struct AttemptInput {
  std::string campaign;  // its id
  Epoch epoch;           // it was assigned under
  wire::Assignment assignment;
  std::shared_ptr<const ContractBundle> contract;
  std::shared_ptr<const Method> method;
  std::shared_ptr<const Settings> settings;
  Digest settings_digest;
  std::shared_ptr<RateGate> gate{};           // of the campaign
  std::shared_ptr<const LeftAttempt> left{};  // what an earlier life of this worker left of it
  // That it may be given, of this worker's variables, by its coordinator; nothing: any.
  std::optional<std::vector<std::string>> secrets{};
};

// The worker's own work with what others left is counted from here on: less than this is a
// process's start.
inline constexpr Millis kCountedWork{100};

// Errors of our own disk are the host's, whatever their code says about the path: a full one would
// pass for a patch that is too large, and decide the run.
Error as_host_error(Error e);
// Those of checks and services, which share one copy of the workspace.
std::vector<const ProgramContainer*> containers_of(const Contract& contract);
// Acceptance files by their places in the workspace.
std::map<std::string, PlacedFile> acceptance_by_place(const Contract& contract);
// The bytes that a sandbox's commands have put on the disk since it was opened.
std::uint64_t written_in(const SandboxSpec& spec);
Result<fs::path> open_dir(const fs::path& in, const std::string& name);

class AttemptRun {
 public:
  struct Tools {
    WorkspaceStore& store;
    Engines& engines;
    const BuiltImages& images;
    WorkerId worker;
    const ModelsFile& models;
    bool setup_cache = true;       // keep what setup makes, and use what was kept
    ProviderPool* pool = nullptr;  // of the gateway; null: no method with one can run
    Remover remover{};             // of what is left beside workspaces
    std::string commit{};          // RunExecutor::Options
  };
  // `dir`, this attempt's: empty, absent, or an earlier life's.  `book` (may be null) outlives it.
  AttemptRun(const Tools& tools, const AttemptInput& input, AttemptWatch& watch, fs::path dir,
             MeterBook* book);

  struct Outcome {
    Verdict verdict;
    Usage usage;
    Digest report;          // of report.json, when `packaged`
    bool packaged = false;  // the run directory is complete
    std::int64_t started_ms = 0, finished_ms = 0;
  };
  Outcome run();
  fs::path run_dir() const { return dir_ / "run"; }

 private:
  // An event, or none.  An error is a step that failed.
  struct Answer : std::optional<LifecycleEvent> {
    using std::optional<LifecycleEvent>::optional;
    // NOLINTNEXTLINE(google-explicit-constructor)
    Answer(Error e) : optional(StepFailed{std::move(e), 0}) {}
  };
  Answer perform(const TakeSnapshot&);
  Answer perform(const WriteManifest&);
  Answer perform(const OpenWorkspace& c);
  Answer perform(const RunSetup& c);
  Answer perform(const RunMethodSetup& c);
  Answer perform(const GiveBriefing&);
  Answer perform(const RunAgent&);
  Answer perform(const ExtractPatch&);
  Answer perform(const ApplyPatch&);
  Answer perform(const RestoreProtected& c);
  Answer perform(const PlaceAcceptanceFiles&);
  Answer perform(const RunCheck& c);
  Answer perform(const RecordStage& c);
  Answer perform(const JudgeAgain& c);
  Answer perform(const RepeatAcceptance& c);
  Answer perform(const RecordSkippedCheck& c);
  Answer perform(const RecordTermination& c);
  Answer perform(const StopAgent&);
  Answer perform(const Package&);

  // Its answer; a step that changes nothing before it succeeds is done again when the host was in
  // want, for by then the agent is paid for.
  Answer answer_to(const LifecycleCommand& command);
  Patience patience() const;
  std::vector<LifecycleCommand> tell(const LifecycleEvent& event);
  void point_to_evidence(LifecycleEvent& event);
  // The next commands for an attempt that an earlier life left.
  std::vector<LifecycleCommand> go_on(const LeftAttempt& left);
  Status restore(const LeftAttempt& left);
  void give_up(const LeftAttempt& left);
  Status clear_acceptance();
  Status leave_acceptance();
  // attempt_run.cc: what was left, away again; what it took counts as this phase's.
  void leave_workspace(MeterPhase phase);
  void leave_rooms();
  Status remove_counted(const fs::path& dir);
  void count_removal(MeterPhase phase, const RemovalCost& took);
  // For a later life: the agent's program has a container; it has ended; its patch is extracted.
  void keep_checkpoint(Checkpoint where);
  void outlives(const std::string& container);
  void agent_ended();

  Status write_manifest();
  Json manifest() const;
  // Members that manifest and report have alike.
  void identify(auto& run) const {
    run.campaign = id_of(input_.campaign);
    run.run_name = input_.assignment.run_name;
    run.attempt = input_.assignment.attempt;
    run.task = contract().id;
    run.method = input_.method->name;
    run.replicate = input_.assignment.replicate;
    run.contract = contract().digest;
    run.method_digest = input_.method->digest;
    run.commit = snapshot_.commit;
    run.cost_model = input_.settings->cost_model.digest;
    run.cost_model_version = input_.settings->cost_model.version;
    run.started_ms = out_.started_ms;
  }
  Status open_workspace(Room room);
  Result<ExecOutcome> execute(SandboxEngine& engine, MeterPhase phase, const SandboxSpec& spec,
                              const ExecSpec& exec, std::stop_token cancel);
  Result<SandboxSpec> spec_for(Room room, const std::string& label, SandboxEngine& engine,
                               std::optional<std::uint32_t> seed = {});
  // attempt_setup.cc: a setup, run or taken from what was kept of one: the task's and the method's.
  struct KeptSetup {
    std::optional<Digest> key;            // none: nothing of it is kept
    bool hit = false;                     // when the manifest was written
    std::optional<SetupLayer> layer;      // what it makes
    std::optional<SetupMaking> making{};  // this run makes it; neither: for itself alone
    Json steps = Json::array();           // so far
    std::optional<ManifestSetupCache> in_manifest() const;
  };
  struct SetupRun {
    const std::vector<SetupStep>& steps;
    std::size_t index;
    KeptSetup& kept;
    std::string dir;             // in the evidence
    std::optional<Room> room{};  // none: it is the method's
    const SetupStep& step() const { return steps[index]; }
  };
  Answer perform(const SetupRun& run, bool as_kept);
  void look_for(KeptSetup& setup, const Digest& key) const;
  void look_for_layer();
  void find_or_make(KeptSetup& setup, const std::vector<SetupStep>& steps) const;
  Status open_on_layer(Room room);
  Status lay_layer_below();
  Result<SandboxSpec> setup_spec(Room room, const std::string& name);
  Result<SetupEnded> run_setup(const SetupRun& run);
  Result<SetupEnded> setup_as_kept(const SetupRun& run);
  void record_step(const SetupRun& run, const ExecOutcome& outcome) const;
  fs::path output_of(const SetupRun& run, const char* stream) const;
  std::uint64_t note_setup(const SetupRun& run, const ExecOutcome& outcome, std::string layer);
  Status keep_setup(const SetupRun& run);
  // attempt_setup.cc: an image that is built.
  Result<std::optional<ImageFailed>> have_image();
  std::uint64_t note_image();
  // attempt_setup.cc: what the method's agent has beside what the contract gives.
  NetworkAccess agent_network() const;
  Result<SandboxSpec> agent_spec(SandboxEngine& engine);
  std::optional<ManifestMethod> manifest_method() const;
  void look_for_method_layer();
  Result<SandboxSpec> method_setup_spec(SandboxEngine& engine);
  Status keep_files();
  // The contract's files for setup, or for checks and services: none has the reference patch.
  enum class FilesFor { kSetup, kChecks };
  Status show_contract_files(SandboxSpec& spec, FilesFor whom);
  Result<CheckEnded> check(std::size_t index);
  // Puts the tests back as they were before setup and earlier checks ran.  Their changes are on
  // record and nobody's violation: honest products cannot be told from planted ones.
  Status protect_again(std::size_t index);
  // The home of the acceptance room, and what git obeys there: as the untouched snapshot and its
  // setup have them.
  Status put_home_and_git_back();
  bool is_setups(const std::string& path) const;
  Status keep_setup_home();
  struct CheckEnd {
    ExecOutcome outcome;
    SandboxEngine* engine = nullptr;  // and image, and whether as a program of that: where
    SandboxSpec ran_as{};
    std::string never_ran{};  // why its services did not get ready, the candidate's among them
  };
  // For a command that has not succeeded, when nothing of it runs any more: was it for want of what
  // this host has no more of?  Then lacked_ says who wanted it.
  Status had_all(SandboxEngine& engine, const SandboxSpec& ran_as);
  // The network that a check shares with its services, as its sandbox is given it.
  struct ServedBy {
    const SandboxEngine* engine = nullptr;
    std::shared_ptr<SharedNetwork> network;
    fs::path hosts;
    void give_to(SandboxSpec& spec) const;
  };
  Result<CheckEnd> run_alone(const Check& check, const fs::path& results, const std::string& name,
                             const ExecSpec& exec, const ServedBy* served);
  // The check among its services, if it has any.
  Result<CheckEnd> run_served(const Check& check, const fs::path& results, const std::string& name,
                              const fs::path& evidence, const ExecSpec& exec);
  // The engine that runs a check and all of its services.
  Result<SandboxEngine*> served_engine(const Check& check,
                                       const std::vector<std::size_t>& services);
  Result<ServedBy> share_network(SandboxEngine& engine, const Check& check,
                                 const std::vector<std::size_t>& services, const std::string& name);
  Result<ServicePlan> service_plan(const Service& service, const std::string& name,
                                   const fs::path& evidence, const ServedBy& served);
  void note_services(const Check& check, const fs::path& evidence,
                     const std::vector<ServiceGroup::End>& ends);
  Result<CheckEnd> run_command(const fs::path& results, const std::string& name,
                               const ExecSpec& exec, const ServedBy* served);
  Result<CheckEnd> run_container(const ProgramContainer& container, const std::string& name,
                                 const ExecSpec& exec, const ServedBy* served);
  Result<std::unique_ptr<PhaseNetwork>> give_container_network(SandboxSpec& spec,
                                                               const NetworkAccess& access,
                                                               const std::string& phase);
  // Where the paths of the workspace lie that containers of a room see.
  fs::path container_root(Room room) const {
    return beside_workspace() / ("container-" + std::string(to_string(room)));
  }
  Result<fs::path> container_folder(const ProgramContainer& container, Room room);
  // As protect_again, in the copies that the containers of checks have seen.
  Result<std::vector<std::string>> protect_copies(const std::map<std::string, PlacedFile>& placed);
  Result<AgentReport> work_in_container(const AgentJob& job, const ProgramContainer& container);
  Status take_back(const ProgramContainer& container);
  Status take_all_back(int workspace, const fs::path& from);
  Result<SandboxEngine*> container_engine(const ProgramContainer& container);
  Result<SandboxEngine*> agent_engine();
  Result<SandboxSpec> container_spec(const SandboxEngine& engine, const ProgramContainer& container,
                                     Room room, const std::string& label);
  // Opens what commands may have closed: before the next begins, and before anything is read there.
  Status open_again(const SandboxSpec& spec) const;
  Status place_acceptance_files();
  // Copies of what setup makes, where no layer holds it.
  fs::path kept_made() const { return dir_ / "made"; }
  // The folder that commands of a room have as their home.
  static std::string home_name(Room room) { return "home-" + std::string(to_string(room)); }
  fs::path home_of(Room room) const { return beside_workspace() / home_name(room); }
  // The same of its home.
  fs::path kept_home() const { return dir_ / "made-home"; }
  Result<fs::path> fresh_dir(const std::string& name) { return open_dir(dir_, name); }
  // The same for what commands of the present room write: on its bounded disk, if it has one.
  Result<fs::path> writable_dir(const std::string& name) {
    return open_dir(beside_workspace(), name);
  }
  fs::path beside_workspace() const;
  ShownTo shown_to() const;
  // All that a bounded disk of this room must have room for.
  DiskBound disk_bound(Room room) const;
  void look_at_disk(ExecOutcome& outcome) const;
  std::string label(std::string_view phase) const;
  // The places that this phase may reach, given to its sandbox for as long as the object lives.
  Result<std::unique_ptr<PhaseNetwork>> give_network(SandboxSpec& spec, const NetworkAccess& access,
                                                     const std::string& phase);
  // Objects that live until the last word of the agent is read, which is after work() returns.
  struct Listeners {
    std::unique_ptr<MeterServer> meter;
    std::unique_ptr<GatewaySession> gateway;
    std::unique_ptr<OfferedTools> tools;
  };
  Answer end_recorded();  // in the place of an agent, where its patch was recorded
  timespec agent_begins() const;
  Result<AgentEnded> work(Listeners& listeners);
  Result<AgentReport> work_with(const AgentJob& job, const Listeners& listeners);
  // attempt_agent.cc: the worker's own agent, and what its commands see.
  Status listen_unseen(const SandboxSpec& spec, Listeners& listeners);
  RunToolHooks tool_hooks(GatewaySession& gateway, const SandboxSpec& commands);
  RunToolPlace tool_place(SandboxEngine& engine, SandboxSpec commands, fs::path scratch) const;
  ToolSessionRules tool_rules() const;
  // The same for an agent in a sandbox, which `spec` is of; `commands`: what those of its tools
  // see.
  Result<std::unique_ptr<OfferedTools>> show_tools(SandboxEngine& engine, SandboxSpec commands,
                                                   SandboxSpec& spec, GatewaySession& gateway);
  // Why the host could not do a call; nothing: it could do all.
  std::optional<Error> end_tools(OfferedTools& tools);
  Result<AgentReport> work_by_tools(const AgentJob& job, GatewaySession& gateway);
  AgentJob agent_job(SandboxEngine& engine, SandboxSpec spec, fs::path scratch,
                     std::uint64_t& evidence, OfferedTools* tools);
  // The metering socket, shown to this sandbox and to no other.
  Result<std::unique_ptr<MeterServer>> show_meter(SandboxSpec& spec);
  void tell_budget_reached(const MeterStop& stop, std::uint64_t evidence);
  // attempt_agent.cc: the agent's way to a model, where its method has one.
  Result<std::unique_ptr<GatewaySession>> show_gateway(SandboxSpec& spec);
  // In a folder that nobody is shown; `spec` has the secrets that are struck out.
  Result<std::unique_ptr<GatewaySession>> open_gateway(const SandboxSpec& spec, const fs::path& dir,
                                                       const std::string& token);
  Result<std::string> gateway_token() const;
  GatewayHooks gateway_hooks();
  bool keep_said(const std::string& digest, std::string_view bytes);
  std::chrono::milliseconds agent_wall() const { return *caps_.caps.wall; }
  // The seq of the event; 0 and a broken trace when it could not be written.
  std::uint64_t note(std::string_view type, Actor actor, const Json& payload);
  template <class K, class... T>
  requires requires(const K& kind) { kind.type; }
  std::uint64_t note(const K& kind, const T&... payload) {
    return note(kind.type, kind.actor, kind.json(payload...));
  }
  // The same, of what the agent does while it works (run_events.h).
  std::uint64_t note_of_agent(std::string_view type, Actor actor, const Json& payload);

  const Contract& contract() const {
    return with_image_ ? *with_image_ : input_.contract->contract;
  }
  // In this environment, isolated as contract and campaign want it.
  EngineWish wish(const Environment& environment) const {
    return {environment, stronger(contract().policy.isolation, input_.settings->isolation)};
  }

  Tools tools_;
  const AttemptInput& input_;
  AttemptWatch& watch_;
  fs::path dir_;
  HostDisk disk_;
  const EffectiveCaps caps_;
  RunLifecycle lifecycle_;
  AttemptMeter meter_;
  SafetyWatch safety_;
  // The agent alone: stopped by a cap as well as by whoever cancels the run.
  std::stop_source agent_stop_;
  std::mutex trace_mutex_;  // the socket's thread records too while the agent works
  AgentLog agent_log_;      // likewise
  std::unique_ptr<RunRecorder> recorder_;
  std::optional<Error> broken_;         // the trace could not be written
  std::optional<BuiltImage> image_;     // where the contract says how to make it
  std::optional<Contract> with_image_;  // and this, once it is there
  std::mutex said_mutex_;
  std::optional<SegmentWriter> said_;  // what went through the gateway
  SandboxEngine* engine_ = nullptr;
  SandboxEngine* method_engine_ = nullptr;  // where the method has an image of its own
  Snapshot snapshot_;
  std::unique_ptr<Workspace> workspace_;  // of the present room
  std::set<HeldLock> locked_before_;      // when the present step or check began
  std::optional<std::pair<SandboxEngine*, SandboxSpec>> lacked_;
  // The agent's, from its end until a later life would do without.
  std::unique_ptr<Sandbox> agent_sandbox_;
  std::optional<Error> unreadable_;       // what the agent left, and why
  timespec setup_over_{};                 // what setup changed was changed before
  std::vector<std::string> setup_wrote_;  // anywhere, where an agent may not; sorted
  std::vector<std::string> setup_left_;   // of the patch: what its agent has not touched; sorted
  std::optional<timespec> agent_began_;   // of one that may not have started; none: nobody knows
  std::optional<RecordedRun> recorded_;
  Patch patch_;
  RunRecorder::Mark patched_at_;  // where the trace ends when the patch is extracted
  bool acceptance_placed_ = false;
  FragmentFinder fragments_;  // builds that failed
  FolderUse patched_;  // what the patch and the acceptance files put into the fresh workspace
  std::string briefing_;
  MadeUnder setup_makes_;   // of what is protected, on the untouched snapshot
  fs::path setup_home_;     // as setup left it there; or is not there
  CopiedFiles home_known_;  // of the acceptance room, what is as it is there
  // Copies of workspace paths for containers of checks, and what each holds (TreeCopy::known).
  std::map<std::string, CopiedFiles> container_copies_;
  bool network_used_ = false;
  KeptSetup setup_;                            // of the untouched snapshot
  KeptSetup method_setup_;                     // likewise, of the method's own
  fs::path method_made_;                       // what it made; empty: it has none
  bool layered_ = false;                       // the layer is in the present workspace
  std::vector<LifecycleEvent> told_;           // what the lifecycle was
  std::uint32_t lives_ = 0;                    // of the worker that had this attempt before
  const LeftAttempt* left_program_ = nullptr;  // until the agent is over
  Outcome out_;
  std::optional<RunReport> packed_;  // the report, when it is on disk
};
}  // namespace proctor
