#pragma once
// Which texts are allowed where, once for contracts, campaigns and what arrives in bundles; and the
// keys that each mapping may have, which the JSON Schemas must list too (a test compares them).
// Internal to the parsers of this room.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/limits.h"
#include "common/contract/call_limits.h"
#include "common/contract/contract.h"
#include "common/contract/fields.h"

namespace proctor {
bool is_id(std::string_view text);         // [a-z0-9][a-z0-9._-]*
bool is_word(std::string_view text);       // [a-z][a-z0-9_-]*
bool is_one_line(std::string_view text);   // no control characters
bool is_commit(std::string_view text);     // 40 or 64 lower-case hex digits
bool is_image(std::string_view text);      // [name@]sha256:<64 hex>
bool is_variable(std::string_view text);   // [A-Za-z_][A-Za-z0-9_]*, not PROCTOR_...
bool is_glob(std::string_view text);       // relative, stays below the workspace
bool is_file_path(std::string_view text);  // safe relative, without shell metacharacters
bool is_absolute(std::string_view text);   // absolute, without "." and "..", not "/"
bool is_locale(std::string_view text);     // letters, digits and _ . @ + - /
bool is_flat_name(std::string_view text);  // a file name without folder
// A file of the workspace, or a glob over some, that is not in git's own folder, however a file
// system may spell that: git would run what lies there.
bool is_work_file(std::string_view text);
bool is_work_glob(std::string_view text);
// An absolute path that is not, does not cover and is not below a place where a sandbox keeps its
// own: what proctor shows there (/proctor, /workspace) and what the kernel shows.
bool is_free_place(std::string_view text);
// The same in the container of an image, where /workspace is nobody's.
bool is_free_in_container(std::string_view text);

inline constexpr std::size_t kTextBytes = std::size_t{1} << 20;
inline constexpr std::size_t kCommandBytes = std::size_t{64} << 10;
inline constexpr std::size_t kPathBytes = 4096;
// All files of one contract or method together.  The rest of a bundle is for its description.
inline constexpr std::size_t kFilesBytes = limits::kContractBundleBytes - (std::size_t{32} << 20);

inline constexpr TextRule kIdRule{
    limits::kNameBytes, "an id: a-z, 0-9, \".\", \"_\" and \"-\", beginning with a letter or digit",
    is_id};
inline constexpr TextRule kWordRule{
    limits::kNameBytes, "a word: a-z, 0-9, \"_\" and \"-\", beginning with a letter", is_word};
inline constexpr TextRule kValueRule{limits::kNameBytes, "a short text on one line", is_one_line};
inline constexpr TextRule kTitleRule{200, "a title on one line", is_one_line};
inline constexpr TextRule kBriefingRule{kTextBytes, "a text"};
inline constexpr TextRule kCommandRule{kCommandBytes, "a command for /bin/sh"};
inline constexpr TextRule kVariableRule{
    limits::kNameBytes, "a variable's name: A-Z, a-z, 0-9 and \"_\", not beginning with PROCTOR_",
    is_variable};
inline constexpr TextRule kVariableValueRule{std::size_t{32} << 10, "a text"};
inline constexpr TextRule kPathRule{
    kPathBytes, "a relative path below this file's folder, without \"..\" and shell characters",
    is_file_path};
inline constexpr TextRule kGlobRule{kPathBytes, "a glob below the workspace such as \"src/**\"",
                                    is_glob};
inline constexpr TextRule kWorkFileRule{
    kPathBytes,
    "a relative path in the workspace, not in .git, without \"..\" and shell characters",
    is_work_file};
inline constexpr TextRule kWorkGlobRule{
    kPathBytes, "a glob below the workspace such as \"src/**\", not in .git", is_work_glob};
inline constexpr TextRule kTestIdRule{1000, "a test id on one line", is_one_line};

class FileSource;
// Reads the files a document refers to, each once, and keeps them ordered by path.
class FileCollector {
 public:
  FileCollector(const FileSource& source, Problems& problems)
      : source_(source), problems_(problems) {}
  // The path when it is fine; "" after a diagnostic.
  std::string add(const Node& node, const std::string& where);
  const ReferencedFile* find(const std::string& path) const;
  void remove(const std::string& path) { files_.erase(path); }
  std::vector<ReferencedFile> take();

