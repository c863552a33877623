#include "tools/firn/server_settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/url_encoding.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

std::string PathOf(const std::string& address) {
  return std::string(kConfiguratorsPath) + "/" + UrlEncode(address);
}

}  // namespace

Result<Configurator> ServerSettings::Read(const std::string& address) {
  FIRN_ASSIGN(const Standing standing, Find(address));
  return standing.word;
}

Result<bool> ServerSettings::Knows(const std::string& address) {
  FIRN_ASSIGN(const Standing standing, Find(address));
  if (standing.there) return true;
  const auto names = registry_.List(std::string(kProvidersPath));
  if (names.code() == Code::kNotFound) return false;
  if (!names.ok()) return names.status().WithContext("listing the servers");
  return std::any_of(names->begin(), names->end(), [&address](const std::string& name) {
    const auto provider = ParseProviderNodeName(name);
    return provider.ok() && provider->address == address;
  });
}

Result<ServerSettings::Standing> ServerSettings::Find(const std::string& address) {
  const Result<Node> node = registry_.Read(PathOf(address));
  if (node.code() == Code::kNotFound) return Standing();
  if (!node.ok()) return node.status();
  FIRN_ASSIGN(const Configurator word, ParseConfigurator(node->data));
  return Standing{.word = word, .there = true, .version = node->stat.version};
}

Status ServerSettings::Put(const std::string& address, const Standing& standing,
                           const Configurator& word) {
  const std::string data = FormatConfigurator(word);
  if (standing.there) {
    std::vector<Write> writes;
    AddSet(writes, PathOf(address), data, standing.version);
    return registry_.Multi(std::move(writes)).status;
  }
  // The parent nodes are missing until the first setting is stored.
  for (const std::string_view folder : {kServicePath, kConfiguratorsPath}) {
    const WriteOutcome made =
        registry_.Multi({Write::Create(std::string(folder), "", Lifetime::kPersistent)});
    if (!made.status.ok() && made.status.code() != Code::kConflict) return made.status;
  }
  return registry_.Multi({Write::Create(PathOf(address), data, Lifetime::kPersistent)}).status;
}

}  // namespace firn
