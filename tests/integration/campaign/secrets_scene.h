#pragma once
// A campaign whose agent is given a declared secret: where its value is seen on the host, while the
// agent runs and afterwards, on whatever runs it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <sstream>

#include "common/base/digest.h"
#include "common/base/owned.h"
#include "tests/support/campaign_scene.h"
#include "tests/support/leftovers.h"

namespace proctor::testing {

class SecretsScene {
 public:
  // Lines for the contract's environment and policy, each ended.
  explicit SecretsScene(const std::string& environment, const std::string& policy = "")
      : scene_(shape()) {
    ::setenv(kName, value_.c_str(), 1);
    scene_.edit(scene_.contract(), "environment:\n",
                "environment:\n" + environment + "  secrets: [" + kName + "]\n");
    scene_.edit(scene_.contract(), "policy:\n", "policy:\n" + policy);
  }
  SecretsScene(const SecretsScene&) = delete;
  SecretsScene& operator=(const SecretsScene&) = delete;
  ~SecretsScene() { ::unsetenv(kName); }

  void run_and_check() {
    Child running = scene_.start("run");
    REQUIRE_MESSAGE(eventually([&] { return waits(); }), scene_.said());
    CHECK(in_processes() == "");
    CHECK(in_files() == "");
    for (const pid_t pid : scene_.workers()) CHECK(leaves_no_core(pid));
    CHECK(leaves_no_core(running.pid()));
    scene_.open_gate();
    const std::optional<int> code = running.wait(std::chrono::seconds(180));
    REQUIRE_MESSAGE(code == 0, scene_.said());
    // The agent was given it, or it would have changed nothing.
    const Json report = must(parse_json(scene_.run("report", {"--json"}).out));
    CHECK(report["runs"].at(0)["outcome"] == "success");
    CHECK(in_files() == "");
    scene_.require_nothing_left();
  }

 private:
  static constexpr const char* kName = "SCENE_TOKEN";

  static CampaignShape shape() {
    CampaignShape s;
    s.methods = {solving_method("trusted",
                                "test ${#SCENE_TOKEN} = 64 || exit 7; "
                                ": > it-waits; until [ -s /opt/gate/open ]; do sleep 0.05; "
                                "done; rm it-waits; ")};
    s.replicates = 1;
    s.workers = 1;
    return s;
  }

  // By a file of its workspace: not of every kind of sandbox are the processes the host's to see.
  bool waits() const {
    std::error_code ec;
    for (fs::recursive_directory_iterator it(scene_.state(), ec), end; it != end; it.increment(ec))
      if (it->path().filename() == "it-waits") return true;
    return false;
  }

  static std::string bytes_of(const fs::path& file) {
    // Files of /proc have no size, and what others have in the folder of temporary files may not be
    // read to its end: a stream would throw.
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::string out;
    std::array<char, 1 << 16> piece{};
    for (ssize_t n = 0; fd.valid() && 0 < (n = ::read(fd.get(), piece.data(), piece.size()));)
      out.append(piece.data(), static_cast<std::size_t>(n));
    return out;
  }

  // A core file would be one more that has it.
  static bool leaves_no_core(pid_t pid) {
    const std::string limits = bytes_of("/proc/" + std::to_string(pid) + "/limits");
    constexpr std::string_view kLimit = "Max core file size";
    const std::size_t at = limits.find(kLimit);
    if (at == std::string::npos) return false;
    std::istringstream words(limits.substr(at + kLimit.size()));
    std::string soft, hard;
    words >> soft >> hard;
    return soft == "0" && hard == "0";
  }

  // Arguments everybody sees.  An environment is its process's own: the worker that was given the
  // secret has it, whoever started that worker, and what runs in the sandbox.
  std::string in_processes() const {
    std::string seen;
    std::vector<pid_t> inside = sandboxed_of(scene_.temp());
    for (const fs::directory_entry& e : fs::directory_iterator("/proc")) {
      const std::string pid = e.path().filename();
      if (std::isdigit(static_cast<unsigned char>(pid.front())) == 0) continue;
      std::string name = bytes_of(e.path() / "comm");
      if (contains(bytes_of(e.path() / "cmdline"), value_)) seen += "arguments of " + name;
      const auto has_it = [&] { return contains(bytes_of(e.path() / "environ"), value_); };
      const auto is_inside = [&] {
        return std::ranges::find(inside, std::atoi(pid.c_str())) != inside.end();
      };
      if (name == "proctor\n" || name == "proctor-worker\n" || is_inside() || !has_it()) continue;
      inside = sandboxed_of(scene_.temp());  // the agent may have started it meanwhile
      if (!is_inside() && has_it()) seen += "environment of " + name;
    }
    return seen;
  }

  // Of the campaign, its workers, and the folders that runtimes are given.
  std::string in_files() const {
    std::string seen;
    std::vector<fs::path> places = {scene_.temp()};
    for (const fs::directory_entry& e : fs::directory_iterator(fs::temp_directory_path()))
      if (e.path().filename().string().starts_with("proctor-")) places.push_back(e.path());
    for (const fs::path& place : places) {
      std::error_code ec;
      const auto all = fs::directory_options::skip_permission_denied;
      for (fs::recursive_directory_iterator it(place, all, ec), end; it != end; it.increment(ec))
        if (it->symlink_status(ec).type() == fs::file_type::regular &&
            contains(bytes_of(it->path()), value_))
          seen += it->path().string() + "\n";
    }
    return seen;
  }

  // Of this process alone, so that nobody else's run has it.
  const std::string value_ =
      sha256("a secret of " + std::to_string(::getpid()) + std::to_string(::time(nullptr))).hex();
  CampaignScene scene_;
};

}  // namespace proctor::testing
