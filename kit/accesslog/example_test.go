package accesslog_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"understudy/kit/accesslog"
)

func Example() {
	log := accesslog.New(os.Stdout)
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	h := log.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accesslog.LineOf(r.Context()).Caller = "anna" // what the handler alone knows
		_, _ = w.Write([]byte("hello"))
	}), now)
	r := httptest.NewRequest("GET", "/?to=%2B491701234567", http.NoBody)
	r.Header.Set("X-Request-Id", "7")
	h.ServeHTTP(httptest.NewRecorder(), r)
	_ = log.Flush() // a server calls Run instead
	// Output:
	// time=2026-01-02T03:04:05.000Z id=7 method=GET path="/?to=…" status=200 bytes=5 caller=anna dur=0.000ms peer=192.0.2.1 host=example.com
}

func ExampleAppendTarget() {
	fmt.Printf("%s\n", accesslog.AppendTarget(nil, "/2010-04-01/numbers/+491701234567?from=x", nil))
	// Output: /2010-04-01/numbers/…?from=…
}
