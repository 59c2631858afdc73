package callers

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"understudy"
	"understudy/kit/accesslog"
	"understudy/spec"
)

// annaIsHere is a sign-in where every request is anna's.
type annaIsHere struct{ People }

func (annaIsHere) Identify(*http.Request) (understudy.Caller, error) {
	return understudy.Caller{Name: "anna", Grant: &understudy.Grant{Role: "all"}}, nil
}

// The access log tells a person from a credential of the same name.
func TestAccessLogNamesPeople(t *testing.T) {
	b, err := New(Options{Sources: []*spec.Source{{Name: "twilio", Spec: &spec.Spec{}}}, Now: time.Now, Salt: []byte("salt"),
		People: annaIsHere{},
		Credentials: []Credential{{Name: "anna", Source: "twilio", User: "AC1", Secret: understudy.NewSecret("a secret of a program"),
			Grant: understudy.Grant{Role: "all"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	log := accesslog.New(&out)
	h := log.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if c, err := b.IdentifyPerson(r); err != nil || c.Name != "anna" {
			t.Errorf("the caller is %q, %v", c.Name, err)
		}
	}), time.Now)
	for _, isPerson := range []bool{true, false} {
		r := httptest.NewRequest("GET", "/", nil)
		if !isPerson {
			r.SetBasicAuth("AC1", "a secret of a program")
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if err := log.Flush(); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, " caller=anna ") || strings.Contains(text, " person=anna\n") != isPerson {
			t.Errorf("a person %v: logged %s", isPerson, text)
		}
		out.Reset()
	}
}
