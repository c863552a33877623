#include "server/flags/flag_help.h"

#include <algorithm>
#include <string_view>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/status.h"
#include "common/text/fold.h"
#include "server/flags/flag_table.h"

namespace firn {
namespace {

constexpr std::string_view kHead =
    "firn-server: issues 64-bit ids that are never issued twice.\n\n"
    "  firn-server                                     a single server at 127.0.0.1:7609\n"
    "  firn-server --registry=zk://h1:2181,h2:2181,h3:2181/firn/shop \\\n"
    "    --listen=0.0.0.0:7609 --advertise=10.0.0.7:7609     a server of a cluster\n";

void AppendFlag(const std::string& name, std::string& page) {
  gflags::CommandLineFlagInfo flag;
  if (!gflags::GetCommandLineFlagInfo(name.c_str(), &flag)) {
    Die("--help names a flag that does not exist");
  }
  const bool has_default = !flag.default_value.empty() && flag.default_value != "false";
  page += FlagLine(name, flag.type != "bool",
                   Cat(flag.description, has_default ? Cat(" (", flag.default_value, ")") : ""));
}

}  // namespace

const std::vector<FlagGroup>& FlagGroups() {
#define FIRN_GROUP(title) groups.push_back({title, {}});
#define FIRN_SECOND(type, flag, ...) groups.back().flags.emplace_back(#flag);
#define FIRN_FIRST(flag, ...) groups.back().flags.emplace_back(#flag);
  static const auto& all = *new std::vector<FlagGroup>([] {
    std::vector<FlagGroup> groups;
    FIRN_FLAGS(FIRN_GROUP, FIRN_SECOND, FIRN_SECOND, FIRN_FIRST, FIRN_FIRST, FIRN_SECOND,
               FIRN_FIRST)
    return groups;
  }());
  return all;
#undef FIRN_GROUP
#undef FIRN_SECOND
#undef FIRN_FIRST
}

std::string FlagHelp() {
  std::string page(kHead);
  for (const FlagGroup& group : FlagGroups()) {
    page += Cat("\n", group.title, ":\n");
    for (const std::string& flag : group.flags) AppendFlag(flag, page);
  }
  return page;
}

bool AsksForHelp(int argc, const char* const* argv) {
  return std::any_of(argv + 1, argv + argc, [](std::string_view word) {
    return word == "--help" || word == "-help" || word == "--help=true" || word == "-h";
  });
}

}  // namespace firn
