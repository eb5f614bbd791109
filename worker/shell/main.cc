#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <set>

#include "common/base/command_line.h"
#include "common/base/digest.h"
#include "common/base/file_lock.h"
#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/json_fields.h"
#include "common/base/last_words.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/base/namespaces.h"
#include "common/base/system_clock.h"
#include "common/base/text.h"
#include "common/base/version.h"
#include "common/contract/fields.h"
#include "common/images/image_store.h"
#include "common/wire/curve.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/host_lack.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/seccomp_filter.h"
#include "worker/selftest/selftest.h"
#include "worker/shell/built_images.h"
#include "worker/shell/coordinators.h"
#include "worker/shell/host_facts.h"
#include "worker/shell/host_room.h"
#include "worker/shell/meter_book.h"
#include "worker/shell/worker_loop.h"
#include "worker/workspace/cache.h"
#include "worker/workspace/extract.h"

namespace proctor {
namespace {
constexpr int kOk = 0, kNo = 1, kBadInput = 2, kInfrastructure = 4, kBug = 70;

int fail(const Error& e, const char* who = "proctor-worker") {
  std::fprintf(stderr, "%s: %s\n", who, e.detail.c_str());
  return e.code == Errc::kInvalid || e.code == Errc::kNotFound ? kBadInput : kInfrastructure;
}

// Where workers keep mirrors, trees, workspaces and spools without --root: $XDG_STATE_HOME/proctor,
// else
// ~/.local/state/proctor (XDG Base Directory Specification).
fs::path default_worker_root() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return fs::path(state) / "proctor";
  }
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr && *home == '/' ? home : "/tmp") / ".local/state/proctor";
}

constexpr double kMiB = 1024.0 * 1024.0;

// Of images nobody knows what their removal gives back: with --max 0 all that no run uses go, else
// those that none has used for long.
Status remove_images(const fs::path& store, const std::string& socket, bool all) {
  if (!docker_answers(socket)) return ok_status();
  PROCTOR_TRY(const BuiltImages::Swept swept,
              BuiltImages(store, socket)
                  .sweep(all ? std::chrono::seconds(0) : std::chrono::seconds(kBuiltImagesKept)));
  if (0 < swept.removed + swept.in_use)
    std::fprintf(stdout, "removed %zu built images; %zu in use\n", swept.removed, swept.in_use);
  return ok_status();
}
}  // namespace

// `proctor-worker gc`: makes room among the mirrors, trees and setup layers of a root.  0: done, 2:
// bad use, 4: the disk failed.
int collect_garbage(int argc, char** argv) {
  cli::CommandLine app;
  std::string max = "0";
  fs::path root = default_worker_root();
  fs::path store = default_image_store();
  std::string socket = "/var/run/docker.sock";
  app.name("proctor-worker gc");
  app.description(
      "Removes the mirrors, checked-out trees and kept setups that were used longest ago, until "
      "the\n"
      "rest takes at most --max. What a running worker uses stays; what is removed is made again\n"
      "when a run needs it. Of images that workers built from Dockerfiles those go that no run "
      "has\n"
      "used for a week; with --max 0 all that none uses. Control groups that killed workers left\n"
      "go too. May be run at any time, beside workers.\n\n"
      "Example: proctor-worker gc --max 20GiB");
  app.footer("Exit codes: 0 done, 2 bad use, 4 infrastructure.");
  app.add_option("--max", max, "what they may take: 500MiB, 20GiB; 0: nothing")
      .capture_default_str();
  app.add_option("--root", root, "the workers' folder").capture_default_str();
  app.add_option("--image-store", store, "beside which it is kept what images workers built")
      .capture_default_str();
  app.add_option("--docker-socket", socket, "of the Docker Engine that built images")
      .envname("PROCTOR_DOCKER_SOCKET")
      .capture_default_str();
  if (const auto ended = app.parse(argc, argv, kBadInput)) return *ended;
  const Result<std::uint64_t> bytes_max = max == "0" ? std::uint64_t{0} : parse_size(max);
  const Result<CacheReport> done =
      bytes_max.ok() ? make_room(root, *bytes_max) : in_context("--max " + max, bytes_max.error());
  if (!done.ok()) return fail(done.error(), "proctor-worker gc");
  const auto mib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / kMiB; };
  std::fprintf(stdout,
               "%llu mirrors, trees and setups, %.1f MiB; removed %llu, %.1f MiB; %llu in use\n",
               static_cast<unsigned long long>(done->items), mib(done->bytes),
               static_cast<unsigned long long>(done->removed), mib(done->removed_bytes),
               static_cast<unsigned long long>(done->in_use));
  if (const Status removed = remove_images(store, socket, *bytes_max == 0); !removed.ok())
    return fail({Errc::kUnavailable, removed.error().detail}, "proctor-worker gc");
  if (const std::size_t groups = CgroupHost::detect("gc").sweep(); 0 < groups)
    std::fprintf(stdout, "removed %zu control groups of workers that are gone\n", groups);
  return kOk;
}

