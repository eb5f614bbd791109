#include "common/contract/contract_parser.h"

#include <set>

#include "common/base/files.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
#include "common/contract/image_build_parser.h"
#include "common/contract/rules.h"
#include "common/contract/service_parser.h"

namespace proctor {
namespace {

constexpr TextRule kAnyText{kPathBytes, "a text"};

void remember_marks(const Document& document, Origin& origin) {
  origin.file = document.file;
  for (const Entry& e : document.root.entries) {
    origin.at.emplace(e.key, e.value.at);
    for (const Entry& inner : e.value.entries)
      origin.at.emplace(e.key + "." + inner.key, inner.value.at);
  }
}

void read_briefing(const Fields& f, FileCollector& files, Contract& out) {
  const Node* file = f.find("briefing_file");
  if (file == nullptr) {
    out.briefing = f.text("briefing", Need::kRequired, kBriefingRule);
    return;
  }
  if (const Node* text = f.find("briefing"))
    f.problems().wrong(*text, f.path("briefing"), "either a briefing or a briefing_file");
  const std::string where = f.path("briefing_file");
  const std::string path = files.add(*file, where);
  const ReferencedFile* read = files.find(path);
  if (read == nullptr) return;
  // It goes through the same rules as a briefing written in place, and is not shown as a file.
  Node as_text;
  as_text.kind = Node::Kind::kScalar;
  as_text.at = file->at;
  as_text.text = read->bytes;
  files.remove(path);
  if (!is_plain_text(as_text.text)) {
    f.problems().wrong(*file, where, "a UTF-8 text without control characters");
    return;
  }
  out.briefing = read_text(as_text, where, kBriefingRule, f.problems());
}

void read_strata(const Fields& f, Contract& out) {
  out.type = f.text("type", Need::kRequired, kWordRule);
  out.strata = f.table("strata", kWordRule, kValueRule);
  const auto [it, added] = out.strata.emplace("type", out.type);
  if (!added && it->second != out.type)
    f.problems().add(f.at("strata"), f.path("strata.type"), "\"" + it->second + "\"",
                     "the contract's type, or nothing: it is taken from there");
}

void read_tools(const Node& node, Problems& problems, Contract& out) {
  constexpr std::size_t kSuitesMost = 20;
  const Fields f(node, "tools", kContractToolKeys, problems);
  f.each("tests", [&](const Node& item, const std::string& path) {
    const Fields suite(item, path, kTestSuiteKeys, problems);
    TestSuite one{suite.text("name", Need::kRequired, kIdRule),
                  suite.text("command", Need::kRequired, kCommandRule)};
    if (one.command.find("PROCTOR_CONTRACT") != std::string::npos)
      problems.wrong(*suite.find("command"), path + ".command",
                     "a command without $PROCTOR_CONTRACT, whose files no agent is shown");
    for (const TestSuite& other : out.suites)
      if (other.name == one.name && !one.name.empty())
        problems.wrong(*suite.find("name"), path + ".name", "a name that no other suite has");
    out.suites.push_back(std::move(one));
    if (out.suites.size() == kSuitesMost + 1)
      problems.wrong(item, path, "at most " + std::to_string(kSuitesMost) + " suites");
  });
}

// Only containers of images are run by gVisor.
void check_isolation(const Fields& f, const Contract& c) {
  if (c.policy.isolation != Isolation::kUserspace || !c.environment.image.empty()) return;
  f.problems().add(
      f.at("policy"), "policy.isolation", "userspace without an image",
      "kernel, or environment.image: an image by digest, which workers with runsc run");
}

void check_containers(const Fields& f, const Contract& c) {
  for (std::size_t i = 0; i < c.checks.size(); ++i) {
    if (!c.checks[i].container) continue;
    const std::string where = "checks[" + std::to_string(i) + "].container";
    if (c.environment.image.empty() && c.checks[i].container->image.empty())
      f.problems().add(f.at("checks"), where + ".image", "nothing",
                       "an image by digest, because the environment names none");
    if (c.policy.check_network.filtered())
      f.problems().add(f.at("checks"), where, "a container under an allow-list",
                       "the whole network or none for acceptance");
  }
}

}  // namespace

Contract parse_contract(const Document& document, const FileSource& source, Diagnostics& out) {
  Problems problems(document.file, out);
  const std::size_t before = out.count();
  Contract c;
  remember_marks(document, c.origin);
  const Fields f(document.root, "", kContractKeys, problems);
  if (document.root.kind != Node::Kind::kMapping) return c;
  FileCollector files(source, problems);
  f.text("$schema", Need::kOptional, kAnyText);
  c.id = f.text("id", Need::kRequired, kIdRule);
  c.title = f.text("title", Need::kOptional, kTitleRule);
  read_briefing(f, files, c);
  read_strata(f, c);
  if (const Node* n = f.find("repository")) {
    c.repository = read_repository(*n, problems);
  } else {
    f.missing("repository", "a mapping with source and commit");
  }
  if (const Node* n = f.find("environment")) c.environment = read_environment(*n, files, problems);
  c.setup = read_setup(f, files);
  c.services = read_services(f, files);
  c.checks = read_checks(f, files);
  c.acceptance_files = read_acceptance_files(f, files);
  if (const Node* n = f.find("policy")) c.policy = read_policy(*n, problems);
  check_isolation(f, c);
  check_containers(f, c);
  check_services(f, c);
  if (const Node* n = f.find("tools")) read_tools(*n, problems, c);
  if (const Node* n = f.find("caps")) c.caps = read_caps(*n, "caps", problems);
  if (const Node* n = f.find("reference_patch"))
    c.reference_patch = files.add(*n, "reference_patch");
  if (const Node* n = f.find("single_shot")) c.single_shot = files.add(*n, "single_shot");
  f.each("files", [&](const Node& n, const std::string& where) { files.add(n, where); });
  check_image_build(f, c);
  c.files = files.take();
  if (out.count() == before) c.digest = digest_of(c);
  return c;
}

std::optional<Contract> load_contract(const std::filesystem::path& file, const std::string& shown,
                                      Diagnostics& out) {
  const auto refuse = [&](const Error& e) {
    out.add({shown, {}, "", e.detail, "a readable file", ""});
    return std::nullopt;
  };
  const Result<std::string> text = read_file(file, limits::kConfigFileBytes);
  if (!text.ok()) return refuse(text.error());
  std::error_code ec;
  const std::filesystem::path absolute = std::filesystem::absolute(file, ec).lexically_normal();
  if (ec) return refuse(errno_error(shown, ec.value()));
  const auto folder = FolderFiles::open(absolute.parent_path());
  if (!folder.ok()) return refuse(folder.error());
  const auto document = read_document(*text, format_of(file.string()), shown, out);
  if (!document) return std::nullopt;
  Contract c = parse_contract(*document, **folder, out);
  c.origin.folder = absolute.parent_path();
  return c;
}

}  // namespace proctor
