// Tests of all other shapes: what comes from outside, arrivals, many at once.
package slowapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"understudy/internal/checktest"
	"understudy/internal/slowapi"
	"understudy/internal/slowapi/slowapitest"
)

func FuzzOtherShapes(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "/repos/acme/tracker/issues?labels=bug,ui&page=2&per_page=3&since=2026-05-01T00:00:00Z", ""},
		{"PATCH", "/repositories/530000000/issues/1", `{"state":"closed","labels":["a"],"assignees":["robin"]}`},
		{"POST", "/repos/acme/tracker/issues/1/labels", `{"labels":["bug"]}`},
		{"GET", "/search/issues?q=is:pr+label:bug+x", ""},
		{"GET", "/repos/acme/site/%2F?page=%zz", ""},
		{"GET", `/v1/customers/search?query=metadata["a"]:'b' AND -email~"x" created>=1&page=YXQ6MQ`, ""},
		{"GET", "/v1/charges?expand[]=data.customer&expand[]=data.payment_intent.latest_charge.customer&created[gte]=1", ""},
		{"POST", "/v1/customers", "metadata[a]=b&address[city]=x&expand[]=y&name="},
		{"POST", "/v1/subscriptions", "customer=cus_1&items[0][price]=price_1&items[0][quantity]=2"},
		{"POST", "/v1/refunds", "charge=ch_1&amount=-1"},
		{"GET", "/v2/core/events?page=!&limit=0", ""},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	var servers []*slowapi.Server
	for _, shape := range []string{"github", "stripe"} {
		api, err := slowapi.New(slowapi.Options{Shape: shape, Records: 20})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = api.Close() })
		servers = append(servers, api)
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		path, query, _ := strings.Cut(target, "?")
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/-/") {
			return
		}
		for i, api := range servers {
			r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(body))
			r.Method, r.URL = method, &url.URL{Path: path, RawQuery: query}
			r.Header.Set("Authorization", []string{"token slowapitoken", "Bearer sk_test_slowapitoken"}[i])
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if w.Body.Len() > 0 && method != http.MethodHead && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s: %d with no JSON: %.200s", method, target, w.Code, w.Body)
			}
			if w.Code >= 500 {
				t.Errorf("%s %s: %d %.200s", method, target, w.Code, w.Body)
			}
		}
	})
}

// lists are one of each shape, of what arrives there.
var lists = map[string]string{"github": "/repos/acme/tracker/issues?state=all&per_page=100", "stripe": "/v1/customers?limit=100"}

func TestRecordsOfOtherShapesArrive(t *testing.T) {
	for shape, list := range lists {
		synctest.Test(t, func(t *testing.T) {
			api, err := slowapi.New(slowapi.Options{Shape: shape, Records: 20, Arrivals: 60})
			if err != nil {
				t.Fatal(err)
			}
			rows := func() int {
				r := httptest.NewRequest(http.MethodGet, list, nil)
				r.SetBasicAuth(map[string]string{"github": "slowapitoken", "stripe": "sk_test_slowapitoken"}[shape], "")
				w := httptest.NewRecorder()
				api.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Fatalf("%s: %d %s", shape, w.Code, w.Body)
				}
				return strings.Count(w.Body.String(), `"metadata":`) + strings.Count(w.Body.String(), `"timeline_url":`)
			}
			before := rows()
			time.Sleep(time.Minute)
			synctest.Wait()
			if after := rows(); after <= before+10 {
				t.Errorf("%s: %d records, a minute later %d", shape, before, after)
			}
			if err := api.Close(); err != nil {
				t.Error(err)
			}
			closed := rows()
			time.Sleep(time.Minute)
			if rows() != closed {
				t.Errorf("%s: records come after the end", shape)
			}
		})
	}
}

func TestOtherShapesAreReadWhileTheyChange(t *testing.T) {
	for shape, list := range lists {
		r := slowapitest.Start(t, slowapi.Options{Shape: shape, Records: 40})
		token := map[string]string{"github": "token slowapitoken", "stripe": "Bearer sk_test_slowapitoken"}[shape]
		write := map[string][3]string{
			"github": {"/repos/acme/tracker/issues/1/comments", `{"body":"x"}`, `{"issues":1}`},
			"stripe": {"/v1/customers", "name=x", `{"customers":1}`},
		}[shape]
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 10 {
					resp, _ := r.Call("GET", list, "", "Authorization", token)
					made, _ := r.Call("POST", write[0], write[1], "Authorization", token)
					moved, _ := r.Call("POST", "/-/advance", write[2])
					checktest.Equal(t, resp.StatusCode, 200, "%s: resp.StatusCode", shape)
					checktest.True(t, made.StatusCode < 300, "%s: made.StatusCode is %v, want < 300", shape,
						made.StatusCode)
					checktest.Equal(t, moved.StatusCode, 200, "%s: moved.StatusCode", shape)
				}
			})
		}
		all.Wait()
	}
}
