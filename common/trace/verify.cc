#include "common/trace/verify.h"

#include <algorithm>
#include <functional>
#include <map>

#include "common/base/json_fields.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/trace/evidence.h"
#include "common/trace/manifest.h"
#include "common/trace/payloads.h"

namespace proctor {
void BreakerAudit::nothing_due(std::uint64_t line) {
  if (due_.empty() && !told_) return;
  const std::string& code = told_ ? told_->first.code : due_.front().code;
  problem_(kEventsFile,
           "the breaker " + code + " trips before this event, and " +
               (told_ ? "nothing says what was done" : "the trace has no alert of it") + " (R104)",
           line);
  due_.clear();
  told_.reset();
}

void BreakerAudit::on(const TraceEvent& event, std::uint64_t line) {
  if (event.type == "gateway.open") {
    // A worker that was killed between an event and its alert has told neither.
    due_.clear();
    told_.reset();
    fold_.emplace(breakers_in(event.payload));
    return;
  }
  if (event.type == events::kAlert.type) return alert(event, line);
  if (event.type == events::kIntervention.type) return intervention(event, line);
  if (event.type == "gateway.closed") return nothing_due(line);
  if (!fold_ || !BreakerFold::hears(event.type)) return;
  nothing_due(line);
  for (BreakerTrip& trip : fold_->on(event.type, event.payload)) due_.push_back(std::move(trip));
  stage_ = fold_->stage();
}

void BreakerAudit::alert(const TraceEvent& event, std::uint64_t line) {
  const std::string code = text_in(event.payload, "code");
  if (!is_breaker(code)) return;  // another monitor's
  if (due_.empty() || told_)
    return problem_(kEventsFile, "an alert of the breaker " + code + " where none trips (R104)",
                    line);
  BreakerTrip trip = std::move(due_.front());
  due_.pop_front();
  if (event.payload != alert_json(trip, stage_))
    problem_(kEventsFile,
             "the alert is not that of the breaker " + trip.code + " as it trips here (R104)",
             line);
  told_.emplace(std::move(trip), event.seq);
}

void BreakerAudit::intervention(const TraceEvent& event, std::uint64_t line) {
  if (!event.payload.contains("breaker")) return;  // another monitor's
  if (!told_ || event.payload != intervention_json(told_->first, told_->second))
    problem_(kEventsFile, "an intervention that no breaker's alert before it asks for (R104)",
             line);
  stopped_ = stopped_ || (told_ && told_->first.action == BreakerAction::kStop);
  told_.reset();
}

constexpr std::uint64_t kEventsOfCalls = 20'000;  // of one session
// A trace may name the same pieces a million times: what is hashed in all is bounded, beyond it a
// piece is only looked for.
constexpr std::uint64_t kHashedMax = std::uint64_t{2} << 30;

const SegmentReader* ModelCallAudit::reader() {
  if (!reader_ && !unreadable_) {
    Result<SegmentReader> opened = SegmentReader::open(dir_);
    unreadable_ = !opened.ok();
    if (opened.ok())
      reader_ = std::move(opened).value();
    else
      problem_(kSegmentIndexFile, opened.error().detail, 0);
  }
  return reader_ ? &*reader_ : nullptr;
}

void ModelCallAudit::on(const TraceEvent& event, std::uint64_t line) {
  if (event.type == "gateway.open") {
    open_.clear();
    charged_ = 0;
    all_listed_ = true;
    in_pieces_ = event.payload.value("pieces", Json(false)) == true;
  }
  if (event.type == "model.request") request(event.payload, line);
  if (event.type == "model.response") response(event.payload, line);
  if (event.type == "gateway.closed") closed(event.payload, line);
}

void ModelCallAudit::check_body(const std::string& claimed, const std::vector<std::string>& pieces,
                                std::uint64_t line) {
  const SegmentReader* kept = reader();
  if (kept == nullptr) return;
  std::string whole;
  for (const std::string& piece : pieces) {
    if (kHashedMax < hashed_) {
      if (!kept->has(piece))
        return problem_(kEventsFile, "no piece " + printable(piece, 64) + " is kept", line);
      continue;
    }
    const Result<std::string> bytes = kept->read(piece);
    if (!bytes.ok()) return problem_(kEventsFile, bytes.error().detail, line);
    hashed_ += 2 * bytes->size();
    whole += *bytes;
  }
  if (hashed_ <= kHashedMax && sha256(whole).hex() != claimed)
    problem_(kEventsFile, "the pieces that were kept make another text than the event says", line);
}

void ModelCallAudit::request(const Json& p, std::uint64_t line) {
  const std::uint64_t call = count_in(p, "call");
  if (!open_.insert(call).second) problem_(kEventsFile, "a call for the second time", line);
  if (kEventsOfCalls <= call) all_listed_ = false;
  if (!in_pieces_ || p.value("kept", Json(false)) != true) return;
  const SegmentReader* kept = reader();
  if (kept == nullptr) return;
  const Result<std::vector<std::string>> pieces = pieces_in(p, *kept);
  if (!pieces.ok()) return problem_(kEventsFile, pieces.error().detail, line);
  const std::string stored = text_in(p, "stored_digest");
  check_body(stored.empty() ? text_in(p, "digest") : stored, *pieces, line);
}

void ModelCallAudit::response(const Json& p, std::uint64_t line) {
  if (open_.erase(count_in(p, "call")) == 0)
    problem_(kEventsFile, "an answer to a call that was not made", line);
  charged_ += count_in(p, "charged_micros");
  if (!in_pieces_ || p.value("kept", Json(false)) != true) return;
  const std::string stored = text_in(p, "stored_digest");
  const std::string piece = stored.empty() ? text_in(p, "digest") : stored;
  check_body(piece, {piece}, line);
}

void ModelCallAudit::closed(const Json& p, std::uint64_t line) {
  if (!open_.empty()) problem_(kEventsFile, "the gateway closed while a call had no end", line);
  const std::uint64_t said = count_in(p, "charged_micros");
  if (all_listed_ && said != charged_)
    problem_(kEventsFile,
             "the gateway told " + std::to_string(said) +
                 " micro-dollars where its calls come to " + std::to_string(charged_),
             line);
}

namespace {
class Verifier {
 public:
  Verifier(const fs::path& dir, const PriceFunction& price, const RulesFunction& rules)
      : dir_(dir),
        price_(price),
        rules_(rules),
        calls_(dir, std::bind_front(&Verifier::problem, this)),
        breakers_(std::bind_front(&Verifier::problem, this)) {}

