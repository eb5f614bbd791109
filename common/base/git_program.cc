#include "common/base/git_program.h"

#include <pwd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <iterator>

#include "common/base/digest.h"
#include "common/base/namespaces.h"
#include "common/base/text.h"

namespace proctor {
namespace {
constexpr std::size_t kSourceBytes = 4096;
constexpr std::array<std::string_view, 5> kSchemes = {"https", "http", "ssh", "git", "file"};

// "user@host:path" or "host:path": a colon before the first slash, as git decides it.
bool is_scp_like(std::string_view s) {
  const std::size_t colon = s.find(':');
  return colon != std::string_view::npos && colon != 0 && s.find('/') > colon;
}

// Where "://" ends the scheme; npos: it is no URL ("x/y://z" is a path).
std::size_t scheme_end(std::string_view s) {
  const std::size_t at = s.find("://");
  return at < s.find('/') ? at : std::string_view::npos;
}

// Over HTTP a user alone may be a token.  ssh needs its user, and has no use for a password.
std::string without_password(const std::string& url) {
  const auto [begin, end] = user_info(url);
  if (begin == end) return url;
  const std::size_t keep =
      url.starts_with("http") ? begin : std::min(url.find(':', begin), end - 1);
  return url.substr(0, keep) + url.substr(keep == begin ? end : end - 1);
}

GitSource finish(bool local, std::string location) {
  GitSource out;
  out.local = local;
  out.shown = local ? location : redact_urls(location);
  out.address = local ? location : without_password(location);
  const auto [begin, end] = user_info(location);
  out.key =
      sha256(location.substr(0, begin) + (begin == end ? "" : "***@") + location.substr(end)).hex();
  out.location = std::move(location);
  return out;
}

std::string without_trailing_slashes(std::string_view s) {
  while (1 < s.size() && s.back() == '/') s.remove_suffix(1);
  return std::string(s);
}

Result<GitSource> local_source(const fs::path& path) {
  std::error_code ec;
  const fs::path canonical = fs::weakly_canonical(path, ec);
  if (ec) return errno_error("repository " + printable(path.string()), ec.value());
  return finish(true, without_trailing_slashes(canonical.string()));
}

// All but the user's part, as user_info() finds it, becomes an argument of git's or of ssh's.
std::string_view without_secret(std::string_view source, std::size_t scheme) {
  const bool is_url = scheme != std::string_view::npos;
  const std::size_t begin = is_url ? scheme + 3 : 0;
  const std::size_t end = source.find_first_of(is_url ? "/ \t" : ":", begin);
  const std::string_view server = source.substr(begin, end - begin);
  const std::string_view path = source.substr(begin + server.size());
  const std::size_t at = path.find('@');
  if (at != std::string_view::npos) {
    if (is_url && (server.find_first_of(":@") != std::string_view::npos || path.front() != '/'))
      return "%2F for a slash in a password, %20 for a blank, %40 for an @ in a path";
    if (!is_url && (server.find('@') == std::string_view::npos ||
                    path.find(':', at) != std::string_view::npos))
      return "user@host:path, as ssh takes no password (ssh://host/a%40b where the path has an @)";
  }
  if (source.starts_with("http") && source.find('?', user_info(source).second) != source.npos)
    return "a URL without a query; a token is written before the host (user:TOKEN@host) or left to "
           "a credential helper of git's (%3F for a ? in a path)";
  return "";
}
}  // namespace

std::string_view wanted_of(std::string_view source) {
  constexpr std::string_view kAny =
      "a path, a URL or a .bundle file (https, http, ssh, git or file)";
  const std::size_t slash = source.find('/');
  if (source.empty() || kSourceBytes < source.size() || source.front() == '-' ||
      source.find_first_of(std::string_view("\0\n\r", 3)) != std::string_view::npos ||
      source.find("::") < slash)
    return kAny;  // git would run the program that "ext::" names
  const std::size_t scheme = scheme_end(source);
  if (scheme == std::string_view::npos && !is_scp_like(source)) return "";
  if (scheme != std::string_view::npos) {
    const std::string_view host = source.substr(scheme + 3);
    if (std::ranges::find(kSchemes, source.substr(0, scheme)) == kSchemes.end()) return kAny;
    if (source.starts_with("file:"))
      return host.starts_with('/') ? "" : "an absolute path behind file://";
    if (host.empty() || host.front() == '-' || host.front() == '/') return "a URL with a host";
  }
  return without_secret(source, scheme);
}

Result<GitSource> parse_source(std::string_view source, const fs::path& base) {
  if (const std::string_view wanted = wanted_of(source); !wanted.empty())
    return Error{Errc::kInvalid, "repository: expected " + std::string(wanted)};
  if (source.starts_with("file://")) return local_source(fs::path(source.substr(7)));
  if (scheme_end(source) != std::string_view::npos || is_scp_like(source))
    return finish(false, without_trailing_slashes(source));
  const fs::path path(source);
  return local_source(path.is_absolute() ? path : base / path);
}

Result<GitSource> resolve_submodule_url(const GitSource& parent, std::string_view url) {
  if (!url.starts_with("./") && !url.starts_with("../")) return parse_source(url, "/");
  std::string head = parent.location;
  std::string_view rest = url;
  while (true) {
    if (rest.starts_with("./")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with("../")) {
      rest.remove_prefix(3);
      const std::size_t cut = head.find_last_of("/:");
      const std::size_t authority = head.find("://");
      if (cut == std::string::npos || cut == 0 ||
          (authority != std::string::npos && cut < authority + 3)) {
        return Error{Errc::kInvalid, "submodule url \"" + printable(url) + "\" leaves its server"};
      }
      head.resize(head[cut] == ':' ? cut + 1 : cut);
    } else {
      break;
    }
  }
  if (!head.ends_with(':')) head += '/';
  return parse_source(head + std::string(rest), "/");
}

std::pair<std::size_t, std::size_t> user_info(std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == std::string_view::npos) return {text.size(), text.size()};
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(text.find_first_of("/ \t\n", begin), text.size());
  const std::size_t at = text.substr(begin, end - begin).rfind('@');
  return {begin, at == std::string_view::npos ? begin : begin + at + 1};
}

