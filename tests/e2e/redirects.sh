#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A registry with a certificate and a password, whose files lie behind plain HTTP elsewhere.
. "$(dirname "$0")/lib.sh"

tiny_base >/dev/null
digest=$(jq -r '.manifests[0].digest' "$work/tiny/index.json")
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test \
	-addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
door=$(free_port) files=$(free_port)
cat >"$work/door.py" <<'PY'
import http.server, ssl, sys, threading
layout, door, files, cert, key = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]

class Files(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory=layout)

    def send_head(self):
        if self.headers["Authorization"]:  # as signed URLs have it
            return self.send_error(400, "Only one auth mechanism allowed")
        return super().send_head()

class Door(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if not self.headers["Authorization"]:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic realm=x")
        else:
            self.send_response(307)
            name = self.path.split("/")[-1].replace(":", "/")
            self.send_header("Location", f"http://127.0.0.1:{files}/blobs/{name}")
        self.send_header("Content-Length", "0")
        self.end_headers()
    do_HEAD = do_GET

plain = http.server.ThreadingHTTPServer(("127.0.0.1", files), Files)
threading.Thread(target=plain.serve_forever, daemon=True).start()
server = http.server.ThreadingHTTPServer(("127.0.0.1", door), Door)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PY
serve python3 "$work/door.py" "$work/tiny" "$door" "$files" "$work/cert.pem" "$work/key.pem"
wait_for 60 curl -sS --cacert "$work/cert.pem" "https://127.0.0.1:$door/"
pull() { echo secret | hearth pull "127.0.0.1:$door/tiny$1" --ca-file "$work/cert.pem" --username me --password-stdin; }

same "what has a digest may come by plain HTTP, to which no password goes" "$(pull "@$digest" 2>"$work/log")" "$digest"
refused "what a tag stands for may not" 69 "redirected from HTTPS to plain HTTP at 127.0.0.1" pull :latest

# Registries of other addresses, in a network of its own. A repository's name is where it sends us.
# Port 5001 is a proxy, which plays the host that it is asked for.
cat >"$work/lead.py" <<'PY'
import http.server, sys, threading, urllib.parse
class Lead(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory=sys.argv[1])

    def do_GET(self):
        self.path = urllib.parse.urlsplit(self.path).path
        parts = self.path.split("/")
        if parts[1] != "v2":
            return super().do_GET()
        self.send_response(307)
        self.send_header("Location", f"http://{parts[2]}:5000/blobs/" + parts[-1].replace(":", "/"))
        self.send_header("Content-Length", "0")
        self.end_headers()

proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 5001), Lead)
threading.Thread(target=proxy.serve_forever, daemon=True).start()
http.server.ThreadingHTTPServer(("0.0.0.0", 5000), Lead).serve_forever()
PY
cat >"$work/apart.sh" <<SH
set -eu
ip link set lo up
for address in 203.0.113.5 203.0.113.6 10.77.0.1 10.77.0.2; do ip addr add "\$address/32" dev lo; done
echo "10.77.0.1 private.example.test" >"$work/hosts"
mount --bind "$work/hosts" /etc/hosts
setpriv --pdeathsig TERM python3 "$work/lead.py" "$work/tiny" >/dev/null 2>&1 &
until curl -fsS http://10.77.0.1:5000/oci-layout >/dev/null 2>&1; do sleep 0.05; done
http_proxy=\${3:-} exec "$HEARTH" pull --plain-http --data "$work/apart" "\$1:5000/\$2@$digest"
SH
leads() # REGISTRY HOST [PROXY]: a pull from there, which is sent to the host
{
	rm -rf "$work/apart"
	unshare --net --mount bash "$work/apart.sh" "$@"
}
check "a public registry may send us to a public host" leads 203.0.113.5 203.0.113.6
check "a private one to a private one" leads 10.77.0.1 10.77.0.2
check "also where its name is all that is known of it" leads private.example.test 10.77.0.2
for host in 10.77.0.2 127.0.0.1 0.0.0.0; do
	refused "a public one may not send us to $host" 69 "redirected to $host, which is no host of a registry" leads 203.0.113.5 $host
done
refused "nor a private one to this host" 69 "redirected to 127.0.0.1, which is no host of a registry" leads 10.77.0.1 127.0.0.1
check "by a proxy as well" leads public.example.test 203.0.113.6 http://127.0.0.1:5001
refused "though its proxy is here" 69 "redirected to 127.0.0.1, which is no host of a registry" \
	leads public.example.test 127.0.0.1 http://127.0.0.1:5001

nothing_left "nothing is left of it"
finish