// `proctor-worker selftest [--json]`: prints the report.  0: untrusted agents may run here, 1: not,
// 2: bad use, 4: it could not be tried.
int selftest(int argc, char** argv) {
  cli::CommandLine app;
  SelftestOptions options;
  options.docker_socket = "/var/run/docker.sock";
  bool json = false;
  app.name("proctor-worker selftest");
  app.description(
      "Says what this host offers (workspaces, sandboxes, who keeps which limit), attacks its own\n"
      "sandboxes as a hostile agent would, and says in the last line whether untrusted agents may\n"
      "run here. First a process stands still in each kind of sandbox and is looked at from\n"
      "outside; what would harm a host is tried only where that shows it isolated, and no more\n"
      "after an escape. A line for each kind says what escaped and what to do; a kind that this\n"
      "host does not have is no failure. Takes half a minute; leaves nothing.\n\n"
      "Example: proctor-worker selftest && echo this host is fit");
  app.footer(
      "Exit codes: 0 every kind offered here contains all, 1 one does not, or there is none; 2 bad "
      "use, 4 it could not be tried.");
  app.add_flag("--json", json, "the report as one JSON object");
  app.add_option("--docker-socket", options.docker_socket, "of the Docker Engine")
      .envname("PROCTOR_DOCKER_SOCKET")
      .capture_default_str();
  app.add_option("--oci-runtime", options.oci_runtime, "runc or runsc; default: runc")
      .envname("PROCTOR_OCI_RUNTIME")
      .one_of({"runc", "runsc"});
  app.add_option(
      "--scratch", options.scratch,
      "folder to work in, best on the disk of the worker's root (default: the system's)");
  if (const auto ended = app.parse(argc, argv, kBadInput)) return *ended;
  log::init("selftest", log::Level::kError);
  if (::geteuid() != 0) (void)enter_own_mounts();  // as a worker does; the report says what works
  const Result<SelftestReport> report = run_selftest(options);
  if (!report.ok())
    return fail({Errc::kUnavailable, report.error().detail}, "proctor-worker selftest");
  const std::string text = json ? to_json(*report).dump(2) + "\n" : selftest_text(*report);
  std::fputs(text.c_str(), stdout);
  return report->untrusted_allowed() ? kOk : kNo;
}

// proctor-worker: reads its command line, opens what this host offers, serves until it may leave.

