# Creates a drill's authorities and its servers' certificates in $work/tls. Sourced by tools/drill after
# members.sh, never run.

make_authority() { # make_authority NUMBER
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 400 \
    -subj "/CN=drill authority $1" -keyout "$work/tls/ca-$1.key" -out "$work/tls/ca-$1.pem" \
    2>/dev/null
}
make_certificates() { # make_certificates AUTHORITY: a new key each time; each file is whole or old
  local made=$work/tls/made
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=127.0.0.1 \
    -keyout "$made.key" -out "$made.csr" 2>/dev/null
  openssl x509 -req -in "$made.csr" -CA "$work/tls/ca-$1.pem" -CAkey "$work/tls/ca-$1.key" \
    -CAcreateserial -days 365 -extfile <(echo subjectAltName=IP:127.0.0.1) -out "$made.pem" \
    2>/dev/null
  mv "$made.key" "$work/tls/server.key"
  mv "$made.pem" "$work/tls/server.pem"
}

prepare_tls() {
  local name
  mkdir -p "$work/tls"
  make_authority 1
  cp "$work/tls/ca-1.pem" "$work/tls/ca.pem"
  make_certificates 1
  for name in $(members server); do
    printf '%s\n' "--tls_cert=$work/tls/server.pem" "--tls_key=$work/tls/server.key" \
      >>"$folder/$name/command"
    end TERM 20 "$name"
  done
  tls=("--tls_ca=$work/tls/ca.pem")
  up
}

# Waits until every server presents the new certificate, and then checks that a client is served.
rotate() { # rotate WHOSE
  local name
  for name in $(members server); do running "$name" && kill -HUP "$pid"; done
  for name in $(members server); do await "$name" 60 shows_certificate "$name"; done
  "$bin/firn" next "--registry=$(registry)" "${tls[@]}" --deadline_ms=30000 >"$work/next" 2>&1 ||
    told+=("a new client after a rotation to $1: $(<"$work/next")")
  sleep "$away"
}
shows_certificate() {
  [[ $(openssl s_client -connect "127.0.0.1:$(cat "$folder/$1/port")" </dev/null 2>/dev/null |
    openssl x509 -noout -serial 2>/dev/null) == "$(openssl x509 -noout -serial \
    -in "$work/tls/server.pem")" ]]
}
