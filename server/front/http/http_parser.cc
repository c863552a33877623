#include "server/front/http/http_parser.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <strings.h>

#include "common/base/parse.h"
#include "common/net/ip_address.h"
#include "server/front/http/http_progress.h"
#include "server/front/net/limits.h"

namespace firn::front {
namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
constexpr char kAdminField[] = "X-Firn-Admin";

using BeastView = boost::beast::string_view;

std::string_view ToStd(BeastView text) { return {text.data(), text.size()}; }
BeastView ToBeast(std::string_view text) { return {text.data(), text.size()}; }

// Whether a field's value does not follow its name directly: it continues on further lines, and
// Beast has joined them in a temporary buffer.
bool IsFolded(BeastView name, BeastView value) {
  const char* behind = name.data() + name.size() + 1;
  while (*behind == ' ' || *behind == '\t') ++behind;
  return behind != value.data();
}

bool IsControl(char c) { return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f'; }

// The target of a request. Views into its text.
struct HttpTarget {
  std::string_view path;       // not decoded; "*" for the whole server
  std::string_view query;      // after the question mark
  std::string_view authority;  // host and port of an absolute target; otherwise empty
};

// Whether `host` is a name of RFC 3986 that all parsers read alike. No name that can be resolved
// contains commas or percent signs; a comma may also result from joining two Host fields.
bool IsName(std::string_view host) {
  const auto fits = [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
           c == '_' || c == '~';
  };
  return !host.empty() && std::all_of(host.begin(), host.end(), fits);
}

bool IsIpv6(std::string_view host) {
  return host.find(':') != host.npos && IsIpAddress(std::string(host));
}

// Whether `text` is what may follow a host. The colon may have no port.
bool IsColonAndPort(std::string_view text) {
  if (text.empty() || text == ":") return true;
  return text.front() == ':' && ParseNumber<uint16_t>(text.substr(1));
}

// Returns the length of "http://" at the front; 0: there is none.
size_t SchemeLength(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    const bool fits = target.size() >= scheme.size();
    if (fits && strncasecmp(target.data(), scheme.data(), scheme.size()) == 0) return scheme.size();
  }
  return 0;
}

// Whether it is a host with or without a port, as in Host and absolute targets.
bool IsHostAndPort(std::string_view text) {
  const bool in_brackets = text.starts_with('[');
  const size_t end = std::min(text.find(in_brackets ? ']' : ':'), text.size());
  const std::string_view host = text.substr(0, end), rest = text.substr(end);
  if (!in_brackets) return IsName(host) && IsColonAndPort(rest);
  return rest.starts_with(']') && IsIpv6(host.substr(1)) && IsColonAndPort(rest.substr(1));
}

// Reads "/path?query", "http://host:port/path?query" (or https), and the "*" of OPTIONS. Nullopt
// for targets that an origin server does not accept (RFC 9112, 3.2).
std::optional<HttpTarget> ReadTarget(std::string_view text, bool options) {
  HttpTarget target;
  if (options && text == "*") {
    target.path = text;
    return target;
  }
  if (!text.starts_with('/')) {
    const size_t scheme = SchemeLength(text);
    if (scheme == 0) return std::nullopt;
    text.remove_prefix(scheme);
    target.authority = text.substr(0, text.find_first_of("/?"));
    if (!IsHostAndPort(target.authority)) return std::nullopt;
    text.remove_prefix(target.authority.size());
  }
  const size_t mark = text.find('?');
  target.path = text.substr(0, mark);
  if (mark != text.npos) target.query = text.substr(mark + 1);
  // An empty path means the root, or for OPTIONS without a query the whole server.
  if (target.path.empty()) target.path = options && mark == text.npos ? "*" : "/";
  return target;
}

// Takes the fields that Firn uses from Beast's events, without copying them.
class RequestParser final : public http::basic_parser<true> {
 public:
  RequestParser(std::string& chunks, HttpRequest& request) : chunks_(chunks), request_(request) {}

  // A fault of the header that Beast does not detect; empty: none.
  std::string_view fault() const { return fault_; }
  // Whether the peer will send no further request.
  bool closes() const { return closes_; }

