package tokens_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"understudy"
	"understudy/upstream/tokens"
)

// A client secret becomes a token.
func Example() {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"access_token":"short-lived","expires_in":3600}`)
	}))
	defer srv.Close()
	issuer, _ := tokens.New(tokens.Options{Kind: tokens.ClientCredentials, Source: "forge", URL: srv.URL, Client: "reports"})
	token, _, err := issuer.Issue(context.Background(), understudy.NewSecret("client secret"))
	fmt.Println(token.Reveal(), err)
	// Output: short-lived <nil>
}