namespace {
struct Options {
  std::vector<std::string> connect;
  fs::path connect_file;
  std::string name, server_key, key;
  std::uint32_t slots = 2, beside = 0;
  fs::path root;
  std::string docker_socket = "/var/run/docker.sock";
  fs::path image_store = default_image_store();
  std::string oci_runtime;
  ImageRunner images = ImageRunner::kAuto;
  std::string workspaces = "auto";
  std::optional<WorkspaceKind> kind{};  // of `workspaces`; none: auto
  bool no_overlay = false, bounded_disks = false, no_setup_cache = false, one_user = false,
       share_user = false, allow_null = false, once = false, die_with_parent = false;
  bool insecure_loopback = false, verbose = false, clean_up = false;
  std::uint32_t give_up_after = 0, engine_wait = 600;
  std::optional<std::uint32_t> leave_grace;
  std::string cache_max = "0";
  fs::path models;
};

std::string default_name() {
  char host[limits::kNameBytes / 2] = {};
  ::gethostname(host, sizeof host - 1);
  std::string name = std::string(host) + "-" + std::to_string(::getpid());
  return is_worker_name(name) ? name : "worker-" + std::to_string(::getpid());
}

void declare(cli::CommandLine& app, Options& o) {
  app.description(
      "Runs attempts for a Proctor coordinator: workspaces, agents and acceptance in sandboxes.\n"
      "Interrupt once to finish what runs and leave, twice to cancel it.\n\n"
      "Example: proctor-worker --connect tcp://10.0.0.5:7400 --slots 8 --name build7 \\\n"
      "           --server-key coordinator.pub --key build7.key");
  app.footer(
      "Exit codes: 0 left in good order, 2 bad input or refused, 4 infrastructure.\n"
      "proctor-worker gc: makes room among mirrors, trees and kept setups.\n"
      "proctor-worker selftest: may this host run untrusted agents?\n"
      "proctor-worker seccomp-profile: the system calls of sandboxes.");
  const cli::Option connect =
      app.add_option("--connect", o.connect,
                     "coordinator: tcp://HOST:PORT or ipc://PATH, several addresses of one with "
                     "commas between them; again for each further one, which is served at the "
                     "same time")
          .allow_extra_args(false);
  const cli::Option connect_file = app.add_option(
      "--connect-file", o.connect_file,
      "file or folder of coordinators, read again while the worker runs: lines of NAME ADDRESSES "
      "[SERVER-KEY [WEIGHT [PRIORITY [SECRETS]]]]");
  app.add_option("--slots", o.slots, "attempts at a time")
      .in_range(std::size_t{1}, limits::kWorkerSlotsMax)
      .capture_default_str();
  app.add_option("--name", o.name,
                 "unique among the campaign's workers; keep it to find results again; with a key, "
                 "the name that the key is registered under");
  app.add_option("--root", o.root,
                 "folder of mirrors, trees, workspaces and spool (default: XDG state)");
  app.add_option("--server-key", o.server_key, "the coordinator's public key file (CURVE)");
  app.add_option("--key", o.key, "this worker's secret key file (CURVE)");
  app.add_option("--docker-socket", o.docker_socket, "of the Docker Engine")
      .envname("PROCTOR_DOCKER_SOCKET")
      .capture_default_str();
  app.add_choice(
      "--images", o.images,
      "who runs images: docker, oci (runc, of the host's image store), or auto: oci for "
      "those the store holds, docker for all others",
      {{"auto", ImageRunner::kAuto}, {"oci", ImageRunner::kOci}, {"docker", ImageRunner::kDocker}});
  app.add_option("--image-store", o.image_store,
                 "folder of the unpacked images that oci runs (see proctor images)")
      .envname(kImageStoreVariable)
      .capture_default_str();
  app.add_option("--oci-runtime", o.oci_runtime,
                 "runc or runsc (a kernel in user space); default: runc")
      .envname("PROCTOR_OCI_RUNTIME")
      .one_of({"runc", "runsc"});
  app.add_option("--cache-max", o.cache_max,
                 "what mirrors, trees and kept setups of the root may take (20GiB); the least "
                 "recently used go when a new one is made; 0: all there is")
      .capture_default_str();
  app.add_option("--models", o.models, "file that says how models are reached from here")
      .envname("PROCTOR_MODELS");
  app.add_option("--engine-wait", o.engine_wait,
                 "seconds an attempt waits for a Docker Engine that is away")
      .capture_default_str();
  app.add_option("--give-up-after", o.give_up_after,
                 "seconds without the coordinator (default: never)");
  app.add_option("--leave-grace", o.leave_grace,
                 "seconds that a worker which is leaving waits for the coordinator to take its "
                 "results (default: until it has them)");
  app.add_option("--workspaces", o.workspaces,
                 "kind of workspaces: overlay (root), user-overlay, reflink or copy; "
                 "auto: the first of them that works here")
      .envname("PROCTOR_WORKSPACES")
      .capture_default_str();
  app.add_flag("--no-overlay", o.no_overlay, "the same as --workspaces copy");
  app.add_flag(
         "--bounded-disks", o.bounded_disks,
         "every workspace on a file system of its own that ends where its contract's limit on "
         "disk does; needs root and loop devices, and some 10 ms per workspace")
      .envname("PROCTOR_BOUNDED_DISKS");
  app.add_flag("--no-setup-cache", o.no_setup_cache,
               "run setup in every workspace, keep nothing of it and use nothing that was kept")
      .envname("PROCTOR_NO_SETUP_CACHE");
  app.add_flag(
         "--one-user", o.one_user,
         "all sandboxes are one kernel user, as where this host cannot give each workspace one "
         "of its own")
      .envname("PROCTOR_ONE_USER");
  app.add_flag("--share-user", o.share_user,
               "more than one slot although all sandboxes are one kernel user")
      .envname("PROCTOR_SHARE_USER");
  app.add_option("--beside", o.beside, "workers that whoever started this one has here beside it");
  app.add_flag("--allow-null", o.allow_null, "accept the null sandbox: benchmarks only");
  app.add_flag("--once", o.once, "leave when something was done and nothing is left to do");
  app.add_flag("--insecure-loopback", o.insecure_loopback, "plain TCP, to this machine only");
  app.add_flag("--die-with-parent", o.die_with_parent,
               "drain when the process that started us ends");
  const cli::Option clean_up =
      app.add_flag("--clean-up", o.clean_up,
                   "only remove what killed workers of this name and root left "
                   "(sandboxes, mounts, volumes); results in the spool stay");
  connect.excludes(clean_up);
  connect_file.excludes(clean_up).excludes(connect);
  app.callback([connect, connect_file, clean_up] {
    if (connect.empty() && connect_file.empty() && clean_up.empty())
      cli::throw_missing("--connect");
  });
  app.add_flag("--verbose", o.verbose, "log debug messages");
  app.set_version(fmt::format("{} ({})", kVersion, build_commit()));
}

struct Keys {
  std::optional<wire::KeyPair> own;
  std::string server;  // of coordinators whose line says no other
};
Result<Keys> load_keys(const Options& o) {
  Keys keys;
  if (o.key.empty() && o.server_key.empty()) return keys;
  if (o.key.empty() || (o.server_key.empty() && o.connect_file.empty()))
    return Error{Errc::kInvalid, "--key and --server-key belong together"};
  PROCTOR_TRY(keys.own, wire::load_key(o.key));
  if (!o.server_key.empty()) {
    PROCTOR_TRY(keys.server, wire::load_public_key(o.server_key));
  }
  return keys;
}

// Places that no run is shown, whichever toolchains its campaign names.
std::vector<fs::path> own_places(const Options& o, const ModelsFile& models) {
  std::vector<fs::path> out = {o.root};
  for (const fs::path& file : {fs::path(o.key), o.connect_file, o.models})
    if (!file.empty()) out.push_back(file);
  for (const auto& [name, access] : models)
    if (!access.key_file.empty()) out.emplace_back(access.key_file);
  return out;
}

Result<wire::ZmqPort::Options> port_options(const Options& o, const Keys& keys, const Stop& stop,
                                            const std::string& address) {
  wire::ZmqPort::Options port;
  port.endpoint = address;
  port.insecure_loopback = o.insecure_loopback;
  const bool curve = keys.own && !stop.server_key.empty();
  if (curve) port.curve_client = wire::ZmqPort::CurveClient{*keys.own, stop.server_key};
  PROCTOR_CHECK_OK(wire::check_connect_endpoint(address, curve, o.insecure_loopback));
  return port;
}

// Every one of them can be connected to, as far as its words tell.
Result<std::vector<Stop>> stops_of(const Options& o, const Keys& keys) {
  std::vector<Stop> stops;
  if (!o.connect_file.empty()) {
    PROCTOR_TRY(stops, read_connect_file(o.connect_file));
  }
  for (const std::string& text : o.connect) {
    PROCTOR_TRY(std::vector<std::string> addresses, addresses_of(text));
    stops.push_back({text, std::move(addresses)});
  }
  for (Stop& stop : stops) {
    if (stop.server_key.empty()) stop.server_key = keys.server;
    for (const std::string& address : stop.addresses)
      if (const auto port = port_options(o, keys, stop, address); !port.ok())
        return o.connect_file.empty() ? port.error() : in_context(stop.name, port.error());
  }
  return stops;
}

// What a killed life was running, and nobody can go on with, goes into the spool as it was metered:
// the first Sync names it, so that nobody takes it for lost at its ceiling.  Requires: the
// sandboxes of these are gone.
void report_left_attempts(std::vector<MeterBook::Left> books, const std::string& docker_socket,
                          Spool& spool) {
  if (books.empty()) return;
  const bool docker_is_clean = docker_answers(docker_socket);
  for (const MeterBook::Left& left :
       end_of_left_attempts(std::move(books), docker_is_clean, mono_now(), wall_now())) {
    const auto kept = spool.put(left.campaign, left.so_far, {});  // a result that is there stays
    if (!kept.ok()) {
      log::warn("attempt " + to_string(left.so_far.attempt) + ": " + kept.error().detail);
      books_are_not_whole(left.file.parent_path().parent_path());
      continue;
    }
    log::info("attempt " + to_string(left.so_far.attempt) + " was running when this worker was " +
              "killed: reported as it was metered");
    std::error_code ignored;
    fs::remove(left.file, ignored);
  }
}

// Attempts that have a result already: killed between the result and the end of their book.
std::set<AttemptId> results_of(Spool& spool, const std::string& campaign) {
  std::set<AttemptId> out;
  const auto entries = spool.load(campaign);
  if (entries.ok())
    for (const Spool::Entry& entry : *entries) out.insert(entry.result.attempt);
  return out;
}

// Everything in `dir` but these, and `dir` itself when nothing stays.
void clear_folder(const fs::path& dir, const std::set<std::string>& keep) {
  std::vector<fs::path> gone;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(dir, ec))
    if (!keep.contains(entry.path().filename().string())) gone.push_back(entry.path());
  for (const fs::path& path : gone)
    if (const Status removed = remove_tree(path); !removed.ok()) log::warn(removed.error().detail);
  fs::remove(dir, ec);
}

