#include "worker/selftest/selftest.h"

#include <unistd.h>
#include <algorithm>
#include <functional>
#include <utility>

#include "worker/sandbox/cgroup.h"
#include "worker/selftest/isolation_proof.h"
#include "worker/workspace/bounded_disk.h"
#include "worker/workspace/overlay.h"

namespace proctor {
namespace {
std::string control_groups() {
  const CgroupLayout layout = cgroups_here();
  if (!layout.v1.empty()) return "version 1";
  return layout.v2.mount.empty() ? "none" : "version 2";
}

std::string workspaces(const fs::path& dir) {
  std::string works, does_not;
  for (const WorkspaceKind kind : kWorkspaceKinds) {
    const Status probe = probe_workspaces(dir, kind);
    const std::string name(to_string(kind));
    if (probe.ok()) works += (works.empty() ? "" : ", ") + name;
    if (!probe.ok()) does_not += "; no " + name + ": " + probe.error().detail;
  }
  return works + does_not;
}

std::string disks(const fs::path& dir) {
  const auto bounded = BoundedDisks::open(dir / "disks", dir);
  return bounded.ok() ? "can be bounded (--bounded-disks)" : bounded.error().detail;
}

class Selftest {
 public:
  Selftest(const SelftestOptions& options, const fs::path& dir)
      : options_(options),
        dir_(dir),
        sandbox_{"selftest-" + std::to_string(::getpid()), options.docker_socket, dir / "store",
                 true, options.oci_runtime} {}

  KindReport bubblewrap() {
    return attack(SandboxKind::kBubblewrap, [] { return Result<std::string>(""); });
  }

  KindReport oci() {
    return attack(SandboxKind::kOci, [&] { return import_attack_image(sandbox_.images, dir_); });
  }

  KindReport docker() {
    if (!docker_answers(options_.docker_socket)) {
      KindReport report;
      report.kind = to_string(SandboxKind::kDocker);
      report.missing = "no Docker Engine answers at " + options_.docker_socket;
      return report;
    }
    LoadedImage image(options_.docker_socket);
    return attack(SandboxKind::kDocker, [&]() -> Result<std::string> {
      PROCTOR_CHECK_OK(image.load());
      return image.id();
    });
  }

 private:
  using MakeImage = std::function<Result<std::string>()>;

  KindReport attack(SandboxKind kind, const MakeImage& make_image) {
    KindReport report;
    report.kind = to_string(kind);
    auto engine = open_sandbox_engine(kind, sandbox_);
    if (!engine.ok()) {
      report.missing = engine.error().detail;
      return report;
    }
    if (kind == SandboxKind::kOci)
      if (const auto proof = prove_kind(**engine, sandbox_);
          proof.ok() && proof->verdict == IsolationProof::Verdict::kUnfit) {
        report.missing = proof->detail;
        return report;
      }
    report.limits = (*engine)->enforcement();
    // Workers offer it from here on, whatever keeps us from attacking it.
    if (const Status done = attack(**engine, make_image, report); !done.ok())
      report.cases.push_back(
          {"attack", "the attacks can be tried", {.detail = done.error().detail}});
    return report;
  }

  Status attack(SandboxEngine& engine, const MakeImage& make_image, KindReport& report) {
    SandboxSpec base;
    PROCTOR_TRY(base.image, make_image());
    const fs::path dir = dir_ / report.kind;
    PROCTOR_CHECK_OK(make_dirs(dir));
    PROCTOR_TRY(Containment suite, Containment::prepare(engine, base, dir));
    for (const ContainmentCase& what : containment_cases())
      report.cases.push_back({what.name, what.promise, suite.run(what)});
    return ok_status();
  }

  const SelftestOptions& options_;
  const fs::path& dir_;
  SandboxOptions sandbox_;
};
}  // namespace

Result<SelftestReport> run_selftest(const SelftestOptions& options) {
  const auto begun = std::chrono::steady_clock::now();
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-selftest", options.scratch));
  std::error_code ec;
  fs::permissions(dir.path(), fs::perms(0755), ec);  // the user in a container is not us
  SelftestReport report;
  report.root = ::geteuid() == 0;
  report.cgroups = control_groups();
  report.workspaces = workspaces(dir.path());
  report.disks = disks(dir.path());
  Selftest selftest(options, dir.path());
  report.kinds = {selftest.bubblewrap(), selftest.oci(), selftest.docker()};
  report.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begun);
  return report;
}

