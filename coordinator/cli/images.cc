// proctor images build|list|export|import|remove: images for contracts, on hosts without a
// registry.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "common/base/digest.h"
#include "common/base/file_lock.h"
#include "common/base/json.h"
#include "common/images/image_store.h"
#include "coordinator/cli/command.h"
#include "coordinator/cli/image_engine.h"

namespace proctor::cli {
namespace {

struct ImagesArgs {
  std::string image;
  fs::path store = default_image_store(), folder, program, file;
  bool json = false, to_store = false, to_engine = false, from_engine = false;
};

std::string mebibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ",") + word;
  return all;
}

void tell(const std::string& id, const std::vector<std::string>& names, std::uint64_t bytes,
          const std::string& where) {
  const std::string all = joined(names);
  std::printf("%-30s  %s  %12s  %s\n", all.empty() ? "-" : all.c_str(), id.c_str(),
              mebibytes(bytes).c_str(), where.c_str());
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
    if (!args.json) tell(id, image.names, bytes, joined(where));
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
  if (args.to_engine) PROCTOR_CHECK_OK(load_into_engine(args.file));
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
