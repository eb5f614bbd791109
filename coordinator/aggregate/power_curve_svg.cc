// The smallest difference that each budget shows, best spent: money to the right, difference
// upward, the numbers of tasks and runs at each point, the difference that matters as a dashed
// line.  Plain SVG 1.1, no script, readable without colour.
#include <fmt/format.h>

#include <algorithm>

#include "common/base/money.h"
#include "common/base/result.h"
#include "coordinator/aggregate/power_study.h"
#include "coordinator/aggregate/svg.h"

namespace proctor {
namespace {

using namespace aggregate;

constexpr int kLeft = 90, kTop = 70, kWide = 560, kHigh = 300;
constexpr int kWidth = kLeft + kWide + 90, kHeight = kTop + kHigh + 60;

class Plot {
 public:
  explicit Plot(const PowerStudy& study) : study_(study) {
    most_ = study.input.effect;
    for (const BudgetPoint& p : study.curve) {
      dear_ = std::max(dear_, static_cast<double>(p.budget));
      most_ = std::max(most_, p.difference);
    }
    most_ *= 1.1;
  }

  std::string axes() const {
    std::string out;
    constexpr int kSteps = 5;
    for (int i = 0; i <= kSteps; ++i) {
      const double level = most_ * i / kSteps;
      out += line(kLeft, y(level), kLeft + kWide, y(level), "grid");
      out += text(kLeft - 50, y(level) + 4, "quiet", fmt::format("{:.3f}", level));
    }
    out += line(kLeft, kTop + kHigh, kLeft + kWide, kTop + kHigh, "axis");
    out += line(kLeft, kTop, kLeft, kTop + kHigh, "axis");
    out += line(kLeft, y(study_.input.effect), kLeft + kWide, y(study_.input.effect), "matters");
    out += text(kLeft + kWide + 6, y(study_.input.effect) + 4, "number", "what matters");
    return out;
  }

  std::string curve() const {
    std::vector<BudgetPoint> points = study_.curve;
    std::ranges::sort(points, {}, &BudgetPoint::budget);
    std::string path, marks;
    for (const BudgetPoint& p : points) {
      const int at_x = x(static_cast<double>(p.budget)), at_y = y(p.difference);
      path += fmt::format("{}{} {}", path.empty() ? "M" : " L", at_x, at_y);
      marks += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" class=\"mark\"/>\n", at_x, at_y);
      marks += text(at_x - 20, at_y - 10, "number", fmt::format("{} x {}", p.tasks, p.runs));
      marks +=
          text(at_x - 16, kTop + kHigh + 18, "quiet", format_usd(MicroUsd::from_micros(p.budget)));
    }
    return "<path d=\"" + path + "\" class=\"curve\"/>\n" + marks;
  }

 private:
  int x(double budget) const { return kLeft + static_cast<int>(budget / dear_ * (kWide - 30)); }
  int y(double difference) const {
    return kTop + kHigh - static_cast<int>(difference / most_ * kHigh);
  }

  const PowerStudy& study_;
  double dear_ = 1, most_ = 0;
};

}  // namespace

std::string render_power_curve_svg(const PowerStudy& s) {
  PROCTOR_ASSERT(!s.curve.empty());
  const Design worst = assumed_worst(s);
  const Plot plot(s);
  std::string out = svg_head(kWidth, kHeight);
  out += "<title>Smallest difference that a budget shows</title>\n";
  out +=
      "<style>text{font:13px sans-serif;fill:#1b1f24}.title{font-size:16px;font-weight:bold}"
      ".quiet{fill:#57606a;font-size:12px}.number{font-size:12px}.grid{stroke:#d0d7de}"
      ".axis{stroke:#57606a}.curve{stroke:#2f5d8c;stroke-width:2;fill:none}.mark{fill:#2f5d8c}"
      ".matters{stroke:#1b1f24;stroke-width:1.5;stroke-dasharray:6 3}</style>\n";
  out += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  out += text(16, 26, "title", "Smallest difference that a budget shows, best spent");
  out += text(16, 46, "quiet",
              fmt::format("projection, not a result; power {}, rate {}, rho {}, r {}; numbers are "
                          "tasks x runs of each method",
                          twelve_digits(s.input.power), twelve_digits(worst.p_b),
                          twelve_digits(worst.icc), twelve_digits(worst.correlation)));
  out += plot.axes();
  out += plot.curve();
  return out + "</svg>\n";
}

}  // namespace proctor
