// What the host sees of a process, and which promises that breaks: each by itself.
#include "worker/selftest/isolation_rules.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace proctor;

namespace {

constexpr const char* kHostMounts =
    "29 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
    "30 29 0:21 / /proc rw,relatime - proc proc rw\n"
    "31 29 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw\n"
    "32 29 0:25 / /run rw,relatime - tmpfs tmpfs rw\n"
    "33 29 254:1 /home /home rw,relatime - ext4 /dev/vdb rw\n";
// Terminals of the host, and some that it made for a sandbox.
constexpr const char* kTerminals =
    "34 31 0:30 / /dev/pts rw,relatime - devpts devpts rw\n"
    "35 29 0:31 / /tmp/pts rw,relatime - devpts devpts rw\n";
constexpr const char* kInsideMounts =
    "65 42 0:40 /newroot / ro,nosuid - tmpfs tmpfs rw\n"
    "66 65 0:41 / /proc rw,nosuid - proc proc rw\n"
    "71 65 0:6 /null /dev/null rw,nosuid - devtmpfs devtmpfs rw\n"
    "72 66 0:6 /null /proc/kcore rw,nosuid - devtmpfs devtmpfs rw\n"
    "76 65 0:43 / /dev/pts rw,nosuid - devpts devpts rw\n"
    "77 65 254:0 /usr /usr ro,nosuid - ext4 /dev/vda rw\n"
    "78 65 0:44 / /tmp rw,nosuid - tmpfs tmpfs rw\n"
    "79 65 254:0 /var/lib/w\\0401 /workspace rw,nosuid - ext4 /dev/vda rw\n";

ProcessView host() {
  ProcessView out;
  for (const char* name : {"mnt", "pid", "net", "ipc", "uts", "user", "cgroup"})
    out.namespaces[name] = std::string(name) + ":[1]";
  out.status = {{"Uid", "0\t0\t0\t0"}};
  out.mounts = parse_mountinfo(kHostMounts);
  return out;
}

ProcessView inside() {
  ProcessView out;
  for (const char* name : {"mnt", "pid", "net", "ipc", "uts", "user", "cgroup"})
    out.namespaces[name] = std::string(name) + ":[2]";
  out.status = {{"Uid", "0\t0\t0\t0"}, {"Seccomp", "2"},   {"NoNewPrivs", "1"}, {"CapInh", "0000"},
                {"CapPrm", "0000"},    {"CapEff", "0000"}, {"CapBnd", "0000"},  {"CapAmb", "0000"}};
  out.mounts = parse_mountinfo(kInsideMounts);
  return out;
}

std::vector<HostPlace> hidden() {
  std::vector<HostPlace> out;
  for (const char* path : {"/", "/etc", "/home", "/run", "/var"})
    out.push_back(host_place(host().mounts, path));
  return out;
}

std::vector<std::string> broken(const ProcessView& view,
                                SandboxKind kind = SandboxKind::kBubblewrap,
                                const SandboxSpec& spec = {}) {
  return broken_promises(view, host(), isolation_rules(kind, {{"memory", "cgroup1"}}, spec),
                         hidden());
}

using Texts = std::vector<std::string>;

// With one mount more.
ProcessView showing(const std::string& line) {
  ProcessView view = inside();
  for (MountView& m : parse_mountinfo(line)) view.mounts.push_back(std::move(m));
  return view;
}

}  // namespace

