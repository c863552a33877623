# Counts faults, and prints each with the output of the last command. Sourced by tests, whose folder is $work.
faults=0
expect() { # expect WHAT WANTED GOT
  [[ $2 == "$3" ]] && return
  printf '%s\n  wanted: %s\n  got:    %s\n' "$1" "$2" "$3"
  if [[ -f $work/out ]]; then cat "$work/out"; fi
  faults=$((faults + 1))
}
