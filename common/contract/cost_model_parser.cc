#include "common/contract/cost_model_parser.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "common/base/csv.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "common/contract/contract_sections.h"
#include "common/contract/fields.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {
constexpr std::size_t kRowsMax = 10'000;
constexpr std::array<std::string_view, 9> kColumns{
    "action_type", "unit", "unit_price", "notes", "provider", "model", "tier", "region", "above"};
enum Column : std::size_t {
  kAction,
  kUnit,
  kPrice,
  kNotes,
  kProvider,
  kModel,
  kTier,
  kRegion,
  kAbove
};

// Actions that Proctor counts by itself: another unit of theirs would be priced at nothing.  Those
// without a member are looked up elsewhere (cost_model.cc), and `token` is for both kinds of
// tokens.
struct Price {
  std::string_view action;
  std::string_view unit;
  std::uint64_t CostModel::*price;
};
constexpr std::array<Price, 13> kPrices{
    {{"sandbox", "minute", &CostModel::sandbox_minute},
     {"tool_call", "call", &CostModel::tool_call},
     {"llm_request", "call", &CostModel::model_call},
     {"llm_request", "token", nullptr},
     {"llm_request", "input_token", &CostModel::input_token},
     {"llm_request", "output_token", &CostModel::output_token},
     {"llm_request", "cache_read_token", nullptr},
     {"llm_request", "cache_write_token", nullptr},
     {"llm_request", "cache_write_long_token", nullptr},
     {"llm_request", "reasoning_token", nullptr},
     {"artifact_storage", "gigabyte", &CostModel::stored_gigabyte},
     {"run", "run", &CostModel::run},
     {"human", "minute", nullptr}}};

constexpr std::string_view kFallback =
    "action_type,unit,unit_price,notes\n"
    "sandbox,minute,0.01,two cores for a minute\n"
    "tool_call,call,0.0005,\n"
    "llm_request,call,0.001,\n"
    "llm_request,input_token,0.000003,\n"
    "llm_request,output_token,0.000015,\n"
    "artifact_storage,gigabyte,0.02,once\n"
    "run,run,0.001,scheduling and bookkeeping\n";

// Where the columns we know are; nullopt for one that is absent.
using Places = std::array<std::optional<std::size_t>, kColumns.size()>;

class TableReader {
 public:
  TableReader(std::string_view csv, const std::string& file, Diagnostics& out)
      : csv_(csv), file_(file), out_(out) {}

  std::vector<PriceRow> rows() {
    std::vector<PriceRow> rows;
    std::vector<std::string_view> fields;
    std::optional<Places> places;
    for (;;) {
      const Result<bool> more = csv_.next(fields);
      if (!more.ok()) {
        report_broken(more.error());
        return rows;
      }
      if (!*more) break;
      if (!places) {
        places = header(fields);
        width_ = fields.size();
        if (!places) return rows;
        continue;
      }
      if (rows.size() == kRowsMax) {
        report("", "more than 10000 rows", "at most that many");
        return rows;
      }
      if (auto row = record(fields, *places)) rows.push_back(*std::move(row));
    }
    if (!places) report("", "no header", "the columns action_type, unit, unit_price, notes");
    refuse_half_prices();
    refuse_odd_prices(rows);
    return rows;
  }

 private:
  void report(std::string_view field, std::string found, std::string expected,
              std::string suggestion = "") {
    const auto line = static_cast<std::uint32_t>(std::max<std::uint64_t>(csv_.line(), 1));
    out_.add({file_,
              {line, 1},
              std::string(field),
              std::move(found),
              std::move(expected),
              std::move(suggestion)});
  }

  // "line 7: why": the line is told in its own place.
  void report_broken(const Error& e) {
    std::uint32_t line = 0;
    std::string_view why = e.detail;
    if (take_word(why, "line ") && take_number(why, line)) take_word(why, ": ");
    out_.add({file_, {std::max(line, std::uint32_t{1}), 1}, "", std::string(why), "CSV", ""});
  }

