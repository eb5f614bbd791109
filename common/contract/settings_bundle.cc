// The settings of a campaign as a bundle.
#include <limits>

#include "common/contract/bundle.h"
#include "common/contract/bundle_frame.h"
#include "common/contract/canonical.h"
#include "common/contract/contract_sections.h"
#include "common/contract/cost_model_parser.h"
#include "common/contract/rules.h"
#include "common/contract/scalar.h"

namespace proctor {
namespace {

constexpr std::array<std::string_view, 12> kKeys{
    "campaign",   "caps",      "run_cap", "cost_model", "seed",      "seed_deviation",
    "stage_caps", "task_caps", "stages",  "rates",      "isolation", "infrastructure_retries"};
constexpr std::array<std::string_view, 3> kModelKeys{"version", "digest", "rows"};
constexpr std::array<std::string_view, 9> kRowKeys{
    "action_type", "unit", "unit_price", "notes", "provider", "model", "tier", "region", "above"};

Json model_json(const CostModel& model) {
  Json rows = Json::array();
  for (const PriceRow& r : model.rows) {
    Json row = {{"action_type", r.action_type},
                {"unit", r.unit},
                {"unit_price", format_decimal(r.pico_usd, kPriceDigits)}};
    if (!r.notes.empty()) row["notes"] = r.notes;
    if (!r.provider.empty()) row["provider"] = r.provider;
    if (!r.model.empty()) row["model"] = r.model;
    // A worker that does not know these refuses the bundle: it would price by the wrong rows.
    if (!r.tier.empty()) row["tier"] = r.tier;
    if (!r.region.empty()) row["region"] = r.region;
    if (0 < r.above) row["above"] = r.above;
    rows.push_back(std::move(row));
  }
  return {{"version", model.version}, {"digest", model.digest.hex()}, {"rows", std::move(rows)}};
}

bool is_priced_word(std::string_view text) {
  return text == kAnyWord || is_word(text);
}

PriceRow read_row(const Node& node, const std::string& path, Problems& problems) {
  constexpr TextRule kNotesRule{kTextBytes, "a text", is_plain_text};
  constexpr TextRule kPricedWordRule{limits::kNameBytes, "a word, or *", is_priced_word};
  constexpr TextRule kModelRule{limits::kNameBytes, "a name on one line", is_one_line};
  const Fields f(node, path, kRowKeys, problems);
  PriceRow row;
  row.action_type = f.text("action_type", Need::kRequired, kPricedWordRule);
  row.unit = f.text("unit", Need::kRequired, kPricedWordRule);
  row.provider = f.text("provider", Need::kOptional, kModelRule);
  row.model = f.text("model", Need::kOptional, kModelRule);
  row.tier = f.text("tier", Need::kOptional, kModelRule);
  row.region = f.text("region", Need::kOptional, kModelRule);
  row.above = f.count("above", 0, 0, kUsageCountMax);
  row.notes = f.text("notes", Need::kOptional, kNotesRule);
  const Node* price = f.find("unit_price");
  if (price == nullptr) {
    f.missing("unit_price", "a price");
    return row;
  }
  const auto pico = parse_decimal(price->text, kPriceDigits, kPicoUsdMax);
  if (pico.ok()) {
    row.pico_usd = *pico;
  } else {
    problems.wrong(*price, f.path("unit_price"), pico.error().detail);
  }
  return row;
}

CostModel read_model(const Node& node, Problems& problems) {
  const std::array<Word<std::string_view>, 2> versions{
      {{kFileVersion, kFileVersion}, {kFallbackVersion, kFallbackVersion}}};
  constexpr TextRule kDigestRule{64, "a SHA-256"};
  const Fields f(node, "cost_model", kModelKeys, problems);
  CostModel out;
  out.version = f.choice("version", kFileVersion, versions);
  const Result<Digest> digest = Digest::from_hex(f.text("digest", Need::kRequired, kDigestRule));
  if (digest.ok()) {
    out.digest = *digest;
  } else {
    problems.wrong(node, "cost_model.digest", "a SHA-256");
  }
  f.each("rows", [&](const Node& row, const std::string& path) {
    out.rows.push_back(read_row(row, path, problems));
  });
  apply_rows(out);
  return out;
}

std::map<std::string, Caps> read_caps_table(const Fields& f, std::string_view key,
                                            Problems& problems) {
  std::map<std::string, Caps> out;
  const Node* table = f.find(key);
  if (table == nullptr) return out;
  for (const Entry& e : table->entries)
    out.emplace(e.key, read_caps(e.value, std::string(key) + "." + e.key, problems));
  return out;
}

}  // namespace

Settings settings_of(const Campaign& c) {
  Settings s{c.name, c.caps, c.envelopes.run, c.cost_model, c.seed, c.seed_deviation};
  for (const Stage& stage : c.stages)
    if (stage.caps != Caps{}) s.stage_caps.emplace(stage.name, stage.caps);
  if (!s.stage_caps.empty())
    for (const Stage& stage : c.stages) s.stages.push_back(stage.name);
  s.task_caps = c.task_caps;
  s.rates = c.rates;
  s.isolation = c.isolation;
  s.infrastructure_retries = c.infrastructure_retries;
  return s;
}

std::string canonical_form(const Settings& s) {
  Json settings = {{"campaign", s.campaign},
                   {"caps", caps_json(s.caps)},
                   {"run_cap", format_usd_exact(s.run_cap)},
                   {"cost_model", model_json(s.cost_model)},
                   {"seed", s.seed}};
  if (!s.seed_deviation.empty()) settings["seed_deviation"] = s.seed_deviation;
  if (!s.stages.empty()) settings["stages"] = s.stages;
  for (const auto& [name, caps] : s.stage_caps) settings["stage_caps"][name] = caps_json(caps);
  for (const auto& [name, caps] : s.task_caps) settings["task_caps"][name] = caps_json(caps);
  // A worker that does not know rates refuses the bundle: it would not keep to them.
  if (s.rates.calls_per_minute) settings["rates"]["calls_per_minute"] = *s.rates.calls_per_minute;
  if (!s.rates.providers.empty()) settings["rates"]["providers"] = s.rates.providers;
  // Likewise.
  if (s.infrastructure_retries != Settings{}.infrastructure_retries)
    settings["infrastructure_retries"] = s.infrastructure_retries;
  if (s.isolation != Isolation::kKernel)
    settings["isolation"] = word_of(s.isolation, kIsolationWords);
  return canonical_text({{"settings", std::move(settings)}, {"format", 1}});
}

Digest digest_of(const Settings& settings) {
  return sha256(canonical_form(settings));
}

std::string make_bundle(const Settings& settings) {
  return frame_bundle("settings", canonical_form(settings), "", {});
}

Result<Settings> open_settings_bundle(std::string_view bytes, const Digest& expected) {
  PROCTOR_TRY(const OpenedBundle opened, open_frame(bytes, "settings", expected));
  Diagnostics out;
  Problems problems("bundle", out);
  const Fields f(opened.document.root, "", kKeys, problems);
  Settings s;
  s.campaign = f.text("campaign", Need::kRequired, kIdRule);
  if (const Node* n = f.find("caps")) s.caps = read_caps(*n, "caps", problems);
  s.run_cap = f.usd("run_cap", Need::kRequired).value_or(MicroUsd::zero());
  if (const Node* n = f.find("cost_model")) s.cost_model = read_model(*n, problems);
  s.seed = static_cast<std::uint32_t>(
      f.count("seed", kPlannedSeed, 0, std::numeric_limits<std::uint32_t>::max()));
  s.seed_deviation = f.text("seed_deviation", Need::kOptional, kTitleRule);
  s.stages = f.texts("stages", kIdRule);
  s.stage_caps = read_caps_table(f, "stage_caps", problems);
  s.task_caps = read_caps_table(f, "task_caps", problems);
  if (const Node* n = f.find("rates")) s.rates = read_rates(*n, "rates", problems);
  s.infrastructure_retries = static_cast<std::uint32_t>(
      f.count("infrastructure_retries", s.infrastructure_retries, 0, 1000));
  s.isolation = f.choice("isolation", Isolation::kKernel, kIsolationWords);
  if (!out.empty()) return as_error(out);
  if (!opened.base.empty() || canonical_form(s) != opened.form)
    return Error{Errc::kInvalid, "bundle: not in canonical form"};
  return s;
}

}  // namespace proctor
