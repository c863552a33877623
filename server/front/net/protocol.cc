#include "server/front/net/protocol.h"

namespace firn::front {

DetectedProtocol Recognise(std::string_view first) {
  if (first.empty()) return DetectedProtocol::kUndecided;
  if ((first[0] >= 'A' && first[0] <= 'Z') || first[0] == '\r') return DetectedProtocol::kHttp;
  if (first[0] == '*') return DetectedProtocol::kRedis;
  if (first[0] == '\xda') {
    if (first.size() < 2) return DetectedProtocol::kUndecided;
    return first[1] == '\xbb' ? DetectedProtocol::kDubbo : DetectedProtocol::kUnknown;
  }
  // A frame of less than 16 MiB begins with a zero byte; larger ones exceed every limit.
  if (first[0] != 0) return DetectedProtocol::kUnknown;
  if (first.size() < 5) return DetectedProtocol::kUndecided;
  if (first[4] == '\x80') return DetectedProtocol::kThriftBinary;
  if (first[4] == '\x82') return DetectedProtocol::kThriftCompact;
  return DetectedProtocol::kUnknown;
}

ProtocolKind KindOf(DetectedProtocol speech) {
  switch (speech) {
    case DetectedProtocol::kHttp:
      return ProtocolKind::kHttp;
    case DetectedProtocol::kRedis:
      return ProtocolKind::kRedis;
    case DetectedProtocol::kDubbo:
      return ProtocolKind::kDubbo;
    case DetectedProtocol::kThriftBinary:
    case DetectedProtocol::kThriftCompact:
    case DetectedProtocol::kUndecided:
    case DetectedProtocol::kUnknown:
      break;
  }
  return ProtocolKind::kThrift;
}

Protocol* ProtocolSet::For(DetectedProtocol speech) const {
  switch (speech) {
    case DetectedProtocol::kThriftBinary:
      return thrift_binary.get();
    case DetectedProtocol::kThriftCompact:
      return thrift_compact.get();
    case DetectedProtocol::kHttp:
      return http.get();
    case DetectedProtocol::kRedis:
      return redis.get();
    case DetectedProtocol::kDubbo:
      return dubbo.get();
    case DetectedProtocol::kUndecided:
    case DetectedProtocol::kUnknown:
      return nullptr;
  }
  return nullptr;
}

}  // namespace firn::front