// The report of a selftest: the text, the JSON, and the last line.

namespace {
using Verdict = ContainmentResult::Verdict;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string text_of(const KindReport& kind) {
  constexpr std::size_t kName = 22, kWord = 14;
  std::string text = "\nsandbox " + kind.kind + "\n";
  if (!kind.offered()) return text + "  not to be had here: " + kind.missing + "\n";
  std::string limits;
  for (const auto& [limit, keeper] : kind.limits)
    limits += (limits.empty() ? "" : ", ") + limit + " by " +
              (keeper == "none" ? std::string("NOBODY") : keeper);
  text += "  limits: " + limits + "\n";
  for (const KindReport::Case& c : kind.cases) {
    text += "  " + padded(c.name, kName) + padded(std::string(word_of(c.result.verdict)), kWord) +
            c.promise + "\n";
    if (!c.result.detail.empty()) text += padded("", kName + 2) + c.result.detail + "\n";
  }
  return text;
}

// The names of the cases that ended so.
std::string cases_of(const KindReport& kind, Verdict verdict) {
  std::vector<std::string> names;
  for (const KindReport::Case& c : kind.cases)
    if (c.result.verdict == verdict) names.push_back(c.name);
  return list_of(names);
}

// For the worst that was found.
std::string advice(const KindReport& kind) {
  if (!cases_of(kind, Verdict::kEscaped).empty())
    return "run no agent under it: mend, update or remove what starts it "
           "(bwrap, runc, the Docker Engine, the kernel), then try again";
  if (!cases_of(kind, Verdict::kNotEnforced).empty())
    return "run the worker as root on a host with control groups, or trust its agents";
  if (!cases_of(kind, Verdict::kError).empty()) return "see the errors above";
  return "run the worker where it sees the processes of its sandboxes";
}
}  // namespace

bool KindReport::contained() const {
  return offered() && !cases.empty() && std::ranges::all_of(cases, [](const Case& c) {
           return c.result.verdict == Verdict::kContained;
         });
}

std::string KindReport::told() const {
  if (!offered()) return kind + ": not offered here (" + missing + ")";
  if (contained()) return kind + ": every attack was contained";
  std::string text;
  for (const auto& [verdict, word] :
       {std::pair(Verdict::kEscaped, "escaped: "),
        std::pair(Verdict::kNotEnforced, "nobody keeps: "), std::pair(Verdict::kError, "errors: "),
        std::pair(Verdict::kNotTried, "not tried: ")})
    if (const std::string names = cases_of(*this, verdict); !names.empty())
      text += (text.empty() ? "" : "; ") + std::string(word) + names;
  return kind + ": " + (text.empty() ? "nothing was tried" : text) + ": " + advice(*this);
}

bool SelftestReport::untrusted_allowed() const {
  const auto offered = [](const KindReport& k) { return k.offered(); };
  const auto fit = [](const KindReport& k) { return !k.offered() || k.contained(); };
  return std::ranges::any_of(kinds, offered) && std::ranges::all_of(kinds, fit);
}

std::string SelftestReport::verdict() const {
  std::vector<std::string> good, bad;
  for (const KindReport& kind : kinds) {
    if (kind.contained()) good.push_back(kind.kind);
    if (kind.offered() && !kind.contained()) bad.push_back(kind.kind);
  }
  if (good.empty() && bad.empty()) return "no: this host offers no sandbox at all";
  if (good.empty()) return "no: this host must not run untrusted agents (" + list_of(bad) + ")";
  if (!bad.empty())
    return "no: this host must not run untrusted agents under " + list_of(bad) +
           ", which it offers; under " + list_of(good) + " it could";
  return "yes: this host may run untrusted agents under " + list_of(good);
}

std::string selftest_text(const SelftestReport& report) {
  std::string text = "user: " + std::string(report.root ? "root" : "not root") +
                     "\ncontrol groups: " + report.cgroups + "\nworkspaces: " + report.workspaces +
                     "\ndisks: " + report.disks + "\n";
  for (const KindReport& kind : report.kinds) text += text_of(kind);
  text += "\n";
  for (const KindReport& kind : report.kinds) text += kind.told() + "\n";
  return text + "\n" + report.verdict() + "\n";
}
}  // namespace proctor
