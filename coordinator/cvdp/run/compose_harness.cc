#include "coordinator/cvdp/run/compose_harness.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "coordinator/cli/image_engine.h"
#include "coordinator/cvdp/dataset/compose.h"
#include "coordinator/cvdp/run/dataset_file.h"
#include "coordinator/cvdp/run/results.h"

namespace proctor::cli {
namespace {
constexpr std::size_t kLogBytes = std::size_t{16} << 20;
constexpr std::chrono::seconds kCleanUpLimit{120};
constexpr const char* kOurCompose = ".proctor-compose.yml";
constexpr const char* kOurNetworks = ".proctor-compose-networks.yml";

std::map<std::string, std::string> compose_environment() {
  const auto of = [](const char* name, const char* otherwise) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? otherwise : value);
  };
  return {{"PATH", of("PATH", "/usr/local/bin:/usr/bin:/bin")},
          {"HOME", of("HOME", "/")},
          {"DOCKER_HOST", "unix://" + docker_socket()}};
}

// What of a record is needed when its turn comes.
struct Problem {
  std::string id;
  std::uint64_t issue = 0;
  fs::path folder, reports;  // absolute
  std::string compose;       // as it is run
  std::vector<std::string> services, images, networks;
  std::string license_network;  // empty: it needs none
  std::string wrong;            // why it cannot be run
};

void read_compose(const cvdp::Value& compose, Problem& to) {
  for (const cvdp::Member& m : *cvdp::object_at(compose, "services")) {
    to.services.push_back(m.key);
    const cvdp::Object* service = m.value.object();
    const std::string* image = cvdp::text_at(service, "image");
    if (image != nullptr && cvdp::value_at(service, "build") == nullptr)
      to.images.push_back(*image);
  }
  std::ranges::sort(to.services);
  to.networks = {"default"};
  if (const cvdp::Object* networks = cvdp::object_at(compose, "networks"))
    for (const cvdp::Member& m : *networks)
      if (m.key != "default" && m.key != to.license_network) to.networks.push_back(m.key);
}

Problem problem_of(const cvdp::Record& record, const ComposeRequest& request) {
  Problem out;
  out.id = record.id.text;
  out.issue = record.id.issue;
  const fs::path root = fs::absolute(request.folder) / record.id.repository;
  out.folder = root / "harness" / std::to_string(out.issue);
  out.reports = root / "reports";
  const std::string* text = cvdp::compose_of(record);
  if (record.id.heavy) out.wrong = "its context is a commit of another repository";
  const bool eda = cvdp::needs_eda(record.value);
  if (eda && !request.dataset.settings.licensed) out.wrong = "needs licensed tools";
  if (text == nullptr) out.wrong = "has no docker-compose.yml";
  if (!out.wrong.empty()) return out;
  const cvdp::ImageNames& names = request.dataset.settings.names;
  if (eda) out.license_network = names.license_network;
  const auto file = cvdp::normalise_compose(*text, {.names = names, .needs_eda = eda});
  if (!file.ok()) {
    out.wrong = file.error().detail;
    return out;
  }
  out.compose = file->text;
  read_compose(file->value, out);
  return out;
}

class Runner {
 public:
  Runner(const ComposeRequest& request, std::vector<std::string> compose)
      : request_(request), compose_(std::move(compose)) {}

  std::vector<cvdp::TestResult> run(const Problem& p) {
    std::string wrong = p.wrong;
    for (const std::string& image : p.images)
      if (const Status there = engine_has_image(image); !there.ok() && wrong.empty())
        wrong = there.error().detail;
    // Compose would say so too, with an exit code that looks like the harness's.
    if (!p.license_network.empty() && wrong.empty())
      if (const Status there = engine_has_network(p.license_network); !there.ok())
        wrong = there.error().detail;
    if (const Status ready = write_files(p); !ready.ok() && wrong.empty())
      wrong = ready.error().detail;
    if (!wrong.empty()) return {cvdp::failed("th_prepare: " + wrong)};
    std::vector<cvdp::TestResult> out;
    for (const std::string& service : p.services) {
      Result<cvdp::TestResult> result = run_service(p, service);
      out.push_back(result.ok() ? std::move(*result)
                                : cvdp::failed("Failed to execute objective harness: " +
                                               std::move(result).error().detail));
    }
    for (const char* file : {kOurCompose, kOurNetworks}) {
      std::error_code ec;
      fs::remove(p.folder / file, ec);
    }
    return out;
  }

 private:
  Status write_files(const Problem& p) const {
    if (!p.wrong.empty()) return ok_status();
    Json networks = Json::object();
    if (!request_.dataset.settings.network)
      for (const std::string& name : p.networks) networks[name] = {{"internal", true}};
    PROCTOR_CHECK_OK(write_file(p.folder / kOurCompose, p.compose, Durability::kLazy));
    return write_file(p.folder / kOurNetworks, Json{{"networks", networks}}.dump() + "\n",
                      Durability::kLazy);
  }