 private:
  const FileSource& source_;
  Problems& problems_;
  std::map<std::string, ReferencedFile> files_;
  std::size_t bytes_ = 0;
};

// The interpreter that the first line of a script asks for, in words for a shell:
// "'/usr/bin/env' 'python3'", as Linux reads it; "sh" where it asks for sh or for nothing.
// nullopt: no interpreter can be called so.
std::optional<std::string> interpreter_of(std::string_view script);

// The `command` or `script` of a mapping, exactly one of them; a script becomes the command that
// runs it out of `folder_variable`: itself if it is executable, else what its first line asks for.
std::string read_command(const Fields& fields, FileCollector& files,
                         std::string_view folder_variable);

// The caps of a contract or campaign; the same keys in both.
Caps read_caps(const Node& node, const std::string& path, Problems& problems);

// The rates of a campaign, in its file and in its bundle.
Rates read_rates(const Node& node, const std::string& path, Problems& problems);

using KeyName = std::string_view;
inline constexpr std::array<KeyName, 19> kContractKeys{
    "$schema", "id",         "title",           "briefing",    "briefing_file", "type",
    "strata",  "repository", "environment",     "setup",       "checks",        "acceptance_files",
    "policy",  "caps",       "reference_patch", "single_shot", "files",         "services",
    "tools"};
inline constexpr std::array<KeyName, 1> kContractToolKeys{"tests"};
inline constexpr std::array<KeyName, 2> kTestSuiteKeys{"name", "command"};
inline constexpr std::array<KeyName, 4> kRepositoryKeys{"source", "commit", "tree", "submodules"};
inline constexpr std::array<KeyName, 7> kEnvironmentKeys{
    "sandbox", "image", "variables", "locale", "timezone", "secrets", "toolchains"};
inline constexpr std::array<KeyName, 5> kImageBuildKeys{"dockerfile", "files", "arguments",
                                                        "network", "timeout"};
inline constexpr std::array<KeyName, 2> kToolchainKeys{"path", "at"};
inline constexpr std::array<KeyName, 6> kSetupKeys{"command", "script", "timeout",
                                                   "network", "cache",  "inputs"};
inline constexpr std::array<KeyName, 1> kNetworkKeys{"allow"};
inline constexpr std::array<KeyName, 2> kNetworkPhaseKeys{"agent", "acceptance"};
inline constexpr std::array<KeyName, 13> kCheckKeys{
    "id",           "command",      "script",          "kind",
    "gate",         "timeout",      "result",          "result_file",
    "fail_to_pass", "pass_to_pass", "others_may_fail", "container",
    "services"};
inline constexpr std::array<KeyName, 9> kServiceKeys{"name",      "command",   "script",
                                                     "variables", "container", "depends_on",
                                                     "ready",     "memory",    "processes"};
inline constexpr std::array<KeyName, 4> kReadyKeys{"port", "command", "interval", "timeout"};
inline constexpr std::array<KeyName, 6> kContainerKeys{"image",       "entrypoint", "command",
                                                       "working_dir", "variables",  "mounts"};
inline constexpr std::array<KeyName, 3> kContainerMountKeys{"from", "at", "writable"};
inline constexpr std::array<KeyName, 2> kAcceptanceFileKeys{"from", "to"};
inline constexpr std::array<KeyName, 11> kPolicyKeys{"network", "writable", "protected", "ignored",
                                                     "wall",    "memory",   "processes", "disk",
                                                     "cpu",     "cpus",     "isolation"};
inline constexpr std::array<KeyName, 1> kCampaignPolicyKeys{"isolation"};
inline constexpr std::array<KeyName, 9> kCapsKeys{"usd",
                                                  "tokens",
                                                  "tool_calls",
                                                  "failed_acceptance_cycles",
                                                  "wall",
                                                  "model_calls",
                                                  "dependency_installs",
                                                  "active",
                                                  "calls_per_minute"};
inline constexpr std::array<KeyName, 21> kCampaignKeys{
    "$schema",   "name",           "contracts", "methods", "replicates",
    "seed",      "seed_deviation", "stages",    "budget",  "caps",
    "strata",    "workers",        "slots",     "redis",   "infrastructure_retries",
    "task_caps", "rates",          "retries",   "policy",  "analysis",
    "breakers"};
inline constexpr std::array<KeyName, 12> kAnalysisKeys{
    "baseline",        "contrasts", "estimand",     "interval",  "alpha",   "min_effect",
    "non_inferiority", "pass_k",    "multiplicity", "bootstrap", "weights", "unit"};
inline constexpr std::array<KeyName, 1> kBootstrapKeys{"draws"};
inline constexpr std::array<KeyName, 2> kRatesKeys{"calls_per_minute", "providers"};
inline constexpr std::array<KeyName, 19> kMethodKeys{"name",
                                                     "kind",
                                                     "command",
                                                     "script",
                                                     "files",
                                                     "variables",
                                                     "overload_exit",
                                                     "container",
                                                     "environment",
                                                     "keep",
                                                     "model",
                                                     "provider",
                                                     "attempts",
                                                     "max_output_tokens",
                                                     "call_timeout",
                                                     "gateway",
                                                     "as",
                                                     "max_turns",
                                                     "breakers"};
inline constexpr std::array<KeyName, 8> kGatewayKeys{"model",   "models",     "provider", "as",
                                                     "aliases", "output_max", "breakers", "tools"};
inline constexpr std::array<KeyName, 3> kGatewayModelKeys{"provider", "aliases", "output_max"};
inline constexpr std::array<KeyName, 6> kMethodEnvironmentKeys{"image",      "variables", "secrets",
                                                               "toolchains", "network",   "setup"};
inline constexpr std::array<KeyName, 5> kMethodSetupKeys{"command", "script", "timeout", "network",
                                                         "cache"};
inline constexpr std::array<KeyName, 9> kStageKeys{
    "name", "usd", "caps", "tasks", "replicates", "order", "entry", "exit", "approval"};
inline constexpr std::array<KeyName, 1> kStageTasksKeys{"per_stratum"};
inline constexpr std::array<KeyName, 1> kApprovalKeys{"people"};
inline constexpr std::array<KeyName, 10> kBudgetKeys{"global",    "task",    "tasks",  "run",
                                                     "ledger",    "methods", "strata", "alerts",
                                                     "dominance", "shared"};
inline constexpr std::array<KeyName, 2> kSharedKeys{"name", "cap"};
inline constexpr std::array<KeyName, 3> kDominanceKeys{"action", "percent", "milestones"};
inline constexpr std::array<KeyName, 9> kRetriesKeys{
    "overload",   "backoff",          "overload_backoff", "backoff_max",   "escalate",
    "park_after", "quarantine_after", "quarantine",       "quarantine_max"};
// pilot_cost_model_inputs.json
inline constexpr std::array<KeyName, 4> kCostInputsKeys{"$schema", "notes", "lost_attempts_per_run",
                                                        "usage"};
inline constexpr std::array<KeyName, 4> kExpectedUsageKeys{"task", "method", "notes", "actions"};
inline constexpr std::array<KeyName, 6> kExpectedActionKeys{"action_type", "unit",    "provider",
                                                            "model",       "per_run", "notes"};
}  // namespace proctor