std::string redact_urls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = user_info(text).first;
    std::string_view url = text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin);
    url = url.substr(0, url.find_last_not_of("'\":,;.)>]}") + 1);
    // A password with a slash of its own looks like a path: where there is a user, or no port
    // behind the colon, all goes up to the last @.
    const std::string_view server = url.substr(0, url.find('/'));
    const std::size_t port = std::min(server.find(':'), server.size() - 1) + 1;
    const bool has_user = server.find('@') != std::string_view::npos ||
                          (!server.starts_with('[') &&
                           server.find_first_not_of("0123456789", port) != std::string_view::npos);
    const std::size_t at = has_user ? url.rfind('@') + 1 : 0;
    const std::size_t query = std::min(url.find('?', at), url.size());
    out.append(text.substr(0, begin)).append(at == 0 ? "" : "***@");
    out.append(url.substr(at, query - at)).append(query == url.size() ? "" : "?***");
    text.remove_prefix(begin + url.size());
  }
  return out;
}

std::string repository_name(std::string_view source, const fs::path& base) {
  std::string name(source.substr(source.starts_with("file://") ? 7 : 0));
  if (name.find("://") < name.find('/')) {
    name.erase(0, user_info(name).second);
  } else if (is_scp_like(name)) {
    name.erase(0, name.rfind('@', name.find(':')) + 1);
    name[name.find(':')] = '/';
  } else {
    name = (base / name).string();
  }
  // A path begins with its slash: it has no host.
  std::transform(name.begin(), std::ranges::find(name, '/'), name.begin(), ::tolower);
  name = fs::path(name).lexically_normal().string();
  for (const std::string_view end : {"/", "/.git", ".git"})
    if (end.size() < name.size() && name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

// The git program.

namespace {
constexpr std::chrono::minutes kGitTimeout{30};  // the first fetch of a very large repository
constexpr std::size_t kGitOutputBytes = std::size_t{64} << 20;
constexpr std::size_t kWordsBytes = 600;

// GIT_CONFIG_GLOBAL reaches the upload-pack that git starts for a local path, which `-c` options
// do not: safe.directory and allowAnySHA1InWant must hold there too.
// unpackLimit: what is fetched appears as one pack or not at all.  Loose objects appear one by one,
// a commit before its files, to whoever looks without the lock and for ever after a kill.
constexpr std::string_view kConfig =
    "[safe]\n\tdirectory = *\n"
    "[protocol \"ext\"]\n\tallow = never\n"
    "[core]\n\thooksPath = /dev/null\n\tfsmonitor = false\n\tautocrlf = false\n"
    "\tprotectNTFS = false\n\tprotectHFS = false\n\tquotePath = true\n"
    "[uploadpack]\n\tallowAnySHA1InWant = true\n"
    "[gc]\n\tauto = 0\n"
    "[maintenance]\n\tauto = false\n"
    "[fetch]\n\trecurseSubmodules = no\n\twriteCommitGraph = false\n\tunpackLimit = 1\n"
    "[advice]\n\tdetachedHead = false\n"
    "[init]\n\tdefaultBranch = main\n";

// Transport needs this much of our own environment: where ssh finds its keys, which proxy and which
// certificates to use.  The rest of it does not reach git.
constexpr std::array<const char*, 11> kPassed = {
    "HOME",     "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy",
    "no_proxy", "HTTP_PROXY",    "HTTPS_PROXY",   "NO_PROXY",     "ALL_PROXY"};

// `credential.*` as the user who runs us has it: which helper is asked for a password.
GitSettings users_credentials() {
  GitSettings out;
  CommandSpec spec;
  spec.argv = {"git", "config", "--global", "-z", "--get-regexp", "^credential\\."};
  spec.output_max = kWordsBytes * 100;
  const Result<CommandOutcome> told = run_command(spec);
  if (!told.ok() || !told->success() || told->output_cut) return out;  // none
  for (std::string_view rest = told->out; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view item = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t line = item.find('\n');
    if (line != std::string_view::npos)
      out.emplace_back(item.substr(0, line), item.substr(line + 1));
  }
  return out;
}

// "%40" -> "@".  Control bytes would begin another line of what a helper says: then nothing is
// decoded, and the server refuses it.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = static_cast<unsigned char>(text[i]);
    const std::string_view digits = text.substr(i + 1, 2);
    if (text[i] == '%' && digits.size() == 2 &&
        std::from_chars(digits.data(), digits.data() + 2, byte, 16).ptr == digits.data() + 2)
      i += 2;
    if (byte < ' ') return std::string(text);
    out += static_cast<char>(byte);
  }
  return out;
}

// git gives a URL on to its own helpers (git-remote-https) as an argument, so it has no password.
// For the server that the URL names, git asks a helper that reads our settings.
GitSettings settings_of(const GitSource& source) {
  GitSettings out{{"remote." + std::string(GitProgram::kRemote) + ".url", source.address}};
  const std::string_view url = source.location;
  const auto [begin, end] = source.local ? std::pair(url.size(), url.size()) : user_info(url);
  if (begin == end || !url.starts_with("http")) return out;
  const std::string_view user = url.substr(begin, end - 1 - begin);
  const std::size_t colon = std::min(user.find(':'), user.size());
  const std::string server(source.address.substr(0, source.address.find('/', begin)));
  out.emplace_back("proctor.user", decoded(user.substr(0, colon)));
  out.emplace_back("credential." + server + ".username", out.back().second);
  if (colon == user.size()) return out;  // a helper of the user's may know the password
  out.emplace_back("proctor.password", decoded(user.substr(colon + 1)));
  out.emplace_back("credential." + server + ".helper", "");
  out.emplace_back("credential." + server + ".helper",
                   "!printf 'username=%s\\npassword=%s\\n' \"$(git config proctor.user)\" "
                   "\"$(git config proctor.password)\"; :");
  return out;
}

// In a user namespace root's files belong to nobody, and ssh ends at the first one that the host's
// own configuration includes ("Bad owner or permissions"): there it reads the user's alone.
std::string ssh_command() {
  const std::string ssh = "ssh -oBatchMode=yes";
  if (!has_own_mounts()) return ssh;
  std::array<char, 16384> buffer;  // NOLINT: filled by getpwuid_r
  passwd entry{};
  passwd* found = nullptr;
  std::error_code ec;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || !found ||
      std::string_view(entry.pw_dir).find('\'') != std::string_view::npos)
    return ssh + " -F none";
  const fs::path config = fs::path(entry.pw_dir) / ".ssh/config";
  return ssh + (fs::exists(config, ec) ? " -F '" + config.string() + "'" : " -F none");
}
}  // namespace

