#include "common/contract/bundle.h"

#include <algorithm>
#include <array>
#include <limits>

#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/contract/campaign_parser.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
#include "common/contract/cost_model_parser.h"
#include "common/contract/fields.h"
#include "common/contract/method_parser.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {
constexpr std::string_view kMagic = "proctor-bundle 1 ";
constexpr std::size_t kHex = 64;
constexpr std::array<std::string_view, 4> kFileKeys{"path", "mode", "size", "sha256"};

Error corrupt(std::string why) {
  return Error{Errc::kCorrupt, "bundle: " + std::move(why)};
}

Result<std::string_view> take_bytes(std::string_view& rest, std::uint64_t n) {
  if (rest.size() < n) return corrupt("cut short");
  const std::string_view out = rest.substr(0, static_cast<std::size_t>(n));
  rest.remove_prefix(out.size());
  return out;
}

Result<ReferencedFile> take_file(const Node& node, std::string_view& rest) {
  Diagnostics out;
  Problems problems("bundle", out);
  const Fields f(node, "files", kFileKeys, problems);
  ReferencedFile file;
  file.path = f.text("path", Need::kMust, kPathRule);
  const std::array<Word<std::uint32_t>, 2> modes{{{"0644", 0644}, {"0755", 0755}}};
  file.mode = f.choice("mode", std::uint32_t{0644}, modes);
  const std::uint64_t size = f.count("size", 0, 0, limits::kReferencedFileBytes);
  constexpr TextRule kDigestRule{kHex, "a SHA-256"};
  const std::string digest = f.text("sha256", Need::kMust, kDigestRule);
  if (!out.empty()) return as_error(out);
  PROCTOR_TRY(const std::string_view bytes, take_bytes(rest, size));
  if (sha256(bytes).hex() != digest) return corrupt("the file " + file.path + " was changed");
  file.bytes = bytes;
  return file;
}
}  // namespace

Error as_error(const Diagnostics& diagnostics) {
  PROCTOR_ASSERT(!diagnostics.empty());
  return Error{Errc::kInvalid, to_string(diagnostics.kept().front())};
}

std::string frame_bundle(std::string_view kind, std::string_view form, std::string_view base,
                         const std::vector<ReferencedFile>& files) {
  std::string body = std::string(kMagic) + std::string(kind) + " " + std::to_string(form.size()) +
                     " " + std::to_string(base.size()) + "\n";
  body += form;
  body += base;
  for (const ReferencedFile& f : files) body += f.bytes;
  return sha256(body).hex() + "\n" + body;
}

Result<OpenedBundle> open_frame(std::string_view bytes, std::string_view kind,
                                const Digest& expected) {
  if (limits::kContractBundleBytes < bytes.size())
    return Error{Errc::kExhausted,
                 "bundle: larger than " + std::to_string(limits::kContractBundleBytes) + " bytes"};
  std::string_view rest = bytes;
  const std::string_view digest = take_until(rest, '\n');
  if (digest != sha256(rest).hex())
    return corrupt("its bytes do not have the digest in its first line");
  const std::string head = std::string(kMagic) + std::string(kind) + " ";
  if (!take_word(rest, head)) return corrupt("not a " + std::string(kind) + " of version 1");
  std::uint64_t form_bytes = 0, base_bytes = 0;
  if (!take_number(rest, form_bytes) || !take_word(rest, " ") || !take_number(rest, base_bytes) ||
      !take_word(rest, "\n"))
    return corrupt("a broken header");
  if (kPathBytes < base_bytes) return corrupt("a base folder above 4096 bytes");
  OpenedBundle out;
  PROCTOR_TRY(out.form, take_bytes(rest, form_bytes));
  if (sha256(out.form) != expected) return corrupt("it is not the one asked for");
  PROCTOR_TRY(const std::string_view base, take_bytes(rest, base_bytes));
  out.base = base;

  Diagnostics diagnostics;
  DocumentBounds bounds;  // the form spells out defaults and lists every file with its digest
  bounds.bytes_max = limits::kContractBundleBytes - kFilesBytes;
  bounds.nodes_max = 16 * limits::kConfigNodes;
  bounds.depth_max = 2 + limits::kConfigDepth;
  auto document = read_document(out.form, Format::kJson, "bundle", diagnostics, bounds);
  if (!diagnostics.empty()) return as_error(diagnostics);
  Node& root = document->root;
  if (const Node* files = root.find("files"))
    for (const Node& node : files->items) {
      PROCTOR_TRY(ReferencedFile file, take_file(node, rest));
      out.files.add(std::move(file));
    }
  if (!rest.empty()) return corrupt("bytes after its last file");
  const auto part = std::ranges::find(root.entries, kind, &Entry::key);
  if (part == root.entries.end()) return corrupt("no " + std::string(kind) + " in it");
  Node node = std::move(part->value);
  out.document = Document{"bundle", std::move(node)};
  return out;
}

