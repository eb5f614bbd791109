#include "coordinator/cvdp/run/images.h"

#include <set>

#include "common/base/digest.h"
#include "common/base/text.h"
#include "common/images/image_store.h"
#include "coordinator/cli/image_engine.h"

namespace proctor::cli {
namespace {

constexpr const char* kLabel = "proctor.build";
constexpr const char* kBuilt = "proctor-cvdp-build:";

// Lengths before bytes: no two contexts have one text.
std::string digest_of(const cvdp::BuildContext& context, const std::string& bases, bool network) {
  std::string all = bases + "\n" + context.dockerfile + (network ? "\nnetwork\n" : "\n");
  for (const auto& [path, bytes] : context.files)
    all += std::to_string(path.size()) + ":" + path + std::to_string(bytes.size()) + ":" + bytes;
  return sha256(all).hex();
}

// What could be named instead, the store's and the engine's; a few, since it ends a message.
std::string others(const ImageStore& store) {
  std::set<std::string> names;
  if (const auto stored = store.list(); stored.ok())
    for (const StoredImage& image : *stored) names.insert(image.names.begin(), image.names.end());
  if (const auto there = engine_images(); there.ok())
    for (const EngineImage& image : *there) names.insert(image.names.begin(), image.names.end());
  // Our own builds are of one record's Dockerfile each: nobody asks for them by name.
  std::erase_if(names, [](const std::string& name) { return name.starts_with(kBuilt); });
  if (names.empty()) return "no image is there at all";
  constexpr std::size_t kMost = 8;
  std::string out = "there are: ";
  std::size_t told = 0;
  for (const std::string& name : names) {
    if (told == kMost) break;
    out += (told++ == 0 ? "" : ", ") + printable(name);
  }
  return names.size() == told ? out : out + " and " + std::to_string(names.size() - told) + " more";
}

}  // namespace

Result<std::string> HostImages::id_of(const std::string& name) {
  const auto it = known_.find(name);
  return it != known_.end() ? it->second : known_.emplace(name, look_for(name)).first->second;
}

Result<std::string> HostImages::look_for(const std::string& name) const {
  PROCTOR_TRY(const ImageStore store, ImageStore::open(default_image_store()));
  if (const auto stored = store.find(name); stored.ok()) return stored->id;
  const auto engine = engine_image(name);
  if (engine.ok()) return engine->id;
  const bool absent = engine.error().code == Errc::kNotFound;
  return Error{Errc::kInvalid, "image " + printable(name) + " is neither in the store " +
                                   store.dir().string() + " nor in the Docker Engine" +
                                   (absent ? "" : " (" + engine.error().detail + ")") +
                                   "; nothing is pulled: proctor images build or import; " +
                                   others(store)};
}

Result<std::string> HostImages::build(const cvdp::BuildContext& context) {
  std::string bases;
  for (const std::string& base : context.bases) {
    const auto there = engine_image(base);
    if (!there.ok())
      return Error{Errc::kInvalid, "building its image needs " + printable(base) +
                                       " in a Docker Engine: " + there.error().detail};
    bases += there->id + "\n";
  }
  const std::string digest = digest_of(context, bases, network_);
  const auto it = built_.find(digest);
  return it != built_.end() ? it->second
                            : built_.emplace(digest, make(context, digest)).first->second;
}

Result<std::string> HostImages::make(const cvdp::BuildContext& context,
                                     const std::string& digest) const {
  const std::string name = kBuilt + digest.substr(0, 32);
  if (const auto there = engine_image(name); there.ok()) return there->id;
  PROCTOR_TRY(const TempDir dir, TempDir::create("proctor-cvdp-build"));
  for (const auto& [path, bytes] : context.files) {
    PROCTOR_CHECK_OK(make_dirs((dir.path() / path).parent_path()));
    PROCTOR_CHECK_OK(write_file(dir.path() / path, bytes, Durability::kLazy, kOpenFile));
  }
  constexpr const char* kWeek = "168h";
  drop_old_builds(kLabel, kWeek);
  const auto built = build_labelled(
      {name, dir.path(), context.dockerfile, std::string(kLabel) + "=" + digest, network_});
  if (built.ok()) return built->id;
  if (built.error().code == Errc::kUnavailable && network_) return built.error();
  return Error{Errc::kInvalid, "its image could not be built" +
                                   std::string(network_ ? "" : " without a network") + ": " +
                                   built.error().detail};
}

}  // namespace proctor::cli
