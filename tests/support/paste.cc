#include "tests/support/paste.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "common/base/cat.h"

namespace firn {

std::string CommandIn(PrintedCommand which, const std::string& text) {
  const std::string words = PrintCommand(which);
  // These have arguments up to the end of the line. After others the sentence may continue.
  const bool to_the_end = which == PrintedCommand::kRestore || which == PrintedCommand::kTagsSet;
  const std::string begin = Cat(words, which == PrintedCommand::kRestore ? " --" : "");
  const size_t at = text.rfind(begin);
  if (at == text.npos) return {};
  if (to_the_end) return text.substr(at, text.find('\n', at) - at);
  const size_t end = at + words.size() + (which == PrintedCommand::kSet ? 1 : 0);  // one argument
  return text.substr(at, text.find_first_of(" ;,)`'\n", end) - at);
}

Finished Paste(PrintedCommand which, const std::string& command,
               const std::map<std::string, std::string>& environment) {
  EXPECT_TRUE(command.starts_with(PrintCommand(which))) << command;
  std::string script;
  for (const auto& [name, value] : environment) script += "export " + name + "='" + value + "'\n";
  const std::string programs = std::filesystem::path(BuiltProgram("firn")).parent_path();
  return RunToEnd({"/bin/sh", "-c", script + "PATH='" + programs + "':$PATH\n" + command});
}

}  // namespace firn
