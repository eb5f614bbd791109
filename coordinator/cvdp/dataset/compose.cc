#include "coordinator/cvdp/dataset/compose.h"

#include <algorithm>
#include <array>

#include "common/base/digest.h"
#include "common/base/parse.h"
#include "common/base/text.h"
#include "coordinator/cvdp/pycompat/yaml.h"

namespace proctor::cvdp {
namespace {

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  if (to.empty()) return;
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

Object external_network(const std::string& name) {
  Object out;
  out.append("name", name);
  out.append("external", true);
  return out;
}

constexpr std::string_view kLicnetwork = "licnetwork";

// The record's own name for the licence network becomes the configured one everywhere.
void rewrite_licence_network(Object& top, const std::string& name) {
  if (const Value* n = top.find("networks"); n == nullptr || n->object() == nullptr)
    top.set("networks", Object());
  Object& networks = *top.find("networks")->object();
  if (name != kLicnetwork) networks.erase(kLicnetwork);
  networks.set(name, external_network(name));
  Value* services = top.find("services");
  if (services == nullptr || services->object() == nullptr || name == kLicnetwork) return;
  for (Member& service : services->object()->members()) {
    Value* own =
        service.value.object() == nullptr ? nullptr : service.value.object()->find("networks");
    if (own == nullptr) continue;
    if (Array* list = own->array())
      for (Value& v : *list)
        if (v == Value(kLicnetwork)) v = Value(name);
    if (Object* map = own->object())
      for (Member& m : map->members())
        if (m.key == kLicnetwork) m.key = name;
  }
}

// Mounts over /code would hide what the runner mounts there.
void drop_code_mounts(Object& services, std::vector<std::string>& warnings) {
  for (Member& service : services.members()) {
    Value* volumes =
        service.value.object() == nullptr ? nullptr : service.value.object()->find("volumes");
    if (volumes == nullptr || volumes->array() == nullptr) continue;
    Array& list = *volumes->array();
    std::erase_if(list, [&](const Value& v) {
      bool drop = v.string() != nullptr && v.string()->find("/code") != std::string::npos;
      if (const Object* o = v.object()) drop = o->find("/code") != nullptr;
      if (drop)
        warnings.push_back("service " + printable(service.key) + ": the volume " +
                           printable(python_repr_of(v)) + " is dropped");
      return drop;
    });
  }
}

Error refusal(const std::string& service, const std::string& what) {
  return {Errc::kInvalid, "service " + printable(service) + ": " + what};
}

bool leads_outside(std::string_view source) {
  if (source.starts_with('/') || source.starts_with('~') || source.starts_with('$')) return true;
  int depth = 0;
  while (!source.empty()) {
    const std::string_view part = take_until(source, '/');
    if (part == "..") --depth;
    if (part != ".." && part != "." && !part.empty()) ++depth;
    if (depth < 0) return true;
  }
  return false;
}

Status check_mount(const std::string& service, const Value& v) {
  std::string source;
  if (const std::string* s = v.string()) {
    const std::size_t colon = s->find(':');
    if (colon == std::string::npos) return ok_status();  // an anonymous volume
    source = s->substr(0, colon);
  } else if (const std::string* long_form = text_at(v, "source")) {
    source = *long_form;
  }
  if (leads_outside(source))
    return refusal(service,
                   "mounts \"" + printable(source) + "\" from outside the problem's folder");
  return ok_status();
}

Status check_service(const std::string& name, const Value& value) {
  const Object* s = value.object();
  if (s == nullptr) return refusal(name, "is " + std::string(value.kind()) + ", not a mapping");
  static constexpr std::array<std::string_view, 9> kNever = {
      "devices",       "cap_add", "security_opt", "device_cgroup_rules", "volumes_from",
      "cgroup_parent", "extends", "userns_mode",  "credential_spec"};
  for (const std::string_view key : kNever)
    if (const Value* v = s->find(key); v != nullptr && v->truthy())
      return refusal(name, "asks for \"" + std::string(key) + "\"");
  if (const Value* v = s->find("privileged"); v != nullptr && v->truthy())
    return refusal(name, "asks to be privileged");
  for (const char* key : {"network_mode", "pid", "ipc", "uts", "cgroup"})
    if (const std::string* v = text_at(value, key);
        v != nullptr && *v != "none" && *v != "private" && *v != "bridge" && *v != "default")
      return refusal(name, "asks for " + std::string(key) + " \"" + printable(*v) + "\"");
  for (const char* key : {"volumes"})
    if (const Value* v = s->find(key); v != nullptr && v->array() != nullptr)
      for (const Value& mount : *v->array()) PROCTOR_CHECK_OK(check_mount(name, mount));
  for (const char* key : {"build", "env_file"})
    if (const std::string* v = text_at(value, key); v != nullptr && leads_outside(*v))
      return refusal(
          name, std::string(key) + " \"" + printable(*v) + "\" is outside the problem's folder");
  if (const Object* build = object_at(value, "build"))
    if (const std::string* c = text_at(*build, "context"); c != nullptr && leads_outside(*c))
      return refusal(name, "build \"" + printable(*c) + "\" is outside the problem's folder");
  return ok_status();
}

// A volume with a driver's options is a mount of the host under another name.
Status check_volumes(const Object& top) {
  const Value* volumes = top.find("volumes");
  if (volumes == nullptr || volumes->object() == nullptr) return ok_status();
  for (const Member& m : *volumes->object())
    if (m.value.object() != nullptr && m.value.object()->find("driver_opts") != nullptr)
      return Error{Errc::kInvalid, "volume " + printable(m.key) + " asks for \"driver_opts\""};
  return ok_status();
}

}  // namespace

std::string substitute(std::string text, const ImageNames& names) {
  if (text.find("__") == std::string::npos) return text;
  replace_all(text, "__VERIF_EDA_IMAGE__", names.verif_eda);
  replace_all(text, "__LICENSE_NETWORK__", names.license_network);
  replace_all(text, "__OSS_SIM_IMAGE__", names.oss_sim);
  replace_all(text, "__OSS_PNR_IMAGE__", names.oss_pnr);
  return text;
}

bool needs_eda(const Value& record) {
  const Value* categories =
      record.object() == nullptr ? nullptr : record.object()->find("categories");
  if (categories != nullptr && categories->array() != nullptr && !categories->array()->empty()) {
    const Value& first = categories->array()->front();
    const std::string number = first.string() != nullptr   ? *first.string()
                               : first.number() != nullptr ? first.number()->text
                                                           : "";
    const int n = category_number(number);
    if (12 <= n && n <= 14) return true;
  }
  const std::string all = python_repr_of(record);
  return all.find("__VERIF_EDA_IMAGE__") != std::string::npos ||
         all.find("__LICENSE_NETWORK__") != std::string::npos;
}

std::string upstream_network_name(std::string_view dataset_path) {
  std::string_view name = dataset_path.substr(dataset_path.rfind('/') + 1);
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot != 0)
    name = name.substr(0, dot);
  std::string out = "cvdp-bridge-" + std::string(name) + "-" + md5_hex(dataset_path).substr(0, 8);
  for (char& c : out) {
    const bool letter = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9');
    if (!letter && c != '-' && c != '_') c = '-';
  }
  constexpr std::size_t kCut = 64;
  return out.substr(0, kCut);
}

