// Peers: caches that keep a page as bytes, in front of the bare server.

package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// nginxConfig configures nginx as a cache with everything that makes it faster. The page is in memory, as it was
// received. Connections stay open, and files are not checked again. sendfile is off, because with sendfile and
// tcp_nopush the last segment of a page of 100 KB waits 20 to 40 ms.
const nginxConfig = `user root; worker_processes 2; daemon off; pid %[1]s/nginx.pid; error_log %[1]s/nginx.err;
events { worker_connections 20000; }
http {
  proxy_cache_path %[2]s levels=1:2 keys_zone=pages:10m max_size=1g;
  access_log %[3]s; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/temp;
  sendfile off; output_buffers 2 128k; keepalive_requests 1000000000; keepalive_timeout 600;
  open_file_cache max=10000 inactive=600s; proxy_buffers 64 16k; proxy_buffer_size 16k;
  map $http_accept_encoding $packed { default 0; ~gzip 1; }
  server {
    listen %[4]s%[6]s
    location / {
      proxy_pass %[5]s; proxy_http_version 1.1; proxy_cache pages; proxy_cache_key $request_uri|$packed;
      proxy_cache_valid 200 2h; proxy_ignore_headers Cache-Control Vary Expires;
    }
  }
}
`

// varnishConfig makes Varnish store answers to requests with a credential.
const varnishConfig = `vcl 4.1;
backend default { .host = "%s"; .port = "%s"; }
sub vcl_recv { unset req.http.Authorization; return (hash); }
sub vcl_backend_response { set beresp.ttl = 2h; }
`

// nginxTLS makes nginx speak HTTP/1.1 and HTTP/2 over TLS, with the cipher that Go's server chooses.
const nginxTLS = ` ssl http2 backlog=1024;
    ssl_certificate %[1]s; ssl_certificate_key %[1]s; ssl_protocols TLSv1.2 TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;`

// Nginx starts nginx in front of a server, with or without an access log. With a file that has a certificate and its key,
// it speaks TLS. It returns ErrNoPeer if nginx is not installed.
func (r *Run) Nginx(ctx context.Context, up, certificate string, logs bool) (*Child, error) {
	at, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.Dir, "nginx-")
	if err != nil {
		return nil, err
	}
	pages, err := os.MkdirTemp("/dev/shm", "bench-nginx-")
	if err != nil {
		return nil, err
	}
	log := "off"
	if logs {
		log = filepath.Join(dir, "access.log")
	}
	listen, scheme := " backlog=1024;", "http"
	if certificate != "" {
		listen, scheme = fmt.Sprintf(nginxTLS, certificate), "https"
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxConfig, dir, pages, log, at, up, listen), 0o600); err != nil {
		return nil, err
	}
	c, err := peer(ctx, dir, "nginx", at, "/usr/sbin/nginx", "-c", file, "-e", filepath.Join(dir, "nginx.err"))
	if c != nil {
		c.Addresses["nginx"] = scheme + "://" + at
		c.ended = func() error { return os.RemoveAll(pages) }
	}
	return c, err
}

// Varnish starts Varnish in front of a server.
func (r *Run) Varnish(ctx context.Context, up string) (*Child, error) {
	at, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.Dir, "varnish-")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(up, "http://"))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "bench.vcl")
	if err := os.WriteFile(file, fmt.Appendf(nil, varnishConfig, host, port), 0o600); err != nil {
		return nil, err
	}
	return peer(ctx, dir, "varnish", at, "/usr/sbin/varnishd", "-j", "none", "-F", "-a", at, "-f", file, "-n", filepath.Join(dir, "work"), "-s", "malloc,256m")
}

// ErrNoPeer is the error that a program to compare with is not installed.
var ErrNoPeer = errors.New("not installed")

// peer starts a program that prints nothing when it is ready. It waits until the program answers at its address.
func peer(ctx context.Context, dir, name, at, bin string, args ...string) (*Child, error) {
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("%s: %w", name, ErrNoPeer)
	}
	c, err := Start(ctx, dir, name, name+" ", "/bin/sh", append([]string{"-c", `echo "` + name + ` http://` + at + `"; exec "$0" "$@"`, bin}, args...)...)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(Patience); ; {
		resp, err := http.Get("http://" + at + "/")
		if err == nil {
			return c, resp.Body.Close()
		}
		select {
		case <-c.Exited:
			return nil, fmt.Errorf("%s ended: %w\n%s", name, c.Err, c.lastWords())
		default:
		}
		if time.Now().After(end) || Pause(ctx, 20*time.Millisecond) != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
