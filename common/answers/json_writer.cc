#include "common/answers/json.h"

#include <array>

#include "common/answers/text.h"

namespace proctor::answers {
namespace {

constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> out{};
  for (std::size_t c = 0x20; c < 0x7F; ++c) out[c] = true;
  out['"'] = out['\\'] = false;
  return out;
}();

// The letter that stands for a character behind a backslash; 0: none.
constexpr std::array<char, 256> kLetter = [] {
  std::array<char, 256> out{};
  constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
  constexpr std::string_view kTo = "\"\\nrtfb";
  for (std::size_t i = 0; i < kFrom.size(); ++i) out[static_cast<unsigned char>(kFrom[i])] = kTo[i];
  return out;
}();

void write_unit(std::string& out, unsigned unit) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\u";
  for (const unsigned shift : {12U, 8U, 4U, 0U}) out += kHex[(unit >> shift) & 15U];
}

void write_escape(std::string& out, std::string_view text, std::size_t& at) {
  if (const char letter = kLetter[static_cast<unsigned char>(text[at])]; letter != 0) {
    const std::array<char, 2> both = {'\\', letter};
    out.append(both.data(), both.size());
    ++at;
    return;
  }
  const auto c = static_cast<std::uint32_t>(next_code_point(text, at));
  if (c < 0x10000) return write_unit(out, c);
  write_unit(out, 0xD800U + ((c - 0x10000U) >> 10U));
  write_unit(out, 0xDC00U + ((c - 0x10000U) & 0x3FFU));
}

class Writer {
 public:
  Writer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void value(const Value& v, int depth) {
    if (const std::string* s = v.string()) return write_json_string(out_, *s);
    if (const Object* o = v.object()) return object(*o, depth);
    if (const Array* a = v.array()) return list(*a, depth);
    if (const Number* n = v.number()) {
      out_ += n->text;
    } else if (const bool* b = v.boolean()) {
      out_ += *b ? "true" : "false";
    } else {
      out_ += "null";
    }
  }

 private:
  void object(const Object& o, int depth) {
    if (o.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    bool first = true;
    for (const Member& m : o) {
      separate(first, depth + 1);
      write_json_string(out_, m.key);
      out_ += ": ";
      value(m.value, depth + 1);
    }
    close('}', depth);
  }
  void list(const Array& a, int depth) {
    if (a.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    bool first = true;
    for (const Value& v : a) {
      separate(first, depth + 1);
      value(v, depth + 1);
    }
    close(']', depth);
  }
  void separate(bool& first, int depth) {
    if (!first) out_ += indent_ < 0 ? ", " : ",";
    first = false;
    line(depth);
  }
  void close(char bracket, int depth) {
    line(depth);
    out_ += bracket;
  }
  void line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(indent_ * depth), ' ');
  }
  std::string& out_;
  int indent_;
};

}  // namespace

void write_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t from = at;
    at += plain_run<RunFor::kWriter>(text, at);
    while (at < text.size() && kPlain[static_cast<unsigned char>(text[at])]) ++at;
    out.append(text, from, at - from);
    if (at < text.size()) write_escape(out, text, at);
  }
  out += '"';
}

void write_json(std::string& out, const Value& value, int indent) {
  Writer(out, indent).value(value, 0);
}

std::string write_json(const Value& value, int indent) {
  std::string out;
  write_json(out, value, indent);
  return out;
}

}  // namespace proctor::answers
