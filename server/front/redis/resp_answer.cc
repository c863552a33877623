#include "server/front/redis/resp_answer.h"

#include <algorithm>
#include <string>

namespace firn::front::resp {

void AppendError(std::string_view code, std::string_view text, OutBuffer& out) {
  std::string clean(text);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  std::replace_if(clean.begin(), clean.end(), is_control, '?');
  out.Append("-");
  out.Append(code);
  out.Append(" ");
  out.Append(clean);
  out.Append("\r\n");
}

}  // namespace firn::front::resp
