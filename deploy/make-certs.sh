#!/bin/sh
# Makes what mutual TLS between perfd, agents and clients needs: a site CA and certificates signed by it.
#
#   deploy/make-certs.sh DIR [server HOST...] [agent NODE...] [user NAME...]
#
# makes the CA in DIR when there is none, the daemon's certificate for these names and addresses, one certificate for
# the agent of each node and one for each user. Example:
#
#   deploy/make-certs.sh certs server perfd.site 10.0.0.1 agent node1 node2 user alice
#
# DIR gets ca.crt ca.key issued server.crt server.key agent-NODE.crt agent-NODE.key user-NAME.crt user-NAME.key; keys are
# mode 0600. Keep ca.key off the cluster. The identity is a URI in the certificate: perfd://agent/NODE, perfd://user/NAME.
# Certificates last 397 days, or PERFD_CERT_DAYS, which may not be more; the CA lasts ten years. DIR/issued gets a line for
# each, as tls.revoked of perfd takes it: what to do about a stolen key is in docs/security.md.
set -eu
umask 077

die() { echo "make-certs: $*" >&2; exit 2; }
[ $# -ge 3 ] || { sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2; }
command -v openssl >/dev/null || die "openssl is missing: apt-get install openssl"
dir=$1; shift
longest=397
days=${PERFD_CERT_DAYS:-$longest}
case $days in *[!0-9]*) die "PERFD_CERT_DAYS is '$days', no number of days";; esac
[ "$days" -ge 1 ] && [ "$days" -le "$longest" ] || die "PERFD_CERT_DAYS is $days: 1 to $longest days are possible"
mkdir -p "$dir"

# A name of its own: by it people, and certificates without a key identifier, tell two CAs apart that are both trusted.
if [ ! -e "$dir/ca.key" ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -days 3650 \
    -keyout "$dir/ca.key" -out "$dir/ca.crt" -subj "/CN=perfd site CA $(openssl rand -hex 4)" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" 2>/dev/null
fi

# issue NAME SUBJECT_ALT_NAMES USAGE
issue() {
  ext=$dir/.$$.ext
  trap 'rm -f "$dir/.$$.ext" "$dir/.$$.csr"' EXIT
  printf 'basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=%s\nsubjectAltName=%s\n' \
    "$3" "$2" > "$ext"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/$1.key" -out "$dir/.$$.csr" \
    -subj "/CN=perfd $1" 2>/dev/null
  openssl x509 -req -in "$dir/.$$.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -sha256 -days "$days" \
    -extfile "$ext" -out "$dir/$1.crt" 2>/dev/null
  chmod 600 "$dir/$1.key"; chmod 644 "$dir/$1.crt"
  serial=$(openssl x509 -in "$dir/$1.crt" -noout -serial)
  ends=$(openssl x509 -in "$dir/$1.crt" -noout -enddate)
  echo "serial ${serial#*=}  # $1, until ${ends#*=}" >> "$dir/issued"
  echo "$dir/$1.crt"
}

plain() { case $1 in ''|*[!A-Za-z0-9._-]*) die "'$1' is not a plain name";; esac; }

kind=
hosts=
for word in "$@"; do
  case $word in server|agent|user) kind=$word; continue;; esac
  case $kind in
    server)
      case $word in
        ''|*[!A-Za-z0-9._:-]*) die "'$word' is not a host";;
        *:*) hosts="$hosts,IP:$word";;
        *[!0-9.]*) hosts="$hosts,DNS:$word";;
        *) hosts="$hosts,IP:$word";;
      esac;;
    agent|user)
      plain "$word"
      issue "$kind-$word" "URI:perfd://$kind/$word" clientAuth;;
    *) die "'$word': say server, agent or user first";;
  esac
done
if [ -n "$hosts" ]; then issue server "${hosts#,}" serverAuth; fi
chmod 644 "$dir/ca.crt"
