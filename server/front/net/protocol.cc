#include "server/front/net/protocol.h"

namespace firn::front {

Speech Recognise(std::string_view first) {
  if (first.empty()) return Speech::kUndecided;
  if ((first[0] >= 'A' && first[0] <= 'Z') || first[0] == '\r') return Speech::kHttp;
  if (first[0] == '*') return Speech::kRedis;
  if (first[0] == '\xda') {
    if (first.size() < 2) return Speech::kUndecided;
    return first[1] == '\xbb' ? Speech::kDubbo : Speech::kUnknown;
  }
  // A frame of less than 16 MiB begins with a zero; larger ones are beyond every limit.
  if (first[0] != 0) return Speech::kUnknown;
  if (first.size() < 5) return Speech::kUndecided;
  if (first[4] == '\x80') return Speech::kThriftBinary;
  if (first[4] == '\x82') return Speech::kThriftCompact;
  return Speech::kUnknown;
}

ProtocolKind KindOf(Speech speech) {
  switch (speech) {
    case Speech::kHttp:
      return ProtocolKind::kHttp;
    case Speech::kRedis:
      return ProtocolKind::kRedis;
    case Speech::kDubbo:
      return ProtocolKind::kDubbo;
    case Speech::kThriftBinary:
    case Speech::kThriftCompact:
    case Speech::kUndecided:
    case Speech::kUnknown:
      break;
  }
  return ProtocolKind::kThrift;
}

Protocol* ProtocolSet::For(Speech speech) const {
  switch (speech) {
    case Speech::kThriftBinary:
      return thrift_binary.get();
    case Speech::kThriftCompact:
      return thrift_compact.get();
    case Speech::kHttp:
      return http.get();
    case Speech::kRedis:
      return redis.get();
    case Speech::kDubbo:
      return dubbo.get();
    case Speech::kUndecided:
    case Speech::kUnknown:
      return nullptr;
  }
  return nullptr;
}

}  // namespace firn::front