  VerifyResult run(const std::optional<Digest>& expected_report) {
    if (!read_report(expected_report)) return std::move(result_);
    check_files();
    check_times();
    check_manifest_file();
    check_patch();
    check_events();
    check_acceptance();
    check_outcome();
    check_judgement();
    check_cost();
    return std::move(result_);
  }

 private:
  void problem(std::string_view file, std::string what, std::uint64_t line = 0) {
    if (result_.problems.size() < kProblemsMax)
      result_.problems.push_back({std::string(file), line, std::move(what)});
  }
  void unread(std::string_view file, const Error& e) {
    result_.unreadable = result_.unreadable || e.code == Errc::kUnavailable;
    problem(file, e.detail);
  }
  const RunReport& report() const { return *result_.report; }
  const EvidenceFile* found(std::string_view path) const {
    const auto it = files_.find(path);
    return it == files_.end() ? nullptr : &it->second;
  }

  bool read_report(const std::optional<Digest>& expected) {
    const Result<std::string> bytes = read_file(dir_ / kReportFile, kReportBytes);
    if (!bytes.ok()) {
      unread(kReportFile, bytes.error());
      return false;
    }
    if (expected && sha256(*bytes) != *expected)
      problem(kReportFile,
              "digest " + sha256(*bytes).hex() + " where " + expected->hex() + " was recorded");
    Result<RunReport> parsed = parse_report(*bytes);
    if (!parsed.ok()) {
      problem(kReportFile, parsed.error().detail);
      return false;
    }
    result_.report = std::move(parsed).value();
    return true;
  }