// Contracts and methods as bundles.

namespace {
// The form that came may say more than we read, or the same in other words.
Status same_form(std::string_view came, const std::string& ours) {
  if (came != ours) return Error{Errc::kInvalid, "bundle: not in canonical form"};
  return ok_status();
}
}  // namespace

std::string make_bundle(const Contract& contract, const std::filesystem::path& base) {
  return frame_bundle("contract", canonical_form(contract), base.native(), contract.files);
}

Result<ContractBundle> open_contract_bundle(std::string_view bytes, const Digest& expected) {
  PROCTOR_TRY(OpenedBundle opened, open_frame(bytes, "contract", expected));
  const std::filesystem::path base(opened.base);
  if (!base.empty() && (!base.is_absolute() || opened.base.find('\0') != std::string::npos))
    return Error{Errc::kInvalid, "bundle: its base is not an absolute path"};
  Diagnostics out;
  Contract contract = parse_contract(opened.document, opened.files, out);
  if (!out.empty()) return as_error(out);
  PROCTOR_CHECK_OK(same_form(opened.form, canonical_form(contract)));
  contract.origin = Origin{"", base, {}};
  return ContractBundle{std::move(contract), base};
}

std::string make_bundle(const Method& method) {
  return frame_bundle("method", canonical_form(method), "", method.files);
}

Result<Method> open_method_bundle(std::string_view bytes, const Digest& expected) {
  PROCTOR_TRY(OpenedBundle opened, open_frame(bytes, "method", expected));
  Diagnostics out;
  Problems problems("bundle", out);
  Method method = read_method(opened.document.root, "method", opened.files, problems);
  if (!out.empty()) return as_error(out);
  PROCTOR_CHECK_OK(same_form(opened.form, canonical_form(method)));
  if (!opened.base.empty()) return Error{Errc::kInvalid, "bundle: a method has no base"};
  return method;
}

// The settings of a campaign as a bundle.

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
  row.action_type = f.text("action_type", Need::kMust, kPricedWordRule);
  row.unit = f.text("unit", Need::kMust, kPricedWordRule);
  row.provider = f.text("provider", Need::kMay, kModelRule);
  row.model = f.text("model", Need::kMay, kModelRule);
  row.tier = f.text("tier", Need::kMay, kModelRule);
  row.region = f.text("region", Need::kMay, kModelRule);
  row.above = f.count("above", 0, 0, kUsageCountMax);
  row.notes = f.text("notes", Need::kMay, kNotesRule);
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
  const Result<Digest> digest = Digest::from_hex(f.text("digest", Need::kMust, kDigestRule));
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
  s.campaign = f.text("campaign", Need::kMust, kIdRule);
  if (const Node* n = f.find("caps")) s.caps = read_caps(*n, "caps", problems);
  s.run_cap = f.usd("run_cap", Need::kMust).value_or(MicroUsd::zero());
  if (const Node* n = f.find("cost_model")) s.cost_model = read_model(*n, problems);
  s.seed = static_cast<std::uint32_t>(
      f.count("seed", kPlannedSeed, 0, std::numeric_limits<std::uint32_t>::max()));
  s.seed_deviation = f.text("seed_deviation", Need::kMay, kTitleRule);
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