// What an earlier life of this name left: containers first, they hold the workspaces.  What this
// one goes on with stays.
void clean_up(const fs::path& home, const std::vector<LeftAttempt>& left, Engines& engines,
              WorkspaceStore& store) {
  std::set<std::string> containers, runs;
  std::vector<LeftWorkspace> workspaces;
  for (const LeftAttempt& one : left) {
    const Checkpoint& c = one.checkpoint;
    runs.insert(c.campaign + "-" + to_string(c.assignment.attempt));
    if (c.program) containers.insert(c.program->container);
    if (c.workspace() != nullptr) workspaces.push_back(*c.workspace());
  }
  engines.clean_up(containers);
  if (const Status cleaned = store.clean_up(workspaces); !cleaned.ok())
    log::warn("clean up: " + cleaned.error().detail);
  clear_folder(home / "runs", runs);
}

// Builders and users of one hold it, whatever life this is.
void sweep_images(const BuiltImages& images, const std::string& docker_socket) {
  if (!docker_answers(docker_socket)) return;
  if (const auto swept = images.sweep(kBuiltImagesKept); !swept.ok())
    log::warn("clean up images: " + swept.error().detail);
}

// Bundles name folders of the coordinator's host, which may have moved since; what is under way has
// its trees already.
void clear_bundles(const fs::path& dir, const std::vector<LeftAttempt>& left) {
  std::set<std::string> campaigns, bundles;
  for (const LeftAttempt& one : left) {
    const Checkpoint& c = one.checkpoint;
    campaigns.insert(c.campaign);
    for (const Digest& d : {c.assignment.contract, c.assignment.method, c.settings})
      bundles.insert(d.hex());
  }
  clear_folder(dir, campaigns);
  for (const std::string& campaign : campaigns) clear_folder(dir / campaign, bundles);
}