  // The list of the report against the folder, both ways.
  void check_files() {
    const Result<std::vector<TreeEntry>> entries = list_tree(dir_);
    if (!entries.ok()) return unread(".", entries.error());
    std::set<std::string, std::less<>> folders;  // those that a listed file explains
    std::map<std::string, const EvidenceFile*, std::less<>> listed;
    for (const EvidenceFile& f : report().files) {
      if (!is_safe_relative(f.path) || f.path == kReportFile || !listed.emplace(f.path, &f).second)
        problem(kReportFile, "evidence.files: \"" + printable(f.path) + "\" cannot be listed");
      for (std::size_t i = f.path.find('/'); i != std::string::npos; i = f.path.find('/', i + 1))
        folders.insert(f.path.substr(0, i));
    }
    for (const TreeEntry& entry : *entries) {
      if (entry.path == kReportFile) continue;
      if (entry.folder) {
        // A check that never wrote anything has an empty folder, and so had an agent or a setup
        // that never began before such folders were removed: they hold no evidence.
        const bool ours = entry.path == "agent" || entry.path == "setup-agent" ||
                          entry.path == kAcceptanceSetupDir || is_of_check(entry.path);
        if (!folders.contains(entry.path) && !ours)
          problem(entry.path, "a folder that the report does not know");
        continue;
      }
      const auto it = listed.find(entry.path);
      if (it == listed.end()) {
        problem(entry.path, "a file that the report does not know");
        continue;
      }
      check_file(*it->second);
      listed.erase(it);
    }
    for (const auto& [path, file] : listed) problem(path, "missing");
  }

  // The folder of all checks, of one, or of one's services.
  bool is_of_check(std::string_view path) const {
    if (path == kAcceptanceDir) return true;
    return std::ranges::any_of(report().checks, [&](const CheckReport& check) {
      const std::string own = std::string(kAcceptanceDir) + "/" + check_dir_name(check.id);
      return path == own || path == own + "/services";
    });
  }

  void check_file(const EvidenceFile& claimed) {
    Result<EvidenceFile> actual = hash_file(dir_, claimed.path);
    if (!actual.ok()) {  // kExhausted: this process has too many files open
      result_.unreadable = result_.unreadable || actual.error().code == Errc::kExhausted;
      return unread(claimed.path, actual.error());
    }
    ++result_.files;
    if (actual->bytes != claimed.bytes)
      problem(claimed.path, std::to_string(actual->bytes) + " bytes where " +
                                std::to_string(claimed.bytes) + " were recorded");
    if (actual->digest != claimed.digest)
      problem(claimed.path, "digest " + actual->digest.hex() + " where " + claimed.digest.hex() +
                                " was recorded");
    files_.emplace(claimed.path, std::move(actual).value());
  }

  // A digest that stands in the report on its own, beside the list.
  void check_bound(std::string_view path, const Digest& claimed, std::string_view field) {
    const EvidenceFile* file = found(path);
    if (file == nullptr) {
      problem(kReportFile, std::string(field) + ": " + std::string(path) + " is not there");
    } else if (file->digest != claimed) {
      problem(path, "digest is not " + std::string(field) + " of the report");
    }
  }

  void check_times() {
    const std::string wrong = wrong_times(report().started_ms, report().finished_ms);
    if (!wrong.empty()) problem(kReportFile, wrong);
  }

