#include "coordinator/aggregate/svg.h"

#include "common/base/text.h"

namespace proctor::aggregate {

std::string escaped(std::string_view text, std::size_t bytes_max) {
  std::string out;
  for (const char c : printable(text, bytes_max)) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string svg_head(int width, int height) {
  const std::string w = std::to_string(width), h = std::to_string(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
         "\" viewBox=\"0 0 " + w + " " + h + "\" role=\"img\">\n";
}

std::string text(int x, int y, std::string_view style, std::string_view content) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" class=\"" +
         std::string(style) + "\">" + std::string(content) + "</text>\n";
}

std::string line(int x1, int y1, int x2, int y2, std::string_view style) {
  return "<line x1=\"" + std::to_string(x1) + "\" y1=\"" + std::to_string(y1) + "\" x2=\"" +
         std::to_string(x2) + "\" y2=\"" + std::to_string(y2) + "\" class=\"" + std::string(style) +
         "\"/>\n";
}

}  // namespace proctor::aggregate
