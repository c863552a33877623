#include "tools/firn/command.h"

#include <algorithm>
#include <iostream>

#include <gflags/gflags.h>

#include "common/base/utf8.h"
#include "tools/firn/flag_words.h"

DEFINE_bool(json, false, "Print JSON, for programs.");

namespace firn {
namespace {

constexpr std::string_view kExitCodes =
    "Exit codes: 0 done; 1 done, and something is wrong; 2 invalid usage; 3 try again later;\n"
    "4 refused; 5 outcome unknown, check before you repeat it; 6 data not trustworthy.\n";

std::string HelpOf(const Verb& verb, const std::string& path) {
  std::string text = path;
  if (!verb.arguments.empty()) text.append(" ").append(verb.arguments);
  text.append(": ").append(verb.summary).append("\n");
  if (!verb.details.empty()) text.append("\n").append(verb.details);
  if (!verb.below.empty()) text += "\nVerbs (each has --help):\n";
  for (const Verb& below : verb.below) {
    std::string call(below.name);
    if (!below.arguments.empty()) call.append(" ").append(below.arguments);
    call.resize(std::max<size_t>(call.size() + 2, 26), ' ');
    text.append("  ").append(call).append(below.summary).append("\n");
  }
  std::vector<std::string_view> flags = verb.flags;
  if (verb.run) flags.push_back("json");
  if (!flags.empty()) text += "\nFlags:\n" + DescribeFlags(flags);
  return text.append("\n").append(kExitCodes);
}

Json ErrorOf(const Status& status) {
  return {{"code", CodeName(status.code())}, {"message", status.message()}};
}

// Replaces control characters, which may come from a server or the registry, except line feeds.
std::string ForTerminal(std::string_view text) {
  std::string shown;
  for (;;) {
    const size_t end = text.find('\n');
    shown += ToPrintableUtf8(text.substr(0, end));
    if (end == text.npos) return shown;
    shown += '\n';
    text.remove_prefix(end + 1);
  }
}

int Tell(const Status& status, const std::string& path) {
  std::cerr << path << ": " << ForTerminal(status.message()) << "\n";
  if (status.code() == Code::kInvalid) std::cerr << "See " << path << " --help\n";
  return static_cast<int>(ExitFor(status.code()));
}

int Fail(const Status& status, const std::string& path) {
  if (FLAGS_json) std::cout << JsonText(Json{{"error", ErrorOf(status)}}, 2) << "\n";
  return Tell(status, path);
}

int Print(Output output, const std::string& path) {
  if (!output.failed.ok()) output.json["error"] = ErrorOf(output.failed);
  if (FLAGS_json) {
    std::cout << JsonText(output.json, 2) << "\n";
  } else {
    std::cout << ForTerminal(output.text);
  }
  std::cout.flush();
  if (!output.failed.ok()) return Tell(output.failed, path);
  if (output.exit_code != 0) return output.exit_code;
  return static_cast<int>(output.wrong ? Exit::kWrong : Exit::kDone);
}

// Returns the verb that the first words name, and removes those words.
const Verb* Descend(const Verb* verb, std::vector<std::string>& words, std::string& path) {
  size_t used = 0;
  while (used < words.size()) {
    const auto below = std::find_if(verb->below.begin(), verb->below.end(),
                                    [&](const Verb& b) { return b.name == words[used]; });
    if (below == verb->below.end()) break;
    verb = &*below;
    path += " " + words[used++];
  }
  words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(used));
  return verb;
}

}  // namespace

Exit ExitFor(Code code) {
  switch (code) {
    case Code::kOk:
      return Exit::kDone;
    case Code::kInvalid:
      return Exit::kUsage;
    case Code::kUnavailable:
      return Exit::kLater;
    case Code::kNotFound:
    case Code::kConflict:
    case Code::kDenied:
    case Code::kExhausted:
      return Exit::kRefused;
    case Code::kUnknown:
      return Exit::kUnknown;
    case Code::kCorrupt:
    case Code::kInternal:
      break;
  }
  return Exit::kBroken;
}

int RunCommand(const Verb& root, std::string_view version, int argc, const char* const* argv) {
  std::string path(root.name);
  Result<CommandLine> line = SplitCommandLine({argv + std::min(argc, 1), argv + argc});
  if (!line.ok()) return Fail(line.status(), path);
  if (line->version) {
    std::cout << root.name << " version " << version << "\n";
    return static_cast<int>(Exit::kDone);
  }
  const Verb* verb = Descend(&root, line->words, path);
  if (line->help) {
    std::cout << HelpOf(*verb, path);
    return static_cast<int>(Exit::kDone);
  }
  if (!verb->run) {
    if (!line->words.empty()) {
      return Fail(Invalid("unknown command '" + line->words.front() + "'"), path);
    }
    std::cerr << HelpOf(*verb, path);
    return static_cast<int>(Exit::kUsage);
  }
  std::vector<std::string_view> permitted = verb->flags;
  permitted.push_back("json");
  if (Status read = ReadFlagsFile(); !read.ok()) return Fail(read, path);
  if (Status set = ApplySettings(line->settings, permitted); !set.ok()) return Fail(set, path);
  const Result<Output> output = verb->run(line->words);
  return output.ok() ? Print(*output, path) : Fail(output.status(), path);
}

}  // namespace firn
