#pragma once
// The little of SVG that the pictures of this room and of coordinator/forms are made of.
#include <string>
#include <string_view>

namespace proctor::aggregate {

// Printable, cut, and safe inside an element or an attribute.
std::string escaped(std::string_view text, std::size_t bytes_max);
std::string svg_head(int width, int height);
// `content` is escaped already.
std::string text(int x, int y, std::string_view style, std::string_view content);
std::string line(int x1, int y1, int x2, int y2, std::string_view style);

}  // namespace proctor::aggregate
