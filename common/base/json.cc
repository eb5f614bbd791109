#include "common/base/json.h"

#include <algorithm>
#include <set>
#include <vector>

namespace proctor {
namespace {

// The keys of one object so far.  Most objects have a handful, for which a look at each is cheaper
// than a tree; one that a stranger made has as many as fit into its bytes.
class Keys {
 public:
  // False: it was there.
  bool add(const std::string& key) {
    if (few_.size() < kFew) {
      if (std::ranges::find(few_, key) != few_.end()) return false;
      few_.push_back(key);
      return true;
    }
    if (many_.empty()) many_.insert(few_.begin(), few_.end());
    return many_.insert(key).second;
  }

 private:
  static constexpr std::size_t kFew = 24;
  std::vector<std::string> few_;
  std::set<std::string> many_;
};

// Builds the value through nlohmann's own DOM builder and refuses what it would let pass:
// duplicate keys and depth.
class StrictSax : public nlohmann::json_sax<Json> {
 public:
  StrictSax(Json& root, std::size_t depth_max) : dom_(root, false), depth_max_(depth_max) {}

  bool null() override { return dom_.null(); }
  bool boolean(bool v) override { return dom_.boolean(v); }
  bool number_integer(number_integer_t v) override { return dom_.number_integer(v); }
  bool number_unsigned(number_unsigned_t v) override { return dom_.number_unsigned(v); }
  bool number_float(number_float_t v, const string_t& s) override {
    return dom_.number_float(v, s);
  }
  bool string(string_t& v) override { return dom_.string(v); }
  bool binary(binary_t&) override { return refuse("binary value"); }
  bool start_object(std::size_t n) override {
    keys_.emplace_back();
    return enter() && dom_.start_object(n);
  }
  bool key(string_t& k) override {
    if (!keys_.back().add(k)) return refuse("duplicate key \"" + k.substr(0, 80) + "\"");
    return dom_.key(k);
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return dom_.end_object();
  }
  bool start_array(std::size_t n) override { return enter() && dom_.start_array(n); }
  bool end_array() override {
    --depth_;
    return dom_.end_array();
  }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse("not JSON at byte " + std::to_string(at));
  }
  const std::string& why() const { return why_; }

 private:
  bool enter() { return ++depth_ <= depth_max_ || refuse("nested too deeply"); }
  bool refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }
  nlohmann::detail::json_sax_dom_parser<Json> dom_;
  std::size_t depth_max_;
  std::size_t depth_ = 0;
  std::vector<Keys> keys_;
  std::string why_;
};

std::u16string utf16(const std::string& s) {
  std::u16string out;
  for (std::size_t i = 0; i < s.size();) {
    const auto lead = static_cast<unsigned char>(s[i]);
    const std::size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t cp = n == 1 ? lead : lead & (0xFFu >> (n + 1));
    for (std::size_t k = 1; k < n && i + k < s.size(); ++k)
      cp = (cp << 6) | (static_cast<unsigned char>(s[i + k]) & 0x3Fu);
    if (cp < 0x10000) {
      out += static_cast<char16_t>(cp);
    } else {
      cp -= 0x10000;
      out += static_cast<char16_t>(0xD800 + (cp >> 10));
      out += static_cast<char16_t>(0xDC00 + (cp & 0x3FF));
    }
    i += n;
  }
  return out;
}

bool is_ascii(const std::string& s) {
  return std::ranges::all_of(s, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
// RFC 8785 orders keys by UTF-16 code units; for ASCII that is byte order.
bool utf16_less(const std::string& a, const std::string& b) {
  if (is_ascii(a) && is_ascii(b)) return a < b;
  return utf16(a) < utf16(b);
}

constexpr std::int64_t kSafeInteger = (std::int64_t{1} << 53) - 1;

// nlohmann escapes exactly what RFC 8785 asks: ", \, and controls (\b \t \n \f \r, \u00xx).
Status write_text(const std::string& text, std::string& out) {
  const bool plain = std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return 0x20 <= byte && byte < 0x7F && c != '"' && c != '\\';
  });
  if (plain) {
    out += '"';
    out += text;
    out += '"';
    return ok_status();
  }
  try {
    out += Json(text).dump();
  } catch (const Json::exception& e) {
    return Error{Errc::kInvalid, "string is not UTF-8"};
  }
  return ok_status();
}

Status write(const Json& v, std::string& out);

Status write_object(const Json::object_t& object, std::string& out) {
  using Item = const Json::object_t::value_type*;
  std::vector<Item> items;
  items.reserve(object.size());
  for (const auto& item : object) items.push_back(&item);
  const auto before = [](Item a, Item b) { return utf16_less(a->first, b->first); };
  if (!std::ranges::is_sorted(items, before)) std::ranges::sort(items, before);
  out += '{';
  for (const Item item : items) {
    if (item != items.front()) out += ',';
    PROCTOR_CHECK_OK(write_text(item->first, out));
    out += ':';
    PROCTOR_CHECK_OK(write(item->second, out));
  }
  out += '}';
  return ok_status();
}

Status write(const Json& v, std::string& out) {
  switch (v.type()) {
    case Json::value_t::object:
      return write_object(v.get_ref<const Json::object_t&>(), out);
    case Json::value_t::array: {
      out += '[';
      bool first = true;
      for (const Json& e : v) {
        if (!std::exchange(first, false)) out += ',';
        PROCTOR_CHECK_OK(write(e, out));
      }
      out += ']';
      return ok_status();
    }
    case Json::value_t::number_integer:
      if (v.get<std::int64_t>() < -kSafeInteger || kSafeInteger < v.get<std::int64_t>())
        return Error{Errc::kInvalid, "integer beyond 2^53 - 1 in hashed JSON"};
      out += std::to_string(v.get<std::int64_t>());
      return ok_status();
    case Json::value_t::number_unsigned:
      if (static_cast<std::uint64_t>(kSafeInteger) < v.get<std::uint64_t>())
        return Error{Errc::kInvalid, "integer beyond 2^53 - 1 in hashed JSON"};
      out += std::to_string(v.get<std::uint64_t>());
      return ok_status();
    case Json::value_t::string:
      return write_text(v.get_ref<const std::string&>(), out);
    case Json::value_t::boolean:
      out += v.get<bool>() ? "true" : "false";
      return ok_status();
    case Json::value_t::null:
      out += "null";
      return ok_status();
    case Json::value_t::number_float:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return Error{Errc::kInvalid, "floating point number in hashed JSON"};
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonBounds& bounds) {
  if (bounds.bytes_max < text.size())
    return Error{Errc::kInvalid, "JSON of " + std::to_string(text.size()) + " bytes; at most " +
                                     std::to_string(bounds.bytes_max) + " are read"};
  Json root;
  StrictSax sax(root, bounds.depth_max);
  bool ok = false;
  try {
    ok = Json::sax_parse(text, &sax);
  } catch (const Json::exception& e) {
    return Error{Errc::kInvalid, std::string("not JSON: ") + e.what()};
  }
  if (!ok) return Error{Errc::kInvalid, sax.why().empty() ? "not JSON" : sax.why()};
  return root;
}

Result<std::string> canonical_json(const Json& value) {
  std::string out;
  PROCTOR_CHECK_OK(write(value, out));
  return out;
}

}  // namespace proctor