  void check_manifest_file() {
    const RunReport& r = report();
    if (r.manifest == Digest()) {  // the run never came so far
      if (r.outcome != RunOutcome::kInvalid)
        problem(kReportFile, "outcome: a run without a manifest is invalid (R047)");
      if (found(kManifestFile) != nullptr)
        problem(kManifestFile, "the report says that there is none");
      return;
    }
    check_bound(kManifestFile, r.manifest, "evidence.manifest");
    const Result<std::string> bytes = read_file(dir_ / kManifestFile, limits::kConfigFileBytes);
    if (!bytes.ok()) return problem(kManifestFile, bytes.error().detail);
    const Result<Json> json = parse_json(*bytes);
    if (!json.ok()) return problem(kManifestFile, json.error().detail);
    const Result<std::string> canonical = canonical_json(*json);
    if (!canonical.ok() || *canonical + "\n" != *bytes)
      problem(kManifestFile, "not written as canonical JSON");
    const Result<ManifestInputs> m = read_manifest(*json);
    if (!m.ok()) return problem(kManifestFile, m.error().detail);
    const Status complete = check_manifest(*m);
    if (!complete.ok() && r.outcome != RunOutcome::kInvalid)
      problem(kManifestFile, complete.error().detail + "; such a run is invalid (R047)");
    check_identity(*m);
    if (!r.configuration.empty() && r.configuration != configuration_word(*m))
      problem(kReportFile, "configuration: not the class of manifest.json (R127)");
    // An older worker's events do not say all that gates and violations follow from.
    if (!m->rubric) return;
    const JudgeRules* rules = rules_ ? rules_(r) : &*m->rubric;
    if (rules == nullptr)
      return problem(kReportFile, "identity: the campaign has no such task and contract");
    if (*m->rubric != *rules)
      problem(kManifestFile, "rubric: other rules than those of the contract and the campaign");
    judged_by_ = {*rules, m->monitors};
    fold_.emplace(judged_by_.first, judged_by_.second);
    result_.judged = true;
  }

  void check_identity(const ManifestInputs& m) {
    const auto identity = [](const auto& of) {
      JsonWriter v;
      identity_fields(v, of);
      v("cost_model", of.cost_model);
      v("cost_model_version", of.cost_model_version);
      v("commit", of.commit);
      return v.take();
    };
    const Json claimed = identity(m), reported = identity(report());
    const auto same = [this](bool equal, const std::string& field) {
      if (!equal) problem(kManifestFile, "identity: " + field + " is not the report's");
    };
    for (const auto& [field, value] : claimed.items()) same(value == reported.at(field), field);
    same(m.tree_observed == report().tree, "tree");
  }

  void check_patch() {
    if (report().patch != Digest())
      return check_bound(kPatchFile, report().patch, "evidence.patch");
    if (found(kPatchFile) != nullptr) problem(kPatchFile, "the report says that there is none");
  }

  void check_events() {
    const Result<std::string> bytes = read_file(dir_ / kEventsFile, kEventLogBytes);
    if (!bytes.ok()) return problem(kEventsFile, bytes.error().detail);
    EventChain chain;
    bool manifest_seen = false, broken = false;
    std::string_view rest = *bytes;
    for (std::uint64_t line = 1; !rest.empty() && !broken; ++line) {
      const std::size_t end = rest.find('\n');
      Result<TraceEvent> event = chain.accept(rest.substr(0, end));
      if (end == std::string_view::npos) problem(kEventsFile, "the last line has no end", line);
      // After the first broken link nothing that follows can be told from a forgery.
      broken = !event.ok() || end == std::string_view::npos;
      if (!event.ok()) problem(kEventsFile, event.error().detail, line);
      if (!broken) manifest_seen = check_event(std::move(*event), line) || manifest_seen;
      rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
    }
    result_.events = chain.length();
    if (chain.length() != report().events)
      problem(kEventsFile, std::to_string(chain.length()) + " whole events where " +
                               std::to_string(report().events) + " were recorded");
    if (chain.head() != report().head)
      problem(kEventsFile, "the head of the chain is not evidence.head of the report");
    if (!broken && report().manifest != Digest() && !manifest_seen)
      problem(kEventsFile, "no manifest.written event names the manifest");
    if (report().termination == Termination::kBreaker && !broken && !breakers_.stopped())
      problem(kReportFile, "termination.code: breaker, where no breaker of the trace stops (R104)");
    if (0 < report().evidence_seq && report().events <= report().evidence_seq)
      problem(kReportFile, "termination.evidence_seq points behind the last event");
  }

