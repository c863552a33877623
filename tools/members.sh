# Functions to start, query and end the processes of a temporary cluster. Sourced after
# lib.sh, never run:
#   source "$FIRN_ROOT/tools/members.sh"
#
# `folder` is the cluster's folder. Each member (zk-1, server-3) has a folder in it with the files
# `command` (one word per line), `port`, `pid` (with the start time) and `log`. A server also has
# `admin`, its admin port, and `state`.

members() { # members KIND: the members that have a folder, in order
  find "$folder" -maxdepth 1 -name "$1-[0-9]*" -printf '%f\n' 2>/dev/null | sort -V
}

# Prints a process's start time in the kernel's ticks, or nothing if it has ended. With the pid, this
# identifies the process even after the pid is used again.
started_at() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  awk '$1 != "Z" { print $20 }' <<<"${stat##*) }"
}

# running NAME: whether the member's process runs; sets pid.
running() {
  local began
  pid=
  read -r pid began 2>/dev/null <"$folder/$1/pid" || return 1
  [[ $(started_at "$pid") == "$began" && -n $began ]]
}

# Starts the command in NAME/command in its own session, so that Ctrl-C does not end it.
launch() {
  local command
  mapfile -t command <"$folder/$1/command"
  setsid "${command[@]}" </dev/null >>"$folder/$1/log" 2>&1 9>&- &
  echo "$! $(started_at $!)" >"$folder/$1/pid"
}

# await NAME SECONDS CHECK...: waits until the check holds; fails if the process ends before.
await() {
  local name=$1 tries=$(($2 * 5)) try
  shift 2
  for ((try = 0; try < tries; ++try)); do
    "$@" && return
    running "$name" || break
    sleep 0.2
  done
  tail -n 15 "$folder/$name/log" >&2
  fail "$name does not serve; see the end of its log above. tools/cluster down ends the others"
}

# end SIGNAL SECONDS NAME...: signals the members that run, and waits for their end.
end() {
  local signal=$1 tries=$(($2 * 10)) name pid left
  shift 2
  for name in "$@"; do ! running "$name" || kill -"$signal" "$pid" 2>/dev/null || true; done
  while ((tries-- > 0)); do
    left=
    for name in "$@"; do ! running "$name" || left=yes; done
    [[ -n $left ]] || return 0
    sleep 0.1
  done
  return 1
}

zk_mode() { # leader, follower, standalone, or nothing
  local port
  port=$(cat "$folder/$1/port")
  { timeout 2 bash -c "exec 3<>/dev/tcp/127.0.0.1/$port && echo srvr >&3 && cat <&3" 2>/dev/null ||
    true; } | sed -n 's/^Mode: //p'
}
zk_serves() { [[ -n $(zk_mode "$1") ]]; }

server_asked() { curl -s -m 2 "http://127.0.0.1:$(cat "$folder/$1/admin")$2" "${@:3}"; }
server_serves() { server_asked "$1" /readyz -f >/dev/null; }

# Whether a server lists every server of the cluster, itself included, as one to call.
server_lists_all() {
  local listed name
  listed=$(server_asked "$1" /v1/servers -f) || return 1
  for name in $(members server); do
    grep -q "{\"address\":\"127.0.0.1:$(cat "$folder/$name/port")\"[^}]*\"state\":\"READY\"" \
      <<<"$listed" || return 1
  done
}

# json_field KEY: prints the key's first value, from JSON with one key per line.
json_field() { sed -n "s/^ *\"$1\": \"\\{0,1\\}\\([^\",]*\\).*/\\1/p" | head -n 1; }

registry() {
  local hosts
  hosts=$(for name in $(members zk); do echo "127.0.0.1:$(cat "$folder/$name/port")"; done |
    paste -sd ,)
  echo "zk://$hosts/firn/local"
}