Result<ComposeFile> normalise_compose(std::string_view text, const ComposeSettings& settings) {
  PROCTOR_TRY(Value value,
              read_yaml(substitute(std::string(text), settings.names), "docker-compose.yml"));
  Object* top = value.object();
  if (top == nullptr) return Error{Errc::kInvalid, "docker-compose.yml is no mapping"};
  ComposeFile out;
  if (settings.needs_eda && !settings.names.license_network.empty())
    rewrite_licence_network(*top, settings.names.license_network);
  Value* services = top->find("services");
  if (services == nullptr || services->object() == nullptr || services->object()->empty())
    return Error{Errc::kInvalid, "docker-compose.yml has no services"};
  if (top->find("include") != nullptr)
    return Error{Errc::kInvalid, "docker-compose.yml includes other files"};
  drop_code_mounts(*services->object(), out.warnings);
  for (const Member& m : *services->object()) PROCTOR_CHECK_OK(check_service(m.key, m.value));
  PROCTOR_CHECK_OK(check_volumes(*top));
  if (!settings.shared_network.empty() && top->find("networks") == nullptr) {
    Object networks;
    networks.append("default", external_network(settings.shared_network));
    top->set("networks", std::move(networks));
  }
  out.text = write_yaml(value);
  out.value = std::move(value);
  return out;
}

}  // namespace proctor::cvdp