// Where sandboxes are one user to the kernel, who takes all that it gives one takes it from the
// checks of the other slots.
Status users_for_slots(const Options& o, Engines& engines, const WorkspaceStore& store) {
  if (o.slots + o.beside == 1 || o.share_user || o.allow_null) return ok_status();
  const auto engine = engines.engine_for({Environment{}});
  if (!engine.ok() || ((*engine)->has_own_users() && store.has_own_users())) return ok_status();
  const std::string why = o.one_user ? "--one-user" : "its log says why; without root it is so";
  return Error{
      Errc::kInvalid,
      fmt::format("--slots {}{}: all sandboxes are one kernel user here ({}), so a run can "
                  "take what the checks of its neighbours need: --slots 1, or --share-user "
                  "where no agent is hostile (proctor run: --workers 1 --slots 1, or "
                  "PROCTOR_SHARE_USER=1)",
                  o.slots, o.beside == 0 ? "" : fmt::format(" --beside {}", o.beside), why)};
}

// Whatever an error is elsewhere, here it has this code: it says how the process exits.
template <class T>
Result<T> coded(Errc code, Result<T> result) {
  if (!result.ok()) return Error{code, result.error().detail};
  return result;
}

Result<int> serve(const Options& o) {
  if (!o.clean_up) PROCTOR_CHECK_OK(coded(Errc::kInvalid, enough_descriptors(o.slots)));
  PROCTOR_TRY(const Keys keys, coded(Errc::kInvalid, load_keys(o)));
  PROCTOR_TRY(std::vector<Stop> stops, coded(Errc::kInvalid, stops_of(o, keys)));
  Result<ModelsFile> loaded = ModelsFile{};
  if (!o.models.empty()) loaded = load_models(o.models);
  if (!loaded.ok()) return in_context("--models", Error{Errc::kInvalid, loaded.error().detail});
  const ModelsFile models = std::move(loaded).value();
  const fs::path home = o.root / "workers" / o.name;
  PROCTOR_CHECK_OK(coded(Errc::kUnavailable, make_private_dirs(home)));
  ::chmod(home.c_str(), 0700);  // foreign code writes below it
  const Result<HostLock> lock = HostLock::take(home / "lock");
  if (!lock.ok()) return in_context("worker " + o.name, lock.error());

  // Names repeat: every campaign on this host has a local-1.  What we label, and clean up after a
  // death, is ours by name and folder.
  const std::string owner = o.name + "-" + sha256(fs::absolute(o.root).string()).short_hex();
  WorkspaceStoreOptions store_options;
  store_options.extractor.path = store_options.remover.path = "/proc/self/exe";
  store_options.root = o.root;
  store_options.owner = owner;
  store_options.kind = o.kind;
  store_options.bounded_disks = o.bounded_disks;
  store_options.docker_socket = o.docker_socket;  // there may be an engine later
  if (o.cache_max != "0") {
    const Result<std::uint64_t> bytes = coded(Errc::kInvalid, parse_size(o.cache_max));
    if (!bytes.ok()) return in_context("--cache-max " + o.cache_max, bytes.error());
    store_options.cache_max = *bytes;
  }
  Engines engines({owner, o.docker_socket, o.image_store, true, o.oci_runtime, !o.one_user},
                  o.allow_null ? Engines::Null::kAllowed : Engines::Null::kForbidden, o.images,
                  std::chrono::seconds(o.engine_wait));
  // Each waits for processes and mounts of its own, and a first run for all of them.
  std::future<void> engine =
      std::async(std::launch::async, [&engines] { engines.open_ahead(SandboxKind::kBubblewrap); });
  const std::future<void> packages =
      std::async(std::launch::async, [] { static_cast<void>(host_packages()); });
  Result<std::unique_ptr<WorkspaceStore>> store = open_workspace_store(store_options);
  engine.wait();
  if (!store.ok()) return std::move(store).error();
  // Removes what is not whole in it.
  Result<Spool> spool = coded(Errc::kUnavailable, Spool::open(home / "spool"));
  if (!spool.ok()) return in_context("spool", spool.error());
  std::vector<MeterBook::Left> books = MeterBook::read_all(home / "meters");
  std::vector<LeftAttempt> left;
  if (!o.clean_up) {
    for (const ServedCampaign& one : served_campaigns(home)) {
      const std::string& campaign = one.campaign;
      for (LeftAttempt& attempt :
           find_left_attempts(home / "runs", campaign, results_of(*spool, campaign), books))
        left.push_back(std::move(attempt));
    }
  }
  const BuiltImages images(o.image_store, o.docker_socket);
  clean_up(home, left, engines, **store);
  sweep_images(images, o.docker_socket);
  if (o.clean_up) return kOk;
  PROCTOR_CHECK_OK(coded(Errc::kInvalid, users_for_slots(o, engines, **store)));
  PROCTOR_CHECK_OK(make_private_dirs(home / "runs"));
  spread_subfolders(home / "runs");
  clear_bundles(home / "bundles", left);
  BundleCache bundles(home / "bundles");
  report_left_attempts(std::move(books), o.docker_socket, *spool);
  RunExecutor executor({home / "runs", home / "meters", WorkerId(o.name), models, !o.no_setup_cache,
                        store_options.remover, own_places(o, models), std::string(build_commit())},
                       **store, engines, images, *spool);

  WorkerLoopOptions loop;
  loop.worker = WorkerId(o.name);
  loop.slots = o.slots;
  loop.features = [&engines, home, full = std::string(),
                   workspace = "workspace:" + std::string(to_string((*store)->kind()))]() mutable {
    // Without a sandbox nobody assigns it anything.
    std::string now = too_full_to_begin(home);
    if (now.empty() != full.empty()) log::warn(now.empty() ? "its disk has room again" : now);
    full = std::move(now);
    std::vector<std::string> features;
    if (full.empty())
      features = engines.features();
    else
      features.emplace_back(kDiskFull);
    features.push_back(workspace);
    return features;
  };
  loop.stops = std::move(stops);
  if (!o.connect_file.empty()) loop.look_for_stops = [&] { return stops_of(o, keys); };
  loop.port = [&](const Stop& stop, const std::string& address) {
    return port_options(o, keys, stop, address);
  };
  loop.home = home;
  loop.meters = home / "meters";
  loop.once = o.once;
  loop.left = std::move(left);
  if (0 < o.give_up_after) loop.give_up_after = std::chrono::seconds(o.give_up_after);
  if (o.leave_grace) loop.leave_grace = std::chrono::seconds(*o.leave_grace);
  PROCTOR_TRY(const WorkerLoop::End end,
              WorkerLoop(std::move(loop), executor, bundles, *spool).run());
  std::error_code ec;
  fs::remove(home / "runs", ec);  // empty, unless an attempt could not be removed
  return static_cast<int>(end);
}

