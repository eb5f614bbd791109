// The first process of every sandbox, run here as it is: what Landlock keeps without a namespace.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "worker/sandbox/oci_config.h"
#include "worker/sandbox/runtime_files.h"
#include "worker/sandbox/seccomp_filter.h"

using namespace proctor;

namespace {

long landlock_version() {
  return ::syscall(444 /* landlock_create_ruleset */, nullptr, 0, 1);
}

// Init with these words, then a shell with `command`; the shell's exit code.
class Init {
 public:
  Init() {
    REQUIRE(write_file(program(), oci_init_program(), Durability::kLazy, /*mode=*/0755).ok());
    REQUIRE(make_dirs(mine()).ok());
    REQUIRE(make_dirs(mine() / "sub").ok());
    REQUIRE(make_dirs(other()).ok());
  }
  fs::path mine() const { return dir_.path() / "mine"; }
  fs::path other() const { return dir_.path() / "other"; }

  // `prepare` is called in the child that becomes init.
  int run(std::vector<std::string> words, const std::string& command,
          const std::function<void()>& prepare = {}) const {
    words.insert(words.begin(), program());
    for (const char* word : {"--", "/bin/sh", "-c"}) words.emplace_back(word);
    words.push_back("exec 2>&-; " + command);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      for (int fd = 3; fd < 32; ++fd) ::close(fd);  // nobody listens to its words
      if (prepare) prepare();
      ::execv(argv[0], argv.data());
      ::_exit(99);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

 private:
  fs::path program() const { return dir_.path() / "init"; }
  TempDir dir_ = TempDir::create("init").value();
};

}  // namespace

TEST_SUITE("sandbox init") {
  TEST_CASE("a folder that cannot be entered is the command's failure, as a shell has it") {
    const Init init;
    const std::string here = init.mine().string();
    CHECK(init.run({"--in", here}, "test \"$(pwd -P)\" = " + here + " && test $PWD = " + here) ==
          0);
    CHECK(init.run({"--in", here + "/none"}, "exit 0") == 126);
    CHECK(init.run({"--in", here + "/none", "--write", here}, "exit 0") == 126);
  }
  TEST_CASE("a command writes in the places named and nowhere else, whatever is mounted how") {
    if (landlock_version() < 2) {
      MESSAGE("not run: this kernel has no Landlock, or an old one");
      return;
    }
    const Init init;
    const std::string mine = init.mine().string(), other = init.other().string();
    const std::vector<std::string> words = {"--write", "/dev",    "--write",
                                            mine,      "--write", "/no/such/place"};
    REQUIRE(write_file(init.other() / "old", "old", Durability::kLazy).ok());
    // Everything one does in a workspace goes on.
    CHECK(init.run(words, "cd " + mine +
                              " && echo x > a && mv a sub/b && ln sub/b c && ln -s c d && rm d"
                              " && mkfifo p && mkdir e && rmdir e && : > c && echo y > /dev/null"
                              " && cat " +
                              other + "/old > copy") == 0);
    for (const std::string& attempt :
         {"echo x > " + other + "/new", "echo x >> " + other + "/old", ": > " + other + "/old",
          "rm " + other + "/old", "mkdir " + other + "/folder", "mkfifo " + other + "/pipe",
          "ln -s x " + other + "/link", "mv " + mine + "/c " + other + "/c"}) {
      CAPTURE(attempt);
      CHECK(init.run(words, attempt) != 0);
      CHECK(init.run({}, attempt) == 0);  // where no place is named it works: only Landlock forbids
      if (attempt.starts_with("rm"))
        REQUIRE(write_file(init.other() / "old", "old", Durability::kLazy).ok());
    }
    // By its name, without opening it to be written.
    if (landlock_version() < 3 || ::access("/usr/bin/perl", X_OK) != 0) return;
    const auto cut = [](const std::string& file) {
      return "/usr/bin/perl -e 'exit(truncate(\"" + file + "\", 1) ? 0 : 1)'";
    };
    CHECK(init.run(words, cut(other + "/old")) != 0);
    CHECK(init.run({}, cut(other + "/old")) == 0);
    CHECK(init.run(words, cut(mine + "/copy")) == 0);
  }

  TEST_CASE("a command's signals and abstract sockets end where the command does") {
    if (landlock_version() < 6) {
      MESSAGE("not run: this kernel's Landlock has no scopes");
      return;
    }
    const Init init;
    CHECK(init.run({}, "kill -0 $PPID") != 0);  // init itself
    CHECK(init.run({}, "sleep 60 & kill $! && kill -0 $$") == 0);
    if (std::system("python3 -c '' 2>/dev/null") != 0) return;  // NOLINT(concurrency-mt-unsafe)
    const std::string name = "proctor-init-test-" + std::to_string(::getpid());
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) == 0);
    REQUIRE(::listen(listener.get(), 8) == 0);
    const std::string connect =
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).connect('\\\\0" + name + "')\"";
    const std::string among_themselves =
        "python3 -c \"import socket as s; a = s.socket(s.AF_UNIX); a.bind('\\\\0" + name +
        "2'); a.listen(); s.socket(s.AF_UNIX).connect('\\\\0" + name + "2')\"";
    CHECK(std::system(connect.c_str()) == 0);  // NOLINT(concurrency-mt-unsafe)
    CHECK(init.run({}, connect) != 0);
    CHECK(init.run({}, among_themselves) == 0);
  }

  TEST_CASE("devices are made nowhere, not where all else may be written either") {
    const Init init;
    const std::string mine = init.mine().string();
    const std::string device = "mknod " + mine + "/null c 1 3";
    if (landlock_version() < 2 || init.run({}, device + " && rm " + mine + "/null") != 0) {
      MESSAGE("not run: no device can be made here, or this kernel has no Landlock");
      return;
    }
    CHECK(init.run({"--write", mine}, device) != 0);
    CHECK(init.run({"--write", mine}, "mknod " + mine + "/pipe p") == 0);
  }

  TEST_CASE("a command that cannot be kept in its places is not run") {
    if (landlock_version() < 2) {
      MESSAGE("not run: this kernel has no Landlock, or an old one");
      return;
    }
    const Init init;
    const auto with = [&](rlim_t files) {
      return init.run({"--write", init.mine().string()}, "true", [files] {
        const rlimit limit{files, files};
        ::setrlimit(RLIMIT_NOFILE, &limit);
      });
    };
    CHECK(with(64) == 0);
    CHECK(with(4) == 127);  // as many as init itself has open: its rules need one more
  }

  TEST_CASE("the environment that the first process was given is kept nowhere else") {
    const Init init;
    const std::string out = (init.mine() / "out").string();
    const auto program = make_seccomp_program(Programs::kNative);
    REQUIRE(program.ok());
    SandboxSpec spec;
    spec.env = {{"TOKEN", "a secret"}, {"PATH", "/usr/bin:/bin"}};
    const std::string given =
        for_first_process(*program) + for_first_process("") + oci_environment(spec);
    const UniqueFd held(::memfd_create("given", MFD_CLOEXEC));
    REQUIRE(::write(held.get(), given.data(), given.size()) == static_cast<ssize_t>(given.size()));
    REQUIRE(::lseek(held.get(), 0, SEEK_SET) == 0);
    const int kept = ::fcntl(held.get(), F_DUPFD_CLOEXEC, 100);
    REQUIRE(0 <= kept);
    const UniqueFd closed(kept);
    CHECK(init.run({}, "echo \"$TOKEN\" > " + out + "; grep Seccomp: /proc/self/status >> " + out,
                   [kept] { ::dup2(kept, 4); }) == 0);
    CHECK(read_file(out, 1000).value() == "a secret\nSeccomp:\t2\n");
    CHECK(::lseek(held.get(), 0, SEEK_END) == 0);
  }

  TEST_CASE("the first process sets the limits that it was given, for its program too") {
    const Init init;
    const auto program = make_seccomp_program(Programs::kNative);
    REQUIRE(program.ok());
    SandboxSpec spec;
    spec.env = {{"PATH", "/usr/bin:/bin"}};
    spec.file_bytes = 4096;
    OciHost host;
    host.open_files = 33;
    host.limits_itself = true;
    const std::string given =
        for_first_process(*program) + oci_limits(spec, host) + oci_environment(spec);
    const UniqueFd held(::memfd_create("given", MFD_CLOEXEC));
    REQUIRE(::write(held.get(), given.data(), given.size()) == static_cast<ssize_t>(given.size()));
    REQUIRE(::lseek(held.get(), 0, SEEK_SET) == 0);
    const UniqueFd kept(::fcntl(held.get(), F_DUPFD_CLOEXEC, 100));
    REQUIRE(kept.valid());
    CHECK(init.run({},
                   "test $(ulimit -n) = 33 && test $(ulimit -H -f) = 8 && test $(ulimit -c) = 0",
                   [fd = kept.get()] { ::dup2(fd, 4); }) == 0);
  }

  TEST_CASE("the first process is root's to look into, whoever runs it") {
    const Init init;
    fs::permissions(init.mine().parent_path(), fs::perms(0755));
    // A process that can be traced is its user's in /proc.
    const std::string owner = "test $(stat -c %u /proc/$PPID/environ) = 0";
    CHECK(init.run({}, "test $(id -u) != 0 && " + owner, [] {
      constexpr uid_t kNobody = 65534;
      if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(98);
    }) == 0);
  }

  TEST_CASE("words that it does not know are no program") {
    CHECK(Init().run({"--wirte", "/tmp"}, "true") == 125);
  }
}
