// Schemes: credentials as SDKs send them.

package callers

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"understudy"
	"understudy/internal/checktest"
	"understudy/spec"
)

func TestSchemes(t *testing.T) {
	forge := &spec.Source{Name: "forge", Spec: &spec.Spec{Name: "forge", Auth: spec.Auth{Style: "bearer",
		Callers: []string{"bearer", "token", "basic", "basic {secret}:", "header X-Api-Key", "query api_key"}}}}
	mixed := &spec.Source{Name: "mixed", Spec: &spec.Spec{Name: "mixed", Auth: spec.Auth{Style: "basic",
		Callers: []string{"basic", "header X-Api-Key"}}}}
	o := Options{Sources: []*spec.Source{forge, mixed}, Credentials: []Credential{
		credential("ann", "forge", "", "anntoken", "all"), credential("bob", "forge", "unread", "bobtoken", "all"),
		credential("cid", "mixed", "cid", "cidtoken", "all")}}
	b := book(t, o)
	for _, c := range []struct {
		name, source, target, want string
		headers                    []string
	}{
		{"bearer", "forge", "/", "ann", []string{"Authorization", "Bearer anntoken"}},
		{"token", "forge", "/", "ann", []string{"Authorization", "token anntoken"}},
		{"token in capitals", "forge", "/", "ann", []string{"Authorization", "TOKEN anntoken"}},
		{"key as user name", "forge", "/", "ann", []string{"Authorization", basicHeader("anntoken", "")}},
		{"key as user name beside any password", "forge", "/", "ann", []string{"Authorization", basicHeader("anntoken", "x-oauth-basic")}},
		{"key as password", "forge", "/", "ann", []string{"Authorization", basicHeader("whoever", "anntoken")}},
		{"two keys in one", "forge", "/", "bob", []string{"Authorization", basicHeader("anntoken", "bobtoken")}},
		{"header", "forge", "/", "ann", []string{"X-Api-Key", "anntoken"}},
		{"query", "forge", "/x?a=1&api_key=anntoken", "ann", nil},
		{"escaped", "forge", "/x?api%5fkey=ann%74oken", "ann", nil},
		{"two ways, one caller", "forge", "/x?api_key=anntoken", "ann", []string{"Authorization", "Bearer anntoken", "X-Api-Key", "anntoken"}},
		{"two ways, two callers", "forge", "/", "", []string{"Authorization", "Bearer anntoken", "X-Api-Key", "bobtoken"}},
		{"one right, one wrong", "forge", "/", "", []string{"Authorization", "Bearer anntoken", "X-Api-Key", "nope"}},
		{"one right, one unreadable", "forge", "/", "", []string{"Authorization", "Digest x", "X-Api-Key", "anntoken"}},
		{"two of one", "forge", "/x?api_key=anntoken&api_key=anntoken", "", nil},
		{"empty header", "forge", "/", "", []string{"X-Api-Key", ""}},
		{"empty parameter", "forge", "/x?api_key=", "", nil},
		{"another parameter", "forge", "/x?apikey=anntoken", "", nil},
		{"long", "forge", "/x?api_key=" + strings.Repeat("a", 2000), "", nil},
		{"nothing", "forge", "/", "", nil},
		{"user and secret", "mixed", "/", "cid", []string{"Authorization", basicHeader("cid", "cidtoken")}},
		{"wrong user", "mixed", "/", "", []string{"Authorization", basicHeader("ann", "cidtoken")}},
		{"no user", "mixed", "/", "", []string{"Authorization", basicHeader("", "cidtoken")}},
		{"the secret alone", "mixed", "/", "cid", []string{"X-Api-Key", "cidtoken"}},
		{"a scheme of another source", "mixed", "/", "", []string{"Authorization", "Bearer cidtoken"}},
	} {
		r := httptest.NewRequest("GET", c.target, nil)
		for i := 0; i < len(c.headers); i += 2 {
			r.Header.Add(c.headers[i], c.headers[i+1])
		}
		got, err := b.Identify(r, c.source)
		checktest.Equal(t, got.Name, c.want, "%s: got.Name; %v", c.name, err)
		checktest.True(t, (err == nil) != (c.want == ""), "%s: err == nil is %v", c.name, err == nil)
		checktest.True(t, !(err != nil && !errors.Is(err, understudy.ErrUnauthorized)),
			"%s: err != nil && !errors.Is(err, understudy.ErrUnauthorized); err is %v", c.name, err)
		if err != nil && strings.Contains(err.Error(), "anntoken") {
			t.Errorf("%s: %v repeats the secret", c.name, err)
		}
	}
	o.Credentials = append(o.Credentials, credential("dan", "mixed", "dan", "cidtoken", "all"))
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "same secret as cid") {
		t.Errorf("one secret of two users: %v", err)
	}
}