Result<GitProgram> GitProgram::create(const fs::path& home) {
  PROCTOR_CHECK_OK(make_dirs(home));
  const fs::path config = home / "gitconfig";
  // Rewritten only when it differs, so that a running git of a sibling never sees it change.
  const auto old = read_file(config, kConfig.size() + 1);
  if (!old.ok() || *old != kConfig) {
    PROCTOR_CHECK_OK(write_file(config, kConfig, Durability::kLazy));
  }
  return GitProgram(home, users_credentials());
}

CommandSpec guarded_git(std::vector<std::string> args, const fs::path& config,
                        const GitSettings& settings) {
  CommandSpec spec;
  spec.argv = {"git"};
  spec.argv.insert(spec.argv.end(), std::make_move_iterator(args.begin()),
                   std::make_move_iterator(args.end()));
  std::map<std::string, std::string> env{{"GIT_CONFIG_NOSYSTEM", "1"},
                                         {"GIT_CONFIG_GLOBAL", config.string()},
                                         {"GIT_ATTR_NOSYSTEM", "1"},
                                         {"GIT_OPTIONAL_LOCKS", "0"},
                                         {"GIT_TERMINAL_PROMPT", "0"},
                                         {"GIT_CONFIG_COUNT", std::to_string(settings.size())},
                                         {"LC_ALL", "C"}};
  for (std::size_t i = 0; i < settings.size(); ++i) {
    env["GIT_CONFIG_KEY_" + std::to_string(i)] = settings[i].first;
    env["GIT_CONFIG_VALUE_" + std::to_string(i)] = settings[i].second;
  }
  for (const char* name : {"PATH", "TMPDIR"})
    if (const char* value = std::getenv(name)) env[name] = value;
  spec.env = std::move(env);
  spec.timeout = kGitTimeout;
  return spec;
}