int print_seccomp_profile() {
  std::puts(seccomp_profile().dump(2).c_str());
  return kOk;
}

Result<int> run(int argc, char** argv) {
  if (1 < argc && std::string_view(argv[1]) == "extract") return extract_as_asked();
  if (1 < argc && std::string_view(argv[1]) == "remove") return remove_as_asked();
  if (1 < argc && std::string_view(argv[1]) == "gc") return collect_garbage(argc - 1, argv + 1);
  if (1 < argc && std::string_view(argv[1]) == "selftest") return selftest(argc - 1, argv + 1);
  if (1 < argc && std::string_view(argv[1]) == "seccomp-profile") return print_seccomp_profile();
  cli::CommandLine app;
  Options o;
  declare(app, o);
  if (const auto ended = app.parse(argc, argv, kBadInput)) return *ended;
  if (o.no_overlay) o.workspaces = to_string(WorkspaceKind::kCopy);
  o.kind = from_word<WorkspaceKind>(o.workspaces);
  if (!o.kind && o.workspaces != "auto") {
    return Error{Errc::kInvalid,
                 "--workspaces " + o.workspaces + ": auto, overlay, user-overlay, reflink or copy"};
  }
  // Before any thread.  Without it there are other kinds.
  Status own_mounts = ok_status();
  if (::geteuid() != 0 && (!o.kind || is_overlay(*o.kind))) own_mounts = enter_own_mounts();
  if (o.die_with_parent) {
    const pid_t parent = ::getppid();
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) return kInfrastructure;  // it went before we asked
  }
  if (o.name.empty()) o.name = default_name();
  if (!is_worker_name(o.name)) {
    return Error{Errc::kInvalid, "--name " + printable(o.name) + ": a worker's name is " +
                                     std::string(kWorkerNameRule)};
  }
  if (o.root.empty()) o.root = default_worker_root();
  o.root = fs::absolute(o.root);
  log::init("worker " + o.name, o.verbose ? log::Level::kDebug : log::Level::kInfo);
  (void)host_lack_before();  // before anybody runs here
  if (!own_mounts.ok()) log::info(own_mounts.error().detail);
  return serve(o);
}
}  // namespace
}  // namespace proctor

int main(int argc, char** argv) {
  proctor::forbid_core_dumps();
  proctor::last_words::prepare("proctor-worker");
  // Workspaces and toolchains are for sandboxes, whose users are others; what is for us alone says
  // so where it is made.
  ::umask(022);
  try {
    const proctor::Result<int> end = proctor::run(argc, argv);
    return end.ok() ? *end : proctor::fail(end.error());
  } catch (const std::bad_alloc&) {
    proctor::last_words::out_of_memory();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "proctor-worker: unexpected: %s\n", e.what());
    return proctor::kBug;
  }
}
