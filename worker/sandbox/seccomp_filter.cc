#include "worker/sandbox/seccomp_filter.h"

#include <linux/netlink.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "common/base/files.h"
#include "common/base/owned.h"
#include "common/base/unique_fd.h"

namespace proctor {
namespace {

struct Denied {
  int call;
  int error;
};

// Capabilities are gone already; these are the calls with which kernels were attacked without any,
// or which reach beyond the sandbox's namespaces.  ptrace stays: the pid namespace confines it, and
// debuggers and leak checkers need it.
constexpr Denied kDenied[] = {
    {SCMP_SYS(mount), EPERM},
    {SCMP_SYS(umount2), EPERM},
    {SCMP_SYS(pivot_root), EPERM},
    {SCMP_SYS(move_mount), EPERM},
    {SCMP_SYS(open_tree), EPERM},
    {SCMP_SYS(fsopen), EPERM},
    {SCMP_SYS(fsconfig), EPERM},
    {SCMP_SYS(fsmount), EPERM},
    {SCMP_SYS(fspick), EPERM},
    {SCMP_SYS(mount_setattr), EPERM},
    {SCMP_SYS(setns), EPERM},
    {SCMP_SYS(keyctl), EPERM},
    {SCMP_SYS(add_key), EPERM},
    {SCMP_SYS(request_key), EPERM},
    {SCMP_SYS(bpf), EPERM},
    {SCMP_SYS(perf_event_open), EPERM},
    {SCMP_SYS(kexec_load), EPERM},
    {SCMP_SYS(kexec_file_load), EPERM},
    {SCMP_SYS(open_by_handle_at), EPERM},
    {SCMP_SYS(init_module), EPERM},
    {SCMP_SYS(finit_module), EPERM},
    {SCMP_SYS(delete_module), EPERM},
    {SCMP_SYS(reboot), EPERM},
    {SCMP_SYS(swapon), EPERM},
    {SCMP_SYS(swapoff), EPERM},
    {SCMP_SYS(acct), EPERM},
    {SCMP_SYS(quotactl), EPERM},
    {SCMP_SYS(syslog), EPERM},
    {SCMP_SYS(settimeofday), EPERM},
    {SCMP_SYS(clock_settime), EPERM},
    {SCMP_SYS(userfaultfd), EPERM},
    // "Not there" makes libuv and liburing fall back; EPERM would make some fail.
    {SCMP_SYS(io_uring_setup), ENOSYS},
    {SCMP_SYS(io_uring_enter), ENOSYS},
    {SCMP_SYS(io_uring_register), ENOSYS},
    // The kernel has so many contexts for the whole host, and one sandbox can take all of them.
    {SCMP_SYS(io_setup), ENOSYS},
    // Its flags are behind a pointer, which BPF cannot read; libcs then use clone, filtered below.
    {SCMP_SYS(clone3), ENOSYS},
};

// clone and unshare with any of these.
constexpr std::uint64_t kNamespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                         CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};

// Typing into a terminal that is not ours (CVE-2017-5226); the kernel looks at 32 bits only.
constexpr std::uint64_t kTypingRequests[] = {TIOCSTI, 0x541C /* TIOCLINUX */};
constexpr std::uint64_t kRequestBits = 0xffffffffU;

// Sockets are of families that a network namespace confines, or that are paths: no other.  On a
// virtual machine AF_VSOCK leads to its host, from every namespace; AF_ALG and others have been
// ways into kernels.  Of AF_NETLINK only what programs ask for addresses and routes.
constexpr int kSocketFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
constexpr const char* kSocketCalls[] = {"socket", "socketpair"};

// What refuses all other families, one comparison of the first argument each.
struct FamilyRule {
  scmp_compare compare;
  std::uint64_t family;
};
std::vector<FamilyRule> refused_families() {
  std::vector<FamilyRule> out;
  int after = 0;
  for (const int family : kSocketFamilies) after = std::max(after, family + 1);
  for (int family = 1; family < after; ++family)  // 0 is none: the kernel refuses it
    if (std::ranges::find(kSocketFamilies, family) == std::end(kSocketFamilies))
      out.push_back({SCMP_CMP_EQ, static_cast<std::uint64_t>(family)});
  out.push_back({SCMP_CMP_GE, static_cast<std::uint64_t>(after)});
  return out;
}

int add_socket_rules(scmp_filter_ctx ctx) {
  const auto action = SCMP_ACT_ERRNO(EAFNOSUPPORT);
  for (const char* name : kSocketCalls) {
    const int call = seccomp_syscall_resolve_name(name);
    for (const FamilyRule& rule : refused_families()) {
      const scmp_arg_cmp is_family{0, rule.compare, rule.family, 0};
      if (int rc = seccomp_rule_add_array(ctx, action, call, 1, &is_family); rc != 0) return rc;
    }
    const scmp_arg_cmp no_routes[] = {{0, SCMP_CMP_EQ, AF_NETLINK, 0},
                                      {2, SCMP_CMP_NE, NETLINK_ROUTE, 0}};
    if (int rc = seccomp_rule_add_array(ctx, action, call, 2, no_routes); rc != 0) return rc;
  }
  return 0;
}

int add_rules(scmp_filter_ctx ctx) {
  if (int rc = add_socket_rules(ctx); rc != 0) return rc;
  for (const Denied& d : kDenied) {
    const auto action = SCMP_ACT_ERRNO(static_cast<std::uint32_t>(d.error));
    if (int rc = seccomp_rule_add(ctx, action, d.call, 0); rc != 0) return rc;
  }
  for (std::uint64_t flag : kNamespaces) {
    const scmp_arg_cmp has_flag{0, SCMP_CMP_MASKED_EQ, flag, flag};
    for (int call : {SCMP_SYS(unshare), SCMP_SYS(clone)}) {
      int rc = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), call, 1, &has_flag);
      if (rc != 0) return rc;
    }
  }
  for (std::uint64_t request : kTypingRequests) {
    const scmp_arg_cmp is_request{1, SCMP_CMP_MASKED_EQ, kRequestBits, request};
    int rc = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1, &is_request);
    if (rc != 0) return rc;
  }
  return 0;
}

