#include "coordinator/cli/image_engine.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>

#include "common/base/digest.h"
#include "common/base/file_lock.h"
#include "common/base/json.h"
#include "common/base/owned.h"
#include "common/base/subprocess.h"
#include "common/base/text.h"
#include "common/images/image_store.h"
#include "coordinator/cli/command.h"

namespace proctor::cli {
namespace {
bool is_name(const std::string& image) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/:@";
  return !image.empty() && image.find_first_not_of(kPlain) == std::string::npos;
}

Status ask(const std::string& target, const std::string& what) {
  const std::string path = docker_socket();
  const Error away{Errc::kUnavailable, "no Docker Engine answers at " + path};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (sizeof address.sun_path <= path.size()) return away;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};
  if (!fd.valid() ||
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) != 0 ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return away;
  const std::string request =
      "GET " + target + " HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return away;
  // The status line is all we need: "HTTP/1.1 200 OK".
  std::string head;
  std::array<char, 256> buffer{};
  constexpr std::size_t kStatusLine = 12;
  while (head.size() < kStatusLine) {
    const ssize_t n = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return away;
    head.append(buffer.data(), static_cast<std::size_t>(n));
  }
  const std::string code = head.substr(9, 3);
  if (code == "200") return ok_status();
  if (code == "404") return Error{Errc::kNotFound, "the Docker Engine has no " + what};
  return Error{Errc::kUnavailable, "the Docker Engine answered " + code};
}

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
}  // namespace

std::string docker_socket() {
  const char* set = std::getenv("PROCTOR_DOCKER_SOCKET");
  return set != nullptr && *set != '\0' ? set : "/var/run/docker.sock";
}

Status engine_has_image(const std::string& image) {
  if (!is_name(image)) return Error{Errc::kInvalid, "not the name of an image"};
  return ask("/images/" + image + "/json", "image " + image);
}

Status engine_has_network(const std::string& network) {
  if (!is_name(network) || network.find('/') != std::string::npos)
    return Error{Errc::kInvalid, "not the name of a network"};
  return ask("/networks/" + network, "network " + network);
}

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

Result<EngineImage> build_labelled(const LabelledBuild& build) {
  PROCTOR_CHECK_OK(
      docker({"build", "-q", "--force-rm", "--network", build.network ? "default" : "none",
              "--label", build.label, "-f", (build.folder / build.dockerfile).string(), "-t",
              build.name, build.folder.string()},
             "docker build"));
  return engine_image(build.name);
}

void drop_old_builds(const std::string& label, const std::string& age) {
  (void)docker(
      {"image", "prune", "-a", "-f", "--filter", "label=" + label, "--filter", "until=" + age},
      "docker image prune")
      .ok();
}

// proctor images build|list|export|import|remove: images for contracts, on hosts without a
// registry.

namespace {
// `docker build` of a folder with a Dockerfile.
Result<EngineImage> build_in_engine(const std::string& name, const fs::path& folder) {
  std::error_code ec;
  if (!fs::exists(folder / "Dockerfile", ec))
    return Error{Errc::kNotFound, folder.string() + ": there is no Dockerfile in it"};
  PROCTOR_CHECK_OK(docker({"build", "-q", "-t", name, folder.string()}, "docker build"));
  return engine_image(name);
}

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return last;
}

