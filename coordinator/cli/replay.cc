#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "common/base/file_lock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/contract_digest.h"
#include "common/trace/event.h"
#include "common/trace/judgement.h"
#include "common/trace/recorded_run.h"
#include "coordinator/aggregate/format.h"
#include "coordinator/aggregate/warnings.h"
#include "coordinator/cli/campaign_run.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/report.h"
#include "coordinator/cli/report_files.h"
#include "coordinator/cli/trial_campaign.h"
#include "coordinator/cli/try.h"
#include "coordinator/shell/control_protocol.h"

namespace proctor::cli {
// proctor replay and regrade: a campaign below the original one, regrades/NAME, whose methods hand
// in the patches that the original recorded.  It has the original's plan, so that every run keeps
// its number, name and seed; the runs that it has no patch of are not made.

namespace {
// One of the two verdicts about a patch.
struct Side {
  RunReport report;
  Digest digest;  // report.json's
};
void fields(auto& v, Is<Side> auto& s) {
  std::map<std::string, std::optional<CheckOutcome>> checks;
  std::map<std::string, std::string> gates;
  std::vector<std::string> tags;
  for (const CheckReport& c : s.report.checks) checks[c.id] = c.outcome;
  for (const GateReport& g : s.report.gates) gates[g.gate] = g.outcome;
  for (const Tag& t : s.report.tags) tags.push_back(t.id);
  v("checks", checks);
  v("configuration", s.report.configuration);
  v("contract", s.report.contract);
  v("gates", gates);
  v("outcome", s.report.outcome);
  v("report", s.digest);
  v("tags", tags);
}
struct Recorded {
  Side was;
  std::string facts;
};
struct LeftOut {
  std::string run, why;
};
void fields(auto& v, Is<LeftOut> auto& l) {
  v("run_name", l.run);
  v("why", l.why);
}
struct Collected {
  std::map<std::string, Recorded> runs;  // by name
  std::vector<LeftOut> left_out;
  Configurations configurations{};
};
using Contracts = std::map<std::string, Contract>;  // by task

// Without what may be megabytes, of thousands of runs.
Side side_of(RunReport report, const Digest& digest) {
  report.violations = left_to_agent(report, {});
  for (CheckReport& c : report.checks) c = {.id = std::move(c.id), .outcome = c.outcome};
  report.files = {};
  report.application = {};
  report.interventions = {};
  return Side{std::move(report), digest};
}

Result<std::string> patch_of(const StateFolder& folder, const std::string& run,
                             const RunReport& report) {
  return bound_file(folder.attempt(run, report.attempt.no) / kPatchFile, report.patch,
                    limits::kPatchBytes, run);
}

Result<Recorded> recorded_of(const StateFolder& folder, const RunRecord& run) {
  const fs::path dir = folder.attempt(run.name, AttemptNo(run.attempts));
  PROCTOR_TRY(RunReport report,
              bound_report(folder, run.name, AttemptNo(run.attempts), run.report));
  PROCTOR_TRY(const std::string patch, patch_of(folder, run.name, report));
  const auto events = std::ranges::find(report.files, kEventsFile, &EvidenceFile::path);
  if (events == report.files.end())
    return Error{Errc::kInvalid, run.name + ": its report names no " + std::string(kEventsFile)};
  PROCTOR_TRY(const EvidenceFile found, hash_file(dir, std::string(kEventsFile)));
  PROCTOR_CHECK_OK(has_digest(dir / kEventsFile, found.digest, events->digest, run.name));
  std::optional<events::Mutation> mutation;
  std::vector<Json> alerts;
  PROCTOR_CHECK_OK(each_event(dir, [&](const TraceEvent& event) {
    if (event.type == events::kMutation.type) mutation = events::kMutation.read(event.payload);
    const auto told =
        event.type == events::kAlert.type ? events::kAlert.read(event.payload) : std::nullopt;
    if (!told || std::get<2>(*told) != "agent" || alerts.size() == kReportItems) return;
    if (meaning_of(std::get<0>(*told), std::get<1>(*told), "agent"))
      alerts.push_back(event.payload);
  }));
  const RecordedRun facts = recorded_run(
      report, run.report, std::move(mutation).value_or(events::Mutation{}), std::move(alerts));
  return Recorded{side_of(std::move(report), run.report), to_json(facts).dump() + "\n"};
}

// The reason why a run cannot be judged again; empty: it can.  The network makes a difference to a
// replay alone: a regrade asks for another verdict.
std::string why_not(const RunRecord& run, const Contract& contract, bool replay) {
  if (run.state != RunRecord::State::kEnded)
    return run.parked_why.empty() ? std::string(to_string(run.state)) : run.parked_why;
  if (run.outcome == RunOutcome::kInvalid) return "it has no verdict: " + run.rationale;
  const bool network =
      contract.policy.check_network.any() ||
      std::ranges::any_of(contract.setup, [](const SetupStep& s) { return s.network.any(); });
  if (replay && network) return "not replayable: setup or checks had the network (R075)";
  return "";
}

Result<Collected> collect(const FrozenCampaign& frozen, const std::set<RunId>& wanted,
                          bool replay) {
  PROCTOR_TRY(const CampaignReport report, read_report(frozen));
  Collected out{{}, {}, report.configurations};
  for (const RunRecord& run : report.runs) {
    if (!wanted.contains(run.run)) continue;
    const std::string why = why_not(run, *frozen.campaign.find_contract(run.task), replay);
    if (!why.empty()) {
      out.left_out.push_back({run.name, why});
      continue;
    }
    PROCTOR_TRY(Recorded recorded, recorded_of(frozen.folder, run));
    out.runs.emplace(run.name, std::move(recorded));
  }
  if (!out.runs.empty() || out.left_out.empty()) return out;
  const LeftOut& first = out.left_out.front();
  return Error{Errc::kInvalid, "no run can be judged again; " + first.run + ": " + first.why};
}

// The parts of a contract that acceptance alone uses, and the rest.
struct ContractParts {
  Json acceptance = Json::array(), rest;
};
ContractParts parts_of(const Contract& contract) {
  ContractParts out;
  out.rest =
      parse_json(canonical_form(contract), {limits::kContractBundleBytes}).value()["contract"];
  const auto take = [&](Json& from, const char* key) {
    if (!from.contains(key)) return;
    out.acceptance.push_back(from[key]);
    from.erase(key);
  };
  take(out.rest, "checks");
  take(out.rest, "acceptance");
  take(out.rest, "acceptance_files");
  if (out.rest.contains("policy")) take(out.rest["policy"], "protected");
  out.rest.erase("files");  // compared by their bytes
  return out;
}

std::string differing_key(const Json& was, const Json& is, const std::string& at = "") {
  if (was == is) return "";
  if (!was.is_object() || !is.is_object()) return at;
  Json both = was;
  both.update(is);
  for (const auto& [key, value] : both.items()) {
    const std::string where = at.empty() ? key : at + "." + key;
    if (!was.contains(key) || !is.contains(key)) return where;
    if (std::string found = differing_key(was[key], is[key], where); !found.empty()) return found;
  }
  return "";
}

// The key by which one contract is another task than the other, and no correction of it; empty:
// they differ in what acceptance uses, or not at all.
std::string other_task(const Contract& was, const Contract& is) {
  const ContractParts before = parts_of(was), after = parts_of(is);
  std::string key = differing_key(before.rest, after.rest);
  if (!key.empty()) return key;
  const std::string judging = before.acceptance.dump() + after.acceptance.dump();
  const std::string rest = after.rest.dump();
  const auto judges = [&](const std::string& path) {
    return judging.find(path) != std::string::npos && rest.find(path) == std::string::npos;
  };
  const auto same = [](const ReferencedFile& f, const std::vector<ReferencedFile>& files) {
    const auto it = std::ranges::find(files, f.path, &ReferencedFile::path);
    return it != files.end() && it->bytes == f.bytes && it->mode == f.mode;
  };
  for (const auto& [one, other] : {std::pair(&was, &is), std::pair(&is, &was)})
    for (const ReferencedFile& f : one->files)
      if (!same(f, other->files) && !judges(f.path)) return "file " + f.path;
  return "";
}

// A folder has those that end as contracts of the campaign do: files that contracts name lie there
// too.
std::vector<std::string> contract_files(const std::string& path, const Campaign& campaign) {
  std::set<std::string> ends;
  for (const Contract& c : campaign.contracts) ends.insert(fs::path(c.origin.file).extension());
  std::vector<std::string> out;
  for (const fs::path& file : paths_in(path))
    if (ends.contains(file.extension()) && file.filename() != kCampaignFile)
      out.push_back(file.string());
  if (!is_folder(path)) out.push_back(path);
  std::ranges::sort(out);
  return out;
}

// Those of the file or folder that differ from the campaign's.
Result<Contracts> new_contracts(const std::string& path, const Campaign& campaign) {
  Contracts out;
  Diagnostics wrong;
  std::vector<std::string_view> ids;
  std::set<std::string> seen;
  for (const Contract& c : campaign.contracts) ids.push_back(c.id);
  const std::vector<std::string> files = contract_files(path, campaign);
  if (files.empty() || !is_there(path))
    return Error{
        Errc::kInvalid,
        fmt::format(
            "--contracts {}: {}, so nothing was judged; copy the folder of the contracts that are "
            "wrong, correct them there, and type it again:\n  cp -r {}/. {}",
            printable(path), files.empty() ? "no contract is there" : "not found",
            shell_quoted(fs::path(campaign.contracts.front().origin.file).parent_path().string()),
            shell_quoted(path.empty() ? "contracts-v2" : path))};
  for (const std::string& file : files) {
    std::optional<Contract> contract = load_contract(file, file, wrong);
    if (!wrong.empty()) {
      std::fputs(wrong.text().c_str(), stderr);
      return Error{Errc::kInvalid, counted(wrong.count(), "error") + " in " + file};
    }
    const Contract* was = campaign.find_contract(contract->id);
    if (was == nullptr) return no_such("the campaign", "task", contract->id, ids);
    if (!seen.insert(contract->id).second)
      return Error{Errc::kInvalid, file + ": a second contract of " + contract->id + " in " + path};
    if (was->digest == contract->digest) continue;
    if (const std::string key = other_task(*was, *contract); !key.empty())
      return Error{
          Errc::kInvalid,
          file + ": " + printable(key) +
              ": differs from the contract that was registered, and acceptance alone "
              "(checks, acceptance, acceptance_files, policy.protected) may: another task needs a "
              "campaign of its own"};
    out.emplace(contract->id, *std::move(contract));
  }
  if (out.empty())
    return Error{Errc::kInvalid, path + ": no contract there differs from the registered one"};
  return out;
}

// As YAML of one line.  A text that was not in quotes may be a number.
std::string yaml_of(const Node& node) {
  if (node.kind == Node::Kind::kNull) return "null";
  if (node.kind == Node::Kind::kScalar) {
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyz0123456789._";
    const bool plain = !node.quoted && node.text.find_first_not_of(kPlain) == node.text.npos;
    return plain ? node.text : Json(node.text).dump();
  }
  std::vector<std::string> parts;
  for (const Node& item : node.items) parts.push_back(yaml_of(item));
  for (const Entry& e : node.entries) parts.push_back(Json(e.key).dump() + ": " + yaml_of(e.value));
  const bool list = node.kind == Node::Kind::kSequence;
  return fmt::format("{}{}{}", list ? '[' : '{', fmt::join(parts, ", "), list ? ']' : '}');
}

// The stages as they draw and bound their runs; nothing opens or closes them.
Node drawn_alone(Node stages) {
  constexpr std::array<std::string_view, 5> kDraw{"name", "tasks", "replicates", "order", "caps"};
  for (Node& stage : stages.items)
    std::erase_if(stage.entries,
                  [&](const Entry& e) { return std::ranges::find(kDraw, e.key) == kDraw.end(); });
  return stages;
}

// campaign.yaml with what draws, bounds, judges and analyses runs; no agent needs the rest.
Result<std::string> derived_yaml(const FrozenCampaign& frozen, const Collected& collected,
                                 bool same_contracts) {
  const Campaign& c = frozen.campaign;
  PROCTOR_TRY(const std::string text, read_file(c.origin.file, limits::kConfigFileBytes));
  Diagnostics wrong;
  const auto document = read_document(text, Format::kYaml, c.origin.file, wrong);
  if (!document || !wrong.empty()) return Error{Errc::kInvalid, wrong.text()};
  std::set<std::string_view> left{
      "contracts", "methods",  "budget",  "redis",  "rates",         "retries",     "workers",
      "slots",     "breakers", "$schema", "safety", "failure_modes", "derived_from"};
  if (!same_contracts) left.insert({"caps", "task_caps"});  // longer checks may need more
  std::string out;
  for (const Entry& e : document->root.entries)
    if (!left.contains(e.key))
      out += e.key + ": " + yaml_of(e.key == "stages" ? drawn_alone(e.value) : e.value) + "\n";
  Json contracts = Json::array(), methods = Json::array(), from = Json::object();
  from["campaign"] = frozen.id;
  for (const Contract& contract : c.contracts) {
    contracts.push_back("contracts/" + contract.id + "/contract.json");
    from["contracts"][contract.id] = contract.digest.hex();
    const fs::path base = contract.origin.folder.lexically_relative(c.folder);
    if (base != ".") from["bases"][contract.id] = base.string();
  }
  for (const Method& m : c.methods) {
    Json files = Json::array();
    for (const auto& [run, recorded] : collected.runs)
      if (recorded.was.report.method == m.name) {
        files.push_back(recorded_facts(run));
        files.push_back(recorded_patch(run));
      }
    methods.push_back({{"name", m.name},
                       {"kind", "recorded"},
                       {"of", word_of(m.acts_as())},
                       {"files", std::move(files)}});
  }
  if (!c.failure_modes.empty()) out += "failure_modes: " + std::string(kFailureModesFile) + "\n";
  // Under the same contracts a run has the money that it had, which its configuration class says.
  const MicroUsd run = same_contracts ? c.envelopes.run : MicroUsd::from_micros(1'000'000'000);
  const Json budget{{"global", format_usd_exact(kLedgerMax)},
                    {"run", format_usd_exact(run)},
                    {"ledger", "journal"}};
  out += "contracts: " + contracts.dump() + "\nmethods: " + methods.dump() +
         "\nbudget: " + budget.dump() + "\nderived_from: " + from.dump() + "\nworkers: 1\nslots: " +
         std::to_string(std::max(1U, std::thread::hardware_concurrency())) + "\n";
  return out;
}

Status put(const fs::path& file, std::string_view bytes, std::uint32_t mode = 0644) {
  PROCTOR_CHECK_OK(make_dirs(file.parent_path()));
  return write_file(file, bytes, Durability::kLazy, mode);
}

Status write_derived(const FrozenCampaign& frozen, const Contracts& changed,
                     const Collected& collected, const fs::path& to) {
  PROCTOR_TRY(const std::string yaml, derived_yaml(frozen, collected, changed.empty()));
  PROCTOR_CHECK_OK(put(to / kCampaignFile, yaml));
  if (!frozen.campaign.failure_modes.empty())
    PROCTOR_CHECK_OK(put(to / kFailureModesFile, frozen.campaign.failure_modes));
  const fs::path prices = fs::path(frozen.campaign.origin.file).parent_path() / kCostModelFile;
  if (const Result<std::string> csv = read_file(prices, limits::kConfigFileBytes); csv.ok())
    PROCTOR_CHECK_OK(put(to / kCostModelFile, *csv));
  for (const Contract& registered : frozen.campaign.contracts) {
    const auto other = changed.find(registered.id);
    const Contract& c = other == changed.end() ? registered : other->second;
    const fs::path folder = to / "contracts" / c.id;
    const Json form = parse_json(canonical_form(c), {limits::kContractBundleBytes}).value();
    PROCTOR_CHECK_OK(put(folder / "contract.json", form["contract"].dump(2) + "\n"));
    for (const ReferencedFile& f : c.files) PROCTOR_CHECK_OK(put(folder / f.path, f.bytes, f.mode));
  }
  for (const auto& [run, recorded] : collected.runs) {
    PROCTOR_CHECK_OK(put(to / recorded_facts(run), recorded.facts));
    PROCTOR_TRY(const std::string patch, patch_of(frozen.folder, run, recorded.was.report));
    PROCTOR_CHECK_OK(put(to / recorded_patch(run), patch));
  }
  return ok_status();
}

// Registered, whether it was begun before or not.  kConflict: what is there judges by other
// contracts.
Result<FrozenCampaign> derive(const FrozenCampaign& frozen, const Contracts& changed,
                              const Collected& collected, const StateFolder& place) {
  const fs::path& to = place.campaign;
  if (!is_there(to)) {
    // Beside its place first: a campaign that was half written is none.
    const fs::path partial = to.string() + ".partial";
    PROCTOR_CHECK_OK(remove_tree(partial));
    PROCTOR_CHECK_OK(write_derived(frozen, changed, collected, partial));
    PROCTOR_CHECK_OK(rename_path(partial, to));
  }
  if (!is_there(StateFolder{to}.registration())) {
    PROCTOR_TRY(const Campaign campaign, load_checked(to, Outside::kSkip));
    PROCTOR_CHECK_OK(write_plan(campaign));
    PROCTOR_CHECK_OK(freeze(campaign));
  }
  PROCTOR_TRY(FrozenCampaign out, load_unchanged(to));
  for (const Contract& registered : frozen.campaign.contracts) {
    const auto other = changed.find(registered.id);
    const Contract* now = out.campaign.find_contract(registered.id);
    const Digest& expected = other == changed.end() ? registered.digest : other->second.digest;
    if (now == nullptr || now->digest != expected)
      return Error{Errc::kConflict, to.string() + " judges " + registered.id +
                                        " by another contract: give another --name"};
  }
  // Those that cannot be judged are out of its plan.
  std::set<std::string> judged, asked;
  for (std::uint32_t r = 0; r < out.plan.size(); ++r)
    if (std::ranges::find(out.removed, RunId(r)) == out.removed.end())
      judged.insert(out.plan.run_name(RunId(r)));
  for (const auto& [run, recorded] : collected.runs) asked.insert(run);
  if (judged != asked)
    return Error{Errc::kConflict, to.string() + " judges " + counted(judged.size(), "run") +
                                      ", and other ones than these " +
                                      counted(asked.size(), "run") + ": give another --name"};
  out.folder = place;
  return out;
}

struct ReplayArgs {
  std::string folder, name, contracts;
  std::vector<std::string> runs;
  bool json = false;
  RunOptions options;
};

// The folder of that name, else the first that is not there and that nobody else makes now.
Result<std::pair<StateFolder, FileLock>> own_place(const fs::path& campaign, const ReplayArgs& args,
                                                   const std::string& verb) {
  for (std::uint32_t n = 1;; ++n) {
    const std::string name = args.name.empty() ? fmt::format("{}-{}", verb, n) : args.name;
    StateFolder place = StateFolder::trials(campaign, fs::path(kRegradesFolder) / name);
    const auto taken = [&] { return args.name.empty() && is_there(place.campaign); };
    if (taken()) continue;
    PROCTOR_CHECK_OK(check_own_folders(std::array{place.campaign.parent_path(), place.campaign}));
    Result<FileLock> lock = own_trial(place, verb);
    if (!lock.ok() && (!args.name.empty() || lock.error().code != Errc::kConflict))
      return lock.error();
    if (lock.ok() && !taken()) return std::pair(std::move(place), std::move(lock).value());
  }
}

// A line of replay.jsonl or regrade.jsonl.
struct JudgedAgain {
  std::string format, run;
  const Side* was = nullptr;
  std::optional<Side> is{};  // empty: it has no new verdict, and why
  std::string why{};
  std::vector<VerdictDifference> differences{};
  std::vector<std::string> of_its_agent{};
};
void fields(auto& v, Is<JudgedAgain> auto& j) {
  v("format", j.format);
  v("run_name", j.run);
  v("attempt", j.was->report.attempt.no);
  v("patch", j.was->report.patch);
  v("old", *j.was);
  v("new", j.is);
  v("why_not", j.why);
  v("differences", j.differences);
  v("of_its_agent", j.of_its_agent);
}

struct Outcome {
  int code = kOk;
  std::string format, campaign, name;
  std::string unit;  // money's
  std::vector<JudgedAgain> runs;
  std::vector<LeftOut> left_out;
  MicroUsd models, all;  // cost
  Configurations configurations{};
};
void fields(auto& v, Is<Outcome> auto& o) {
  v("format", o.format);
  v("campaign", o.campaign);
  v("name", o.name);
  v("runs", o.runs);
  v("left_out", o.left_out);
  v("model_micros", o.models);
}

// With a derived campaign, which is made where it is not there yet.
Result<Outcome> judge_again(const ReplayArgs& args, const FrozenCampaign& frozen,
                            const Contracts& changed, const Collected& collected,
                            const std::string& verb) {
  PROCTOR_TRY(const auto owned, own_place(frozen.folder.campaign, args, verb));
  const StateFolder& place = owned.first;
  PROCTOR_TRY(const FrozenCampaign derived, derive(frozen, changed, collected, place));
  RunOptions options = args.options;
  options.folder = place.campaign.string();
  options.begin = RunOptions::Begin::kEither;
  options.show_report = false;
  options.go_on = "proctor " + verb + " " + args.folder + " --name " +
                  place.campaign.filename().string() +
                  (args.contracts.empty() ? "" : " --contracts " + args.contracts);
  PROCTOR_CHECK_OK(check_host_things(options, derived.campaign));
  PROCTOR_CHECK_OK(check_programs(options, derived.campaign));
  Outcome out;
  out.format = "proctor-" + verb + "-1";
  out.campaign = frozen.id;
  out.name = options.folder;
  out.unit = money_word(derived.campaign.cost_model);
  out.left_out = collected.left_out;
  PROCTOR_TRY(out.code, run_frozen(options, derived));
  PROCTOR_TRY(const CampaignReport report, read_report(derived));
  out.configurations = collected.configurations;
  out.configurations.insert(report.configurations.begin(), report.configurations.end());
  std::string lines;
  for (const RunRecord& run : report.runs) {
    out.models = out.models + run.cost.model;
    out.all = out.all + run.cost.total();
    const auto recorded = collected.runs.find(run.name);
    if (recorded == collected.runs.end() || run.state == RunRecord::State::kRemoved) continue;
    JudgedAgain j{out.format, run.name, &recorded->second.was};
    if (run.state != RunRecord::State::kEnded || run.outcome == RunOutcome::kInvalid) {
      j.why = run.rationale.empty() ? std::string(to_string(run.state)) : run.rationale;
    } else {
      PROCTOR_TRY(RunReport is,
                  bound_report(derived.folder, run.name, AttemptNo(run.attempts), run.report));
      j.differences = differences(j.was->report, is);
      j.of_its_agent = left_to_agent(j.was->report, is);
      j.is = side_of(std::move(is), run.report);
    }
    lines += to_json(j).dump() + "\n";
    out.runs.push_back(std::move(j));
  }
  PROCTOR_CHECK_OK(write_listed(derived.folder, verb + ".jsonl", lines));
  if (args.json) std::puts(to_json(out).dump(2).c_str());
  return out;
}

constexpr std::size_t kWhyBytes = 400;

std::string change_of(const JudgedAgain& j) {
  return j.is ? verdict_line(j.differences) : "not judged: " + printable(j.why, kWhyBytes);
}

// All that differs but the outcome, which has columns of its own.
std::string changes_of(const JudgedAgain& j) {
  if (!j.is) return change_of(j);
  constexpr std::size_t kShown = 8;
  std::vector<std::string> all;
  for (const VerdictDifference& d : j.differences)
    if (d.what != "outcome") all.push_back(fmt::format("{} {} -> {}", d.what, d.was, d.is));
  const std::size_t more = all.size() - std::min(all.size(), kShown);
  all.resize(all.size() - more);
  if (more != 0) all.push_back(fmt::format("and {} more", more));
  return printable(fmt::format("{}", fmt::join(all, "; ")), kReportTextBytes);
}
std::string_view new_outcome(const JudgedAgain& j) {
  return j.is ? to_string(j.is->report.outcome) : "not judged";
}

int tell_end(const ReplayArgs& args, const Outcome& outcome, bool good) {
  const int code = outcome.code != kOk ? outcome.code : good ? kOk : kJobFailed;
  if (args.json) return code;
  // What bounds an agent's time and money is not taken along on purpose.
  Configurations known = outcome.configurations;
  for (auto& [name, parts] : known)
    for (const char* cap : {"limits.wall_ms", "limits.usd_micros"}) parts.erase(cap);
  const auto is_same = [&](const std::string& then, const std::string& now) {
    const auto a = known.find(then), b = known.find(now);
    return then == now || (a != known.end() && b != known.end() && a->second == b->second);
  };
  std::set<std::string_view> classes;
  std::uint64_t elsewhere = 0;
  for (const JudgedAgain& j : outcome.runs)
    if (j.is && !is_same(j.was->report.configuration, j.is->report.configuration)) {
      ++elsewhere;
      classes.insert({j.was->report.configuration, j.is->report.configuration});
    }
  if (elsewhere != 0)
    fmt::print("{}: of another configuration class than then: {}\n", counted(elsewhere, "run"),
               configuration_difference(classes, known));
  for (const LeftOut& l : outcome.left_out)
    fmt::print("{}: not judged again: {}\n", l.run, printable(l.why, kWhyBytes));
  fmt::print(
      "Models cost {} {}, this machine's time {}, of no envelope of the campaign.\n"
      "More of it: proctor report {}\n",
      format_usd_exact(outcome.models), outcome.unit, format_usd(outcome.all), outcome.name);
  return code;
}

// It is itself what was registered first.
Result<FrozenCampaign> load_original(const std::string& folder, const std::string& name) {
  if (!name.empty() && !is_worker_name(name))  // a folder's name that no shell takes apart
    return Error{Errc::kInvalid,
                 fmt::format("--name {}: a name is {}", printable(name), kWorkerNameRule)};
  PROCTOR_TRY(FrozenCampaign frozen, load_registered(folder));
  if (!frozen.campaign.derived_from) return frozen;
  return Error{Errc::kInvalid, folder + " has the patches of " +
                                   frozen.campaign.derived_from->campaign +
                                   ", two folders above: judge those again"};
}

Result<int> replay(const ReplayArgs& args) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_original(args.folder, args.name));
  std::set<RunId> wanted;
  for (const std::string& words : args.runs.empty() ? std::vector<std::string>{"all"} : args.runs) {
    PROCTOR_TRY(const std::vector<RunId> runs, select_runs(frozen.plan, words));
    wanted.insert(runs.begin(), runs.end());
  }
  PROCTOR_TRY(const Collected collected, collect(frozen, wanted, true));
  PROCTOR_TRY(const Outcome outcome, judge_again(args, frozen, {}, collected, "replay"));
  std::size_t reproduced = 0, diverged = 0, unjudged = 0;
  for (const JudgedAgain& j : outcome.runs) {
    ++(!j.is ? unjudged : j.differences.empty() ? reproduced : diverged);
    if (!args.json) fmt::print("{}: {}\n", j.run, change_of(j));
  }
  if (!args.json)
    fmt::print(
        "{} reproduced, {} diverged, {} not judged{}\n", reproduced, diverged, unjudged,
        outcome.left_out.empty() ? "" : fmt::format(", {} left out", outcome.left_out.size()));
  return tell_end(args, outcome, diverged + unjudged == 0);
}

// "perl-ini: 6 patches of 3 methods; failure -> success 1, unchanged 5".
std::string task_line(const std::string& task, const std::vector<JudgedAgain>& runs) {
  std::set<std::string> methods;
  std::map<std::string, std::size_t> moved;
  std::size_t patches = 0, unchanged = 0;
  for (const JudgedAgain& j : runs) {
    if (j.was->report.task != task) continue;
    ++patches;
    methods.insert(j.was->report.method);
    if (j.is && j.was->report.outcome == j.is->report.outcome)
      ++unchanged;
    else
      ++moved[fmt::format("{} -> {}", to_string(j.was->report.outcome), new_outcome(j))];
  }
  std::string out =
      fmt::format("{}: {} {} of {}; ", task, patches, patches == 1 ? "patch" : "patches",
                  counted(methods.size(), "method"));
  for (const auto& [words, n] : moved) out += fmt::format("{} {}, ", words, n);
  return out + fmt::format("unchanged {}\n", unchanged);
}

Result<int> regrade(const ReplayArgs& args) {
  PROCTOR_TRY(const FrozenCampaign frozen, load_original(args.folder, args.name));
  PROCTOR_TRY(const Contracts changed, new_contracts(args.contracts, frozen.campaign));
  std::set<RunId> wanted;
  for (std::uint32_t r = 0; r < frozen.plan.size(); ++r)
    if (changed.contains(frozen.plan.task(RunId(r)).id)) wanted.insert(RunId(r));
  PROCTOR_TRY(const Collected collected, collect(frozen, wanted, false));
  PROCTOR_TRY(const Outcome outcome, judge_again(args, frozen, changed, collected, "regrade"));
  if (!args.json) {
    for (const auto& [task, contract] : changed) fmt::print("{}", task_line(task, outcome.runs));
    aggregate::Table table({"run", "old", "new", "what changed"}, 4);
    for (const JudgedAgain& j : outcome.runs)
      table.add({j.run, std::string(word_of(j.was->report.outcome)), std::string(new_outcome(j)),
                 changes_of(j)});
    std::string text;
    table.append_to(text);
    fmt::print("\n{}\n", text);
  }
  return tell_end(args, outcome, std::ranges::all_of(outcome.runs, [](const JudgedAgain& j) {
                    return j.is.has_value();
                  }));
}

void add_shared_options(const Command& command, ReplayArgs& args, const std::string& name) {
  command.add_option("--name", args.name,
                     "of the folder below regrades/ (default: " + name +
                         "-1 and so on); one that is there goes on");
  command.add_option("--workers", args.options.workers, "local worker processes (default: 1)")
      .in_range(std::size_t{1}, limits::kLocalWorkersMax);
  command
      .add_option("--slots", args.options.slots,
                  "runs at a time on each of them (default: one for each core)")
      .in_range(std::size_t{1}, limits::kWorkerSlotsMax);
  command.add_flag("--json", args.json, "old and new verdicts as one object");
}
}  // namespace