  // Whether it is the event that binds the manifest into the chain.
  bool check_event(TraceEvent event, std::uint64_t line) {
    calls_.on(event, line);
    breakers_.on(event, line);
    if (fold_) fold_->on(event);
    if (event.type == events::kAcceptance.type && event.actor == Actor::kHarness) {
      const std::string check = text_in(event.payload, "id");
      if (check.empty())
        problem(kEventsFile, "an acceptance event names no check", line);
      else if (told_.contains(check))
        problem(kEventsFile, "a second acceptance event of check " + printable(check, 100), line);
      else
        told_.emplace(check, Told{line, std::move(event.payload)});
      return false;
    }
    if (event.type == events::kRepeated.type) check_repetition(line);
    if (event.type != events::kManifestWritten.type) return false;
    const auto written = events::kManifestWritten.read(event.payload);
    if (!written || std::get<0>(*written) != report().manifest) {
      problem(kEventsFile, "manifest.written names another manifest", line);
      return false;
    }
    return true;
  }

  // R133: only acceptance that passed is repeated, so that none is drawn again for another verdict.
  void check_repetition(std::uint64_t line) {
    const std::string dir = repeated_dir(kAcceptanceDir, ++repeated_);
    for (const auto& [id, told] : std::exchange(told_, {})) {
      const auto read = events::kAcceptance.read(told.payload);
      const std::string name = "check " + printable(id, 100);
      if (!read) {
        problem(kEventsFile, "the acceptance event of " + name + " has another shape", told.line);
        continue;
      }
      const CheckReport& check = read->check;
      if (check.outcome != CheckOutcome::kPass && check.gate != word_of(Gate::kMaint))
        problem(kEventsFile, "a repetition behind " + name + ", which did not pass (R133)", line);
      const std::string folder = dir + "/" + check_dir_name(check.id) + "/";
      for (const auto& [file, digest] : streams_of(check))
        if (*digest) check_bound(folder + std::string(file), **digest, "the digest of its event");
    }
  }

  void check_acceptance() {
    std::set<std::string> names;
    for (const CheckReport& check : report().checks) {
      if (!names.insert(check.id).second)
        problem(kReportFile, "checks: two have the id " + printable(check.id, 100));
      const std::string folder = std::string(kAcceptanceDir) + "/" + check_dir_name(check.id) + "/";
      for (const auto& [file, digest] : streams_of(check)) check_stream(folder, file, *digest);
      check_told(check);
    }
    for (const auto& [id, told] : told_)
      if (!names.contains(id))
        problem(kEventsFile,
                "an acceptance event of check " + printable(id, 100) +
                    ", which the report does not know",
                told.line);
  }

  // R058, R094: the trace says of each check what the report says of it.
  void check_told(const CheckReport& check) {
    const std::string name = "check " + printable(check.id, 100);
    const auto it = told_.find(check.id);
    if (it == told_.end()) {
      // A run that ended before a check has no event of it, and is invalid for that.
      if (check.outcome || report().outcome != RunOutcome::kInvalid)
        problem(kEventsFile, "no acceptance event of " + name + " (R058)");
      return;
    }
    // One that a worker's death cut off is in the trace of a run that was given up.
    if (!check.outcome && report().outcome == RunOutcome::kInvalid) return;
    const Json in_report = to_json(check);
    for (const auto& [key, value] : in_report.items()) {
      const auto said = it->second.payload.find(key);
      if (said != it->second.payload.end() && *said == value) continue;
      // The recorder fills digests of streams into the report that the event could not know.
      if (said != it->second.payload.end() && said->is_null() && is_stream(key)) continue;
      problem(kEventsFile,
              "the acceptance event of " + name + " has another " + key + " than the report (R058)",
              it->second.line);
    }
  }
  static bool is_stream(std::string_view key) {
    return key == "stdout" || key == "stderr" || key == "results";
  }

  static std::array<std::pair<std::string_view, const std::optional<Digest>*>, 3> streams_of(
      const CheckReport& check) {
    return {{{kStdoutFile, &check.stdout_digest},
             {kStderrFile, &check.stderr_digest},
             {kResultsFile, &check.result_digest}}};
  }

  void check_stream(const std::string& folder, std::string_view name,
                    const std::optional<Digest>& claimed) {
    const std::string path = folder + std::string(name);
    if (claimed) return check_bound(path, *claimed, "the digest of " + std::string(name));
    if (found(path) != nullptr) problem(path, "the report of the check says that there is none");
  }