CommandSpec GitProgram::command(const fs::path& git_dir, std::vector<std::string> args,
                                const GitSource* remote) const {
  GitSettings settings = credentials_;
  if (remote != nullptr) std::ranges::move(settings_of(*remote), std::back_inserter(settings));
  CommandSpec spec = guarded_git(std::move(args), home_ / "gitconfig", settings);
  spec.cwd = home_;
  spec.env->insert(
      {{"GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh"}, {"GIT_SSH_COMMAND", ssh_command()}});
  for (const char* name : kPassed)
    if (const char* value = std::getenv(name)) (*spec.env)[name] = value;
  if (!git_dir.empty()) (*spec.env)["GIT_DIR"] = git_dir.string();
  spec.output_max = kGitOutputBytes;
  return spec;
}

Result<std::string> GitProgram::run(const CommandSpec& spec) const {
  PROCTOR_TRY(CommandOutcome outcome, run_command(spec));
  if (outcome.success() && !outcome.output_cut) return std::move(outcome.out);
  const std::string verb = spec.argv.size() < 2 ? "" : " " + spec.argv[1];
  if (outcome.output_cut) return Error{Errc::kExhausted, "git" + verb + ": output too large"};
  return Error{Errc::kUnavailable, "git" + verb + ": " + git_words(outcome)};
}

std::string git_words(const CommandOutcome& outcome) {
  if (outcome.timed_out) return "timed out";
  // The last words say what failed; the first ones are progress.
  const std::string words = last_lines(redact_urls(outcome.err), kWordsBytes);
  return words.empty() ? "exit " + std::to_string(outcome.exit_code) : words;
}
}  // namespace proctor
