#include "coordinator/aggregate/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace proctor::aggregate {
namespace {
std::string coordinates(const std::vector<Point>& points) {
  std::string out;
  for (const Point& p : points)
    out += fmt::format("{}{},{}", out.empty() ? "" : " ", tenths(p.x).escaped(),
                       tenths(p.y).escaped());
  return out;
}

constexpr double kRadius = 4.5;

// Corners of a star of five rays.
std::vector<Point> star(Point at) {
  std::vector<Point> out;
  constexpr double kPi = 3.14159265358979;
  for (int i = 0; i < 10; ++i) {
    const double radius = i % 2 == 0 ? kRadius + 1.5 : kRadius / 2;
    const double angle = kPi * (i / 5.0 - 0.5);
    out.push_back({at.x + radius * std::cos(angle), at.y + radius * std::sin(angle)});
  }
  return out;
}
}  // namespace

// In files the style follows the place, as it always did.
void Canvas::put(Literal tag, Literal style, Attributes where, const Markup* words,
                 Attributes more) {
  const Attributes styled{{"class", style}};
  body_ << (place_ == For::kPage ? element(tag, {styled, where, more}, words)
                                 : element(tag, {where, styled, more}, words))
        << line_end();
}

void Canvas::rect(Literal style, Point corner, double width, double height) {
  put("rect", style,
      {{"x", tenths(corner.x)},
       {"y", tenths(corner.y)},
       {"width", tenths(std::max(0.0, width))},
       {"height", tenths(std::max(0.0, height))}});
}

void Canvas::line(Literal style, Point from, Point to) {
  put("line", style,
      {{"x1", tenths(from.x)}, {"y1", tenths(from.y)}, {"x2", tenths(to.x)}, {"y2", tenths(to.y)}});
}

void Canvas::polyline(Literal style, const std::vector<Point>& points) {
  put("polyline", style, {{"points", points_of(coordinates(points))}});
}

void Canvas::polygon(Literal style, const std::vector<Point>& points) {
  put("polygon", style, {{"points", points_of(coordinates(points))}});
}

void Canvas::path(Literal style, const std::string& d) {
  put("path", style, {{"d", points_of(d)}});
}

void Canvas::words(Literal style, Point at, const Markup& words) {
  put("text", style, {{"x", tenths(at.x)}, {"y", tenths(at.y)}}, &words);
}

void Canvas::words_end(Literal style, Point at, const Markup& words) {
  put("text", style, {{"x", tenths(at.x)}, {"y", tenths(at.y)}}, &words, {{"text-anchor", "end"}});
}

void Canvas::words_mid(Literal style, Point at, const Markup& words) {
  put("text", style, {{"x", tenths(at.x)}, {"y", tenths(at.y)}}, &words,
      {{"text-anchor", "middle"}});
}

void Canvas::circle(Literal style, Point at, double radius) {
  put("circle", style, {{"cx", tenths(at.x)}, {"cy", tenths(at.y)}, {"r", tenths(radius)}});
}

void Canvas::whisker(Literal style, double low, double high, double y, double half) {
  line(style, {low, y}, {high, y});
  line(style, {low, y - half}, {low, y + half});
  line(style, {high, y - half}, {high, y + half});
}

void Canvas::marker(Literal style, std::size_t shape, Point at) {
  const double r = kRadius;
  const auto corners = [&](std::vector<Point> offsets) {
    for (Point& p : offsets) p = {at.x + p.x, at.y + p.y};
    polygon(style, offsets);
  };
  switch (shape % 6) {
    case 0:
      return circle(style, at, r);
    case 1:
      return corners({{-r, -r}, {r, -r}, {r, r}, {-r, r}});
    case 2:
      return corners({{0, -r - 1}, {r + 1, r}, {-r - 1, r}});
    case 3:
      return corners({{0, -r - 1.5}, {r + 1.5, 0}, {0, r + 1.5}, {-r - 1.5, 0}});
    case 4: {
      const double a = 1.6, b = r + 1;
      return corners({{-a, -b},
                      {a, -b},
                      {a, -a},
                      {b, -a},
                      {b, a},
                      {a, a},
                      {a, b},
                      {-a, b},
                      {-a, a},
                      {-b, a},
                      {-b, -a},
                      {-a, -a}});
    }
    default:
      return polygon(style, star(at));
  }
}

Markup Canvas::finish(std::uint64_t id, const Markup& title, const Markup& desc) const {
  Markup inside = element("title", {{"id", numbered("fig-", id, "-title")}}, title) +
                  element("desc", {{"id", numbered("fig-", id, "-desc")}}, desc) + line_end();
  inside << body_;
  return element("svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"viewBox", points_of(fmt::format("0 0 {} {}", width_, height_))},
                  {"width", width_},
                  {"height", height_},
                  {"role", "img"},
                  {"aria-labelledby", numbered("fig-", id, "-title")},
                  {"aria-describedby", numbered("fig-", id, "-desc")}},
                 inside);
}

std::string Canvas::file(const Markup& title, const Markup& sheet) const {
  Markup inside = line_end() + element("title", title) + line_end();
  inside << element("style",
                    "text{font:13px sans-serif;fill:#1b1f24}"
                    ".title{font-size:16px;font-weight:bold}" +
                        sheet)
         << line_end()
         << empty_element("rect", {{"width", "100%"}, {"height", "100%"}, {"fill", "#ffffff"}})
         << line_end() << body_;
  return element("svg",
                 {{"xmlns", "http://www.w3.org/2000/svg"},
                  {"width", width_},
                  {"height", height_},
                  {"viewBox", points_of(fmt::format("0 0 {} {}", width_, height_))},
                  {"role", "img"}},
                 inside)
             .bytes() +
         "\n";
}

double Scale::clamped(double value) const {
  return at(std::clamp(value, std::min(from_, to_), std::max(from_, to_)));
}

std::vector<double> round_ticks(double most, std::size_t count) {
  std::vector<double> out{0};
  if (!(0 < most) || count == 0) return out;
  double step = std::pow(10, std::floor(std::log10(most / static_cast<double>(count))));
  for (const double factor : {2.0, 2.5, 2.0}) {  // 1, 2, 5, 10 of a power of ten
    if (most <= step * static_cast<double>(count)) break;
    step *= factor;
  }
  while (out.back() < most) out.push_back(static_cast<double>(out.size()) * step);
  return out;
}
}  // namespace proctor::aggregate