  // Invariant 1: the outcome is what the recorded checks make it.
  void check_outcome() {
    if (report().outcome == RunOutcome::kInvalid) return;
    RunOutcome expected = decide(true, deciding_outcomes(report().checks));
    // Then the checks saw the untouched tree, and speak of nobody's patch; beside conflict markers
    // they saw the tree that has them.
    const bool marked =
        report().application.refused.empty() && !report().application.conflicts.empty();
    const auto refused = [&](const GateReport& g) {
      return g.gate == "patch" && g.outcome == "fail" && !marked;
    };
    if (expected == RunOutcome::kSuccess && std::ranges::any_of(report().gates, refused))
      expected = RunOutcome::kFailure;
    if (expected != report().outcome)
      problem(kReportFile, "outcome: " + std::string(to_string(report().outcome)) +
                               " where the checks make it " + std::string(to_string(expected)));
  }

  // R135, R149: the report says of gates, score and tags what the events say, and leaves out no
  // violation that they show.
  void check_judgement() {
    if (!fold_) return;
    const JudgedRun judged = fold_->result(report().outcome);
    // A run that was given up may have ended before what its events show was counted.
    if (report().outcome != RunOutcome::kInvalid) check_violations(judged);
    RunReport computed = report();
    set_judgement(computed, judged);
    // As a report holds them, which cuts long texts.
    const Result<RunReport> held = parse_report(report_bytes(computed));
    PROCTOR_ASSERT(held.ok());
    const auto same = [this](bool equal, const char* what, const char* row) {
      if (!equal)
        problem(kReportFile, std::string(what) + ": not what the events make it (" + row + ")");
    };
    same(judged.repeated || report().outcome != RunOutcome::kSuccess, "outcome", "R133");
    same(held->gates == report().gates, "gates", "R135");
    same(held->score == report().score, "score", "R141");
    same(held->tags == report().tags, "tags", "R149");
    same(held->interventions == report().interventions, "interventions", "R053");
  }

  void check_violations(const JudgedRun& judged) {
    // A place of the network has how often it was asked for behind it.
    const auto name = [](std::string_view text) {
      constexpr std::size_t kNameBytes = 300;
      const std::string shown = printable(text, kNameBytes);
      return shown.starts_with("network: ") ? shown.substr(0, shown.find(" (")) : shown;
    };
    std::set<std::string> told, shown;
    bool all_told = true;
    for (const std::string& text : report().violations) {
      all_told = all_told && !text.starts_with("and ");
      told.insert(name(text));
    }
    for (const std::string& text : judged.violations) shown.insert(name(text));
    for (const std::string& text : shown)
      if (all_told && !told.contains(text))
        problem(kReportFile,
                "violations: the events show one that is left out: " + text + " (R027)");
    for (const std::string& text : told)
      if (all_told && judged.all_violations && !shown.contains(text))
        problem(kReportFile, "violations: the events show none such: " + text + " (R027)");
  }

  // The sum of the categories is the parser's business.
  void check_cost() {
    if (!price_) return;
    if (price_(report().usage) != report().cost)
      problem(kReportFile, "cost: not what the cost model makes of the usage");
  }

  struct Told {
    std::uint64_t line = 0;
    Json payload;
  };

  const fs::path& dir_;
  const PriceFunction& price_;
  const RulesFunction& rules_;
  std::pair<JudgeRules, JudgementFold::Monitors> judged_by_;
  std::optional<JudgementFold> fold_;
  ModelCallAudit calls_;
  BreakerAudit breakers_;
  std::map<std::string, Told, std::less<>> told_;  // the acceptance events, by their check
  std::uint64_t repeated_ = 0;                     // before these
  VerifyResult result_;
  std::map<std::string, EvidenceFile, std::less<>> files_;
};
}  // namespace

std::string to_string(const VerifyProblem& problem) {
  const std::string line = problem.line == 0 ? "" : ":" + std::to_string(problem.line);
  return printable(problem.file, 400) + line + ": " + problem.what;
}

VerifyResult verify_run(const fs::path& dir, const std::optional<Digest>& expected_report,
                        const PriceFunction& price, const RulesFunction& rules) {
  return Verifier(dir, price, rules).run(expected_report);
}
}  // namespace proctor
