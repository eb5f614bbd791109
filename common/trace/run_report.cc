#include "common/trace/run_report.h"

#include <algorithm>

#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/trace/json_fields.h"

namespace proctor {
namespace {
constexpr std::string_view kFormat = "proctor-report-1";
constexpr std::uint64_t kSafe = (std::uint64_t{1} << 53) - 1;
constexpr std::size_t kCommandBytes = std::size_t{64} << 10;
constexpr std::size_t kListItems = 10'000;

// A report is written at the end of a run that cost money: it never fails for a bad byte in it.
// What was cleaned is clean: else a report that was read would not be the one that was written.
std::string clean(const std::string& s, std::size_t bytes_max = limits::kDetailBytes) {
  constexpr std::size_t kBeyond = 18;  // printable() ends with one more character, and "..."
  return s.size() <= bytes_max + kBeyond && is_utf8(s) ? s : printable(s, bytes_max);
}
std::uint64_t num(std::uint64_t n) {
  return std::min(n, kSafe);
}
std::int64_t num(std::int64_t n) {
  constexpr auto kMax = static_cast<std::int64_t>(kSafe);
  return std::clamp(n, -kMax, kMax);
}
Json list(const std::vector<std::string>& items) {
  Json out = Json::array();
  for (const std::string& s : items) {
    if (out.size() == kListItems) break;
    out.push_back(clean(s));
  }
  return out;
}
Json hex(const std::optional<Digest>& d) {
  return d ? Json(d->hex()) : Json(nullptr);
}

Json identity_json(const RunReport& r) {
  return {{"attempt", r.attempt.no.raw()}, {"campaign", clean(r.campaign)},
          {"commit", clean(r.commit)},     {"contract", r.contract.hex()},
          {"method", clean(r.method)},     {"method_digest", r.method_digest.hex()},
          {"replicate", r.replicate},      {"run", r.attempt.run.raw()},
          {"run_name", clean(r.run_name)}, {"task", clean(r.task)},
          {"tree", clean(r.tree)}};
}

Json evidence_json(const RunReport& r) {
  Json files = Json::array();
  for (const EvidenceFile& f : r.files) {
    files.push_back({{"bytes", num(f.bytes)}, {"digest", f.digest.hex()}, {"path", clean(f.path)}});
  }
  return {{"events", num(r.events)},
          {"files", std::move(files)},
          {"head", r.head.hex()},
          {"manifest", r.manifest.hex()},
          {"patch", r.patch.hex()}};
}

Json report_json(const RunReport& r) {
  Json checks = Json::array();
  for (const CheckReport& c : r.checks) checks.push_back(to_json(c));
  Json gates = Json::array();
  for (const GateReport& g : r.gates) {
    gates.push_back(
        {{"gate", clean(g.gate)}, {"outcome", clean(g.outcome)}, {"why", clean(g.why)}});
  }
  Json out = {
      {"format", kFormat},
      {"identity", identity_json(r)},
      {"status", r.outcome == RunOutcome::kInvalid ? "invalid" : "scorable"},
      {"outcome", to_string(r.outcome)},
      {"termination",
       {{"code", to_string(r.termination)},
        {"evidence_seq", num(r.evidence_seq)},
        {"rationale", clean(r.rationale)}}},
      {"checks", std::move(checks)},
      {"gates", std::move(gates)},
      {"violations", list(r.violations)},
      {"deviations", list(r.deviations)},
      {"failed_cycles", num(r.failed_cycles)},
      {"replayable", r.replayable},
      {"usage", to_json(r.usage)},
      {"cost", to_json(r.cost)},
      {"cost_model", {{"digest", r.cost_model.hex()}, {"version", clean(r.cost_model_version)}}},
      {"evidence", evidence_json(r)},
      {"started_ms", num(r.started_ms)},
      {"finished_ms", num(r.finished_ms)}};
  // Only where a patch was applied: a report of before there were rungs keeps its bytes.
  if (!r.application.empty())
    out["patch"] = {{"rung", clean(r.application.rung)},
                    {"refused", clean(r.application.refused)},
                    {"conflict_markers", list(r.application.conflicts)}};
  return out;
}

Result<CheckReport> read_check(const Json& json, const std::string& path) {
  JsonFields f(json, path);
  CheckReport c;
  c.id = f.text("id");
  c.kind = f.text("kind");
  c.gate = f.text("gate");
  if (const auto outcome = f.optional_text("outcome")) {
    c.outcome = from_word<CheckOutcome>(*outcome);
    if (!c.outcome) f.refuse("outcome", "expected pass, fail, error or null");
  }
  const std::int64_t code = f.integer("exit_code");
  if (code < -(1LL << 31) || (1LL << 31) <= code) f.refuse("exit_code", "beyond 32 bits");
  c.exit_code = static_cast<int>(code);
  c.wall_ms = f.count("wall_ms");
  c.why = f.text("why");
  c.command = f.text("command");
  c.timeout_ms = f.count("timeout_ms");
  c.reader = f.text("reader");
  c.ended = f.text("ended");
  c.failing = f.texts("failing");
  c.stdout_digest = f.optional_digest("stdout");
  c.stderr_digest = f.optional_digest("stderr");
  c.result_digest = f.optional_digest("results");
  JsonFields tests(f, "tests");
  c.passed = tests.count("passed");
  c.failed = tests.count("failed");
  c.skipped = tests.count("skipped");
  PROCTOR_CHECK_OK(tests.finish());
  PROCTOR_CHECK_OK(f.finish());
  return c;
}

Status read_identity(JsonFields& root, RunReport& r) {
  JsonFields f(root, "identity");
  constexpr std::uint64_t kU32 = 0xFFFFFFFF;
  r.campaign = f.text("campaign");
  r.run_name = f.text("run_name");
  r.attempt.run = RunId(static_cast<std::uint32_t>(f.count("run", kU32)));
  r.attempt.no = AttemptNo(static_cast<std::uint32_t>(f.count("attempt", kU32)));
  r.task = f.text("task");
  r.method = f.text("method");
  r.replicate = static_cast<std::uint32_t>(f.count("replicate", kU32));
  r.contract = f.digest("contract");
  r.method_digest = f.digest("method_digest");
  r.commit = f.text("commit");
  r.tree = f.text("tree");
  return f.finish();
}

Status read_ending(JsonFields& f, RunReport& r) {
  if (const auto outcome = from_word<RunOutcome>(f.text("outcome")))
    r.outcome = *outcome;
  else
    f.refuse("outcome", "unknown");
  if (f.text("status") != (r.outcome == RunOutcome::kInvalid ? "invalid" : "scorable"))
    f.refuse("status", "does not follow from the outcome");
  JsonFields t(f, "termination");
  if (const auto code = from_word<Termination>(t.text("code")))
    r.termination = *code;
  else
    t.refuse("code", "unknown");
  r.evidence_seq = t.count("evidence_seq");
  r.rationale = t.text("rationale");
  PROCTOR_CHECK_OK(t.finish());
  const Json& checks = f.array("checks");
  for (std::size_t i = 0; i < checks.size(); ++i) {
    PROCTOR_TRY(CheckReport c, read_check(checks[i], "checks[" + std::to_string(i) + "]"));
    r.checks.push_back(std::move(c));
  }
  const Json& gates = f.array("gates");
  for (std::size_t i = 0; i < gates.size(); ++i) {
    JsonFields g(gates[i], "gates[" + std::to_string(i) + "]");
    GateReport& gate = r.gates.emplace_back();
    gate.gate = g.text("gate");
    gate.outcome = g.text("outcome");
    gate.why = g.text("why");
    PROCTOR_CHECK_OK(g.finish());
  }
  if (f.has("patch")) {
    JsonFields patch(f, "patch");
    r.application.rung = patch.text("rung");
    r.application.refused = patch.text("refused");
    r.application.conflicts = patch.texts("conflict_markers");
    PROCTOR_CHECK_OK(patch.finish());
  }
  r.violations = f.texts("violations");
  r.deviations = f.texts("deviations");
  r.failed_cycles = f.count("failed_cycles");
  r.replayable = f.boolean("replayable");
  return ok_status();
}

Status read_money(JsonFields& f, RunReport& r) {
  PROCTOR_TRY(r.usage, usage_from(f, "usage"));
  JsonFields c(f, "cost");
  const auto micros = [&c](const char* key) { return MicroUsd::from_micros(c.integer(key)); };
  r.cost.model = micros("model_micros");
  r.cost.execution = micros("execution_micros");
  r.cost.human = micros("human_micros");
  r.cost.overhead = micros("overhead_micros");
  // Four values of at most 2^53 cannot overflow an int64.
  if (micros("total_micros") != r.cost.total())
    c.refuse("total_micros", "is not the sum of the categories");
  PROCTOR_CHECK_OK(c.finish());
  JsonFields m(f, "cost_model");
  r.cost_model = m.digest("digest");
  r.cost_model_version = m.text("version");
  return m.finish();
}

Status read_evidence(JsonFields& f, RunReport& r) {
  JsonFields e(f, "evidence");
  r.manifest = e.digest("manifest");
  r.patch = e.digest("patch");
  r.events = e.count("events");
  r.head = e.digest("head");
  const Json& files = e.array("files");
  for (std::size_t i = 0; i < files.size(); ++i) {
    JsonFields one(files[i], "evidence.files[" + std::to_string(i) + "]");
    EvidenceFile& file = r.files.emplace_back();
    file.path = one.text("path");
    file.bytes = one.count("bytes");
    file.digest = one.digest("digest");
    PROCTOR_CHECK_OK(one.finish());
  }
  return e.finish();
}
}  // namespace

Result<Usage> usage_from(JsonFields& parent, const char* key) {
  JsonFields in(parent, key);
  Usage u;
  u.setup_ms = in.count("setup_ms");
  u.agent_ms = in.count("agent_ms");
  u.acceptance_ms = in.count("acceptance_ms");
  u.cpu_ms = in.count("cpu_ms");
  u.tool_calls = in.count("tool_calls");
  u.input_tokens = in.count("input_tokens");
  u.output_tokens = in.count("output_tokens");
  u.model_calls = in.count("model_calls");
  u.stored_bytes = in.count("stored_bytes");
  if (in.has("metered")) {
    JsonFields metered(in, "metered");
    std::size_t said = kMeteredSizes[1];
    for (const std::size_t size : kMeteredSizes)
      if (said < size && metered.has(kMeteredCounters[size - 1].first)) said = size;
    for (std::size_t i = 0; i < said; ++i)
      u.*kMeteredCounters[i].second = metered.count(kMeteredCounters[i].first);
    PROCTOR_CHECK_OK(metered.finish());
  }
  PROCTOR_CHECK_OK(in.finish());
  return u;
}

Json to_json(const Usage& u) {
  Json out = {{"acceptance_ms", num(u.acceptance_ms)},
              {"agent_ms", num(u.agent_ms)},
              {"cpu_ms", num(u.cpu_ms)},
              {"input_tokens", num(u.input_tokens)},
              {"model_calls", num(u.model_calls)},
              {"output_tokens", num(u.output_tokens)},
              {"setup_ms", num(u.setup_ms)},
              {"stored_bytes", num(u.stored_bytes)},
              {"tool_calls", num(u.tool_calls)}};
  // Only where something was metered: a report of before there were meters keeps its bytes.
  for (std::size_t i = 0; i < metered_said(u); ++i)
    out["metered"][kMeteredCounters[i].first] = num(u.*kMeteredCounters[i].second);
  return out;
}

Json to_json(const Cost& c) {
  return {{"model_micros", num(c.model.micros())},
          {"execution_micros", num(c.execution.micros())},
          {"human_micros", num(c.human.micros())},
          {"overhead_micros", num(c.overhead.micros())},
          {"total_micros", num(c.total().micros())}};
}

Json to_json(const CheckReport& c) {
  return {{"id", clean(c.id)},
          {"kind", clean(c.kind)},
          {"gate", clean(c.gate)},
          {"outcome", c.outcome ? Json(to_string(*c.outcome)) : Json(nullptr)},
          {"exit_code", c.exit_code},
          {"wall_ms", num(c.wall_ms)},
          {"why", clean(c.why)},
          {"command", clean(c.command, kCommandBytes)},
          {"timeout_ms", num(c.timeout_ms)},
          {"reader", clean(c.reader)},
          {"ended", clean(c.ended)},
          {"tests",
           {{"passed", num(c.passed)}, {"failed", num(c.failed)}, {"skipped", num(c.skipped)}}},
          {"failing", list(c.failing)},
          {"stdout", hex(c.stdout_digest)},
          {"stderr", hex(c.stderr_digest)},
          {"results", hex(c.result_digest)}};
}

// No check of a contract has a colon in its name.
std::string services_check(std::string_view check) {
  return "services:" + std::string(check);
}

std::vector<std::optional<CheckOutcome>> deciding_outcomes(const std::vector<CheckReport>& checks) {
  constexpr std::string_view kNotRun = "not_run";
  const auto failed = [&](const CheckReport& check) {
    return check.ended != kNotRun && check.outcome && *check.outcome != CheckOutcome::kPass;
  };
  const bool setup_failed = !checks.empty() && checks[0].id == kSetupCheck && failed(checks[0]);
  const auto is_decided = [&](const CheckReport& check) {
    return setup_failed || std::ranges::any_of(checks, [&](const CheckReport& other) {
             return other.id == services_check(check.id) && failed(other);
           });
  };
  std::vector<std::optional<CheckOutcome>> out;
  for (const CheckReport& check : checks)
    if (check.outcome || check.ended != kNotRun || !is_decided(check)) out.push_back(check.outcome);
  return out;
}

std::string report_bytes(const RunReport& report) {
  Result<std::string> bytes = canonical_json(report_json(report));
  PROCTOR_ASSERT(bytes.ok());  // text was made UTF-8 and numbers were bounded above
  return *bytes + "\n";
}

Result<RunReport> parse_report(std::string_view bytes) {
  PROCTOR_TRY(const Json json, parse_json(bytes, {.bytes_max = kReportBytes}));
  JsonFields f(json, "");
  if (f.text("format") != kFormat) f.refuse("format", "expected " + std::string(kFormat));
  RunReport r;
  PROCTOR_CHECK_OK(read_identity(f, r));
  PROCTOR_CHECK_OK(read_ending(f, r));
  PROCTOR_CHECK_OK(read_money(f, r));
  PROCTOR_CHECK_OK(read_evidence(f, r));
  r.started_ms = f.integer("started_ms");
  r.finished_ms = f.integer("finished_ms");
  PROCTOR_CHECK_OK(f.finish());
  if (report_bytes(r) != bytes) return Error{Errc::kInvalid, "not the canonical form of a report"};
  return r;
}
}  // namespace proctor
