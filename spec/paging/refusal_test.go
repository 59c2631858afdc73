package paging

import (
	"testing"

	"understudy/kit/jsonspan"
)

// TestRefusesIsSaidOfAnErrorBesideRows reads answers with 200 that say an error, and those that say that there is none.
func TestRefusesIsSaidOfAnErrorBesideRows(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[],"error":"overloaded"}`:                           "error: overloaded",
		`{"data":[],"errors":[{"id":1}],"next":null}`:                `errors: [{"id":1}]`,
		`{"data":[],"ok":false}`:                                     "ok: false",
		`{"data":[],"success":false}`:                                "success: false",
		`{"data":[],"status":"error"}`:                               "status: error",
		`{"data":[],"status":503}`:                                   "status: 503",
		`{"data":[],"code":"RATE_LIMITED"}`:                          "code: rate_limited",
		`{"data":[],"message":"Too many requests, try again"}`:       "message: too many requests, try again",
		`{"data":[],"_shards":{"failed":2}}`:                         "_shards.failed: 2",
		`{"data":[],"meta":{"error_code":7}}`:                        "meta.error_code: 7",
		`{"data":[],"error":null,"errors":[],"error_code":0}`:        "",
		`{"data":[],"status":"ok","code":200,"success":true}`:        "",
		`{"data":[],"message":"No items found","title":"Items"}`:     "",
		`{"data":[],"_shards":{"failed":0},"job":{"status":"fail"}}`: "",
		`{"data":[{"error":"of a row"}]}`:                            "",
	} {
		doc, err := jsonspan.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := FindError([]byte(body), doc); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