 private:
  void on_request_impl(http::verb verb, BeastView, BeastView target, int version,
                       error_code&) override {
    request_.verb = HttpVerb::kOther;
    request_.head = verb == http::verb::head;
    request_.options = verb == http::verb::options;
    if (verb == http::verb::get || request_.head) request_.verb = HttpVerb::kGet;
    if (verb == http::verb::post) request_.verb = HttpVerb::kPost;
    if (verb == http::verb::put) request_.verb = HttpVerb::kPut;
    if (verb == http::verb::delete_) request_.verb = HttpVerb::kDelete;
    request_.http_1_0 = version == 10;
    target_ = ReadTarget(ToStd(target), request_.options);
  }
  void on_response_impl(int, BeastView, int, error_code&) override {}
  void on_field_impl(http::field field, BeastView name, BeastView value,
                     error_code& error) override {
    if (IsFolded(name, value)) return Refuse("a field is folded", error);
    if (is_header_done()) return;  // fields after the chunks are ignored
    switch (field) {
      case http::field::content_type:
        request_.content_type = ToStd(value);
        break;
      case http::field::expect:
        request_.expects_continue = boost::beast::iequals(value, "100-continue");
        break;
      case http::field::if_none_match:
        request_.if_none_match = ToStd(value);
        break;
      case http::field::host:
        ++hosts_;
        request_.host = ToStd(value);
        break;
      case http::field::origin:
        request_.origin = ToStd(value);
        break;
      case http::field::connection:
        closes_ |= http::token_list(value).exists("close");
        break;
      case http::field::content_length:
        has_length_ = true;
        break;
      case http::field::transfer_encoding:
        ++encodings_;
        chunked_ = boost::beast::iequals(value, "chunked");
        break;
      default:  // by name: not every version of Beast knows these fields
        if (boost::beast::iequals(name, kAdminField)) request_.admin_word = ToStd(value);
        if (boost::beast::iequals(name, "traceparent")) request_.traceparent = ToStd(value);
        if (boost::beast::iequals(name, "sec-fetch-site")) request_.fetch_site = ToStd(value);
        break;
    }
  }
  void on_header_impl(error_code& error) override {
    if (const std::string_view fault = Fault(); !fault.empty()) return Refuse(fault, error);
    request_.path = target_->path;
    request_.query = target_->query;
    if (!target_->authority.empty()) request_.host = target_->authority;
  }
  void on_body_init_impl(const boost::optional<uint64_t>&, error_code&) override {}
  size_t on_body_impl(BeastView body, error_code&) override {
    request_.body = ToStd(body);
    return body.size();
  }
  // Some parsers take a lone CR or LF for the end of the line.
  void on_chunk_header_impl(uint64_t, BeastView extension, error_code& error) override {
    if (std::any_of(extension.begin(), extension.end(), IsControl)) {
      Refuse("the line with a chunk's length has a control character", error);
    }
  }
  size_t on_chunk_body_impl(uint64_t, BeastView body, error_code&) override {
    chunks_.append(body.data(), body.size());
    request_.body = chunks_;
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  void Refuse(std::string_view fault, error_code& error) {
    fault_ = fault;
    error = http::error::bad_field;
  }

  // A fault by which a proxy could see another length or another host in this request.
  std::string_view Fault() const {
    if (encodings_ > 1 || (encodings_ == 1 && !chunked_)) {
      return "Transfer-Encoding may be chunked, and nothing else";
    }
    if (encodings_ != 0 && request_.http_1_0) return "HTTP/1.0 has no Transfer-Encoding";
    if (encodings_ != 0 && has_length_)
      return "the request has both Content-Length and Transfer-Encoding";
    if (hosts_ > 1) return "more than one Host";
    if (hosts_ == 0 && !request_.http_1_0) return "HTTP/1.1 requires a Host header";
    return FaultOfPlace();
  }

  // A host in the target takes precedence over Host (RFC 9112, 3.2.2), but a proxy in front of this
  // server may have used Host, so both must be equal. A client that knows no host name sends an
  // empty Host (3.2), which means the address that it connected to (3.3). That is permitted if the
  // target is a path.
  std::string_view FaultOfPlace() const {
    if (!target_) return "the target is neither a path nor http://host/path";
    const std::string_view host = request_.host;
    if (!host.empty() && !IsHostAndPort(host)) return "Host is not a host, with a port or without";
    const bool named_twice = hosts_ != 0 && !target_->authority.empty();
    if (named_twice && !boost::beast::iequals(ToBeast(host), ToBeast(target_->authority))) {
      return "the Host header differs from the host of the request target";
    }
    return {};
  }

  std::string& chunks_;
  HttpRequest& request_;
  int hosts_ = 0, encodings_ = 0;
  bool chunked_ = false, has_length_ = false, closes_ = false;
  std::optional<HttpTarget> target_{};
  std::string_view fault_{};
};

HttpParsed::Kind KindOf(const error_code& error) {
  if (error == http::error::header_limit) return HttpParsed::Kind::kHeaderTooLarge;
  if (error == http::error::body_limit) return HttpParsed::Kind::kBodyTooLarge;
  if (error == http::error::buffer_overflow) return HttpParsed::Kind::kHeaderTooLarge;
  return HttpParsed::Kind::kBad;
}

// The length of the request if its header states it, or 0.
size_t LengthToCome(const RequestParser& parser, size_t used) {
  if (!parser.is_header_done()) return 0;
  const auto left = parser.content_length_remaining();
  return left ? used + static_cast<size_t>(*left) : 0;
}

}  // namespace

HttpParsed ParseHttp(std::string_view in, std::string& chunks, HttpRequest& out) {
  using Kind = HttpParsed::Kind;
  out = {};
  chunks.clear();
  RequestParser parser(chunks, out);
  parser.eager(true);
  parser.header_limit(kHttpHeaderBytesMax);
  parser.body_limit(kHttpBodyBytesMax);
  size_t used = EmptyHttpBytes(in);
  const bool may_begin_empty = used < kHttpEmptyBytesMax;
  if (may_begin_empty && in.substr(used) == kHttpLineEnd.substr(0, 1)) return {Kind::kNeedMore};
  while (!parser.is_done()) {
    error_code error;
    const size_t n = parser.put({in.data() + used, in.size() - used}, error);
    used += n;
    if (error == http::error::need_more || (!error && n == 0)) {
      out.expects_continue &= parser.is_header_done() && !out.http_1_0;
      return {Kind::kNeedMore, LengthToCome(parser, used)};
    }
    if (error) return {KindOf(error), 0, parser.fault()};
  }
  out.keep_alive = parser.keep_alive() && !parser.closes();
  return {Kind::kWhole, used};
}

}  // namespace firn::front