// The id that a program prints as its last line (as ops/images/build does), then called `name`.
Result<EngineImage> build_by_program(const std::string& name, const fs::path& program) {
  PROCTOR_TRY(const std::string said, run({fs::absolute(program).string()}, program.string()));
  const std::string id = last_line(said);
  PROCTOR_CHECK_OK(
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

struct ImagesArgs {
  std::string image;
  fs::path store = default_image_store(), folder, program, file;
  bool json = false, to_store = false, to_engine = false, from_engine = false;
};

void tell(const std::string& id, const std::vector<std::string>& names, std::uint64_t bytes,
          const std::string& where) {
  std::fputs(fmt::format("{:<30}  {}  {:>8.1f} MiB  {}\n",
                         names.empty() ? "-" : fmt::format("{}", fmt::join(names, ",")), id,
                         static_cast<double>(bytes) / (1 << 20), where)
                 .c_str(),
             stdout);
}

Status import_file(const ImagesArgs& args, const fs::path& file) {
  PROCTOR_TRY(const ImageStore store, ImageStore::open(args.store));
  PROCTOR_TRY(const std::vector<StoredImage> images, store.import_archive(file));
  for (const StoredImage& i : images) tell(i.id, i.names, i.bytes, "store");
  return ok_status();
}

constexpr const char* kExportPrefix = "from-engine-";

Status import_from_engine(const ImagesArgs& args, const std::string& reference) {
  // A file beside the images: the archive is as large as they are, /tmp may not be.
  PROCTOR_CHECK_OK(make_dirs(args.store));
  // Archives that killed commands left: as large as images, so not for ever.
  remove_left_folders(kExportPrefix, args.store);
  PROCTOR_TRY(const HeldFolder dir, HeldFolder::make(kExportPrefix, args.store));
  const fs::path archive = dir.path() / "image.tar";
  PROCTOR_CHECK_OK(save_from_engine(reference, archive));
  return import_file(args, archive);
}

Status build(const ImagesArgs& args) {
  if (args.folder.empty() == args.program.empty())
    return Error{Errc::kInvalid, "images build: either FOLDER or --by PROGRAM"};
  PROCTOR_TRY(const EngineImage image, args.program.empty()
                                           ? build_in_engine(args.image, args.folder)
                                           : build_by_program(args.image, args.program));
  tell(image.id, image.names, image.bytes, "engine");
  return args.to_store ? import_from_engine(args, args.image) : ok_status();
}

struct Listed {
  std::vector<std::string> names;
  std::optional<std::uint64_t> store, engine;  // bytes there
};

Status list(const ImagesArgs& args) {
  std::map<std::string, Listed> all;
  PROCTOR_TRY(const ImageStore store, ImageStore::open(args.store));
  PROCTOR_TRY(const std::vector<StoredImage> stored, store.list());
  for (const StoredImage& i : stored) all[i.id] = {i.names, i.bytes, std::nullopt};
  const auto engine = engine_images();
  if (engine.ok()) {
    for (const EngineImage& i : *engine) {
      Listed& at = all[i.id];
      if (at.names.empty()) at.names = i.names;
      at.engine = i.bytes;
    }
  } else {
    std::fprintf(stderr, "proctor: the engine's images are not shown: %s\n",
                 engine.error().detail.c_str());
  }
  Json json = Json::array();
  for (const auto& [id, image] : all) {
    std::vector<std::string> where;
    if (image.store) where.push_back("store");
    if (image.engine) where.push_back("engine");
    const std::uint64_t bytes = image.store ? *image.store : *image.engine;
    json.push_back({{"id", id}, {"names", image.names}, {"bytes", bytes}, {"where", where}});
    if (!args.json) tell(id, image.names, bytes, fmt::format("{}", fmt::join(where, ",")));
  }
  if (args.json) std::printf("%s\n", json.dump(1).c_str());
  return ok_status();
}

Status export_image(const ImagesArgs& args) {
  PROCTOR_CHECK_OK(save_from_engine(args.image, args.file));
  PROCTOR_TRY(const EngineImage image, engine_image(args.image));
  tell(image.id, image.names, image.bytes, args.file.string());
  return ok_status();
}

Status import(const ImagesArgs& args) {
  if (args.from_engine) return import_from_engine(args, args.file.string());
  if (args.to_engine)
    PROCTOR_CHECK_OK(docker({"load", "-q", "-i", args.file.string()}, "docker load"));
  if (args.to_engine && !args.to_store) return ok_status();
  return import_file(args, args.file);
}

Status remove(const ImagesArgs& args) {
  PROCTOR_TRY(const ImageStore store, ImageStore::open(args.store));
  return store.remove(args.image);
}

Command add(Command images, const char* name, const char* what, const char* example,
            Status (*act)(const ImagesArgs&), const std::shared_ptr<ImagesArgs>& args,
            int& exit_code) {
  const Command command =
      images.add_subcommand(name, what, std::string("Example:\n  proctor images ") + example);
  command.add_option("--store", args->store, "the host's image store")
      .envname(kImageStoreVariable)
      .capture_default_str();
  command.callback([=, &exit_code] { exit_code = code_of(act(*args)); });
  return command;
}
}  // namespace

void add_images(Command app, int& exit_code) {
  const Command images = app.add_subcommand(
      "images", "build images and carry them to hosts without a registry; the store that oci runs",
      "Example:\n"
      "  proctor images build tools:1 docker/tools\n"
      "  proctor images export tools:1 tools.tar\n"
      "  proctor images import tools.tar           (on the host that runs it)\n"
      "A worker runs what the store holds without a Docker Engine (proctor-worker --images).");
  images.require_subcommand(1);
  auto args = std::make_shared<ImagesArgs>();
  const Command made = add(images, "build", "build an image in the Docker Engine",
                           "build tools:1 docker/tools --import", build, args, exit_code);
  made.add_option("NAME", args->image, "what to call it: tools:1").required();
  made.add_option("FOLDER", args->folder, "holds the Dockerfile");
  made.add_option("--by", args->program, "a program that builds one and prints its id instead");
  made.add_flag("--import", args->to_store, "unpack it into this host's store as well");

  const Command listed = add(images, "list", "the images of the store and of the Docker Engine",
                             "list --json", list, args, exit_code);
  listed.add_flag("--json", args->json, "as JSON");

  const Command out = add(images, "export", "write an image of the Docker Engine into an archive",
                          "export tools:1 tools.tar", export_image, args, exit_code);
  out.add_option("IMAGE", args->image, "name or id").required();
  out.add_option("FILE", args->file, "the archive (docker save)").required();

  const Command in = add(images, "import", "unpack an archive into this host's store",
                         "import tools.tar\n  proctor images import --from-engine tools:1", import,
                         args, exit_code);
  in.add_option("FILE", args->file, "an archive: docker save, or an OCI layout in a tar")
      .required();
  const Option from = in.add_flag("--from-engine", args->from_engine,
                                  "FILE is the name of an image of the Docker Engine");
  const Option to = in.add_flag("--engine", args->to_engine, "into the Docker Engine instead");
  in.add_flag(
      "--both", [args] { args->to_engine = args->to_store = true; },
      "into the store and the Docker Engine");
  from.excludes(to);

  const Command gone = add(images, "remove", "take an image out of this host's store",
                           "remove tools:1", remove, args, exit_code);
  gone.add_option("IMAGE", args->image, "name or id").required();
}
}  // namespace proctor::cli
