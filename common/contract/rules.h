#pragma once
// Which texts are allowed where, once for contracts, campaigns and what arrives in bundles.
// Internal to the parsers of this room.
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/limits.h"
#include "common/contract/call_limits.h"
#include "common/contract/campaign.h"
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
bool is_work_path(std::string_view text);     // a file of the workspace, or "."
bool is_kept_path(std::string_view text);     // a glob of the workspace, or of the home behind "~/"
bool is_service_name(std::string_view text);  // what a host's name may be made of
bool is_alias(std::string_view text);         // a name, or the beginning of one and a star

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
inline constexpr TextRule kFailureModesRule{kTextBytes, "lines of JSON"};
inline constexpr TextRule kPatternRule{limits::kNameBytes * 4, "a pattern of RE2 on one line",
                                       is_one_line};
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
inline constexpr TextRule kAnyText{kPathBytes, "a text"};
inline constexpr TextRule kPlaceRule{300, "host:port, *.domain:port or address:port, in lower case",
                                     is_allowed_place};
inline constexpr TextRule kSourceRule{
    kPathBytes, "a path, a URL or a .bundle file (https, http, ssh, git or file)", is_one_line};
inline constexpr TextRule kCommitRule{64, "a full commit id: 40 or 64 lower-case hex digits",
                                      is_commit};
inline constexpr TextRule kTreeRule{64, "a full tree id: 40 or 64 lower-case hex digits",
                                    is_commit};
inline constexpr TextRule kImageByDigestRule{500, "an image by digest: name@sha256:<64 hex digits>",
                                             is_image};
inline constexpr TextRule kLocaleRule{100, "a locale such as C.UTF-8", is_locale};
inline constexpr TextRule kZoneRule{100, "a time zone such as UTC", is_locale};
inline constexpr TextRule kSecretRule{100, "the name of an environment variable of the worker",
                                      is_variable};
inline constexpr TextRule kHostPathRule{kPathBytes, "an absolute path", is_absolute};
inline constexpr TextRule kFolderRule = kHostPathRule;
inline constexpr TextRule kToolchainAtRule{
    kPathBytes, "an absolute path that no part of the sandbox has for itself", is_free_place};
inline constexpr TextRule kMountPointRule{
    kPathBytes, "an absolute path, not of the container's own", is_free_in_container};
inline constexpr TextRule kFromRule{kPathBytes, "a path of the workspace, or \".\" for all of it",
                                    is_work_path};
inline constexpr TextRule kResultFileRule{100, "a file name without folder", is_flat_name};
inline constexpr TextRule kServiceRule{
    63, "a host's name: a-z, 0-9 and \"-\" between them, neither \"localhost\" nor \"sandbox\"",
    is_service_name};
inline constexpr TextRule kKeepRule{
    kPathBytes,
    "a file or glob of the workspace such as \"logs/*.json\", or of the home: \"~/traj.json\"",
    is_kept_path};
inline constexpr TextRule kGatewayNameRule{limits::kNameBytes, "a name on one line", is_one_line};
inline constexpr TextRule kAliasRule{limits::kNameBytes,
                                     "a name on one line, with at most one * at its end", is_alias};
inline constexpr TextRule kProviderRule{limits::kNameBytes, "a name of 1 to 100 bytes on one line",
                                        is_one_line};

class FileSource;
// Reads the files a document refers to, each once, and keeps them ordered by path.
class FileCollector {
 public:
  // `folder`: the variable that names the folder where commands find them.
  FileCollector(const FileSource& source, Problems& problems, std::string_view folder)
      : source_(source), problems_(problems), folder_(folder) {}
  // The path when it is fine; "" after a diagnostic.
  std::string add(const Node& node, const std::string& where);
  const ReferencedFile* find(const std::string& path) const;
  void remove(const std::string& path) { files_.erase(path); }
  std::vector<ReferencedFile> take();
  std::string_view folder() const { return folder_; }
  const FileSource& source() const { return source_; }

 private:
  const FileSource& source_;
  Problems& problems_;
  std::string_view folder_;
  std::map<std::string, ReferencedFile> files_;
  std::size_t bytes_ = 0;
};

// The interpreter that the first line of a script asks for, in words for a shell:
// "'/usr/bin/env' 'python3'", as Linux reads it; "sh" where it asks for sh or for nothing.
// nullopt: no interpreter can be called so.
std::optional<std::string> interpreter_of(std::string_view script);

// The `command` or `script` of a mapping, exactly one of them; a script becomes the command that
// runs it out of its folder: itself if it is executable, else what its first line asks for.
std::string read_command(const Fields& fields);

// The caps of a contract or campaign; the same keys in both.
void fields(auto& v, Is<Caps> auto& c) {
  constexpr std::chrono::milliseconds kShortest{1};
  v("usd", c.usd);
  v("tokens", c.tokens, 0, kQuantityMax);
  v("tool_calls", c.tool_calls, 0, kQuantityMax);
  v("failed_acceptance_cycles", c.failed_acceptance_cycles, 0, kQuantityMax);
  v("wall", c.wall, kShortest);
  v("model_calls", c.model_calls, 0, kQuantityMax);
  v("dependency_installs", c.dependency_installs, 0, kQuantityMax);
  v("active", c.active, kShortest);
  v("calls_per_minute", c.calls_per_minute, 0, 100'000);  // each call of the last one is remembered
}

// The rates of a campaign, in its file and in its bundle.
void check_rates(const Fields& f, const Rates& rates);
void fields(auto& v, Is<Rates> auto& r) {
  v("calls_per_minute", r.calls_per_minute, 1, kCallsPerMinuteMax);
  v("providers", r.providers, "a mapping of providers to calls per minute", kProviderRule, 1,
    kCallsPerMinuteMax);
  v.then(r, check_rates);
}

// Parts of campaign.yaml.
void fields(auto& v, Is<SharedEnvelope> auto& e) {
  v("name", e.name, kIdRule, Need::kMust);
  v("cap", e.cap, Need::kMust);
}
void fields(auto& v, Is<BudgetWatch::Dominance> auto& d) {
  v("action", d.action);
  v("percent", d.percent, 1, 100);
  v("milestones", d.milestones, 1, 1000);
}
void fields(auto& v, Is<Retries> auto& r) {
  using Ms = std::chrono::milliseconds;
  v("overload", r.overload, 0, 1000);
  v("backoff", r.backoff, Ms(0));
  v("overload_backoff", r.overload_backoff, Ms(0));
  v("backoff_max", r.backoff_max, Ms(0));
  v("escalate", r.escalate);
  v("park_after", r.park_after, 1, 50);
  v("quarantine_after", r.quarantine_after, 1, 1000);
  v("quarantine", r.quarantine, Ms(1));
  v("quarantine_max", r.quarantine_max, Ms(1));
}

// The keys of campaign.yaml ("") or of a section of it, such as "stages.tasks", which the JSON
// Schema lists too (a test compares them).
Keys campaign_keys(std::string_view section);
// Those of pilot_cost_model_inputs.json.
using KeyName = std::string_view;
inline constexpr std::array<KeyName, 4> kCostInputsKeys{"$schema", "notes", "lost_attempts_per_run",
                                                        "usage"};
inline constexpr std::array<KeyName, 4> kExpectedUsageKeys{"task", "method", "notes", "actions"};
inline constexpr std::array<KeyName, 6> kExpectedActionKeys{"action_type", "unit",    "provider",
                                                            "model",       "per_run", "notes"};
}  // namespace proctor
