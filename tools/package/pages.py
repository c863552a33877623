#!/usr/bin/env python3
"""Writes a program's manual page, or bash's completion for it, from its help.

    tools/package/pages.py manual PROGRAM VERSION TEMPLATE PAGE
    tools/package/pages.py completion PROGRAM FILE

A template is a manual page with @VERSION@, @VERBS@, @FLAGS@ and @EXITS@ where the help belongs.
"""

import os
import sys

import program_help

COMPLETION = r"""# bash completion for {program}: made from its --help.
declare -A {name}_verbs=(
{verbs})
declare -A {name}_flags=(
{flags})

{name}_complete() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} path= earlier
  for earlier in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ " ${{{name}_verbs[x$path]}} " == *" $earlier "* ]] && path+=" $earlier"
  done
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${{{name}_flags[x$path]}} --help" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "${{{name}_verbs[x$path]}}" -- "$word")
  fi
}}
complete -o default -F {name}_complete {program}
"""


def roff(text):
    """Escapes `text`, so that roff treats no dash as a hyphen and no line as a command."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def flags_of(flags):
    lines = []
    for flag in flags:
        lines += [".TP", f".B {roff('--' + flag.name + flag.value)}", roff(flag.meaning)]
        if flag.default:
            lines.append(f"(default: {roff(flag.default)})")
    return "\n".join(lines)


def verbs_of(program):
    lines = []
    for verb in program_help.all_verbs(program_help.verb_tree(program)):
        if verb.words:
            call = roff(" ".join(("firn", *verb.words, *verb.arguments)))
            lines += [f".SS {call}", roff(verb.summary[:1].upper() + verb.summary[1:] + ".")]
            if verb.details:
                lines += [".PP", ".nf", roff(verb.details), ".fi"]
            lines.append(flags_of(verb.flags))
    return "\n".join(line for line in lines if line)


def exits_of(program):
    return "\n".join(f".TP\n.B {code}\n{roff(meaning)}" for code, _, meaning in
                     (line.partition(" ") for line in program_help.exit_codes(program)))


def manual(program, version, template):
    with open(template, encoding="utf-8") as file:
        text = file.read()
    parts = {"@VERSION@": lambda: version, "@VERBS@": lambda: verbs_of(program),
             "@EXITS@": lambda: exits_of(program),
             "@FLAGS@": lambda: flags_of(program_help.server_flags(program))}
    for mark, make in parts.items():
        if mark in text:
            text = text.replace(mark, make())
    return text


def completion(program):
    name = os.path.basename(program)
    if name == "firn":
        words = {"".join(f" {word}" for word in verb.words):
                 ([below.words[-1] for below in verb.below], verb.flags)
                 for verb in program_help.all_verbs(program_help.verb_tree(program))}
    else:
        words = {"": ([], program_help.server_flags(program))}
    return COMPLETION.format(
        program=name, name="_" + name.replace("-", "_"),
        verbs="".join(f'  ["x{path}"]="{" ".join(below)}"\n' for path, (below, _) in words.items()),
        flags="".join(f'  ["x{path}"]="{" ".join("--" + flag.name for flag in flags)}"\n'
                      for path, (_, flags) in words.items()))


def main(kind, program, *rest):
    made = {"manual": manual, "completion": completion}[kind](program, *rest[:-1])
    with open(rest[-1], "w", encoding="utf-8") as file:
        file.write(made)


if __name__ == "__main__":
    main(*sys.argv[1:])