std::string name_of(int call) {
  const Owned<char, std::free> name(seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, call));
  return name ? name.get() : "";
}

Json oci_rule(Json names, int error) {
  return {{"names", std::move(names)}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", error}};
}

// One argument under a mask.
Json oci_masked_rule(Json names, unsigned index, std::uint64_t mask, std::uint64_t value) {
  Json rule = oci_rule(std::move(names), EPERM);
  rule["args"] = Json::array(
      {{{"index", index}, {"op", "SCMP_CMP_MASKED_EQ"}, {"value", mask}, {"valueTwo", value}}});
  return rule;
}

void add_oci_socket_rules(Json& rules) {
  const Json names = kSocketCalls;
  const auto argument = [](unsigned index, const char* op, std::uint64_t value) {
    return Json{{"index", index}, {"op", op}, {"value", value}};
  };
  const auto add = [&](Json arguments) {
    Json rule = oci_rule(names, EAFNOSUPPORT);
    rule["args"] = std::move(arguments);
    rules.push_back(std::move(rule));
  };
  for (const FamilyRule& rule : refused_families())
    add(Json::array(
        {argument(0, rule.compare == SCMP_CMP_EQ ? "SCMP_CMP_EQ" : "SCMP_CMP_GE", rule.family)}));
  add(Json::array(
      {argument(0, "SCMP_CMP_EQ", AF_NETLINK), argument(2, "SCMP_CMP_NE", NETLINK_ROUTE)}));
  // The old call of 32 bits has its arguments behind a pointer, which BPF cannot read.
  rules.push_back(oci_rule(Json::array({"socketcall"}), ENOSYS));
}

}  // namespace

Json oci_seccomp() {
  Json rules = Json::array();
  add_oci_socket_rules(rules);
  for (const int error : {EPERM, ENOSYS}) {
    Json names = Json::array();
    for (const Denied& d : kDenied)
      if (d.error == error) names.push_back(name_of(d.call));
    rules.push_back(oci_rule(std::move(names), error));
  }
  for (const std::uint64_t flag : kNamespaces)
    rules.push_back(oci_masked_rule(Json::array({"unshare", "clone"}), 0, flag, flag));
  for (const std::uint64_t request : kTypingRequests)
    rules.push_back(oci_masked_rule(Json::array({"ioctl"}), 1, kRequestBits, request));
  Json out = {{"defaultAction", "SCMP_ACT_ALLOW"}, {"syscalls", std::move(rules)}};
#if defined(__x86_64__)
  // A runtime kills what calls through a table it was not told of; programs of 32 bits may run.
  out["architectures"] = {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"};
#endif
  return out;
}

Result<std::string> make_seccomp_program() {
  const Owned<void, seccomp_release> ctx(seccomp_init(SCMP_ACT_ALLOW));
  if (!ctx) return Error{Errc::kUnavailable, "seccomp: no memory for a filter"};
  // Calls through another architecture's table (i386, x32) would pass by the rules above.
  int rc = seccomp_attr_set(ctx.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  if (rc == 0) rc = add_rules(ctx.get());
  if (rc != 0) return errno_error("seccomp: add a rule", -rc);
  const UniqueFd fd(::memfd_create("proctor-seccomp", MFD_CLOEXEC));
  if (!fd.valid()) return errno_error("seccomp: memfd_create", errno);
  rc = seccomp_export_bpf(ctx.get(), fd.get());
  if (rc != 0) return errno_error("seccomp: export", -rc);
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size <= 0) return Error{Errc::kUnavailable, "seccomp: the filter is empty"};
  std::string program(static_cast<std::size_t>(size), '\0');
  if (::pread(fd.get(), program.data(), program.size(), 0) != size) {
    return errno_error("seccomp: read the filter back", errno);
  }
  return program;
}

}  // namespace proctor
