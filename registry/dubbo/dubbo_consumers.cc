#include "registry/dubbo/dubbo_consumers.h"

#include <algorithm>
#include <utility>

#include "common/base/url_encoding.h"
#include "common/base/utf8.h"
#include "registry/dubbo/dubbo_node.h"

namespace firn {
namespace {

// The value of a parameter in a decoded query.
std::string ValueOf(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) {
      return ToPrintableUtf8(one.substr(name.size() + 1));
    }
  }
  return {};
}

}  // namespace

Result<DubboConsumer> ParseDubboConsumer(std::string_view interface, std::string_view node_name) {
  constexpr std::string_view kScheme = "consumer://";
  FIRN_ASSIGN(const std::string url, UrlDecode(node_name));
  if (!url.starts_with(kScheme)) return Invalid("not the URL of a consumer");
  const std::string_view rest = std::string_view(url).substr(kScheme.size());
  const size_t question = rest.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : rest.substr(question + 1);
  return DubboConsumer{.interface = std::string(interface),
                       .host = ToPrintableUtf8(rest.substr(0, rest.find_first_of("/?"))),
                       .application = ValueOf(query, "application"),
                       .pid = ValueOf(query, "pid"),
                       .version = ValueOf(query, "release")};
}

Result<std::vector<DubboConsumer>> ReadDubboConsumers(BlockingCoordinator& ensemble) {
  std::vector<DubboConsumer> all;
  for (const std::string_view name : kDubboInterfaces) {
    const DubboInterface exported{std::string(name), {}};
    const auto nodes = ensemble.List(exported.Folder("consumers"));
    if (nodes.code() == Code::kNotFound) continue;
    if (!nodes.ok()) return nodes.status();
    for (const std::string& node : *nodes) {
      Result<DubboConsumer> consumer = ParseDubboConsumer(name, node);
      if (consumer.ok()) all.push_back(*std::move(consumer));
    }
  }
  return all;
}

Json DubboConsumersJson(const std::vector<DubboConsumer>& consumers) {
  Json all = Json::array();
  for (const DubboConsumer& one : consumers) {
    all.push_back({{"interface", one.interface},
                   {"host", one.host},
                   {"application", one.application},
                   {"pid", one.pid},
                   {"dubbo", one.version}});
  }
  return all;
}

}  // namespace firn
