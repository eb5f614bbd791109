#include "common/contract/campaign_parser.h"

#include <algorithm>
#include <set>
#include <vector>

#include "common/base/files.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
#include "common/contract/dockerfile.h"
#include "common/contract/fields.h"
#include "common/contract/rules.h"

namespace proctor {
namespace {
using std::chrono::milliseconds;

constexpr std::size_t kServicesMax = 16, kLabelBytes = 63;
constexpr std::uint64_t kPortMax = 65'535, kMemoryLeast = std::uint64_t{1} << 20;
constexpr milliseconds kLeast{1}, kIntervalLeast{10};

// What a host's name may be made of; two names are every sandbox's own.
bool is_service_name(std::string_view text) {
  const auto plain = [](char c) { return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9'); };
  return !text.empty() && plain(text.front()) && plain(text.back()) && text != "localhost" &&
         text != "sandbox" &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-'; });
}

constexpr TextRule kServiceRule{kLabelBytes,
                                "a host's name: a-z, 0-9 and \"-\" between them, neither "
                                "\"localhost\" nor \"sandbox\"",
                                is_service_name};

Readiness read_readiness(const Node& node, const std::string& path, Problems& problems) {
  const Fields f(node, path, kReadyKeys, problems);
  Readiness out;
  if (f.find("port") != nullptr)
    out.port = static_cast<std::uint16_t>(f.count("port", 1, 1, kPortMax));
  if (f.find("command") != nullptr) out.command = f.text("command", Need::kMay, kCommandRule);
  if (f.find("port") != nullptr && f.find("command") != nullptr)
    problems.wrong(*f.find("port"), f.path("port"), "either a port or a command beside it");
  if (f.find("port") == nullptr && f.find("command") == nullptr &&
      node.kind == Node::Kind::kMapping)
    f.missing("port", "a port that accepts, or a command that ends with 0");
  out.interval = f.duration("interval", out.interval, kIntervalLeast);
  out.timeout = f.duration("timeout", out.timeout, kLeast);
  return out;
}

void read_program(const Fields& f, FileCollector& files, Service& service) {
  const Node* container = f.find("container");
  if (container == nullptr) {
    service.command = read_command(f, files, "PROCTOR_CONTRACT");
    service.variables = f.table("variables", kVariableRule, kVariableValueRule);
    return;
  }
  for (const std::string_view key : {"command", "script"})
    if (const Node* node = f.find(key))
      f.problems().wrong(*node, f.path(key), "either a container or a command beside it");
  if (const Node* node = f.find("variables"))
    f.problems().wrong(*node, f.path("variables"),
                       "container.variables, because it has a container");
  service.container = read_container(*container, f.path("container"), f.problems());
  service.command = words_for_people(*service.container);
}

Service read_service(const Node& node, const std::string& path, FileCollector& files,
                     Problems& problems) {
  const Fields f(node, path, kServiceKeys, problems);
  Service out;
  out.name = f.text("name", Need::kMust, kServiceRule);
  read_program(f, files, out);
  out.depends_on = f.texts("depends_on", kServiceRule);
  if (const Node* ready = f.find("ready"))
    out.ready = read_readiness(*ready, f.path("ready"), problems);
  if (f.find("memory") != nullptr) out.memory_bytes = f.size("memory", kMemoryLeast, kMemoryLeast);
  if (f.find("processes") != nullptr)
    out.processes = static_cast<std::uint32_t>(f.count("processes", 1, 1, 1'000'000));
  return out;
}

class Rules {
 public:
  Rules(const Fields& contract, const Contract& c) : f_(contract), c_(c) {}

  void check() {
    if (!names_are_known() || in_circle()) return;
    for (std::size_t i = 0; i < c_.services.size(); ++i) {
      const auto& container = c_.services[i].container;
      if (container && container->image.empty() && c_.environment.image.empty())
        complain(service(i) + ".container.image", "nothing",
                 "an image by digest, because the environment names none");
    }
    if (!c_.services.empty() && c_.environment.sandbox == Environment::Sandbox::kNull)
      complain("services", "services without isolation", "another sandbox than none");
    for (std::size_t i = 0; i < c_.checks.size(); ++i) one_check(i);
  }

 private:
  static std::string service(std::size_t i) { return "services[" + std::to_string(i) + "]"; }

  void complain(const std::string& where, const std::string& found, const std::string& expected) {
    f_.problems().add(f_.at(where.starts_with("checks") ? "checks" : "services"), where, found,
                      expected);
  }

  bool known(const std::string& name) const {
    return std::ranges::find(c_.services, name, &Service::name) != c_.services.end();
  }

  bool names_are_known() {
    bool all = true;
    const auto judge = [&](const std::string& where, const std::vector<std::string>& names) {
      for (const std::string& name : names) {
        if (known(name)) continue;
        complain(where, "\"" + name + "\"", "the name of a service of this contract");
        all = false;
      }
    };
    for (std::size_t i = 0; i < c_.services.size(); ++i)
      judge(service(i) + ".depends_on", c_.services[i].depends_on);
    for (std::size_t i = 0; i < c_.checks.size(); ++i)
      if (c_.checks[i].services)
        judge("checks[" + std::to_string(i) + "].services", *c_.checks[i].services);
    return all;
  }

  // Takes away, again and again, what depends on nothing that is left.
  bool in_circle() {
    std::vector<std::string> left;
    for (const Service& s : c_.services) left.push_back(s.name);
    for (bool took = true; took;) {
      const auto waits = [&](const std::string& name) {
        const auto at = std::ranges::find(c_.services, name, &Service::name);
        return std::ranges::any_of(at->depends_on, [&](const std::string& other) {
          return std::ranges::find(left, other) != left.end();
        });
      };
      const auto free = std::ranges::find_if_not(left, waits);
      took = free != left.end();
      if (took) left.erase(free);
    }
    if (left.empty()) return false;
    std::string names;
    for (const std::string& name : left) names += (names.empty() ? "" : ", ") + name;
    complain("services", "services that wait for each other: " + names,
             "an order in which they can start");
    return true;
  }

  void one_check(std::size_t i) {
    const Check& check = c_.checks[i];
    const std::string where = "checks[" + std::to_string(i) + "].services";
    const std::vector<std::size_t> used = services_of(c_.services, check);
    if (used.empty()) return;
    if (c_.policy.check_network.open)
      complain(where, "services under the whole network",
               "policy.network.acceptance: false or an allow-list: they share a network of their "
               "own");
    const auto in_image = [&](bool container) {
      return container || !c_.environment.image.empty();
    };
    const bool check_in_image = in_image(check.container.has_value());
    for (const std::size_t s : used) {
      if (in_image(c_.services[s].container.has_value()) == check_in_image) continue;
      complain(where,
               check_in_image ? "service " + c_.services[s].name + " without an image"
                              : "service " + c_.services[s].name + " in an image",
               check_in_image ? "an image for it, as its check has" : "none, as its check has");
    }
  }

  const Fields& f_;
  const Contract& c_;
};
}  // namespace

// The `services` of a contract, read, and what must hold between them and the rest of it.
// Errors go to the Problems behind the node.
std::vector<Service> read_services(const Fields& contract, FileCollector& files) {
  std::vector<Service> out;
  std::set<std::string> names;
  contract.each("services", [&](const Node& item, const std::string& path) {
    Service service = read_service(item, path, files, contract.problems());
    if (!service.name.empty() && !names.insert(service.name).second)
      contract.problems().wrong(*item.find("name"), path + ".name", "each service's name once");
    if (out.size() == kServicesMax)
      contract.problems().wrong(item, path,
                                "at most " + std::to_string(kServicesMax) + " services");
    if (out.size() < kServicesMax) out.push_back(std::move(service));
  });
  return out;
}

// Names that nobody has, circles, sandboxes that cannot share a network, networks that cannot be
// shared.  Requires: all of `c` but its files and digest has been read.
void check_services(const Fields& contract, const Contract& c) {
  Rules(contract, c).check();
}

// A whole contract.

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
    out.briefing = f.text("briefing", Need::kMust, kBriefingRule);
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
  out.type = f.text("type", Need::kMust, kWordRule);
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
    TestSuite one{suite.text("name", Need::kMust, kIdRule),
                  suite.text("command", Need::kMust, kCommandRule)};
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
  f.text("$schema", Need::kMay, kAnyText);
  c.id = f.text("id", Need::kMust, kIdRule);
  c.title = f.text("title", Need::kMay, kTitleRule);
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
