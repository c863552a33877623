#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/front/dubbo/dubbo_header.h"
#include "server/front/dubbo/dubbo_protocol.h"
#include "server/front/dubbo/hessian_writer.h"
#include "tests/server/front/issuing_fixture.h"

namespace firn::front {

inline std::string Message(uint8_t flags, std::string_view body, uint64_t id = 7) {
  const DubboHeader header{
      .flags = flags, .id = id, .body_bytes = static_cast<uint32_t>(body.size())};
  const auto bytes = header.Write();
  return std::string(bytes.data(), bytes.size()) + std::string(body);
}

// A request whose parts a test chooses. `arguments` are in Hessian 2.
struct DubboCall {
  std::string version = "2.0.2";
  std::string path = "io.firn.IdService";
  std::string service_version = "0.0.0";
  std::string method = "nextId";
  std::string types = "Ljava/lang/String;";
  std::string arguments = "\x04slow";
  std::vector<std::pair<std::string, std::string>> attachments{};

  std::string Body() const {
    std::string body;
    HessianWriter out(body);
    for (const auto* text : {&version, &path, &service_version, &method, &types}) out.Text(*text);
    body += arguments;
    out.BeginMap();
    for (const auto& [name, value] : attachments) {
      out.Text(name);
      out.Text(value);
    }
    out.EndMap();
    return body;
  }
  std::string Bytes() const {
    return Message(DubboHeader::kRequest | DubboHeader::kTwoWay | DubboHeader::kHessian2, Body());
  }
};

}  // namespace firn::front