void add_replay(Command app, int& exit_code) {
  const Command again = app.add_subcommand(
      "replay", "judge recorded patches once more: does every verdict come again?",
      "Example:\n  proctor replay my-campaign\n  proctor replay my-campaign json-lib/my-agent/r1\n"
      "Each patch is judged in a fresh workspace by the contract that it was judged by. No agent\n"
      "and no model is asked, and the campaign stays as it is: what is made lies in\n"
      "my-campaign/regrades/NAME, a campaign of its own (docs/replay.md).\n"
      "Exit codes: 0 all reproduced, 1 one diverged or was not judged, 2 bad input or a patch "
      "that\n"
      "was changed, 4 infrastructure.");
  const auto args = arguments<ReplayArgs>(again, exit_code, replay);
  again.add_option("CAMPAIGN", args->folder, "the campaign's folder").required();
  again.add_option("RUNS", args->runs, "TASK/METHOD/rN, a task or a method; none: all");
  add_shared_options(again, *args, "replay");

  const Command changed = app.add_subcommand(
      "regrade", "judge recorded patches by corrected contracts",
      "Example:\n  proctor regrade my-campaign --contracts my-campaign/contracts-v2 --name fix-t7\n"
      "All patches of the tasks whose contracts differ, of every method alike. A contract may\n"
      "differ in what acceptance uses: checks, acceptance, acceptance_files, policy.protected.\n"
      "The verdicts of the campaign stay; the new ones are in my-campaign/regrades/NAME, a\n"
      "campaign of its own, old and new side by side in its reports (docs/replay.md).\n"
      "Exit codes: 0 all were judged, 1 one could not be, 2 bad input or a patch that was "
      "changed,\n"
      "4 infrastructure.");
  const auto other = arguments<ReplayArgs>(changed, exit_code, regrade);
  changed.add_option("CAMPAIGN", other->folder, "the campaign's folder").required();
  changed.add_option("--contracts", other->contracts, "a contract, or a folder of contracts")
      .required();
  add_shared_options(changed, *other, "regrade");
}
}  // namespace proctor::cli
