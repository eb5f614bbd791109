#include "common/cvdp/python_repr.h"

#include "common/cvdp/unicode.h"
#include "common/cvdp/utf8.h"

namespace proctor::cvdp {
namespace {

void put_hex(std::string& out, std::string_view mark, std::uint32_t c, unsigned digits) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += mark;
  for (unsigned i = digits; i-- > 0;) out += kHex[(c >> (4 * i)) & 15U];
}

void put_text(std::string& out, const std::string& s) {
  const bool single = s.find('\'') == std::string::npos || s.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  out += quote;
  for (std::size_t at = 0; at < s.size();) {
    const auto c = static_cast<std::uint32_t>(next_code_point(s, at));
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (!is_printable(c)) {
      if (c <= 0xFF)
        put_hex(out, "\\x", c, 2);
      else if (c <= 0xFFFF)
        put_hex(out, "\\u", c, 4);
      else
        put_hex(out, "\\U", c, 8);
    } else {
      append_utf8(out, c);
    }
  }
  out += quote;
}

void put(std::string& out, const Value& value) {
  if (const std::string* s = value.string()) return put_text(out, *s);
  if (const bool* b = value.boolean()) {
    out += *b ? "True" : "False";
  } else if (const Number* n = value.number()) {
    out += n->text == "NaN"         ? "nan"
           : n->text == "Infinity"  ? "inf"
           : n->text == "-Infinity" ? "-inf"
                                    : n->text;
  } else if (const Array* a = value.array()) {
    out += '[';
    for (std::size_t i = 0; i < a->size(); ++i) {
      if (i != 0) out += ", ";
      put(out, (*a)[i]);
    }
    out += ']';
  } else if (const Object* o = value.object()) {
    out += '{';
    for (const Member& m : *o) {
      if (&m != &o->members().front()) out += ", ";
      put_text(out, m.key);
      out += ": ";
      put(out, m.value);
    }
    out += '}';
  } else {
    out += "None";
  }
}

}  // namespace

std::string python_repr_of(const Value& value) {
  std::string out;
  put(out, value);
  return out;
}

}  // namespace proctor::cvdp