  std::optional<Places> header(const std::vector<std::string_view>& fields) {
    Places places;
    bool good = true;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto it = std::ranges::find(kColumns, fields[i]);
      if (it == kColumns.end()) continue;
      std::optional<std::size_t>& place = places[static_cast<std::size_t>(it - kColumns.begin())];
      if (place) {
        report(fields[i], "the column a second time", "each column once");
        good = false;
      }
      place = i;
    }
    for (const Column c : {kAction, kUnit, kPrice}) {
      if (places[c]) continue;
      good = false;
      std::string near;
      for (const std::string_view f : fields)
        if (nearest_word(f, std::array{kColumns[c]})) near = kColumns[c];
      report(kColumns[c], "no such column", "a header with action_type, unit and unit_price", near);
    }
    return good ? std::optional(places) : std::nullopt;
  }

  std::optional<PriceRow> record(const std::vector<std::string_view>& fields,
                                 const Places& places) {
    if (fields.size() != width_) {
      report("", std::to_string(fields.size()) + " fields",
             std::to_string(width_) + ", as in the header");
      return std::nullopt;
    }
    PriceRow row;
    bool good = true;
    for (const auto& [column, target] :
         {std::pair{kAction, &row.action_type}, std::pair{kUnit, &row.unit}}) {
      const std::string_view text = fields[*places[column]];
      *target = text;
      if ((is_word(text) && text.size() <= limits::kNameBytes) || text == kAnyWord) continue;
      report(kColumns[column], "\"" + printable(text, 80) + "\"", std::string(kWordRule.expected));
      good = false;
    }
    for (const auto& [column, target] :
         {std::pair{kProvider, &row.provider}, std::pair{kModel, &row.model},
          std::pair{kTier, &row.tier}, std::pair{kRegion, &row.region}}) {
      if (!places[column]) continue;
      *target = fields[*places[column]];
      if (target->size() <= limits::kNameBytes && is_one_line(*target)) continue;
      report(kColumns[column], "\"" + printable(*target, 80) + "\"",
             "a name on one line, of at most 100 bytes");
      good = false;
    }
    if (places[kAbove] && !read_above(fields[*places[kAbove]], row.above)) good = false;
    if (good) good = stars_fit(row) && place_fits(row) && unit_fits(row);
    const std::string_view price = fields[*places[kPrice]];
    const auto pico = parse_price(price);
    if (!pico.ok()) {
      report(kColumns[kPrice], "\"" + printable(price, 80) + "\"", pico.error().detail);
      return std::nullopt;
    }
    row.pico_usd = *pico;
    if (places[kNotes]) row.notes = fields[*places[kNotes]];
    if (!good) return std::nullopt;
    const auto [it, added] = lines_.emplace(key_of(row), csv_.line());
    if (!added) {
      const bool named = !row.model.empty() || !row.provider.empty();
      report("unit",
             row.action_type + "," + row.unit +
                 (named ? " of \"" + printable(row.provider + "/" + row.model, 80) + "\"" : "") +
                 " as in line " + std::to_string(it->second),
             "each action_type and unit once");
      return std::nullopt;
    }
    return std::optional(std::move(row));
  }

  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::string, std::uint64_t>;
  static Key key_of(const PriceRow& r) {
    return {r.action_type, r.unit, r.provider, r.model, r.tier, r.region, r.above};
  }

  bool read_above(std::string_view text, std::uint64_t& out) {
    if (text.empty()) return true;
    const auto tokens = parse_decimal(text, 0, kUsageCountMax);
    if (tokens.ok()) out = *tokens;
    if (!tokens.ok())
      report("above", "\"" + printable(text, 80) + "\"", "a number of input tokens, or nothing");
    return tokens.ok();
  }

  bool place_fits(const PriceRow& row) {
    if (row.action_type == "llm_request" ||
        (row.tier.empty() && row.region.empty() && row.above == 0))
      return true;
    report("tier", "a tier, region or threshold of " + row.action_type,
           "nothing: only llm_request rows have them");
    return false;
  }

  bool unit_fits(const PriceRow& row) {
    std::vector<std::string_view> units;
    for (const Price& p : kPrices)
      if (p.action == row.action_type) units.push_back(p.unit);
    if (units.empty() || std::ranges::find(units, row.unit) != units.end()) return true;
    std::string expected;
    for (const std::string_view unit : units)
      expected.append(expected.empty() ? "" : ", ").append(unit);
    report("unit", row.unit + " of " + row.action_type + ", which nothing counts",
           std::move(expected), nearest_word(row.unit, units).value_or(""));
    return false;
  }

  // A model's output that is free because its row was forgotten would be cost unseen.
  void refuse_half_prices() {
    for (const auto& entry : lines_) {
      const Key& key = entry.first;
      const auto line = entry.second;
      const auto& [action, unit, provider, model, tier, region, above] = key;
      const bool particular = !tier.empty() || !region.empty() || 0 < above;
      if (action != "llm_request" || (provider.empty() && model.empty() && !particular)) continue;
      const auto has = [&](std::string_view u) {
        Key other = key;
        std::get<1>(other) = u;
        return lines_.contains(other);
      };
      const std::string_view other = unit == "input_token"              ? "output_token"
                                     : unit == "output_token"           ? "input_token"
                                     : particular && has("input_token") ? ""
                                     : particular && unit != "token"    ? "input_token"
                                                                        : "";
      if (other.empty() || has(other) || has("token")) continue;
      out_.add({file_,
                {static_cast<std::uint32_t>(line), 1},
                "unit",
                unit + " of \"" + printable(provider + "/" + model, 80) + "\"" +
                    (particular ? " at this tier, region and threshold" : "") + " without " +
                    std::string(other),
                "a row for each of the two, or one for token",
                ""});
    }
  }

  // A read from a cache that costs more than the input, a threshold that makes a call cheaper: so
  // rare that it is somebody's mistake, and a ceiling rests on it.
  void refuse_odd_prices(const std::vector<PriceRow>& rows) {
    std::map<Key, const PriceRow*> by_key;  // rows of one unit lie together, thresholds ascending
    for (const PriceRow& r : rows)
      if (r.action_type == "llm_request") by_key.emplace(key_of(r), &r);
    const PriceRow* before = nullptr;
    for (const auto& [key, r] : by_key) {
      Key lower = key, input = key;
      std::get<6>(lower) = before == nullptr ? 0 : before->above;
      std::get<1>(input) = "input_token";
      const auto of_input = by_key.find(input);
      const bool dear_read = r->unit == "cache_read_token" && of_input != by_key.end() &&
                             of_input->second->pico_usd < r->pico_usd;
      const bool cheap_step = before != nullptr && key_of(*before) == lower &&
                              before->above < r->above && r->pico_usd < before->pico_usd;
      before = r;
      if (r->notes.starts_with('!') || (!dear_read && !cheap_step)) continue;
      out_.add({file_,
                {static_cast<std::uint32_t>(lines_.at(key)), 1},
                "unit_price",
                dear_read ? "a cache_read_token that costs more than an input_token"
                          : "a price that falls above " + std::to_string(r->above) + " tokens",
                "not beyond that of the other row; or notes that begin with !",
                ""});
    }
  }

  // "*" stands for a whole default row and nothing else.
  bool stars_fit(const PriceRow& row) {
    const bool both = row.action_type == kAnyWord && row.unit == kAnyWord;
    if (!both && (row.action_type == kAnyWord || row.unit == kAnyWord)) {
      report("unit", row.action_type + "," + row.unit, "*,* for the default row, or two words");
      return false;
    }
    const bool model_row = !row.model.empty() || !row.provider.empty();
    if (model_row && row.action_type != "llm_request") {
      report("model", "\"" + printable(row.provider + "/" + row.model, 80) + "\"",
             "nothing: only llm_request rows name a model");
      return false;
    }
    if (row.provider == kAnyWord || (row.model == kAnyWord && !row.provider.empty())) {
      report("provider", "\"" + printable(row.provider, 80) + "\"",
             "nothing beside the model *: there is one default row for models");
      return false;
    }
    return true;
  }

  CsvReader csv_;
  const std::string& file_;
  Diagnostics& out_;
  std::size_t width_ = 0;
  std::map<Key, std::uint64_t> lines_;
};
}  // namespace

