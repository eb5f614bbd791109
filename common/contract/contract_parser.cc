#include "common/contract/campaign_parser.h"

#include <algorithm>
#include <vector>

#include "common/base/files.h"
#include "common/contract/contract_digest.h"
#include "common/contract/contract_sections.h"
#include "common/contract/dockerfile.h"

namespace proctor {
void read_briefing(const Fields& f, Contract& out) {
  const Node* file = f.find("briefing_file");
  if (file == nullptr) return f("briefing", out.briefing, kBriefingRule, Need::kMust);
  f.wrong("briefing", "either a briefing or a briefing_file");
  std::string path;
  f.file("briefing_file", path);
  const ReferencedFile* read = f.files()->find(path);
  if (read == nullptr) return;
  // It goes through the same rules as a briefing written in place, and is not shown as a file.
  Node as_text;
  as_text.kind = Node::Kind::kScalar;
  as_text.at = file->at;
  as_text.text = read->bytes;
  f.files()->remove(path);
  if (!is_plain_text(as_text.text))
    return f.wrong("briefing_file", "a UTF-8 text without control characters");
  out.briefing = read_text(as_text, f.path("briefing_file"), kBriefingRule, f.problems());
}

void check_strata(const Fields& f, Contract& out) {
  const auto [it, added] = out.strata.emplace("type", out.type);
  if (!added && it->second != out.type)
    f.problems().add(f.at("strata"), f.path("strata.type"), "\"" + it->second + "\"",
                     "the contract's type, or nothing: it is taken from there");
}

namespace {
// Names that nobody has, circles, sandboxes that cannot share a network, networks that cannot be
// shared.  Requires: all of the contract but its files and digest has been read.
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

void remember_marks(const Document& document, Origin& origin) {
  origin.file = document.file;
  for (const Entry& e : document.root.entries) {
    origin.at.emplace(e.key, e.value.at);
    for (const Entry& inner : e.value.entries)
      origin.at.emplace(e.key + "." + inner.key, inner.value.at);
  }
}

void finish_contract(const Fields& f, Contract& out) {
  f.some("checks", "check");
  check_isolation(f, out);
  check_containers(f, out);
  Rules(f, out).check();
  f.each("files", [&](const Node& n, const std::string& where) { f.files()->add(n, where); });
  check_image_build(f, out);
}

Contract parse_contract(const Document& document, const FileSource& source, Diagnostics& out) {
  Problems problems(document.file, out);
  const std::size_t before = out.count();
  Contract c;
  remember_marks(document, c.origin);
  FileCollector files(source, problems, "PROCTOR_CONTRACT");
  read_fields(document.root, "", problems, c, &files);
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
