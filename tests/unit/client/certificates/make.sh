#!/bin/sh
# Makes the authority and the server's certificate that the tests of private authorities use.
# The keys protect nothing: no machine trusts this authority.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cd "$work"
touch index.txt
cat >ca.cnf <<'END'
[ca]
default_ca = test
[test]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = any
email_in_dn = no
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical,CA:FALSE
subjectAltName = DNS:localhost,IP:127.0.0.1
authorityKeyIdentifier = keyid
END
key="openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
sign="openssl ca -batch -notext -config ca.cnf -startdate 20200101000000Z -enddate 21200101000000Z"
$key -keyout authority.key -out authority.csr -subj "/CN=rag-guardrail test authority"
$sign -selfsign -keyfile authority.key -in authority.csr -out authority.pem -extensions authority
$key -keyout server.key -out server.csr -subj "/CN=localhost"
$sign -keyfile authority.key -cert authority.pem -in server.csr -out server.pem -extensions server
cp authority.pem "$here/authority.pem"
cat server.pem server.key >"$here/server.pem"
rm -r "$work"