Result<std::uint64_t> parse_price(std::string_view text) {
  // Zeros behind the last digit that counts say nothing.
  if (const std::size_t dot = text.find('.'); dot != std::string_view::npos) {
    const std::size_t most = dot + 1 + kPriceDigits;
    while (most < text.size() && text.back() == '0') text.remove_suffix(1);
  }
  return parse_decimal(text, kPriceDigits, kPicoUsdMax);
}

void apply_rows(CostModel& model) {
  const auto price_of = [&](std::string_view action, std::string_view unit) {
    const auto it = std::ranges::find_if(model.rows, [&](const PriceRow& r) {
      return r.action_type == action && r.unit == unit && r.model.empty() && r.provider.empty() &&
             r.tier.empty() && r.region.empty() && r.above == 0;
    });
    return it == model.rows.end() ? std::optional<std::uint64_t>() : it->pico_usd;
  };
  const std::uint64_t token = price_of("llm_request", "token").value_or(0);
  for (const Price& p : kPrices) {
    if (p.price == nullptr) continue;
    const bool is_token = p.unit.ends_with("_token");
    model.*p.price = price_of(p.action, p.unit).value_or(is_token ? token : 0);
  }
}

CostModel parse_cost_model(std::string_view csv, const std::string& file, Diagnostics& out) {
  CostModel model;
  model.version = kFileVersion;
  model.digest = sha256(csv);
  if (limits::kConfigFileBytes < csv.size()) {
    out.add({file,
             {},
             "",
             std::to_string(csv.size()) + " bytes",
             "at most " + std::to_string(limits::kConfigFileBytes),
             ""});
    return model;
  }
  if (!is_plain_text(csv)) {
    out.add({file, {}, "", "bytes that are not UTF-8, or control characters", "UTF-8 text", ""});
    return model;
  }
  model.rows = TableReader(csv, file, out).rows();
  apply_rows(model);
  return model;
}

CostModel fallback_cost_model() {
  Diagnostics none;
  CostModel model = parse_cost_model(kFallback, "fallback", none);
  PROCTOR_ASSERT(none.empty());
  model.version = kFallbackVersion;
  return model;
}
}  // namespace proctor
