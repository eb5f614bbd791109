#include "coordinator/cli/image_engine.h"

#include <unistd.h>

#include <chrono>
#include <sstream>

#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "coordinator/cli/engine_probe.h"

namespace proctor::cli {
namespace {

// A build may compile the world, an image may be tens of gigabytes.
constexpr std::chrono::hours kPatience{6};
constexpr std::size_t kOutputMax = std::size_t{64} << 20;

Result<std::string> run(std::vector<std::string> argv, const std::string& what) {
  CommandSpec spec;
  spec.argv = {"env", "DOCKER_HOST=unix://" + docker_socket(),
               "PROCTOR_DOCKER_SOCKET=" + docker_socket()};
  spec.argv.insert(spec.argv.end(), argv.begin(), argv.end());
  spec.timeout = kPatience;
  spec.output_max = kOutputMax;
  auto outcome = run_command(spec);
  if (!outcome.ok()) return in_context(what, outcome.error());
  if (outcome->success()) return std::move(outcome->out);
  bool absent = false;  // told in other words by every command
  for (const char* words : {"No such image", "No such object", "reference does not exist"})
    absent = absent || outcome->err.find(words) != std::string::npos;
  return Error{absent ? Errc::kNotFound : Errc::kUnavailable, what + ": " + outcome->describe()};
}

Result<std::string> docker(std::vector<std::string> args, const std::string& what) {
  args.insert(args.begin(), "docker");
  return run(std::move(args), what);
}

Result<std::vector<EngineImage>> inspect(std::vector<std::string> references) {
  std::vector<EngineImage> out;
  if (references.empty()) return out;
  references.insert(references.begin(), {"image", "inspect"});
  PROCTOR_TRY(const std::string text, docker(std::move(references), "docker image inspect"));
  PROCTOR_TRY(const Json all, parse_json(text, {kOutputMax, 64}));
  try {
    for (const Json& item : all) {
      EngineImage image;
      item.at("Id").get_to(image.id);
      item.at("Size").get_to(image.bytes);
      if (const Json& tags = item.at("RepoTags"); tags.is_array()) tags.get_to(image.names);
      out.push_back(std::move(image));
    }
  } catch (const Json::exception& e) {
    return Error{Errc::kUnavailable, std::string("docker image inspect: ") + e.what()};
  }
  return out;
}

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return last;
}

}  // namespace

Result<std::vector<EngineImage>> engine_images() {
  PROCTOR_TRY(const std::string ids,
              docker({"image", "ls", "-q", "--no-trunc"}, "docker image ls"));
  std::vector<std::string> all;
  std::istringstream words(ids);
  for (std::string id; words >> id;)
    if (all.empty() || all.back() != id) all.push_back(id);
  return inspect(std::move(all));
}

Result<EngineImage> engine_image(const std::string& reference) {
  PROCTOR_TRY(std::vector<EngineImage> found, inspect({reference}));
  if (found.empty()) return Error{Errc::kNotFound, "the Docker Engine has no image " + reference};
  return std::move(found.front());
}

Result<EngineImage> build_in_engine(const std::string& name, const fs::path& folder) {
  std::error_code ec;
  if (!fs::exists(folder / "Dockerfile", ec))
    return Error{Errc::kNotFound, folder.string() + ": there is no Dockerfile in it"};
  PROCTOR_TRY([[maybe_unused]] const std::string said,
              docker({"build", "-q", "-t", name, folder.string()}, "docker build"));
  return engine_image(name);
}

Result<EngineImage> build_labelled(const LabelledBuild& build) {
  PROCTOR_TRY([[maybe_unused]] const std::string said,
              docker({"build", "-q", "--force-rm", "--network", build.network ? "default" : "none",
                      "--label", build.label, "-f", (build.folder / build.dockerfile).string(),
                      "-t", build.name, build.folder.string()},
                     "docker build"));
  return engine_image(build.name);
}

void drop_old_builds(const std::string& label, const std::string& age) {
  (void)docker(
      {"image", "prune", "-a", "-f", "--filter", "label=" + label, "--filter", "until=" + age},
      "docker image prune")
      .ok();
}

Result<EngineImage> build_by_program(const std::string& name, const fs::path& program) {
  PROCTOR_TRY(const std::string said, run({fs::absolute(program).string()}, program.string()));
  const std::string id = last_line(said);
  PROCTOR_TRY([[maybe_unused]] const std::string none,
              docker({"tag", id, name}, program.string() + " printed '" + printable(id) + "'"));
  return engine_image(name);
}

Status save_from_engine(const std::string& reference, const fs::path& archive) {
  const fs::path part = archive.string() + ".part" + std::to_string(::getpid());
  const auto saved = docker({"save", "-o", part.string(), reference}, "docker save");
  std::error_code ec;
  if (saved.ok()) {
    PROCTOR_CHECK_OK(sync_path(part));
    fs::rename(part, archive, ec);
    if (!ec) return ok_status();
  }
  const std::error_code why = ec;
  fs::remove(part, ec);
  return saved.ok() ? errno_error("write " + archive.string(), why.value()) : saved.error();
}

Status load_into_engine(const fs::path& archive) {
  PROCTOR_TRY([[maybe_unused]] const std::string said,
              docker({"load", "-q", "-i", archive.string()}, "docker load"));
  return ok_status();
}

}  // namespace proctor::cli
