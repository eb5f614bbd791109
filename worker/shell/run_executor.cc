#include "worker/shell/run_executor.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "common/base/log.h"
#include "common/base/subprocess.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/contract/models_file.h"
#include "common/trace/archive.h"
#include "common/wire/messages.h"
#include "worker/shell/host_room.h"
#include "worker/shell/meter_book.h"
#include "worker/shell/sandbox_dress.h"

namespace proctor {
namespace {
constexpr std::size_t kLackingMax = 64;  // a part of the features of a Sync

// Is one of them in the other?  By what they really are: a link hides nothing.
bool overlap(const fs::path& a, const fs::path& b) {
  std::error_code ec;
  const fs::path one = fs::canonical(a, ec), other = ec ? fs::path() : fs::canonical(b, ec);
  if (ec) return false;
  const auto [at_one, at_other] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return at_one == one.end() || at_other == other.end();
}

// Of a model: what its calls would end with.  Empty: this host has it.
std::string lack_of(const HostThing& thing, const RunExecutor::Options& options) {
  const ModelsFile& models = options.models;
  const std::string what = describe_thing(thing.feature());
  switch (thing.kind) {
    case HostThing::Kind::kSecret:
      return std::getenv(thing.text.c_str()) == nullptr ? what : "";
    case HostThing::Kind::kToolchain: {
      std::error_code ec;
      if (!fs::exists(thing.text, ec)) return what;
      // A campaign that may not have another's secrets would read them there, and the worker's key.
      const bool own = std::ranges::any_of(
          options.own_places, [&](const fs::path& place) { return overlap(thing.text, place); });
      return own ? what + ": files of this worker's own are there, which no run is shown" : "";
    }
    case HostThing::Kind::kLocale:
      return has_locale(thing.text) ? "" : what;
    case HostThing::Kind::kTimeZone:
      return knows_time_zone(thing.text) ? "" : what;
    case HostThing::Kind::kGateway: {
      const std::string why = unspoken(thing.text, models);
      return why.empty() ? "" : what + ": in its models file that model " + why;
    }
    case HostThing::Kind::kModel:
      break;
  }
  const auto access = models.find(thing.text);
  if (access == models.end())
    return what + ": its models file does not name it (proctor-worker --models)";
  const Result<Secret> key = model_key(access->second);
  return key.ok() ? "" : what + ": " + key.error().detail;
}

// Who may use one campaign's secrets must not get another's by naming them, nor have calls of a
// model charged to another's key.
bool may_have(const AttemptInput& input, const HostThing& thing, const ModelsFile& models) {
  using Kind = HostThing::Kind;
  const bool has_key = thing.kind == Kind::kSecret || thing.kind == Kind::kModel;
  if (!has_key || !input.secrets) return true;
  const auto named = [&](const std::string& word) {
    return std::ranges::find(*input.secrets, word) != input.secrets->end();
  };
  if (thing.kind == HostThing::Kind::kSecret) return named(thing.text);
  const auto access = models.find(thing.text);
  if (access == models.end()) return true;  // lack_of() says it
  const std::string& variable = access->second.key_variable;
  const bool free = variable.empty() && access->second.key_file.empty();
  return free || (!variable.empty() && named(variable)) || named("model:" + thing.text);
}

wire::ResultMessage blank_result(const AttemptInput& input) {
  wire::ResultMessage result;
  result.epoch = input.epoch;
  result.attempt = input.assignment.attempt;
  result.started_ms = result.finished_ms = wall_now().raw();
  return result;
}
}  // namespace

Status RunExecutor::can_begin(const AttemptInput& input) {
  if (input.left) return ok_status();  // it has begun, and is paid for
  const Contract& contract = input.contract->contract;
  if (const std::string full = too_full_to_begin(options_.runs); !full.empty())
    return Error{Errc::kUnavailable, full};
  if (wanted_kind(contract.environment) == SandboxKind::kNull) return ok_status();
  for (const HostThing& thing : things_of(contract, *input.method)) {
    const std::string feature = thing.feature();
    if (!may_have(input, thing, options_.models)) {
      const std::lock_guard lock(mutex_);
      std::set<std::string>& denied = denied_[input.campaign];
      if (denied.size() < kLackingMax) denied.insert(std::string(kLacks) + feature);
      return Error{Errc::kUnavailable, "its coordinator's line in --connect-file does not name " +
                                           describe_thing(feature)};
    }
    const std::string lack = lack_of(thing, options_);
    if (lack.empty()) continue;
    const std::lock_guard lock(mutex_);
    if (lacking_.size() < kLackingMax) lacking_.emplace(feature, thing);
    return Error{Errc::kUnavailable, "this worker's host lacks " + lack};
  }
  const Isolation isolation = stronger(contract.policy.isolation, input.settings->isolation);
  const Environment of_agent = environment_of_agent(contract, *input.method);
  const std::array<const Environment*, 2> both = {&contract.environment, &of_agent};
  for (const Environment* environment : both) {
    Result<SandboxEngine*> engine = engines_.engine_for({*environment, isolation});
    if (!engine.ok() && engine.error().code == Errc::kUnavailable) return engine.error();
  }
  return ok_status();
}

void RunExecutor::look_again() {
  std::map<std::string, HostThing> seen;
  {
    const std::lock_guard lock(mutex_);
    seen = lacking_;
  }
  std::erase_if(seen, [this](const auto& item) { return !lack_of(item.second, options_).empty(); });
  const std::lock_guard lock(mutex_);
  for (const auto& [feature, thing] : seen) lacking_.erase(feature);
}

std::vector<std::string> RunExecutor::denied(const std::string& campaign) const {
  const std::lock_guard lock(mutex_);
  const auto it = denied_.find(campaign);
  if (it == denied_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

void RunExecutor::forget_denied(const std::string& campaign) {
  const std::lock_guard lock(mutex_);
  denied_.erase(campaign);
}

std::vector<std::string> RunExecutor::lacking() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [feature, thing] : lacking_) out.push_back(std::string(kLacks) + feature);
  return out;
}

Result<Spool::Entry> RunExecutor::execute(const AttemptInput& input, AttemptWatch& watch) {
  const std::string name = to_string(input.assignment.attempt);
  const fs::path dir = options_.runs / (input.campaign + "-" + name);
  fs::path archive;
  // Without a book the attempt is merely dearer if this worker is killed.
  auto book = input.left ? MeterBook::go_on(input.left->book)
                         : MeterBook::create(options_.meters, input.campaign, blank_result(input));
  if (!book.ok()) {
    log::warn("attempt " + name + ": " + book.error().detail);
    books_are_not_whole(options_.meters);
  }
  const std::shared_ptr<MeterBook> kept = book.ok() ? std::move(*book) : nullptr;
  if (kept) {
    const std::lock_guard lock(books_mutex_);
    books_[dir] = kept;
  }
  wire::ResultMessage result = walk(input, watch, dir, archive, kept.get());
  const Patience patience{until_stopped(watch.token())};
  const auto put = [&](const fs::path& with) {
    return when_there_is_room<Spool::Entry>("the result of attempt " + name, patience, [&] {
      return spool_.put(input.campaign, result, with);
    });
  };
  Result<Spool::Entry> entry = put(archive);
  if (!entry.ok() && !archive.empty()) {
    wire::lose_evidence(result, "spool: " + entry.error().detail);
    entry = put({});
  }
  if (kept) {
    const std::lock_guard lock(books_mutex_);
    books_.erase(dir);
  }
  if (kept) kept->close();  // after the result is on disk
  RemovalCost nobodys;      // the report is written: all but evidence is gone already
  if (const Status removed = remove_left(dir, options_.remover, nobodys); !removed.ok()) {
    log::warn("attempt " + name + ": " + removed.error().detail);
  }
  return entry;
}

void RunExecutor::sync_books() {
  std::vector<std::shared_ptr<MeterBook>> open;
  {
    const std::lock_guard lock(books_mutex_);
    for (const auto& [dir, book] : books_) open.push_back(book);
  }
  for (const std::shared_ptr<MeterBook>& book : open) book->sync();
}

Result<Spool::Entry> RunExecutor::decline(const AttemptInput& input, const std::string& why) {
  wire::ResultMessage result = blank_result(input);
  wire::lose_evidence(result, why);
  return spool_.put(input.campaign, result, {});
}

wire::ResultMessage RunExecutor::walk(const AttemptInput& input, AttemptWatch& watch,
                                      const fs::path& dir, fs::path& archive, MeterBook* book) {
  wire::ResultMessage result = blank_result(input);
  const Environment& environment = input.contract->contract.environment;
  if (wanted_kind(environment) == SandboxKind::kNull && engines_.engine_for({environment}).ok()) {
    result.outcome = RunOutcome::kSuccess;  // a benchmark of everything but execution
    result.rationale = "null sandbox: nothing was executed";
    return result;
  }
  if (!input.left) {
    if (Status cleared = remove_tree(dir); !cleared.ok()) {
      wire::lose_evidence(result, cleared.error().detail);
      return result;
    }
  }
  AttemptRun run({store_, engines_, images_, options_.worker, options_.models, options_.setup_cache,
                  &pool_, options_.remover, options_.commit},
                 input, watch, dir, book);
  const AttemptRun::Outcome outcome = run.run();
  result.outcome = outcome.verdict.outcome;
  result.termination = outcome.verdict.termination;
  result.infrastructure = outcome.verdict.infrastructure;
  result.overload = outcome.verdict.overload;
  result.fault = outcome.verdict.fault;
  result.cause = outcome.verdict.cause;
  result.rationale = outcome.verdict.rationale;
  result.facts = outcome.verdict.facts;
  result.usage = outcome.usage;
  result.started_ms = outcome.started_ms;
  result.finished_ms = outcome.finished_ms;
  result.report = outcome.report;
  if (!outcome.packaged) {
    wire::lose_evidence(result,
                        result.rationale + " (and the run directory could not be completed)");
    return result;
  }
  const Result<ArchiveInfo> packed = when_there_is_room<ArchiveInfo>(
      "the evidence of attempt " + to_string(input.assignment.attempt),
      {until_stopped(watch.token())},
      [&] { return pack_archive(run.run_dir(), dir / "archive.tar.zst"); });
  if (packed.ok()) {
    archive = dir / "archive.tar.zst";
    result.archive = packed->digest;
    result.archive_bytes = packed->bytes;
  } else {
    wire::lose_evidence(result, "archive: " + packed.error().detail);
  }
  return result;
}
}  // namespace proctor
