#include "tests/support/test_image.h"

#include <set>
#include <sstream>

#include "common/base/digest.h"
#include "common/base/json.h"
#include "common/base/subprocess.h"
#include "common/images/image_store.h"

namespace proctor::testing {
namespace {

constexpr const char* kPrograms[] = {
    "cat",      "chmod", "cp",   "dd",       "diff",    "env",    "grep",  "head",
    "hostname", "id",    "ln",   "ls",       "mkdir",   "mkfifo", "mount", "mv",
    "rm",       "sed",   "seq",  "setsid",   "sh",      "sleep",  "sort",  "stat",
    "tail",     "touch", "test", "truncate", "unshare", "wc",     "yes"};
constexpr const char* kPython = "/usr/bin/python3";
constexpr std::size_t kLayerMax = std::size_t{256} << 20;

Result<std::string> run(std::vector<std::string> argv) {
  return run_for_output({.argv = std::move(argv), .cwd = {}, .env = {}, .stdin_bytes = {}});
}

// What ldd says that these want, as files of a root below `root`.
Status copy_libraries(const fs::path& root, const std::vector<std::string>& of,
                      std::set<std::string>& copied) {
  std::vector<std::string> ldd = {"ldd"};
  ldd.insert(ldd.end(), of.begin(), of.end());
  PROCTOR_TRY(const std::string libraries, run(std::move(ldd)));
  std::istringstream words(libraries);
  std::error_code ec;
  for (std::string word; words >> word;) {
    if (!word.starts_with("/") || word.ends_with(":") || !copied.insert(word).second) continue;
    const fs::path to = root / fs::path(word).relative_path();
    fs::create_directories(to.parent_path(), ec);
    fs::copy_file(word, to, ec);
  }
  return ok_status();
}

// usr/bin/NAME with the libraries it wants.
Status copy_program(const fs::path& root, const std::string& name, std::set<std::string>& copied) {
  std::error_code ec;
  const fs::path program = fs::canonical(fs::path("/usr/bin") / name, ec);
  if (ec) return Error{Errc::kNotFound, "no /usr/bin/" + name};
  fs::copy_file(program, root / "usr/bin" / name, ec);
  return copy_libraries(root, {program.string()}, copied);
}

Result<fs::path> make_layer(const fs::path& dir) {
  const fs::path root = dir / "root";
  for (const char* name : {"usr/bin", "usr/lib", "usr/lib64", "etc", "tmp", "proc", "dev"}) {
    PROCTOR_CHECK_OK(make_dirs(root / name));
  }
  std::error_code ec;
  for (const char* name : {"bin", "lib", "lib64"}) {
    fs::create_directory_symlink(std::string("usr/") + name, root / name, ec);
  }
  std::set<std::string> copied;
  for (const char* name : kPrograms) PROCTOR_CHECK_OK(copy_program(root, name, copied));
  PROCTOR_CHECK_OK(write_file(root / "etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"));
  const fs::path tar = dir / "layer-of-programs.tar";
  PROCTOR_TRY([[maybe_unused]] const std::string none,
              run({"tar", "-C", root.string(), "--owner=0", "--group=0", "--sort=name",
                   "--mtime=@0", "-cf", tar.string(), "."}));
  return tar;
}

// Where Debian keeps Python, and of its packages those that pytest has loaded.
Result<std::vector<std::string>> python_files() {
  PROCTOR_TRY(const std::string said, run({kPython, "-I", "-c", R"(
import os, pytest, sys, sysconfig
print(sysconfig.get_path('stdlib'))
packages = os.path.dirname(os.path.dirname(pytest.__file__))
for name in sorted({module.partition('.')[0] for module in sys.modules}):
    for path in (os.path.join(packages, name), os.path.join(packages, name + '.py')):
        if os.path.exists(path):
            print(path)
)"}));
  std::vector<std::string> out;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("/usr/")) return Error{Errc::kNotFound, "python3 of Debian has " + line};
    out.push_back(line.substr(1));
  }
  return out;
}

// Files keep their times, by which Python knows its byte code.
Result<fs::path> make_python_layer(const fs::path& dir) {
  const fs::path root = dir / "python";
  std::error_code ec;
  PROCTOR_CHECK_OK(make_dirs(root / "usr/bin"));
  for (const char* name : {"lib", "lib64"}) {  // as in the layer below
    PROCTOR_CHECK_OK(make_dirs(root / "usr" / name));
    fs::create_directory_symlink(std::string("usr/") + name, root / name, ec);
  }
  std::set<std::string> copied;
  PROCTOR_CHECK_OK(copy_program(root, "python3", copied));
  PROCTOR_TRY(const std::vector<std::string> files, python_files());
  std::vector<std::string> modules;
  for (const auto& entry : fs::directory_iterator(fs::path("/") / files.at(0) / "lib-dynload", ec))
    modules.push_back(entry.path().string());
  PROCTOR_CHECK_OK(copy_libraries(root, modules, copied));
  const fs::path tar = dir / "layer-of-python.tar";
  std::vector<std::string> argv = {"tar",         "--owner=0", "--group=0",
                                   "--sort=name", "-cf",       tar.string()};
  for (const char* large : {"*/test", "*/tests", "*/idlelib", "*/lib2to3", "*/ensurepip",
                            "*/tkinter", "*/pydoc_data", "*/config-*", "*.opt-?.pyc"})
    argv.push_back(std::string("--exclude=") + large);
  argv.insert(argv.end(), {"-C", root.string(), "usr", "-C", "/"});
  argv.insert(argv.end(), files.begin(), files.end());
  PROCTOR_TRY([[maybe_unused]] const std::string none, run(std::move(argv)));
  return tar;
}

}  // namespace

namespace {

Result<TestImage> write_archive(const fs::path& dir, const std::string& name,
                                const std::vector<fs::path>& layers,
                                const std::vector<std::string>& entrypoint) {
  const fs::path parts = dir / "image-parts";
  PROCTOR_CHECK_OK(make_dirs(parts));
  Json contents = Json::array(), files = Json::array();
  for (const fs::path& layer : layers) {
    PROCTOR_TRY(const std::string bytes, read_file(layer, kLayerMax));
    contents.push_back("sha256:" + sha256(bytes).hex());
    const std::string file = std::to_string(files.size()) + ".tar";
    files.push_back(file);
    PROCTOR_CHECK_OK(write_file(parts / file, bytes, Durability::kLazy));
  }
  Json config = {{"architecture", host_architecture()},
                 {"os", "linux"},
                 {"config",
                  {{"Env", {"FROM_IMAGE=1", "PATH=/image/bin"}},
                   {"Labels", {{"proctor.owner", "test"}, {"proctor.name", name}}}}},
                 {"rootfs", {{"type", "layers"}, {"diff_ids", contents}}}};
  if (!entrypoint.empty()) config["config"]["Entrypoint"] = entrypoint;
  const std::string text = config.dump();
  const std::string hex = sha256(text).hex();
  const Json manifest = Json::array(
      {{{"Config", hex + ".json"}, {"RepoTags", Json::array({name})}, {"Layers", files}}});
  PROCTOR_CHECK_OK(write_file(parts / (hex + ".json"), text, Durability::kLazy));
  PROCTOR_CHECK_OK(write_file(parts / "manifest.json", manifest.dump(), Durability::kLazy));
  const fs::path archive = dir / "image.tar";
  PROCTOR_TRY([[maybe_unused]] const std::string none,
              run({"tar", "-C", parts.string(), "-cf", archive.string(), "."}));
  PROCTOR_CHECK_OK(remove_tree(parts));
  return TestImage{archive, "sha256:" + hex};
}

}  // namespace

Result<TestImage> write_image_of(const fs::path& dir, const std::string& name,
                                 const std::vector<fs::path>& layers) {
  return write_archive(dir, name, layers, {});
}

Result<TestImage> write_program_image(const fs::path& dir, const std::string& name,
                                      const std::vector<fs::path>& layers,
                                      const std::vector<std::string>& entrypoint) {
  PROCTOR_TRY(const fs::path shell, make_layer(dir));
  std::vector<fs::path> all = {shell};
  all.insert(all.end(), layers.begin(), layers.end());
  return write_archive(dir, name, all, entrypoint);
}

Result<TestImage> write_image_without_shell(const fs::path& dir, const std::string& name) {
  PROCTOR_CHECK_OK(write_file(dir / "only-this", "x"));
  const fs::path layer = dir / "l.tar";
  PROCTOR_TRY([[maybe_unused]] const std::string none,
              run({"tar", "-C", dir.string(), "-cf", layer.string(), "only-this"}));
  return write_image_of(dir, name, {layer});
}

Result<TestImage> write_image_with_foreign_shell(const fs::path& dir, const std::string& name) {
  PROCTOR_CHECK_OK(make_dirs(dir / "bin"));
  // The head of a 32 bit big-endian program of machine 2 (SPARC), and nothing to run.
  std::string head(
      "\x7f"
      "ELF\x01\x02\x01",
      7);
  head.resize(16, '\0');
  head += std::string("\0\x02\0\x02\0\0\0\x01", 8);
  head.resize(4096, '\0');
  PROCTOR_CHECK_OK(write_file(dir / "bin/sh", head, Durability::kLazy, 0755));
  const fs::path layer = dir / "l.tar";
  PROCTOR_TRY([[maybe_unused]] const std::string none,
              run({"tar", "-C", dir.string(), "-cf", layer.string(), "bin"}));
  return write_image_of(dir, name, {layer});
}

Result<TestImage> write_test_image(const fs::path& dir, const std::string& name) {
  PROCTOR_TRY(const fs::path layer, make_layer(dir));
  return write_image_of(dir, name, {layer});
}

Result<TestImage> write_python_image(const fs::path& dir, const std::string& name) {
  PROCTOR_TRY(const fs::path shell, make_layer(dir));
  PROCTOR_TRY(const fs::path python, make_python_layer(dir));
  return write_image_of(dir, name, {shell, python});
}

}  // namespace proctor::testing
