// Connect, generic: a source without a spec is answered in tunnels to its host, too.

package vendors

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestGenericSourcesInTunnels(t *testing.T) {
	t.Parallel()
	s, o := &rig.Tunnels{Dir: t.TempDir()}, newUnstartedOrigin()
	host := s.StartBefore(t, o.Server, "", "POST /echo")
	one, two := s.Client(t), s.Client(t)
	one.Transport.(*http.Transport).ForceAttemptHTTP2 = false
	one.Transport.(*http.Transport).TLSClientConfig.NextProtos = []string{"http/1.1"}
	for i, c := range []*http.Client{one, two} {
		version := i + 1
		ask := func(method, path, body string, headers ...string) (*http.Response, string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, "https://"+host+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+rig.OriginToken)
			for n := 0; n < len(headers); n += 2 {
				req.Header.Set(headers[n], headers[n+1])
			}
			resp, err := c.Do(req)
			if err != nil {
				t.Fatalf("HTTP/%d %s %s: %v", version, method, path, err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || resp.ProtoMajor != version {
				t.Fatalf("%s %s: HTTP/%d, %v", method, path, resp.ProtoMajor, err)
			}
			return resp, string(got)
		}
		for _, want := range []struct {
			method, path, body string
			headers            []string
			status             int
			answer             string
			hit                bool
		}{
			{"GET", "/kept", "", nil, 200, "0123456789\x01\x00\xff", version == 2},
			{"GET", "/kept", "", nil, 200, "0123456789\x01\x00\xff", true},
			{"HEAD", "/kept", "", nil, 200, "", true},
			{"GET", "/kept", "", []string{"Range", "bytes=2-4"}, 206, "234", true},
			{"GET", "/trailer", "", nil, 200, "body", false},
			{"GET", "/moved", "", nil, 302, "", false},
			{"POST", "/echo", "x=1", nil, 200, "POST x=1", false},
		} {
			resp, got := ask(want.method, want.path, want.body, want.headers...)
			status := resp.Header.Get("Cache-Status")
			checktest.Equal(t, resp.StatusCode, want.status, "HTTP/%d %s %s: resp.StatusCode; got %q", version,
				want.method, want.path, got)
			checktest.Equal(t, got, want.answer, "HTTP/%d %s %s: got", version, want.method, want.path)
			checktest.Equal(t, strings.Contains(status, "hit"), want.hit,
				`HTTP/%d %s %s: strings.Contains(status, "hit"); got %q`, version, want.method, want.path, got)
			if want.path == "/trailer" && resp.Trailer.Get("X-Sum") != "42" {
				t.Errorf("HTTP/%d: the trailer is %v", version, resp.Trailer)
			}
		}
		_, before := o.last()
		for _, refused := range []struct {
			method, path string
			headers      []string
			status       int
		}{
			{"PUT", "/echo", nil, 403}, {"POST", "/other", nil, 403}, {"GET", "/kept", []string{"Authorization", "Bearer x"}, 401},
			{"GET", "/kept", []string{"Authorization", ""}, 401}, {"TRACE", "/kept", nil, 405},
		} {
			if resp, got := ask(refused.method, refused.path, "", refused.headers...); resp.StatusCode != refused.status {
				t.Errorf("HTTP/%d %s %s %v: %s %.200s", version, refused.method, refused.path, refused.headers, resp.Status, got)
			}
		}
		if _, after := o.last(); after != before {
			t.Errorf("HTTP/%d: what is refused has reached upstream", version)
		}
		hint := ""
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			hint = fmt.Sprint(status, h.Get("Link"))
			return nil
		}})
		for path, after := range map[string]func(*http.Response){
			"/early": func(*http.Response) {
				if hint != "103</style.css>; rel=preload" {
					t.Errorf("HTTP/%d: the hint is %q", version, hint)
				}
			},
			"/stream": func(resp *http.Response) {
				lines := bufio.NewReader(resp.Body)
				if first, err := lines.ReadString('\n'); first != "first\n" {
					t.Errorf("HTTP/%d: %q %v", version, first, err)
				}
				o.next <- struct{}{} // it began before it ended
				if second, err := lines.ReadString('\n'); second != "second\n" {
					t.Errorf("HTTP/%d: %q %v", version, second, err)
				}
			},
		} {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+rig.OriginToken)
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			after(resp)
			_ = resp.Body.Close()
		}
	}
}