TEST_SUITE("isolation rules") {
  TEST_CASE("what is as promised breaks nothing in any kind") {
    for (const SandboxKind kind :
         {SandboxKind::kBubblewrap, SandboxKind::kOci, SandboxKind::kDocker})
      CHECK(broken(inside(), kind).empty());
  }

  TEST_CASE("a namespace of the host's is named and one that the contract opens is not") {
    for (const char* name : {"mnt", "pid", "net", "ipc", "uts", "user", "cgroup"}) {
      ProcessView view = inside();
      view.namespaces[name] = host().namespaces[name];
      const Texts texts = broken(view);
      REQUIRE_FALSE(texts.empty());
      CHECK(texts.front() == "the " + std::string(name) + " namespace is the host's");
      view.namespaces.erase(name);
      CHECK(broken(view).front() == "the " + std::string(name) + " namespace is not to be seen");
    }
    SandboxSpec open;
    open.network = true;
    ProcessView view = inside();
    view.namespaces["net"] = host().namespaces["net"];
    CHECK(broken(view, SandboxKind::kBubblewrap, open).empty());
    // Containers see the host's groups of version 1, and have its users, without any right.
    view = inside();
    view.namespaces["user"] = host().namespaces["user"];
    view.namespaces["cgroup"] = host().namespaces["cgroup"];
    CHECK(broken(view, SandboxKind::kOci).empty());
    auto rules = isolation_rules(SandboxKind::kOci, {{"memory", "cgroup2"}}, {});
    CHECK(broken_promises(view, host(), rules, {}) == Texts{"the cgroup namespace is the host's"});
    // Where what the kernel counts by user is said to be each sandbox's own.
    rules = isolation_rules(SandboxKind::kOci, {{"user_counts", "namespace"}}, {});
    CHECK(broken_promises(view, host(), rules, {}) == Texts{"the user namespace is the host's"});
  }

  TEST_CASE("a filter, set-id programs, capabilities and the user are looked at") {
    const auto with = [](const char* key, const char* value) {
      ProcessView view = inside();
      view.status[key] = value;
      return broken(view);
    };
    CHECK(with("Seccomp", "0") == Texts{"there is no filter of system calls"});
    CHECK(with("Seccomp", "1") == Texts{"there is no filter of system calls"});
    CHECK(with("NoNewPrivs", "0") ==
          Texts{"set-id programs would be obeyed (no_new_privs is off)"});
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
      CHECK(with(set, "0020") == Texts{"capabilities are kept (" + std::string(set) + " 0020)"});
      CHECK(with(set, "").size() == 1);
    }
    ProcessView view = inside();
    view.namespaces["user"] = host().namespaces["user"];
    CHECK(broken(view) == Texts{"the user namespace is the host's", "its user is the host's root"});
    view.status["Uid"] = "1000\t1000\t1000\t1000";
    CHECK(broken(view) == Texts{"the user namespace is the host's"});
  }

  TEST_CASE("what may be written of the host is the workspace and what the spec says") {
    ProcessView view = inside();
    view.mounts.front().writable = true;
    CHECK(broken(view) == Texts{"its root can be written"});
    view.mounts.clear();
    CHECK(broken(view) == Texts{"its root can be written"});
    const char* data = "80 65 254:0 /srv/data /data rw,nosuid - ext4 /dev/vda rw\n";
    CHECK(broken(showing(data)) == Texts{"/data of the host can be written"});
    SandboxSpec spec;
    spec.mounts = {{"/srv/data", "/data", true}};
    CHECK(broken(showing(data), SandboxKind::kBubblewrap, spec).empty());
    spec.mounts.front().writable = false;
    CHECK_FALSE(broken(showing(data), SandboxKind::kBubblewrap, spec).empty());
    CHECK(broken(showing("80 65 254:0 /srv/data /data ro - ext4 /dev/vda rw\n")).empty());
    // Memory of its own, and the host's.
    CHECK(broken(showing("80 65 0:99 / /run rw - tmpfs tmpfs rw\n")).empty());
    CHECK(broken(showing("80 65 0:25 /user /run/user rw - tmpfs tmpfs rw\n")) ==
          Texts{"/run/user of the host can be written"});
    ProcessView with_terminals = host();
    for (MountView& m : parse_mountinfo(kTerminals)) with_terminals.mounts.push_back(std::move(m));
    const auto promised = isolation_rules(SandboxKind::kBubblewrap, {}, {});
    CHECK(broken_promises(showing("80 65 0:31 / /dev/pts rw - devpts devpts rw\n"), with_terminals,
                          promised, {})
              .empty());
    CHECK(broken_promises(showing("80 65 0:30 / /dev/pts rw - devpts devpts rw\n"), with_terminals,
                          promised, {}) == Texts{"/dev/pts of the host can be written"});
    const char* shm = "80 65 0:25 / /dev/shm rw - tmpfs shm rw\n";
    CHECK(broken(showing(shm), SandboxKind::kOci).size() == 2);  // it is all of /run, too
    CHECK(broken(showing(shm), SandboxKind::kDocker).size() == 1);
    CHECK(broken(showing("80 65 0:6 /vda /dev/vda rw - devtmpfs devtmpfs rw\n")) ==
          Texts{"/dev/vda of the host can be written"});
  }

  TEST_CASE("what lies above a folder of the host's shows it") {
    CHECK(broken(showing("80 65 254:0 / /srv ro - ext4 /dev/vda rw\n")) ==
          Texts{"/ of the host is to be seen at /srv"});
    CHECK(broken(showing("80 65 254:0 /etc /srv ro - ext4 /dev/vda rw\n")) ==
          Texts{"/etc of the host is to be seen at /srv"});
    CHECK(broken(showing("80 65 254:1 / /srv ro - ext4 /dev/vdb rw\n")) ==
          Texts{"/home of the host is to be seen at /srv"});
    const auto rules = isolation_rules(SandboxKind::kBubblewrap, {}, {});
    CHECK(broken_promises(showing("80 65 254:0 /srv /data ro - ext4 /dev/vda rw\n"), host(), rules,
                          {host_place(host().mounts, "/srv/secrets/bait")}) ==
          Texts{"/srv/secrets/bait of the host is to be seen at /data"});
    CHECK(broken(showing("80 65 254:0 /etc/ssl /srv ro - ext4 /dev/vda rw\n")).empty());
    CHECK(broken(showing("80 65 254:0 /etcetera /srv ro - ext4 /dev/vda rw\n")).empty());
    CHECK(broken(showing("80 65 0:21 / /srv ro - proc proc rw\n")) ==
          Texts{"/srv is the host's /proc"});
  }

  TEST_CASE("a place of the host is found on the file system that lies on top") {
    auto mounts = host().mounts;
    CHECK(host_place(mounts, "/etc").device == "254:0");
    CHECK(host_place(mounts, "/etc").inside == "/etc");
    CHECK(host_place(mounts, "/home").inside == "/home");
    CHECK(host_place(mounts, "/home/ada").inside == "/home/ada");
    CHECK(host_place(mounts, "/run").inside == "/");
    CHECK(host_place(mounts, "/runner").device == "254:0");
    CHECK(host_place(mounts, "/").inside == "/");
    mounts.push_back({"0:77", "/", "/etc", "tmpfs", true});
    CHECK(host_place(mounts, "/etc").device == "0:77");
  }

  TEST_CASE("lines of mountinfo that do not parse are left out") {
    const auto mounts = parse_mountinfo(
        "79 65 254:0 /a\\040b\\134 /work\\011space rw,ro - ext4 /dev/vda rw\n"
        "nonsense\n"
        "80 65 254:0 /a /b ro,shared:1 master:2 propagate_from:3 - xfs x rw\n"
        "81 65 254:0 /a /b rw,errors=ro shared:1\n");
    REQUIRE(mounts.size() == 2);
    CHECK(mounts[0].root == "/a b\\");
    CHECK(mounts[0].at == "/work\tspace");
    CHECK_FALSE(mounts[0].writable);
    CHECK(mounts[1].type == "xfs");
  }

  TEST_CASE("a kernel in user space is held by a filter and namespaces of its own") {
    CHECK(broken_userspace(inside(), host(), {}).empty());
    ProcessView view = inside();
    view.status["Seccomp"] = "0";
    CHECK(broken_userspace(view, host(), {}).size() == 1);
    view = inside();
    view.namespaces["net"] = host().namespaces["net"];
    CHECK(broken_userspace(view, host(), {}) == Texts{"the net namespace is the host's"});
    SandboxSpec open;
    open.network = true;
    CHECK(broken_userspace(view, host(), open).empty());
    view.namespaces["user"] = host().namespaces["user"];
    CHECK(broken_userspace(view, host(), open) == Texts{"the user namespace is the host's"});
  }
}
