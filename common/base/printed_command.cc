#include "common/base/printed_command.h"

#include <algorithm>

#include "common/base/cat.h"

namespace firn {
namespace {

bool IsPlain(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
}

// Quotes the text so that a shell reads it as one word.
std::string ShellWord(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string_view WordsOf(PrintedCommand which) {
  for (const CommandTemplate& row : kPrintedCommands) {
    if (row.which == which) return row.words;
  }
  return {};
}

std::string RunRestore() { return "run " + PrintCommand(PrintedCommand::kRestore); }

}  // namespace

std::string PrintCommand(PrintedCommand which, const std::vector<std::string>& arguments) {
  const std::string_view words = WordsOf(which);
  std::string command(words);
  for (const std::string& argument : arguments) {
    const bool completes = command.size() == words.size() && words.ends_with('=');
    command += Cat(completes ? "" : " ", ShellWord(argument));
  }
  return command;
}

std::string AskForRestore(std::string_view message) { return Cat(message, "; ", RunRestore()); }

bool AsksForRestore(std::string_view message) { return message.find(RunRestore()) != message.npos; }

}  // namespace firn
