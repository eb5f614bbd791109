#include "coordinator/page/page.h"

#include <array>

#include "coordinator/aggregate/format.h"
#include "coordinator/page/sections.h"
#include "coordinator/page/style.h"

namespace proctor {
namespace {

using namespace page;

struct Section {
  Literal heading;
  Markup (*make)(Context&);
};
constexpr std::array<Section, 15> kSections{{
    {"What was asked", asked},
    {"What happened to the runs", runs_flow},
    {"Primary endpoint", endpoint},
    {"Comparisons", comparisons},
    {"Errors, invalid runs, bounds", unknowns},
    {"By stratum", strata},
    {"Stability", stability},
    {"Money", money_section},
    {"Time", time_section},
    {"Gates and constraints", gates},
    {"Are the graders right?", graders},
    {"Caps and rules", rules},
    {"Reproducibility", reproducibility},
    {"Limits", limits_section},
    {"Appendices", appendix},
}};

Markup head_of(const Markup& title) {
  const Markup policy =
      empty_element("meta", {{"http-equiv", "Content-Security-Policy"},
                             {"content", attribute_text("default-src 'none'; style-src '" +
                                                        sheet_digest() + "'; img-src data:")}});
  return element("head",
                 line_end() + empty_element("meta", {{"charset", "utf-8"}}) + line_end() + policy +
                     line_end() +
                     empty_element("meta", {{"name", "viewport"},
                                            {"content", "width=device-width, initial-scale=1"}}) +
                     line_end() +
                     empty_element("meta", {{"name", "color-scheme"}, {"content", "light dark"}}) +
                     line_end() + element("title", title) + line_end() + style_sheet(kSheet));
}

Markup headline(Context& c) {
  const ReportRow& t = c.report.total;
  Markup line = number(t.ended()) + Markup(" of ") + number(t.planned) + Markup(" runs ended");
  if (0 < t.parked) line << Markup(", ") << number(t.parked) << Markup(" parked");
  if (0 < t.open) line << Markup(", ") << number(t.open) << Markup(" open");
  if (0 < t.cancelled) line << Markup(", ") << number(t.cancelled) << Markup(" cancelled");
  if (0 < t.removed) line << Markup(", ") << number(t.removed) << Markup(" removed");
  line << Markup("; ") << number(c.cells.tasks.size()) << Markup(" tasks, ")
       << number(c.methods.size()) << Markup(" methods; spent ") << money_of(t.cost.total())
       << Markup(" ") << text(c.report.unit) << Markup(". ")
       << (c.is_interim() ? Markup("Interim, of") : Markup("Of")) << Markup(" journal head ")
       << (c.report.journal_head.empty()
               ? Markup("none")
               : element("code", text(c.report.journal_head.substr(0, 12))));
  return element("h1", text(c.report.campaign)) + line_end() +
         element("p", {{"class", "quiet"}}, line + Markup(".")) + line_end();
}

Markup contents() {
  Markup items;
  for (std::size_t i = 0; i < kSections.size(); ++i)
    items << element("li",
                     element("a", {{"href", numbered("#section-", i + 1)}}, kSections[i].heading))
          << line_end();
  return element("nav", {{"aria-label", "Sections"}}, element("ol", line_end() + items)) +
         line_end();
}

}  // namespace

std::string page::document(const Markup& title, const Markup& body) {
  const Markup html = element(
      "html", {{"xmlns", "http://www.w3.org/1999/xhtml"}, {"lang", "en"}},
      line_end() + head_of(title) + line_end() + element("body", line_end() + body) + line_end());
  return "<!DOCTYPE html>\n" + html.bytes() + "\n";
}

std::string render_html(const PageInput& input) {
  Context c(input);
  Markup main = answer(c);
  main << contents();
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    const Markup heading = element("h2", {{"id", numbered("section-", i + 1)}},
                                   number(i + 1) + Markup(". ") + kSections[i].heading);
    main << element("section", {{"aria-labelledby", numbered("section-", i + 1)}},
                    line_end() + heading + line_end() + kSections[i].make(c))
         << line_end();
  }
  const Markup body =
      element("a", {{"class", "skip"}, {"href", "#main"}}, "To the answer") + line_end() +
      element("header", headline(c)) + line_end() +
      element("main", {{"id", "main"}}, line_end() + main) + line_end() +
      element("footer", element("p",
                                "Made by proctor report from the campaign's journal alone. "
                                "This file runs nothing and asks nothing of any network."));
  return page::document(Markup("Report of ") + text(c.report.campaign), body);
}

}  // namespace proctor
