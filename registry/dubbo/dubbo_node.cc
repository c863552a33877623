#include "registry/dubbo/dubbo_node.h"

#include "common/base/cat.h"
#include "common/base/url_encoding.h"

namespace firn {

std::string DubboInterface::Folder(std::string_view folder) const {
  return Cat(kDubboRoot, "/", name, "/", folder);
}

// Without `warmup=0`, consumers give a server little weight for its first ten minutes.
std::string DubboNodeName(const DubboProvider& provider, const DubboInterface& exported,
                          int weight) {
  return UrlEncode(Cat("dubbo://", provider.address, "/", exported.name,
                       "?application=firn&deprecated=false&dubbo=2.0.2&dynamic=true&interface=",
                       exported.name, "&methods=", exported.methods, "&pid=", provider.pid,
                       "&prefer.serialization=hessian2&serialization=hessian2&side=provider",
                       provider.tls ? "&ssl-enabled=true" : "", "&timestamp=", provider.since.ms(),
                       "&warmup=0&weight=", weight));
}

std::optional<std::string> AddressOfDubboNode(std::string_view name) {
  constexpr std::string_view kScheme = "dubbo://";
  const Result<std::string> url = UrlDecode(name);
  if (!url.ok() || !url->starts_with(kScheme)) return std::nullopt;
  const size_t end = url->find_first_of("/?", kScheme.size());
  return url->substr(kScheme.size(), end == std::string::npos ? end : end - kScheme.size());
}

}  // namespace firn
