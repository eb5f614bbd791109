#pragma once
// Figures: shapes in, SVG out, for a page and for files of their own.  Colours are the sheet's, so
// that a dark page and a printed one restyle every figure; what a colour says is also said by a
// letter, a shape or a word.  Pure.
#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/aggregate/markup.h"

namespace proctor::aggregate {
// Every figure of a page is as wide; labels of rates have so many per cent.
inline constexpr int kFigureWidth = 960;
inline constexpr double kPercent = 100;

struct Point {
  double x = 0, y = 0;
};

class Canvas {
 public:
  enum class For : std::uint8_t { kPage, kFile };
  Canvas(int width, int height, For place = For::kPage)
      : width_(width), height_(height), place_(place) {}
  void rect(Literal style, Point corner, double width, double height);
  void line(Literal style, Point from, Point to);
  void polyline(Literal style, const std::vector<Point>& points);
  void polygon(Literal style, const std::vector<Point>& points);
  // SVG's words of a path: its `d`, as points_of() has it.
  void path(Literal style, const std::string& d);
  // Requires: `words` was made by text() or is ours.
  void words(Literal style, Point at, const Markup& words);      // begins there
  void words_end(Literal style, Point at, const Markup& words);  // ends there
  void words_mid(Literal style, Point at, const Markup& words);  // is centred there
  // Shapes tell methods apart: circle, square, triangle, diamond, cross, star, then again.
  void marker(Literal style, std::size_t shape, Point at);
  // A line from `low` to `high`, with an end of `half` pixels to both sides.
  void whisker(Literal style, double low, double high, double y, double half);
  void circle(Literal style, Point at, double radius);
  void add(const Canvas& above) { body_ << above.body_; }
  int width() const { return width_; }
  // `title` and `desc` are read to whoever does not see the figure.
  Markup finish(std::uint64_t id, const Markup& title, const Markup& desc) const;
  // The bytes of a file: SVG 1.1 on white, without a script or a font file.  `sheet` has the
  // colours; words are black, and those of the style "title" are large.
  std::string file(const Markup& title, const Markup& sheet) const;

 private:
  void put(Literal tag, Literal style, Attributes where, const Markup* words = nullptr,
           Attributes more = {});
  int width_, height_;
  For place_;
  Markup body_;
};

// Numbers onto pixels.
class Scale {
 public:
  Scale(double from, double to, double at_from, double at_to)
      : from_(from), to_(to), at_from_(at_from), at_to_(at_to) {}
  double at(double value) const {
    const double span = to_ - from_;
    return span == 0 ? at_from_ : at_from_ + (value - from_) / span * (at_to_ - at_from_);
  }
  // No further than the ends.
  double clamped(double value) const;
  double from() const { return from_; }
  double to() const { return to_; }

 private:
  double from_, to_, at_from_, at_to_;
};

// Round marks of an axis from 0 to at least `most`: at most `count` and one.
std::vector<double> round_ticks(double most, std::size_t count);
}  // namespace proctor::aggregate
