// The page as a whole: well-formed, in the order of its sections, inert, of a bounded size, with
// every number found again.
#include "coordinator/page/page.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "common/base/json.h"
#include "common/contract/campaign.h"
#include "coordinator/aggregate/details.h"
#include "coordinator/aggregate/rubric.h"
#include "coordinator/aggregate/run_filter.h"
#include "tests/unit/aggregate/report_fixtures.h"

using namespace proctor;
using namespace proctor::testing;

namespace {

PageFacts facts() {
  PageFacts out;
  out.methods = {{"alpha", "command"}, {"beta", "noop"}};
  out.asked = {{"tasks", "2"}};
  out.caps = {{"envelope global", "5.00 USD"}};
  out.origins = {{"plan", "12ab"}};
  return out;
}

std::string page_of(ReportInput input, const PageFacts& of = facts(),
                    const MoneyInput* money = nullptr) {
  const CampaignReport report = detailed(std::move(input));
  return render_html({.report = report, .facts = of, .money = money});
}

std::size_t times(const std::string& page, const std::string& words) {
  std::size_t out = 0;
  for (std::size_t at = page.find(words); at != std::string::npos; at = page.find(words, at + 1))
    ++out;
  return out;
}

// Every element closed, every '&' one of the references that XML knows.
void check_well_formed(const std::string& page) {
  pugi::xml_document doc;
  const pugi::xml_parse_result parsed =
      doc.load_buffer(page.data(), page.size(), pugi::parse_full | pugi::parse_ws_pcdata);
  CHECK_MESSAGE(parsed, parsed.description()
                            << " at " << page.substr(static_cast<std::size_t>(parsed.offset), 80));
  for (std::size_t at = page.find('&'); at != std::string::npos; at = page.find('&', at + 1)) {
    const std::string_view rest = std::string_view(page).substr(at);
    const bool known = std::ranges::any_of(
        std::initializer_list<std::string_view>{"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"},
        [&](std::string_view r) { return rest.starts_with(r); });
    CHECK_MESSAGE(known, std::string(rest.substr(0, 30)));
  }
}

template <class Visit>
void each_node(const pugi::xml_node& node, const Visit& visit) {
  visit(node);
  for (const pugi::xml_node& child : node.children()) each_node(child, visit);
}

pugi::xml_document parsed(const std::string& page) {
  pugi::xml_document doc;
  REQUIRE(doc.load_buffer(page.data(), page.size()));
  return doc;
}

void collect_numbers(const Json& json, std::vector<double>& out) {
  if (json.is_number()) out.push_back(json.get<double>());
  if (json.is_structured())
    for (const Json& inner : json) collect_numbers(inner, out);
}

// Tasks that differ, so that every estimate has a variance.
ReportInput varied(std::size_t tasks, std::size_t runs_each) {
  Runs runs;
  for (std::size_t t = 0; t < tasks; ++t)
    for (const char* method : {"alpha", "beta", "gamma"})
      for (std::size_t r = 0; r < runs_each; ++r) {
        const std::size_t dice = (t * 7 + r * 3 + method[0] * 5 + t * r) % 11;
        RunRecord& run = runs.ended("task-" + std::to_string(t), t % 3 == 0 ? "go" : "rust", method,
                                    dice < 5    ? RunOutcome::kSuccess
                                    : dice < 9  ? RunOutcome::kFailure
                                    : dice < 10 ? RunOutcome::kAcceptanceError
                                                : RunOutcome::kInvalid,
                                    500 + dice * 1'000);
        run.cost.model = usd_micros(static_cast<std::int64_t>(dice * 40'000));
        run.worker = "w" + std::to_string(t % 2);
        run.started_ms = 1'790'000'000'000 + static_cast<std::int64_t>(t * 9'000 + r * 700);
        if (dice == 0) {
          run.violations = 2;
          run.violated = "protected: tests/a.py";
        }
      }
  ReportInput input{"varied-1", "USD", {"language"}, std::move(runs.records), 0.05};
  input.contrasts = {{"alpha", "beta"}, {"gamma", "beta"}};
  return input;
}

// Two methods that solve their task by acts that are critical, and one whose runs end in each way;
// the monitors of one run are not known.
ReportInput critical() {
  using enum GateOutcome;
  Runs runs;
  const auto add = [&](const char* method, GateOutcome safety) -> RunRecord& {
    RunRecord& run = runs.ended("lib", "go", method, RunOutcome::kSuccess);
    run.gates = {kPass, kPass, kPass, safety};
    run.configuration = "seen";
    return run;
  };
  RunRecord& shell = add("shell", kFail);
  shell.violations = 1;
  shell.violated = "command: shutdown\\s";
  shell.tags = "safety.os_risk";
  RunRecord& mount = add("mount", kFail);
  mount.violations = 1;
  mount.violated = "call: mount";
  mount.tags = "safety.sandbox_escape,end.security_boundary";
  mount.termination = Termination::kPolicyStop;
  mount.configuration = "unseen";
  add("calm", kPass);
  add("calm", kFail);
  add("calm", kError).configuration = "unread";
  ReportInput input{"critical-1", "USD", {"language"}, std::move(runs.records), 0.05};
  input.configurations = {{"seen", {{"monitors.calls", "seccomp"}, {"sandbox", "bubblewrap"}}},
                          {"unseen", {{"monitors.calls", "unobserved"}}}};
  return input;
}

// Its contracts have a wall limit below the campaign's, and none.
Campaign judged_campaign() {
  Campaign out;
  out.safety = {true, 2};
  out.stages.emplace_back();
  out.contracts.resize(2);
  out.contracts[0].policy.wall = std::chrono::seconds(6);
  out.contracts[0].rubric = Rubric{.lines = 80, .files = 4, .maint = {}};
  out.contracts[1].policy.wall = std::chrono::hours(2);
  return out;
}
}  // namespace

TEST_SUITE("page") {
  TEST_CASE("a page is well-formed, runs nothing and has its sections in order") {
    const std::string page = page_of(varied(12, 4));
    check_well_formed(page);
    CHECK(page.find("<script") == std::string::npos);
    CHECK(page.find(" style=") == std::string::npos);
    CHECK(page.find("http-equiv=\"Content-Security-Policy\"") != std::string::npos);
    // The one address is the name of SVG's language, which nobody asks for.
    CHECK(page.find("https://") == std::string::npos);

    const pugi::xml_document doc = parsed(page);
    std::vector<std::string> headings;
    std::set<std::string> ids;
    std::vector<std::string> links, labels;
    int level = 0, figures = 0;
    each_node(doc, [&](const pugi::xml_node& node) {
      const std::string name = node.name();
      if (name.size() == 2 && name[0] == 'h' && '1' <= name[1] && name[1] <= '6') {
        CHECK_MESSAGE(name[1] - '0' <= level + 1, node.text().as_string());
        level = name[1] - '0';
        if (name == "h2") headings.emplace_back(node.text().as_string());
      }
      if (const pugi::xml_attribute id = node.attribute("id"))
        CHECK_MESSAGE(ids.insert(id.value()).second, id.value());
      if (const pugi::xml_attribute href = node.attribute("href")) links.emplace_back(href.value());
      if (const pugi::xml_attribute by = node.attribute("aria-labelledby"))
        labels.emplace_back(by.value());
      if (name == "svg") {
        ++figures;
        CHECK(std::string(node.child("title").text().as_string()) != "");
        CHECK(std::string(node.child("desc").text().as_string()) != "");
      }
      if (name == "table") CHECK(std::string(node.child("caption").text().as_string()) != "");
    });
    CHECK(headings.size() == 15);
    CHECK(headings.front() == "1. What was asked");
    CHECK(headings[2] == "3. Primary endpoint");
    CHECK(headings.back() == "15. Appendices");
    CHECK(8 <= figures);
    for (const std::string& link : links) {
      CAPTURE(link);
      CHECK(link.starts_with("#"));
      CHECK(ids.contains(link.substr(1)));
    }
    for (const std::string& label : labels) CHECK_MESSAGE(ids.contains(label), label);
  }

  TEST_CASE("every number for programs on the page stands in report.json") {
    for (const std::size_t tasks : {std::size_t{1}, std::size_t{9}}) {
      ReportInput input = varied(tasks, 4);
      input.plan.weights_key = "language";
      input.plan.weights = {{"go", {250'000}}, {"rust", {750'000}}};
      input.plan_registered = true;
      const CampaignReport report = detailed(std::move(input));
      const PageFacts of = facts();
      const std::string page = render_html({.report = report, .facts = of});
      CHECK(page.find("Weighted as registered, by language: go 0.25, rust 0.75") !=
            std::string::npos);
      CHECK((page.find("no estimate: no task of rust") != std::string::npos) == (tasks == 1));
      std::vector<double> known;
      collect_numbers(parse_json(render_json(report)).value(), known);
      std::ranges::sort(known);
      const pugi::xml_document doc = parsed(page);
      std::size_t seen = 0;
      each_node(doc, [&](const pugi::xml_node& node) {
        if (std::string(node.name()) != "data") return;
        ++seen;
        const double value = node.attribute("value").as_double();
        const auto it = std::ranges::lower_bound(known, value - std::abs(value) * 1e-11);
        const bool found = it != known.end() && *it <= value + std::abs(value) * 1e-11;
        CHECK_MESSAGE(found, node.attribute("value").value()
                                 << " in " << node.parent().parent().text().as_string());
      });
      CHECK(30 < seen);
    }
  }

  TEST_CASE("controls are on no axis of a figure and small in tables, and agents are not") {
    ReportInput input = varied(12, 4);
    input.plan.pass_k = {1, 2};
    const auto told = [&](ReportInput of) {
      const std::string page = page_of(std::move(of));
      std::map<std::string, int> out;  // what is in figures, and what is small in tables
      each_node(parsed(page), [&](const pugi::xml_node& node) {
        const std::string words = node.text().as_string(), name = node.name();
        if (name == "text") ++out["figure " + words];
        if (name == "small") ++out["small " + words];
      });
      return out;
    };
    auto as_agents = told(input), as_controls = told(with_controls(input, "beta", "gamma"));
    CHECK(as_agents["figure gamma \xE2\x88\x92 beta"] == 1);
    CHECK(as_controls["figure gamma \xE2\x88\x92 beta"] == 0);
    CHECK(as_agents["figure gamma, at least one"] == 1);
    CHECK(as_controls["figure gamma, at least one"] == 0);
    CHECK(as_agents["small gamma less beta"] == 0);
    CHECK(as_controls["small gamma less beta"] == 3);  // asked, compared, what that rests on
    CHECK(as_controls["small alpha less beta"] == 0);
    CHECK(as_agents["small gamma"] == 0);
    CHECK(8 < as_controls["small gamma"]);
    CHECK(as_controls["small alpha"] == 0);
  }

  TEST_CASE("every set is listed again by its filter, with its digest") {
    for (ReportInput input : {varied(9, 3), small_campaign()}) {
      input.runs.front().method = "two words \"or\" more";
      const CampaignReport report = detailed(std::move(input));
      const FilterNames names{report.strata_keys, report.runs};
      CHECK(10 < report.details->sets.sets.size());
      for (const RunSet& set : report.details->sets.sets) {
        CAPTURE(set.where);
        const Result<RunFilter> filter = RunFilter::parse(set.where, names);
        REQUIRE_MESSAGE(filter.ok(), filter.error().detail);
        std::string lines;
        std::uint64_t count = 0;
        for (const RunRecord& run : report.runs) {
          if (!filter->matches(run)) continue;
          ++count;
          append_set_line(lines, run);
        }
        CHECK(count == set.runs);
        CHECK(sha256(lines) == set.digest);
      }
    }
  }

  TEST_CASE("names full of markup, controls and marks of direction stay inert everywhere") {
    const std::string evil =
        "\"'></title><script>x()</script>\xE2\x80\xAE\x01" + std::string(10'000, '&');
    ReportInput input = varied(5, 2);
    input.campaign = evil;
    input.strata_keys = {evil};
    input.deviations = {evil};
    input.approvals = {evil};
    input.alerts = {evil};
    input.unit = evil;
    for (std::size_t i = 0; i < input.runs.size(); ++i) {
      RunRecord& run = input.runs[i];
      run.name = evil + std::to_string(i);
      run.task = evil + run.task;
      run.method = evil + run.method;
      run.strata = {evil + run.strata[0]};
      run.worker = evil;
      run.violated = evil;
      run.set_aside.push_back({1, Termination::kInfrastructure, evil, {}, evil, evil});
    }
    input.contrasts = {{evil + "alpha", evil + "beta"}};
    PageFacts of;
    of.methods = {{evil + "alpha", evil}};
    of.asked = {{evil, evil}};
    of.removals = {{evil, evil}};
    of.provisional = evil;
    const std::string page = page_of(std::move(input), of);
    check_well_formed(page);
    CHECK(page.find("<script") == std::string::npos);
    CHECK(page.find("\xE2\x80\xAE") == std::string::npos);
    CHECK(page.find('\x01') == std::string::npos);
    const pugi::xml_document doc = parsed(page);
    each_node(doc, [&](const pugi::xml_node& node) {
      for (const pugi::xml_attribute& a : node.attributes())
        CHECK(std::string_view(a.name()).substr(0, 2) != "on");
    });
  }

  TEST_CASE("campaigns with little to tell have a page that says what there is not") {
    struct Row {
      const char* what;
      ReportInput input;
      const char* says;
    };
    Runs one_task, one_method, invalid, parked, free;
    for (int r = 0; r < 3; ++r) {
      one_task.ended("lib", "go", "alpha", RunOutcome::kSuccess);
      one_task.ended("lib", "go", "beta", RunOutcome::kFailure);
      one_method.ended("t" + std::to_string(r), "go", "alpha",
                       r == 0 ? RunOutcome::kSuccess : RunOutcome::kFailure);
      invalid.ended("t" + std::to_string(r), "go", "alpha", RunOutcome::kInvalid);
      RunRecord& waits = parked.add("t" + std::to_string(r), "go", "alpha");
      waits.state = RunRecord::State::kParked;
      waits.parked_scope = "global";
      free.ended("t" + std::to_string(r), "go", "alpha", RunOutcome::kSuccess).cost = {};
    }
    const auto input = [](Runs& runs) {
      ReportInput out{"c-1", "USD", {"language"}, std::move(runs.records), 0.05};
      out.contrasts = {{"alpha", "beta"}};
      return out;
    };
    std::vector<Row> rows;
    rows.push_back({"empty", ReportInput{"empty", "USD", {}, {}, 0.05}, "has no runs"});
    rows.push_back({"one task", input(one_task), "one task"});
    rows.push_back({"one method", input(one_method), "nothing to compare it with"});
    rows.push_back({"all invalid", input(invalid), "none of its 3 runs is scorable"});
    rows.push_back({"all parked", input(parked), "runs are parked"});
    rows.push_back({"no money", input(free), "0.00"});
    rows.push_back({"some open", small_campaign(), "Interim"});
    for (Row& row : rows) {
      CAPTURE(row.what);
      const std::string page = page_of(std::move(row.input));
      check_well_formed(page);
      CHECK(page.find(row.says) != std::string::npos);
      CHECK(page.find("15. Appendices") != std::string::npos);
      for (const char* never : {">nan<", ">inf<", ">-nan<", ">-inf<", "\"nan\"", "\"inf\"", "[nan"})
        CHECK(page.find(never) == std::string::npos);
    }
  }

  TEST_CASE("a table without a row that says something is left out of sections 7 to 9") {
    const auto tables_of = [](const std::string& page) {
      std::array<int, 3> out{};
      each_node(parsed(page), [&](const pugi::xml_node& node) {
        const std::string section = node.attribute("aria-labelledby").as_string();
        if (std::string_view(node.name()) != "section") return;
        for (std::size_t i = 0; i < out.size(); ++i)
          if (section == "section-" + std::to_string(7 + i))
            each_node(node, [&](const pugi::xml_node& inner) {
              out[i] += std::string_view(inner.name()) == "table" ? 1 : 0;
            });
      });
      return out;
    };
    Runs runs;
    for (const char* method : {"alpha", "beta"}) {
      RunRecord& run = runs.ended("lib", "go", method, RunOutcome::kSuccess);
      run.started_ms = 1'790'000'000'000;
      run.agent_ms = 2'000;
    }
    ReportInput input{"once", "USD", {"language"}, std::move(runs.records), 0.05};
    CHECK(tables_of(page_of(input)) == std::array{0, 2, 1});
    input.runs[0].agent_ms = 3'001;
    CHECK(tables_of(page_of(input)) == std::array{0, 2, 2});
    for (RunRecord& run : input.runs) run.cost = {};
    CHECK(tables_of(page_of(input)) == std::array{0, 0, 2});
    input.alerts = {"an envelope is full"};
    CHECK(tables_of(page_of(input)) == std::array{0, 2, 2});
    // Tries, likeness, noise, drift and workers.
    CHECK(tables_of(page_of(varied(12, 4)))[0] == 5);
  }

  TEST_CASE("a page has a bounded size, and names what it left out") {
    const std::string large = page_of(varied(3'000, 4));
    check_well_formed(large);
    CHECK(large.size() < (std::size_t{5} << 20U));
    CHECK(large.find("more tasks: runs.csv has all") != std::string::npos);
    CHECK(large.find("36000</a>") == std::string::npos);
    const std::string small = page_of(varied(8, 6));
    CHECK(small.size() < (std::size_t{400} << 10U));
  }

  TEST_CASE("a reviewer of safety reads gates, failure modes and the score in one section") {
    using enum GateOutcome;
    ReportInput input = varied(6, 4);
    for (RunRecord& run : input.runs) {
      const bool broke = run.violations != 0;
      run.gates = {kPass, kPass, run.outcome == RunOutcome::kSuccess ? kPass : kFail,
                   broke ? kFail : kPass};
      if (broke) run.tags = "policy.protected_path,house.<slow>";
      if (run.outcome == RunOutcome::kSuccess && !broke) run.score = 0.5 + 0.01 * run.run.raw();
    }
    input.failure_modes = {{.id = "house.<slow>",
                            .check = "speed",
                            .severity = Severity::kCritical,
                            .sentence = "It is <slower> than the house allows."}};
    const CampaignReport report = detailed(std::move(input));
    const PageFacts of = facts();
    const std::string page = render_html({.report = report, .facts = of});
    check_well_formed(page);
    std::size_t at = page.find("10. Gates, score and failure modes");
    REQUIRE(at != std::string::npos);
    // In this order: the meaning of each gate, the counts, the modes with the gravest first, each
    // with a run of it.
    const std::string_view tag = "policy.protected_path";
    const auto mode = std::ranges::find(report.details->rubric.tags, tag, &TagRow::tag);
    const auto of_it = std::ranges::find(report.runs, mode->first, &RunRecord::name);
    REQUIRE(of_it != report.runs.end());
    CHECK(std::ranges::count(of_it->tag_list(), tag) == 1);
    const std::string explain = "proctor explain CAMPAIGN " + mode->first;
    for (const char* next :
         {"G1 patch", "G4 safety</strong>: no rule was broken", ">mean score<",
          "house.&lt;slow&gt;", "<strong>critical</strong>", "It is &lt;slower&gt; than",
          "policy.protected_path", explain.c_str(), "gate.g4=fail", "Constraints and patches"}) {
      CAPTURE(next);
      at = page.find(next, at);
      REQUIRE(at != std::string::npos);
    }
    std::vector<double> known;
    collect_numbers(parse_json(render_json(report)).value(), known);
    std::ranges::sort(known);
    for (const GateRow& row : report.details->rubric.gates)
      if (row.score.value) CHECK(std::ranges::binary_search(known, *row.score.value));
  }

  TEST_CASE("a page of patches that were judged again has both outcomes, and others have one") {
    ReportInput input = varied(3, 2);
    const std::string plain = page_of(input);
    CHECK(plain.find("No result was scored again") != std::string::npos);
    CHECK(plain.find("old outcome") == std::string::npos);
    for (RunRecord& run : input.runs) run.old_outcome = RunOutcome::kAcceptanceError;
    const std::string page = page_of(input);
    check_well_formed(page);
    CHECK(page.find("No result was scored again") == std::string::npos);
    CHECK(page.find("Their outcomes in that campaign and in this one") != std::string::npos);
    CHECK(page.find(">old outcome<") != std::string::npos);
    CHECK(page.find(">acceptance_error<") != std::string::npos);
    CHECK(page.find("<li>alpha: acceptance_error -&gt; ") != std::string::npos);
  }

  TEST_CASE("a run that broke a constraint is a success that is not satisfied, and is named") {
    const std::string page = page_of(varied(6, 4));
    CHECK(page.find("protected: tests/a.py") != std::string::npos);
    CHECK(page.find("success, not satisfied") != std::string::npos);
    CHECK(page.find("did not pass a gate beside their checks (section 10)") != std::string::npos);
  }

  TEST_CASE(
      "a reviewer who has the page alone reads what was seen, what was refused, and of whom") {
    const CampaignReport report = detailed(critical());
    const Campaign campaign = judged_campaign();
    PageFacts of = facts();
    of.folder = "the seeded one";
    of.judged = judging_facts(campaign);
    of.caps = cap_facts(campaign);
    const std::string segment = "env true <shutdown> -h now";
    using enum PageFacts::Seen::Kind;
    of.seen = {{"lib/shell/r1", "command: shutdown\\s", "executed", segment, kCritical},
               {"lib/shell/r1", "command: shutdown\\s", "text", "never shutdown it", kWords}};
    const std::string page = render_html({.report = report, .facts = of});
    check_well_formed(page);
    const auto shows = [&](const std::string& words) {
      CAPTURE(words);
      CHECK(page.find(words) != std::string::npos);
    };
    for (const auto& [name, parts] : report.configurations) {
      const auto runs = std::ranges::count(report.runs, name, &RunRecord::configuration);
      shows("Monitors of " + std::to_string(runs) + " of " + std::to_string(report.runs.size()) +
            " judged runs: calls: " + parts.at("monitors.calls"));
    }
    shows("Monitors of 1 of 5 judged runs: not known.");
    // Answers are of the violation, and words alone decide nothing.
    for (const PageFacts::Seen& seen : of.seen) {
      shows("<td>" + seen.form + "</td>");
      shows(std::string(violation_answer(seen.violation, seen.form)) + "</td>");
    }
    shows("<code>env true &lt;shutdown&gt; -h now</code>");
    // A run whose evidence is not at hand, which a monitor ended.
    shows(report.runs[1].unmet() + "</td>");
    shows("refused (EPERM)</td>");
    for (const RunRecord& run : report.runs)
      if (run.violations != 0) shows("proctor explain &#39;the seeded one&#39; " + run.name);
    // Rates of two methods count a success with a critical violation, and say so at each place.
    const std::string warning = critical_warning(report.details->rubric);
    for (const char* method : {"mount 1", "shell 1"})
      CHECK(warning.find(method) != std::string::npos);
    CHECK(warning.find("calm") == std::string::npos);
    std::size_t warnings = 0;
    for (std::size_t at = page.find(warning); at != std::string::npos;
         at = page.find(warning, at + 1))
      ++warnings;
    CHECK(warnings == 9);  // the head, and sections 3 to 9, 15
    shows("minimal 0.50, trace 0.30, maint 0.20");
    shows("lambda 1.00, envelope 80 lines, 4 files");
    CHECK(page.find("exp(-lambda d)") == std::string::npos);  // no run is scored
    shows("in 2 tasks stops the campaign");
    shows("ends its run");
    const auto wall = [&](std::size_t task) {
      const CapRules rules = campaign.cap_rules();
      const Caps caps = effective_caps(rules, "", campaign.contracts[task]).caps;
      return format_cap(Cap::kWall, cap_value(caps, Cap::kWall));
    };
    CHECK(wall(0) != wall(1));
    shows(wall(0) + " to " + wall(1) + ", by task");
    shows("1, 1 fail, 1 error</td>");
  }

  TEST_CASE("violations that no alert shows are counted, and words hide none") {
    using enum PageFacts::Seen::Kind;
    ReportInput input = critical();
    RunRecord& run = input.runs[0];
    run.termination = Termination::kPolicyStop;
    const std::string name = run.name;
    struct Row {
      std::uint64_t violations;
      std::string violated;
      std::vector<PageFacts::Seen> seen;
      bool counted;  // a row says how many there are
    };
    const std::string cut(200, 'x');
    const PageFacts::Seen words{name, "command: rm", "text", "rm", kWords};
    const PageFacts::Seen denied{name, "network: x:44", "", "", kOther};
    const std::string text = "it, and the run ended";
    for (const Row& row : std::vector<Row>{
             {1, "command: rm", {words}, true},
             {1, "network: x:44", {denied, words}, false},
             {1, "network: x:443", {denied}, true},
             {2, "network: x:44", {denied}, true},
             {1, "network: " + cut.substr(9), {{name, "network: " + cut, "", "", kOther}}, false},
             {3, "protected: a", {words}, true}}) {
      CAPTURE(row.violated);
      input.runs[0].violations = row.violations;
      input.runs[0].violated = row.violated;
      PageFacts of = facts();
      of.seen = row.seen;
      const std::string page = page_of(input, of);
      CHECK((page.find(input.runs[0].unmet() + "</td>") != std::string::npos) == row.counted);
      CHECK((page.find("<td>the first: ") != std::string::npos) == (1 < row.violations));
      // The run was ended for none of these.
      CHECK(page.find(text) == std::string::npos);
    }
    PageFacts of = facts();
    of.seen = {{name, "command: rm", "executed", "rm -rf /", kCritical, 3}};
    const std::string page = page_of(input, of);
    CHECK(page.find("<td>and 3 more alerts</td>") != std::string::npos);
    CHECK(page.find(text) != std::string::npos);
  }

  TEST_CASE("a command that env ran is one row that says both forms") {
    using enum PageFacts::Seen::Kind;
    const ReportInput input = critical();
    const std::string name = input.runs[0].name, pattern = "command: shutdown\\s";
    struct Row {
      std::string outer, inner, form;
      std::size_t rows;
    };
    for (const Row& row :
         std::vector<Row>{{"/usr/bin/env A=b shutdown -h", "shutdown -h", "executed", 1},
                          {"env shutdown -h", "shutdown -h", "executed", 1},
                          {"env shutdown -h", "shutdown -r", "executed", 2},
                          {"env echo shutdown -h", "shutdown -h", "executed", 2},
                          {"env -i B=1 shutdown -h", "shutdown -h", "executed", 1},
                          {"nice shutdown -h", "shutdown -h", "executed", 2},
                          {"env shutdown -h", "shutdown -h", "tool call", 2}}) {
      CAPTURE(row.outer);
      PageFacts of = facts();
      of.seen = {{name, pattern, "executed", row.outer, kCritical},
                 {name, pattern, row.form, row.inner, kCritical}};
      const std::string page = page_of(input, of);
      check_well_formed(page);
      CHECK(times(page, "shutdown -") == row.rows);
      CHECK(page.find("<code>" + row.outer + "</code>") != std::string::npos);
      CHECK((page.find("<td>executed, as env") != std::string::npos) == (row.rows == 1));
      of.seen.back().more = 4;
      const std::string cut = page_of(input, of);
      CHECK(times(cut, "shutdown -") == row.rows);
      CHECK(times(cut, "<td>and 4 more alerts</td>") == 1);
    }
  }

  TEST_CASE("each env takes the row of one command that it ran, and of no other") {
    using enum PageFacts::Seen::Kind;
    const ReportInput input = critical();
    const auto page_with = [&](const std::vector<std::string>& segments) {
      PageFacts of = facts();
      for (const std::string& segment : segments)
        of.seen.push_back(
            {input.runs[0].name, "command: shutdown\\s", "executed", segment, kCritical});
      of.seen.back().more = 4;
      return page_of(input, of);
    };
    const std::string env = "env true shutdown -h", ran = "true shutdown -h";
    const std::string one = page_with({env, ran, ran, ran});
    CHECK(times(one, "<code>" + env) == 1);
    CHECK(times(one, "<code>" + ran) == 2);
    CHECK(times(one, "<td>executed, as env") == 1);
    const std::string two = page_with({env, ran, env, env, ran});
    CHECK(times(two, "<code>" + env) == 3);
    CHECK(times(two, "<code>" + ran) == 0);
    CHECK(times(two, "<td>executed, as env") == 2);
    const std::string nested = page_with({"env " + env, env, ran});
    CHECK(times(nested, "shutdown -") == 1);
    for (const std::string& page : {one, two, nested})
      CHECK(times(page, "<td>and 4 more alerts</td>") == 1);
  }

  TEST_CASE("caps that hold are those of a task in a stage that draws it, and some have none") {
    Campaign campaign = judged_campaign();
    campaign.contracts[0].id = "add";
    campaign.contracts[1].id = "more";
    campaign.task_caps["add"].tokens = 100;
    campaign.stages = {{.name = "pilot", .usd = {}}, {.name = "main", .usd = {}}};
    campaign.stages[0].draw.tasks = {"add"};
    campaign.stages[1].caps.wall = std::chrono::minutes(1);
    const auto held = [&](const std::string& cap) {
      const std::vector<PageFacts::Fact> facts = cap_facts(campaign);
      const auto it =
          std::ranges::find(facts, "cap of a run that holds: " + cap, &PageFacts::Fact::what);
      return it == facts.end() ? "" : it->value;
    };
    CHECK(held("tokens") == "100, or none, by task");
    CHECK(held("wall") == "6s to 1m, by task and stage");  // not the 30m of more in pilot
    CHECK(held("tool_calls") == "");
  }

  TEST_CASE("rules of a score that are not listed are counted") {
    Campaign campaign;
    for (std::uint64_t i = 0; i < 30; ++i)
      campaign.contracts.emplace_back().rubric = Rubric{.lines = i + 1, .files = 1, .maint = {}};
    const std::vector<PageFacts::Fact> facts = judging_facts(campaign);
    REQUIRE(facts.size() == kSeenRuns + 1);
    CHECK(facts.back().value == "13 rules");
  }

  TEST_CASE("a page of runs without a critical violation warns of none") {
    ReportInput input = critical();
    for (RunRecord& run : input.runs) run.tags = "policy.network_denied";
    const std::string page = page_of(std::move(input));
    CHECK(page.find("critical violation") == std::string::npos);
    CHECK(page.find(kCriticalMark) == std::string::npos);
  }

  TEST_CASE("a method with critical successes has a mark in every table and figure") {
    ReportInput input = critical();
    for (int task = 0; task < 2; ++task)
      for (std::size_t i = 0; i < 5; ++i) {
        RunRecord run = input.runs[i];
        run.run = RunId(static_cast<std::uint32_t>(input.runs.size()));
        run.task = "cli-" + std::to_string(task);
        run.strata = {"rust"};
        run.name = run.task + "/" + run.method + "/r" + std::to_string(i);
        run.outcome = i % 2 == 0 ? RunOutcome::kSuccess : RunOutcome::kFailure;
        input.runs.push_back(run);
      }
    input.contrasts = {{"shell", "calm"}, {"mount", "shell"}};
    const CampaignReport report = detailed(std::move(input));
    CHECK(critical_mark(report, "shell") == kCriticalMark);
    CHECK(critical_mark(report, "calm") == "");
    const PageFacts of = facts();
    const std::string page = render_html({.report = report, .facts = of});
    check_well_formed(page);
    // Names of rows, columns and cards, and of what is drawn; runs have names of their own.
    std::map<std::string, int> named;
    each_node(parsed(page), [&](const pugi::xml_node& node) {
      const std::string_view tag = node.name();
      if (tag != "th" && tag != "text" && tag != "title" && tag != "span") return;
      const std::string words = node.text().as_string();
      for (const std::string name : {"shell", "mount", "calm"})
        for (std::size_t at = words.find(name); at != std::string::npos;
             at = words.find(name, at + 1)) {
          const std::size_t behind = at + name.size();
          if (words.compare(behind, 1, "/") == 0) continue;
          ++named[name + (words.compare(behind, kCriticalMark.size(), kCriticalMark) == 0
                              ? std::string(kCriticalMark)
                              : "")];
        }
    });
    for (const std::string name : {"shell", "mount"}) {
      CAPTURE(name);
      CHECK(10 < named[name + std::string(kCriticalMark)]);
      CHECK(named[name] == 0);
    }
    CHECK(10 < named["calm"]);
    CHECK(named["calm" + std::string(kCriticalMark)] == 0);
  }
}
