#include "common/contract/bundle.h"

#include <algorithm>

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
  FileFacts facts;
  read_fields(node, "files", problems, facts);
  if (!out.empty()) return as_error(out);
  PROCTOR_TRY(const std::string_view bytes, take_bytes(rest, facts.size));
  if (sha256(bytes) != facts.sha256) return corrupt("the file " + facts.path + " was changed");
  return ReferencedFile{facts.path, facts.mode == FileMode::kPlain ? 0644U : 0755U,
                        std::string(bytes)};
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
bool is_priced_word(std::string_view text) {
  return text == kAnyWord || is_word(text);
}
bool is_version(std::string_view text) {
  return text == kFileVersion || text == kFallbackVersion;
}
constexpr TextRule kNotesRule{kTextBytes, "a text", is_plain_text};
constexpr TextRule kPricedWordRule{limits::kNameBytes, "a word, or *", is_priced_word};
constexpr TextRule kVersionRule{limits::kNameBytes, "a version of price tables", is_version};
}  // namespace

// A worker that does not know a member refuses the bundle: it would price by the wrong rows.
void fields(auto& v, Is<PriceRow> auto& r) {
  v("action_type", r.action_type, kPricedWordRule, Need::kMust);
  v("unit", r.unit, kPricedWordRule, Need::kMust);
  v.decimal("unit_price", r.pico_usd, kPriceDigits, kPicoUsdMax, "a price");
  v("notes", r.notes, kNotesRule);
  v("provider", r.provider, kGatewayNameRule);
  v("model", r.model, kGatewayNameRule);
  v("tier", r.tier, kGatewayNameRule);
  v("region", r.region, kGatewayNameRule);
  if (v.when(0 < r.above)) v("above", r.above, 0, kUsageCountMax);
}

void fields(auto& v, Is<CostModel> auto& m) {
  v("version", m.version, kVersionRule, Need::kMust);
  v("digest", m.digest);
  v("rows", m.rows, Need::kAlways);
  v.then(m, [](const Fields&, CostModel& model) { apply_rows(model); });
}

void fields(auto& v, Is<Settings> auto& s) {
  v("campaign", s.campaign, kIdRule, Need::kMust);
  v("caps", s.caps);
  v("run_cap", s.run_cap, Need::kMust);
  v("cost_model", s.cost_model);
  v("seed", s.seed, 0, UINT32_MAX);
  v("seed_deviation", s.seed_deviation, kTitleRule);
  v("stages", s.stages, kIdRule);
  v("stage_caps", s.stage_caps);
  v("task_caps", s.task_caps);
  // A worker that does not know these refuses the bundle: it would not keep to them.
  if (v.when(!s.rates.empty())) v("rates", s.rates);
  if (v.when(s.infrastructure_retries != Settings{}.infrastructure_retries))
    v("infrastructure_retries", s.infrastructure_retries, 0, 1000);
  if (v.when(s.isolation != Isolation::kKernel)) v("isolation", s.isolation);
  rubric_fields(v, s);
  v("failure_modes", s.failure_modes, kFailureModesRule);
  v.then(s.failure_modes, check_failure_modes);
}

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
  s.weights = c.weights;
  s.safety = c.safety;
  s.rerun = c.rerun;
  s.failure_modes = c.failure_modes;
  return s;
}

std::string canonical_form(const Settings& settings) {
  return canonical_text({{"settings", node_json(settings)}, {"format", 1}});
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
  Settings s;
  read_fields(opened.document.root, "", problems, s);
  if (!out.empty()) return as_error(out);
  if (!opened.base.empty() || canonical_form(s) != opened.form)
    return Error{Errc::kInvalid, "bundle: not in canonical form"};
  return s;
}
}  // namespace proctor