  CommandSpec command(const Problem& p, const std::string& project,
                      const std::vector<std::string>& words) const {
    CommandSpec out;
    out.argv = compose_;
    const auto add = [&out](std::initializer_list<std::string> more) {
      out.argv.insert(out.argv.end(), more);
    };
    add({"-f", (p.folder / kOurCompose).string()});
    if (!request_.dataset.settings.network) add({"-f", (p.folder / kOurNetworks).string()});
    add({"-p", project});
    out.argv.insert(out.argv.end(), words.begin(), words.end());
    out.cwd = p.folder;
    out.env = compose_environment();
    out.output_max = kLogBytes;
    return out;
  }

  // Upstream's command line: CVDP 5.1.
  static std::vector<std::string> upstreams_words(const Problem& p, const std::string& service) {
    const std::string user = fmt::format("{}:{}", ::getuid(), ::getgid());
    std::vector<std::string> out = {"run", "--rm", "-T", "--user", user, "-e", "HOME=/code/rundir"};
    for (const char* folder : {"docs", "rundir", "rtl", "verif", "src"})
      out.insert(out.end(), {"-v", (p.folder / folder).string() + ":/code/" + std::string(folder)});
    out.insert(out.end(), {"-w", "/code/rundir", service});
    return out;
  }

  Result<cvdp::TestResult> run_service(const Problem& p, const std::string& service) {
    const std::string project = fmt::format("proctor-{}-{}", ::getpid(), next_++);
    const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(
        request_.dataset.settings.harness_limit);
    CommandSpec spec = command(p, project, upstreams_words(p, service));
    spec.timeout = limit;
    Result<CommandOutcome> ran = run_command(spec);
    clean_up(p, project);
    if (!ran.ok()) return std::move(ran).error();
    const auto ms = [](auto d) { return static_cast<std::uint64_t>(d.count()); };
    cvdp::TestResult out = cvdp::test_result(
        {ran->timed_out ? "timed_out" : "exited", ran->exit_code, ms(ran->wall), ms(limit), {}});
    const fs::path log = p.reports / service_log_name(p.issue, service, p.services.size());
    PROCTOR_CHECK_OK(make_dirs(p.reports));
    PROCTOR_CHECK_OK(write_file(log.string() + ".txt", ran->out, Durability::kLazy));
    if (!ran->err.empty())
      PROCTOR_CHECK_OK(write_file(log.string() + "_stderr.txt", ran->err, Durability::kLazy));
    out.log = log.string() + ".txt";
    return out;
  }

  void clean_up(const Problem& p, const std::string& project) const {
    CommandSpec spec = command(
        p, project, {"down", "--volumes", "--remove-orphans", "--timeout", "0", "--rmi", "local"});
    spec.timeout = kCleanUpLimit;
    const auto done = run_command(spec);
    if (done.ok() && done->success()) return;
    tell(stderr, "{}: docker compose project {} is not removed: {}\n", p.id, project,
         printable(done.ok() ? done->describe() : done.error().detail, 500));
  }

  const ComposeRequest& request_;
  std::vector<std::string> compose_;
  std::atomic<std::uint64_t> next_{1};
};
}  // namespace

Result<std::vector<std::string>> find_compose() {
  const std::vector<std::string> ways[] = {{"docker", "compose"}, {"docker-compose"}};
  for (const std::vector<std::string>& words : ways) {
    CommandSpec spec;
    spec.argv = words;
    spec.argv.emplace_back("version");
    spec.env = compose_environment();
    const auto said = run_command(spec);
    if (said.ok() && said->success()) return words;
  }
  return Error{Errc::kNotFound,
               "neither docker compose nor docker-compose is here (on Debian: apt-get install "
               "docker-compose)"};
}

Result<HarnessResults> run_by_compose(const ComposeRequest& request) {
  PROCTOR_TRY(std::vector<std::string> compose, find_compose());
  std::vector<Problem> problems;
  const auto add = [&](const cvdp::Record& record) {
    const bool words = cvdp::is_comprehension(cvdp::category_number(record.category));
    if (!words && request.wanted(record)) problems.push_back(problem_of(record, request));
    return ok_status();
  };
  PROCTOR_CHECK_OK(
      read_selected(request.dataset.file, request.dataset.selection, add, Findings::kKnown));
  Runner runner(request, std::move(compose));
  HarnessResults out;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < problems.size(); i = next++) {
      std::vector<cvdp::TestResult> tests = runner.run(problems[i]);
      const std::lock_guard lock(mutex);
      out[problems[i].id] = std::move(tests);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 1; i < request.at_once; ++i) threads.emplace_back(work);
    work();
  }
  return out;
}
}  // namespace proctor::cli
