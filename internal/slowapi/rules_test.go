// Fuzzing of rules of faults.
package slowapi

import (
	"net/http/httptest"
	"testing"

	"understudy/internal/slowapi/format"
)

func FuzzRules(f *testing.F) {
	f.Add([]byte(`{"rules":[{"match":"/Calls","status":500,"times":3}]}`))
	f.Add([]byte(`{"rules":[{"redirect":"loop","pad_mb":1,"length":-3,"gzip_cut":5,"truncate":1,"stall_after":2,"reset":true}]}`))
	f.Add([]byte(`{"rules":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		rules, err := readRules(raw)
		if err != nil {
			return
		}
		for _, one := range rules {
			one.replacement(httptest.NewRequest("GET", "/x", nil), func(status int) format.Answer { return *format.RefusalFor(status) })
			a := format.Answer{Status: 200, Body: []byte("{}")}
			one.apply(&a)
			if one.remaining != nil && !one.take() {
				t.Fatal("a new rule has no times left")
			}
		}
	})
}
