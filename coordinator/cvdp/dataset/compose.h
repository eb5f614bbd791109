#pragma once
// The Docker files of a harness: its Dockerfile and its docker-compose.yml.  Pure; any thread.
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "coordinator/cvdp/dataset/record.h"

namespace proctor::cvdp {
// As much of a Dockerfile as decides whether it has to be built at all, and of what.
// Source: the Dockerfile reference of Docker Engine 20.10.
struct Dockerfile {
  std::vector<std::string> bases;  // images of FROM lines, earlier stages left out, each once
  bool only_from = false;          // it is its one base by another name
};
// nullopt: no FROM, or a base that a build argument names.
std::optional<Dockerfile> read_dockerfile(std::string_view text);

// docker-compose.yml of a harness: upstream's changes to it, what makes it unsafe to run, and what
// it asks to be run.  Source: CVDP 4.2-4.5, 5.1; the Compose specification.

// The names that replace the four placeholders; one that is empty replaces nothing.
struct ImageNames {
  std::string verif_eda = "cvdp-cadence-verif:latest";
  std::string license_network = "licnetwork";
  std::string oss_sim = "nvidia/cvdp-sim:v1.0.0";
  std::string oss_pnr = "nvidia/cvdp-sim:v1.0.0";
};
std::string substitute(std::string text, const ImageNames& names);

// Does the record need the licensed tools: category 12, 13 or 14, or one of their placeholders
// anywhere in it.
bool needs_eda(const Value& record);

// "cvdp-bridge-<name>-<8 digits>", cut to 64 characters: upstream's, by which two files can share a
// network.
std::string upstream_network_name(std::string_view dataset_path);

struct ComposeSettings {
  ImageNames names;
  std::string shared_network{};  // empty: none
  bool needs_eda = false;
};
struct ComposeFile {
  std::string text;  // as upstream writes it
  Value value;
  std::vector<std::string> warnings;
};
// kInvalid: not readable YAML (anchors and tags included), no services, or asking for more than a
// harness may have: privileged, host namespaces, devices, mounts from outside its folder.
Result<ComposeFile> normalise_compose(std::string_view text, const ComposeSettings& settings);

// Name and value; no value: passed on from outside.
using EnvPairs = std::vector<std::pair<std::string, std::optional<std::string>>>;
// A compose env_file: blanks round "=" and whole-line comments are allowed, values may be quoted;
// nothing is expanded.  kInvalid with the line.
Result<EnvPairs> parse_env_file(std::string_view text);

// One service as one container; what upstream adds on its command line is not in it.
struct ServicePlan {
  std::string name;
  std::string image;       // empty: built
  std::string build;       // folder with a Dockerfile, relative; empty: not built
  std::string dockerfile;  // in it
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  EnvPairs environment;
  std::vector<std::string> env_files;
  struct Mount {
    std::string source;  // a path that begins with "." or a volume's name
    std::string target;
    bool read_only = false;
  };
  std::vector<Mount> mounts;
  std::string working_dir;
  std::vector<std::string> depends_on;
  std::vector<std::string> needs_healthy;  // those of depends_on that must be healthy first
  // When it is healthy, as compose asks: a line for the shell; empty: nobody asks.
  struct Health {
    std::string command;
    std::chrono::milliseconds interval{30'000};
    std::chrono::milliseconds at_most{0};  // until it counts as unhealthy
  };
  Health health;
};
// The code of an error about what docker compose alone can run, and how its sentence ends.
inline constexpr Errc kBeyondSubset = Errc::kConflict;
inline constexpr std::string_view kNeedsCompose =
    "is not in the subset that runs without docker compose";
// Variables ("$X", "${X:-default}") are replaced as compose does where none is set.
// In the order in which upstream runs them: by name.  kBeyondSubset names the first key that this
// subset does not know, so that `docker compose` can be used instead.
Result<std::vector<ServicePlan>> plan_services(const Value& compose);

// A command line split as a POSIX shell splits words (quotes and backslashes; nothing is expanded).
Result<std::vector<std::string>> split_command(std::string_view line);
}  // namespace proctor::cvdp
