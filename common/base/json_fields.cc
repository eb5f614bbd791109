#include "common/base/json_fields.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>

#include "common/base/parse.h"
#include "common/base/text.h"

namespace proctor {
namespace {
// How a text holds bytes that are no text, and texts that begin like it.
constexpr std::string_view kHex = "hex:";

std::string bytes_of(std::string_view text) {
  if (!text.starts_with(kHex)) return std::string(text);
  const std::string_view digits = text.substr(kHex.size());
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    const auto byte = whole_number<unsigned>(digits.substr(i, 2), 16);
    if (!byte) return std::string(text);
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}
}  // namespace

void JsonWriter::put(const char* name, Json value) {
  out_.emplace(name, std::move(value));
}

Json JsonWriter::text_json(const std::string& text, const Rule& rule) const {
  if (rule.text == Rule::Text::kBytes) {
    if (is_utf8(text) && !text.starts_with(kHex)) return text;
    return std::string(kHex) + to_hex(text);
  }
  constexpr std::size_t kBeyond = 18;  // printable() ends with one more character, and "..."
  const std::size_t most = rule.bytes == SIZE_MAX ? bytes_max_ : rule.bytes;
  if (texts_ == Texts::kAsTheyAre || (text.size() <= most && is_utf8(text))) return text;
  // Cleaning what is clean changes nothing: else a record that was read would not be the one that
  // was written.
  return printable(text, most - std::min(most, kBeyond));
}

Json JsonWriter::real_json(double value, const Rule& rule) {
  return rule.digits ? Json(fmt::format("{:.12g}", value)) : Json(value);
}

Json JsonWriter::number_json(std::uint64_t value) {
  return std::min(value, kExactIntegerMax);
}

Json JsonWriter::number_json(std::int64_t value) {
  constexpr auto kMost = static_cast<std::int64_t>(kExactIntegerMax);
  return std::clamp(value, -kMost, kMost);
}

JsonReader::JsonReader(const Json& json, std::string_view path, std::string& problem,
                       Versions versions)
    : json_(json), place_{path}, problem_(problem), versions_(versions) {
  if (!json.is_object()) refuse({}, "expected an object");
  if (!is_any()) seen_.reserve(json.items().size());
}

JsonReader::JsonReader(const Json& json, Place place, const JsonReader& parent)
    : json_(json),
      parent_(&parent),
      place_(place),
      problem_(parent.problem_),
      versions_(parent.versions_) {
  if (!json.is_object()) refuse({}, fmt::format("expected an object, found {}", json.kind_name()));
  if (!is_any()) seen_.reserve(json.items().size());
}

std::string JsonReader::path_of(Place place) const {
  std::string out = parent_ != nullptr ? parent_->path_of(place_) : std::string(place_.name);
  if (place.name.empty()) return out.empty() ? "document" : out;
  if (!out.empty()) out += '.';
  out += printable(place.name, 80);
  if (place.index != SIZE_MAX) out += fmt::format("[{}]", place.index);
  return out;
}

void JsonReader::refuse(Place place, std::string_view why) {
  if (ok()) problem_ = path_of(place) + ": " + std::string(why);
}

void JsonReader::require(bool holds, const char* name, std::string_view why) {
  if (!holds) refuse({name}, why);
}

bool JsonReader::has(const char* name) const {
  return json_.items().contains(name);
}

const Json* JsonReader::find(std::string_view name, bool optional) {
  if (!ok()) return nullptr;
  const auto found = json_.items().find(name);
  if (found != json_.items().end()) {
    if (!is_any()) seen_.emplace_back(name);
    return &found->second;
  }
  if (!optional) refuse({name}, "missing");
  return nullptr;
}

void JsonReader::expect(const char* name, const Json& member) {
  const Json* const found = find(name, false);
  const Json& expected = member[name];
  if (found == nullptr || *found == expected) return;
  refuse({name}, "expected " + (expected.is_string() ? expected.string() : expected.dump()));
}

void JsonReader::finish() {
  if (!ok() || is_any() || seen_.size() == json_.size()) return;
  for (const auto& [name, value] : json_.items())
    if (std::ranges::find(seen_, name) == seen_.end()) return refuse({name}, "unknown field");
}

bool JsonReader::is(const Json& json, bool right, Place place, std::string_view expected) {
  if (!right) refuse(place, fmt::format("expected {}, found {}", expected, json.kind_name()));
  return right;
}

std::uint64_t JsonReader::natural(const Json& json, Place place, std::uint64_t most) {
  const bool whole =
      json.is_number_unsigned() || (json.is_number_integer() && 0 <= json.get<std::int64_t>());
  if (!is(json, whole, place, "a whole number")) return 0;
  const auto n = json.get<std::uint64_t>();
  if (n <= most) return n;
  refuse(place, fmt::format("{} is more than {}", n, most));
  return 0;
}

std::int64_t JsonReader::integer(const Json& json, Place place, std::uint64_t most) {
  if (!is(json, json.is_number_integer(), place, "an integer")) return 0;
  if (json.is_number_unsigned()) return static_cast<std::int64_t>(natural(json, place, most));
  const auto n = json.get<std::int64_t>();
  if (n < -static_cast<std::int64_t>(most) || (0 < n && most < static_cast<std::uint64_t>(n))) {
    refuse(place, fmt::format("{} is beyond {}", n, most));
    return 0;
  }
  return n;
}

std::string_view JsonReader::text(const Json& json, Place place) {
  if (!is(json, json.is_string(), place, "text")) return {};
  return json.string();
}

void JsonReader::read(const Json& json, Place place, bool& out, const Rule&) {
  if (is(json, json.is_boolean(), place, "true or false")) out = json.boolean();
}

void JsonReader::read(const Json& json, Place place, double& out, const Rule& rule) {
  if (!rule.digits) {
    if (is(json, json.is_number(), place, "a number")) out = json.get<double>();
    return;
  }
  const std::string digits(text(json, place));
  char* end = nullptr;
  out = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end != '\0') refuse(place, "expected the digits of a number");
}

void JsonReader::read(const Json& json, Place place, std::string& out, const Rule& rule) {
  out = text(json, place);
  if (rule.text == Rule::Text::kBytes) out = bytes_of(out);
  if (rule.bytes < out.size()) refuse(place, fmt::format("longer than {} bytes", rule.bytes));
}

void JsonReader::read(const Json& json, Place place, Digest& out, const Rule&) {
  const std::string_view hex = text(json, place);
  const Result<Digest> digest = Digest::from_hex(hex);
  if (digest.ok())
    out = *digest;
  else
    refuse(place, "expected 64 lower-case hex digits");
}

void JsonReader::read(const Json& json, Place place, MicroUsd& out, const Rule& rule) {
  out = MicroUsd::from_micros(static_cast<std::int64_t>(
      natural(json, place, std::min<std::uint64_t>(rule.most, kExactIntegerMax))));
}

void JsonReader::read(const Json& json, Place, Json& out, const Rule&) {
  out = json;
}
}  // namespace proctor
